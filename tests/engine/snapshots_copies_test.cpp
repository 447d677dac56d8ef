// SPDX-License-Identifier: BSD-3-Clause
//
// Snapshot::copy_to(): the file is a pool with exactly the snapshot's state, while transactions
// change, allocate and free on the pool; what it refuses; and that no file is left where it fails
// (BACKUP-1).
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "perdure/container/table.hpp"
#include "perdure/perdure.hpp"
#include "tests/engine/suite.hpp"
#include "tests/pool/pool_test.hpp"

namespace perdure::test {
namespace {

using pool::testing::Scratch;

struct Row {
  std::uint64_t id = 0;
  std::string text;
  friend bool operator==(const Row&, const Row&) = default;
};
constexpr std::size_t slots = 64;
struct Root {
  map<std::uint64_t, std::string> sorted;
  hash_map<std::string, std::uint64_t> hashed;
  table<Row, ordered_key<&Row::id>> rows;
  std::array<ptr<p<std::uint64_t>>, slots> block;  // of many sizes; the first word is the size
};
using TestPool = AnyPool<Root>;

struct Contents {
  std::map<std::uint64_t, std::string> sorted;
  std::map<std::string, std::uint64_t> hashed;
  std::vector<Row> rows;
  std::array<std::uint64_t, slots> block{};
  friend bool operator==(const Contents&, const Contents&) = default;
};
Contents contents(auto& tx, const Root& r) {
  Contents c;
  r.sorted.for_each(tx, [&](std::uint64_t k, const std::string& v) { c.sorted.emplace(k, v); });
  r.hashed.for_each(tx, [&](const std::string& k, std::uint64_t v) { c.hashed.emplace(k, v); });
  for (const Row row : r.rows.ordered<&Row::id>(tx)) c.rows.push_back(row);
  for (std::size_t i = 0; i < slots; ++i)
    if (const auto* const at = tx.read(r.block[i]); at != nullptr) c.block[i] = tx.read(at[0]);
  return c;
}

class SnapshotCopies : public EngineTest {
 protected:
  [[nodiscard]] Options options(const std::string& medium = "emulated") const {
    Options o;
    o.engine = GetParam().name;
    o.medium = medium;
    o.medium_options.direct = false;
    o.creation.max_size = std::uint64_t{1} << 30;
    o.creation.log_size = 4 << 20;
    return o;
  }
  [[nodiscard]] std::string copy(int n) const { return path_ + ".copy" + std::to_string(n); }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& file :
         std::filesystem::directory_iterator(std::filesystem::path(path_).parent_path()))
      names.push_back(file.path().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  Scratch scratch_;
  std::string path_ = scratch_.path();
};
std::vector<EngineInfo> with_snapshots() {
  return engines_that([](const EngineInfo& e) { return e.has_snapshots; });
}
ENGINE_SUITE(SnapshotCopies, with_snapshots);

void change(TestPool& pool, std::mt19937_64& random) {
  pool.update([&](auto& tx, Root& r) {
    const std::uint64_t k = random() % 500;
    const std::string text(random() % 300, static_cast<char>('a' + k % 26));
    r.sorted.put(tx, k, text);
    r.hashed.put(tx, std::to_string(k), random());
    if (random() % 3 == 0) r.hashed.erase(tx, std::to_string(random() % 500));
    r.rows.put(tx, Row{k, text});
    if (random() % 4 == 0) r.rows.erase(tx, random() % 500);
    auto& slot = r.block[random() % slots];
    if (auto* const old = tx.read(slot); old != nullptr) {
      tx.free(old);
      tx(slot) = nullptr;
    } else {
      const std::size_t bytes =
          random() % 4 == 0 ? (1 + random() % 4) * pool::chunk_bytes : 64 << random() % 9;
      auto* const made = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(bytes));
      tx(made[0]) = bytes;
      tx(slot) = made;
    }
  });
}

// Some MiB, so that a copy tells more than once how far it is.
void fill(TestPool& pool) {
  pool.update([](auto& tx, Root& r) {
    for (auto& slot : r.block)
      if (tx.read(slot) == nullptr) {
        auto* const made = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(256 << 10));
        tx(made[0]) = 256 << 10;
        tx(slot) = made;
      }
  });
}

void are_the_state(const std::string& path, const Options& o, const std::string& medium,
                   const std::function<std::string(int)>& copy) {
  struct Made {
    std::uint64_t id;
    Contents contents;
    CheckReport check;
  };
  std::vector<Made> made;
  std::array<std::uint8_t, 16> uuid{};
  {
    auto pool = TestPool::open(path, o);
    std::memcpy(uuid.data(), pool.header().uuid, sizeof uuid);
    std::mt19937_64 random(1);
    for (int i = 0; i < 300; ++i) change(pool, random);
    std::atomic<bool> stop{false};
    std::vector<std::thread> writers;
    for (std::uint64_t t = 0; t < 2; ++t)
      writers.emplace_back([&, t] {
        std::mt19937_64 own(t);
        while (!stop) change(pool, own);
      });
    for (int n = 0; n < 3; ++n) {
      const auto s = pool.snapshot();
      s.copy_to(copy(n));
      made.push_back(
          {s.id(), s.view([](auto& tx, const Root& r) { return contents(tx, r); }), s.check()});
      if (n == 1) pool.checkpoint();
    }
    stop = true;
    for (auto& w : writers) w.join();
    EXPECT_TRUE(pool.check().ok());
    pool.close();
  }
  for (std::size_t n = 0; n < made.size(); ++n) {
    SCOPED_TRACE(medium + ", copy " + std::to_string(n));
    Options again = o;
    again.create = false;
    const std::string file = copy(static_cast<int>(n));
    for (int opening = 0; opening < 2; ++opening) {
      auto pool = TestPool::open(file, again);
      EXPECT_NE(std::memcmp(uuid.data(), pool.header().uuid, sizeof uuid), 0);
      EXPECT_EQ(pool.stats().recovery.was_clean, 1U);
      EXPECT_EQ(pool.stats().last_id, made[n].id + static_cast<std::uint64_t>(opening));
      Contents expected = made[n].contents;
      if (opening == 1) expected.sorted[1000] = "new";
      EXPECT_EQ(pool.view([](auto& tx, const Root& r) { return contents(tx, r); }), expected);
      const CheckReport check = pool.check();
      EXPECT_EQ(check.problems, std::vector<std::string>{});
      if (opening == 0) {
        EXPECT_EQ(check.blocks, made[n].check.blocks);
        EXPECT_EQ(check.bytes, made[n].check.bytes);
        EXPECT_EQ(pool.stats().heap_used, check.bytes);
        pool.update([](auto& tx, Root& r) { r.sorted.put(tx, 1000, "new"); });
      }
      pool.close();
    }
  }
}

TEST_P(SnapshotCopies, AreTheStateBesideWriters) {
  for (const std::string medium : {"emulated", "file"}) {
    are_the_state(path_ + medium, options(medium), medium, [&](int n) { return copy(n) + medium; });
  }
}

// A pool whose limit was raised has directory words in several places.
TEST_P(SnapshotCopies, OfAPoolWithARaisedLimit) {
  Options o = options();
  o.creation.max_size = 8 << 20;
  { auto pool = TestPool::open(path_, o); }
  o.creation.max_size = 256 << 20;
  o.creation.raise_max_size = true;
  Contents expected;
  {
    auto pool = TestPool::open(path_, o);
    std::mt19937_64 random(2);
    for (int i = 0; i < 400; ++i) change(pool, random);
    // Beyond the old limit.
    pool.update([](auto& tx, Root& r) {
      for (auto& slot : r.block)
        if (tx.read(slot) == nullptr) {
          auto* const block = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(1 << 20));
          tx(block[0]) = 1 << 20;
          tx(slot) = block;
        }
    });
    EXPECT_GT(pool.stats().data_bytes, std::uint64_t{8} << 20);
    pool.snapshot().copy_to(copy(0));
    expected = pool.view([](auto& tx, const Root& r) { return contents(tx, r); });
    pool.close();
  }
  auto pool = TestPool::open(copy(0), o);
  EXPECT_EQ(pool.view([](auto& tx, const Root& r) { return contents(tx, r); }), expected);
  EXPECT_EQ(pool.check().problems, std::vector<std::string>{});
  std::mt19937_64 random(3);
  for (int i = 0; i < 400; ++i) change(pool, random);
  EXPECT_EQ(pool.check().problems, std::vector<std::string>{});
}

// Where the pool is nearly full, small blocks are whole chunks, too.
TEST_P(SnapshotCopies, OfAFullPool) {
  Options o = options();
  o.creation.max_size = 6 << 20;
  Contents expected;
  {
    auto pool = TestPool::open(path_, o);
    const std::uint64_t sizes[] = {64, 8 << 10, 64 << 10, 16 << 10, 300};
    std::uint64_t n = 0;
    try {
      for (;; ++n)
        pool.update([&](auto& tx, Root& r) {
          auto* const made =
              reinterpret_cast<p<std::uint64_t>*>(tx.alloc(sizes[(n / 8) % std::size(sizes)]));
          for (std::size_t i = 0; i < 8; ++i) tx(made[i]) = base::mix(n * 8 + i);
          if (n < slots)
            tx(r.block[n]) = made;
          else
            r.sorted.put(tx, n, std::string(reinterpret_cast<const char*>(&made), sizeof made));
        });
    } catch (const error& e) {
      ASSERT_EQ(e.code(), Code::full) << e.what();
    }
    EXPECT_GT(n, slots);
    pool.snapshot().copy_to(copy(0));
    expected = pool.view([](auto& tx, const Root& r) { return contents(tx, r); });
    pool.close();
  }
  auto pool = TestPool::open(copy(0), o);
  EXPECT_EQ(pool.view([](auto& tx, const Root& r) { return contents(tx, r); }), expected);
  pool.view([](auto& tx, const Root& r) {
    r.sorted.for_each(tx, [&](std::uint64_t n, const std::string& text) {
      const p<std::uint64_t>* made = nullptr;
      std::memcpy(&made, text.data(), sizeof made);
      for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(tx.read(made[i]), base::mix(n * 8 + i)) << n;
    });
  });
  // Nothing else takes the blocks' place.
  try {
    for (;;) pool.update([](auto& tx, Root&) { (void)tx.alloc(64); });
  } catch (const error& e) {
    EXPECT_EQ(e.code(), Code::full) << e.what();
  }
  EXPECT_EQ(pool.view([](auto& tx, const Root& r) { return contents(tx, r); }), expected);
}

TEST_P(SnapshotCopies, CanBeReadByThoseWhoCanReadThePool) {
  auto pool = TestPool::open(path_, options());
  const auto mode_of = [](const std::string& path) {
    struct stat file = {};
    EXPECT_EQ(::stat(path.c_str(), &file), 0);
    return file.st_mode & 0777;
  };
  for (const unsigned mode : {0600U, 0640U, 0666U}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    pool.snapshot().copy_to(copy(static_cast<int>(mode)));
    EXPECT_EQ(mode_of(copy(static_cast<int>(mode))), mode);
  }
}

TEST_P(SnapshotCopies, AreSmallWhereLittleIsAllocated) {
  Options o = options("file");
  o.creation.log_size = 64 << 20;
  auto pool = TestPool::open(path_, o);
  pool.update([](auto& tx, Root& r) {
    for (int i = 0; i < 100; ++i) tx.free(tx.alloc(256 << 10));
    r.sorted.put(tx, 1, "x");
  });
  pool.snapshot().copy_to(copy(0));
  struct stat file = {};
  ASSERT_EQ(::stat(copy(0).c_str(), &file), 0);
  EXPECT_LT(file.st_blocks * 512, 2 << 20);
}

TEST_P(SnapshotCopies, TellHowFarTheyAre) {
  auto pool = TestPool::open(path_, options());
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) change(pool, random);
  fill(pool);
  const auto s = pool.snapshot();
  std::uint64_t last = 0, all = 0, calls = 0;
  s.copy_to(copy(0), [&](std::uint64_t done, std::uint64_t bytes) {
    EXPECT_GT(done, last);
    last = done;
    all = bytes;
    ++calls;
  });
  EXPECT_EQ(last, all);
  EXPECT_EQ(all, s.check().bytes);
  EXPECT_GT(calls, 2U);
  // What it throws ends the copy.
  struct Enough {};
  const auto before = files();
  EXPECT_THROW(s.copy_to(copy(1), [](std::uint64_t, std::uint64_t) { throw Enough(); }), Enough);
  EXPECT_EQ(files(), before);
  s.copy_to(copy(1));
}

TEST_P(SnapshotCopies, LeaveNoFileWhereTheyFail) {
  Options o = options();
  o.engine_options = ShadowOptions{.snapshot_memory = 64 << 10};
  auto pool = TestPool::open(path_, o);
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) change(pool, random);
  fill(pool);
  const auto expect_code = [&](Code code, auto&& f) {
    const auto before = files();
    try {
      f();
      ADD_FAILURE() << "expected " << perdure::name(code);
    } catch (const error& e) {
      EXPECT_EQ(code, e.code()) << e.what();
    }
    EXPECT_EQ(files(), before);
  };
  std::optional<Snapshot<Root>> s(pool.snapshot());
  expect_code(Code::exists, [&] { s->copy_to(path_); });
  expect_code(Code::not_found, [&] { s->copy_to(path_ + ".none/copy"); });
  // It expires while it is copied.
  expect_code(Code::expired, [&] {
    s->copy_to(copy(0), [&](std::uint64_t, std::uint64_t) {
      while (!s->expired()) change(pool, random);
    });
  });
  expect_code(Code::expired, [&] { s->copy_to(copy(0)); });
  s.emplace(pool.snapshot());
  pool.update([](auto& tx, Root& r) { r.sorted.put(tx, 7, "seven"); });
  s->copy_to(copy(0));
  s.emplace(pool.snapshot());
  // A pool can't be opened beside its copy, whose address is the same.
  expect_code(Code::incompatible, [&] { (void)TestPool::open(copy(0), o); });
}

}  // namespace
}  // namespace perdure::test
