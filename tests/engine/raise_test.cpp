// SPDX-License-Identifier: BSD-3-Clause
//
// Every engine in a pool whose max_size is raised: transactions fill it to the old limit and beyond
// it, the process is killed, and recovery, checkpoints, the heap and check() find each block, those
// in the added sections of the directory too.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "perdure/perdure.hpp"
#include "perdure/pool/directory.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

constexpr std::uint64_t MiB = std::uint64_t{1} << 20;

struct Root {
  p<std::uint64_t> made;
  std::array<ptr<std::uint64_t>, 400> slot;

  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    for (const auto& s : slot)
      if (auto* const one = tx.read(s)) f(one);
  }
};
using TestPool = AnyPool<Root>;

// Blocks of one chunk's span, of a span of 8 chunks, and of three chunks.
std::uint64_t words_of(std::uint64_t number) {
  static constexpr std::uint64_t words[] = {400, 2500, 20000};
  return words[number % 3];
}

class Raise : public EngineTest {
 protected:
  /// The number of words of a block that are stored: few for REWIND, which logs a record per word.
  static std::uint64_t stored_of(std::uint64_t number) {
    return is_rewind(GetParam()) ? 40 : words_of(number);
  }
  Raise() {
    folder_ =
        (::access("/dev/shm", W_OK) == 0 ? std::string("/dev/shm/") : ::testing::TempDir() + "/") +
        "perdure-raise-XXXXXX";
    if (::mkdtemp(folder_.data()) == nullptr) std::abort();
  }
  ~Raise() override { std::filesystem::remove_all(folder_); }

  TestPool open(std::uint64_t max_size) {
    Options o;
    o.engine = GetParam().name;
    o.isolation = GetParam().isolation;
    o.medium = "emulated";
    o.creation.max_size = max_size;
    o.creation.raise_max_size = true;
    o.creation.log_size = 8 * MiB;
    return TestPool::open(folder_ + "/pool", o);
  }
  /// A transaction for each block, until the pool is full or `most` are made. Returns how many.
  static std::uint64_t fill(TestPool& pool, std::uint64_t most = 400) {
    for (std::uint64_t n = pool.view([](auto& tx, const Root& r) { return tx.read(r.made); });
         n < most; ++n) {
      try {
        pool.update([&](auto& tx, Root& r) {
          auto* const block = reinterpret_cast<std::uint64_t*>(tx.alloc(words_of(n) * 8));
          const std::vector<std::uint64_t> values(stored_of(n), n + 1);
          tx.write_bytes(block, values.data(), values.size() * 8);
          tx(r.slot[n]) = block;
          tx(r.made) = n + 1;
        });
      } catch (const error& e) {
        if (e.code() != Code::full) throw;
        return n;
      }
    }
    return most;
  }
  static void expect_filled(TestPool& pool, std::uint64_t blocks, std::uint64_t max_size) {
    EXPECT_EQ(pool::Directory(pool.header()).max_data_bytes(), max_size);
    std::string wrong;
    const std::uint64_t made = pool.view([&](auto& tx, const Root& r) {
      for (std::uint64_t n = 0; n < tx.read(r.made); ++n) {
        std::vector<std::uint64_t> values(stored_of(n));
        tx.read_bytes(values.data(), tx.read(r.slot[n]), values.size() * 8);
        if (std::ranges::count(values, n + 1) != std::ssize(values)) wrong = std::to_string(n);
      }
      return tx.read(r.made);
    });
    EXPECT_EQ(made, blocks);
    EXPECT_EQ(wrong, "");
    const CheckReport report = pool.check();
    EXPECT_TRUE(report.ok()) << report.problems.front();
    EXPECT_EQ(report.leaked, 0U);
  }
  /// Runs `body` in a child that kills itself at its end. Returns false if it ended otherwise.
  static bool killed_after(const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        body();
        (void)::kill(::getpid(), SIGKILL);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
      }
      ::_exit(1);
    }
    int status = 0;
    return child > 0 && ::waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGKILL;
  }
  std::string folder_;
};
ENGINE_SUITE(Raise, durable_ones);

TEST_P(Raise, TransactionsGoOnBeyondTheOldLimitThroughKills) {
  std::uint64_t old_blocks = 0;
  {
    auto pool = open(2 * MiB);
    old_blocks = fill(pool);
    ASSERT_GT(old_blocks, 10U);
    pool.close();
  }
  // Killed in the session that raises the limit: its log has blocks of the added sections.
  ASSERT_TRUE(killed_after([&] {
    auto pool = open(12 * MiB);
    if (fill(pool, old_blocks + 20) != old_blocks + 20) throw std::runtime_error("it is full");
  }));
  {
    auto pool = open(2 * MiB);  // it is not lowered
    expect_filled(pool, old_blocks + 20, 12 * MiB);
    pool.checkpoint();
    ASSERT_GT(fill(pool, old_blocks + 40), old_blocks + 20);
    pool.checkpoint();
  }
  // Raised again, by an opening that first has to recover the session before.
  ASSERT_TRUE(killed_after([&] {
    auto pool = open(20 * MiB);
    if (fill(pool, old_blocks + 60) != old_blocks + 60) throw std::runtime_error("it is full");
  }));
  std::uint64_t all = 0;
  {
    auto pool = open(24 * MiB);
    expect_filled(pool, old_blocks + 60, 24 * MiB);
    all = fill(pool);
    EXPECT_GT(all, 6 * old_blocks);
    expect_filled(pool, all, 24 * MiB);
    pool.close();
  }
  auto pool = open(24 * MiB);
  expect_filled(pool, all, 24 * MiB);
  // Freed chunks are allocated again.
  pool.update([&](auto& tx, Root& r) {
    for (std::uint64_t n = 0; n < all; ++n) {
      tx.free(tx.read(r.slot[n]));
      tx(r.slot[n]) = nullptr;
    }
    tx(r.made) = std::uint64_t{0};
  });
  EXPECT_GT(fill(pool), all / 2);
}

}  // namespace
}  // namespace perdure::test
