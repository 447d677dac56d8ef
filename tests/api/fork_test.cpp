// SPDX-License-Identifier: BSD-3-Clause
//
// Pools and fork(). A child's copy of its parent's Pool is refused, and harmless when it is
// destroyed. A child opens pools of its own: the parent's pool when the parent has closed it,
// before or after the fork, or has ended; any other pool at any time. Children report by their exit
// codes.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "papers/dudetm/dtm_calls.hpp"
#include "papers/rewind/rewind_calls.hpp"
#include "papers/softwrap/wrap_calls.hpp"
#include "tests/api/fork.hpp"
#include "tests/pool/pool_test.hpp"

namespace perdure {
namespace {

using Root = test::ForkRoot;
using CountPool = test::ForkPool;

constexpr auto add = [](auto& tx, Root& root) {
  root.numbers.push_back(tx, tx(root.count));
  tx(root.count) += 1;
};

std::uint64_t count_in(CountPool& pool) {
  return pool.view([](auto& tx, const Root& root) { return tx(root.count); });
}

template <class F>
Code code_of(F&& call) {
  try {
    call();
  } catch (const error& e) {
    return e.code();
  }
  return Code::ok;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Forks a child that exits with f()'s value: 0 means success. A child that hangs is killed after 50
// s.
template <class F>
pid_t child_of(F&& f) {
  (void)std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::alarm(50);
  int code = 99;
  try {
    code = f();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "the child: %s\n", e.what());
  }
  ::_exit(code);
}
std::string end_of(pid_t child) {
  int status = -1;
  if (::waitpid(child, &status, 0) != child) return "no child";
  if (WIFSIGNALED(status))
    return "signal " + std::to_string(WTERMSIG(status)) + ": it hung or crashed";
  return "exit code " + std::to_string(WEXITSTATUS(status));
}
const std::string well = "exit code 0";

// One process signals another that it has reached a point, by closing its end or by exiting.
class Signal {
 public:
  Signal() {
    if (::pipe(ends_) != 0) std::abort();
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  ~Signal() {
    raise();
    ::close(ends_[0]);
  }
  void raise() {
    if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
  }
  // Waits until all other processes have raised it.
  void wait() {
    raise();
    char none = 0;
    while (::read(ends_[0], &none, 1) < 0) {}
  }

 private:
  int ends_[2] = {-1, -1};
};

class Fork : public testing::TestWithParam<std::tuple<const char*, Durability>> {
 protected:
  static constexpr std::uint64_t commits = 20;
  [[nodiscard]] Options options() const {
    Options o;
    o.engine = std::get<0>(GetParam());
    o.durability = std::get<1>(GetParam());
    o.medium = "emulated";
    o.creation.max_size = 64 << 20;
    o.creation.log_size = 1 << 20;
    return o;
  }
  [[nodiscard]] CountPool open(const std::string& at) const {
    return CountPool::open(at, options());
  }
  // Engine volatile keeps nothing between two openings.
  [[nodiscard]] std::uint64_t kept(std::uint64_t n) const {
    return options().engine == "volatile" ? 0 : n;
  }
  void fill(CountPool& pool) const {
    for (std::uint64_t i = 1; i < commits; ++i) pool.update(add);
    pool.update(add).wait();  // all are durable: the process may be killed now
  }
  // In a child: opens the pool, which has `expected` commits, adds one, closes it. Returns 0 on
  // success.
  [[nodiscard]] int use(const std::string& at, std::uint64_t expected) const {
    CountPool own = open(at);
    if (count_in(own) != expected) return 11;
    own.update(add).wait();
    if (count_in(own) != expected + 1) return 12;
    if (!own.check().problems.empty()) return 13;
    return own.close().clean ? 0 : 14;
  }

  const pool::testing::Scratch scratch;
  const std::string path = scratch.path("pool"), other = scratch.path("other");
};

TEST_P(Fork, TheParentsHandleIsRefusedInAChild) {
  std::optional<CountPool> pool(open(path));
  fill(*pool);
  const auto receipt = pool->update(async, add);
  // The completion thread, if there is one, runs now.
  receipt.then([](auto task) { task(); }, [](const Status&) {});
  receipt.wait();
  pool->checkpoint();
  const std::string before = bytes_of(path);
  const pid_t child = child_of([&] {
    if (code_of([&] { pool->update(add); }) != Code::closed) return 1;
    if (code_of([&] { (void)count_in(*pool); }) != Code::closed) return 2;
    if (code_of([&] { pool->checkpoint(); }) != Code::closed) return 3;
    if (code_of([&] { (void)pool->stats(); }) != Code::closed) return 4;
    if (code_of([&] { (void)pool->durable_id(); }) != Code::closed) return 5;
    if (code_of([&] { (void)pool->check(); }) != Code::closed) return 6;
    if (code_of([&] { receipt.wait(); }) != Code::closed) return 7;
    if (receipt.durable()) return 8;
    Code told = Code::ok;
    receipt.then([](auto task) { task(); }, [&](const Status& s) { told = s.code(); });
    if (told != Code::closed) return 9;
    if (code_of([&] { pool->close(); }) != Code::closed) return 10;
    pool.reset();
    return 0;
  });
  EXPECT_EQ(end_of(child), well);
  EXPECT_EQ(bytes_of(path), before);
  pool->update(add).wait();
  EXPECT_EQ(count_in(*pool), commits + 2);
  EXPECT_TRUE(pool->close().clean);
}

TEST_P(Fork, AChildIsToldThatItsParentHasThePool) {
  std::optional<CountPool> pool(open(path));
  fill(*pool);
  const pid_t child = child_of([&] {
    const auto same = CountPool::try_open(path, options());
    if (same.code() != Code::busy) return 1;
    if (same.status().message().find("process " + std::to_string(::getppid())) == std::string::npos)
      return 2;
    if (const int found = use(other, 0); found != 0) return found;
    pool.reset();
    return use(other, kept(1)) == 0 && CountPool::try_open(path, options()).code() == Code::busy
               ? 0
               : 3;
  });
  EXPECT_EQ(end_of(child), well);
  pool->update(add).wait();
  EXPECT_EQ(count_in(*pool), commits + 1);
  EXPECT_TRUE(pool->check().problems.empty());
}

TEST_P(Fork, AChildOpensThePoolThatItsParentHadClosed) {
  {
    CountPool pool = open(path);
    fill(pool);
  }
  EXPECT_EQ(end_of(child_of([&] { return use(path, kept(commits)); })), well);
  CountPool again = open(path);
  EXPECT_EQ(count_in(again), kept(commits + 1));
}

// The child destroys its copy of the handle before it opens the pool, or while its own pool is
// open, or never.
TEST_P(Fork, AChildOpensThePoolWhenItsParentHasClosedIt) {
  std::uint64_t expected = 0;
  for (const char* copy : {"before", "beside", "never"}) {
    std::optional<CountPool> pool(open(path));
    fill(*pool);
    expected = kept(expected + commits);
    Signal closed;
    const pid_t child = child_of([&] {
      closed.wait();
      if (*copy == 'n') return use(path, expected);
      if (copy[2] == 'f') {
        pool.reset();
        return use(path, expected);
      }
      CountPool own = open(path);
      own.update(add);
      if (code_of([&] { pool->update(add); }) != Code::closed) return 1;
      pool.reset();
      own.update(add);
      if (count_in(own) != expected + 2 || !own.check().problems.empty()) return 2;
      return own.close().clean ? 0 : 3;
    });
    pool.reset();
    closed.raise();
    EXPECT_EQ(end_of(child), well) << copy;
    expected = kept(expected + (copy[2] == 's' ? 2 : 1));
    CountPool again = open(path);
    EXPECT_EQ(count_in(again), expected) << copy;
    EXPECT_TRUE(again.check().problems.empty());
  }
}

// The parent exits in order, or is killed with its pool open: then the child's opening recovers.
TEST_P(Fork, AChildOpensThePoolWhenItsParentHasEnded) {
  std::uint64_t expected = 0;
  for (const bool killed : {false, true}) {
    Signal ended, done;
    int report[2];
    ASSERT_EQ(::pipe(report), 0);
    const pid_t parent = child_of([&] {
      CountPool pool = open(path);
      fill(pool);
      (void)child_of([&] {
        ended.wait();
        const auto code = static_cast<char>(use(path, kept(expected + commits)));
        return ::write(report[1], &code, 1) == 1 ? 0 : 1;
      });
      if (!killed) return pool.close().clean ? 0 : 1;
      (void)::raise(SIGKILL);
      return 1;
    });
    ::close(report[1]);
    ended.raise();
    EXPECT_EQ(end_of(parent), killed ? "signal 9: it hung or crashed" : well);
    char code = 77;
    EXPECT_EQ(::read(report[0], &code, 1), 1) << "the child has ended without a report";
    EXPECT_EQ(code, 0);
    ::close(report[0]);
    expected = kept(expected + commits + 1);
    CountPool again = open(path);
    EXPECT_EQ(count_in(again), expected);
  }
}

TEST_P(Fork, AChildsChild) {
  std::optional<CountPool> pool(open(path));
  fill(*pool);
  Signal closed;
  const pid_t child = child_of([&] {
    std::optional<CountPool> own(open(other));
    own->update(add);
    const pid_t grandchild = child_of([&] {
      if (code_of([&] { pool->update(add); }) != Code::closed ||
          code_of([&] { own->update(add); }) != Code::closed)
        return 1;
      if (CountPool::try_open(other, options()).code() != Code::busy) return 2;
      closed.wait();
      own.reset();
      return use(path, kept(commits));
    });
    closed.raise();
    if (end_of(grandchild) != well) return 3;
    own->update(add);
    return count_in(*own) == 2 ? 0 : 4;
  });
  pool.reset();
  closed.raise();
  EXPECT_EQ(end_of(child), well);
}

// A child that was made without fork()'s handlers, as other libraries do between fork and exec,
// keeps the descriptors. The parent's lock is released when the parent closes, nevertheless.
TEST_P(Fork, ADescriptorThatAChildKeepsHoldsNoLock) {
  Signal closed;
  std::optional<CountPool> pool(open(path));
  pool->update(add);
  const auto child =
      static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) {
    ::alarm(50);
    closed.wait();
    ::_exit(0);
  }
  pool.reset();
  const auto again = CountPool::try_open(path, options());
  EXPECT_TRUE(again) << again.status().message();
  closed.raise();
  EXPECT_EQ(end_of(child), well);
}

struct Words {
  static constexpr const char* layout_id = "words/1";
  std::uint64_t word[8];
};
// The papers' own calls: a child destroys its copies without waiting for the parent's threads.
template <class Calls>
void a_childs_copy_is_destroyed(const char* engine) {
  const pool::testing::Scratch scratch;
  Options o;
  o.engine = engine;
  o.medium = "emulated";
  o.creation.max_size = 16 << 20;
  o.creation.log_size = 1 << 20;
  std::optional<Calls> calls(std::in_place, scratch.path(), o);
  Signal closed;
  const pid_t child = child_of([&] {
    calls.reset();
    closed.wait();
    const Calls own(scratch.path(), o);
    return 0;
  });
  calls.reset();
  closed.raise();
  EXPECT_EQ(end_of(child), well) << engine;
}
TEST(ForkOfCalls, AChildsCopyIsDestroyedAndThePoolOpened) {
  if (test::no_fork_beside_threads != nullptr) GTEST_SKIP() << test::no_fork_beside_threads;
  a_childs_copy_is_destroyed<papers::rewind::TransactionManager<Words>>("rewind-1l-nfp-optimized");
  a_childs_copy_is_destroyed<papers::dudetm::DudeTM<Words>>("dudetm");
  a_childs_copy_is_destroyed<papers::softwrap::SoftWrAP<Words>>("softwrap");
}

// Children are forked while other threads are inside transactions, or open and close pools: each
// child finds no lock that one of those threads held, and opens a pool of its own.
TEST(ForkBesideThreads, NoChildWaitsForALockOfItsParents) {
  if (test::no_fork_beside_threads != nullptr) GTEST_SKIP() << test::no_fork_beside_threads;
  constexpr int children = 100, at_once = 4;
  const pool::testing::Scratch scratch;
  const auto options = [&scratch](const std::string& name) {
    Options o;
    o.engine = name.starts_with("undo") ? "undo" : "shadow";
    o.medium = "emulated";
    o.creation.max_size = 16 << 20;
    o.creation.log_size = 256 << 10;
    o.trace = scratch.path(name + ".trace");
    return o;
  };
  const auto open_and_use = [&](const std::string& name) {
    CountPool pool = CountPool::open(scratch.path(name), options(name));
    for (int i = 0; i < 20; ++i) pool.update(add);
  };
  CountPool shared = CountPool::open(scratch.path("shared"), options("shared"));
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (const char* name : {"undo-a", "shadow-b"})
    threads.emplace_back([&, name] {
      for (int i = 0; !stop.load(); ++i) open_and_use(name + std::to_string(i % 8));
    });
  threads.emplace_back([&] {
    while (!stop.load())
      shared.update([](auto& tx, Root& root) {
        add(tx, root);
        if (root.numbers.size(tx) > 1000) root.numbers.clear(tx);
      });
  });
  std::vector<std::string> ends;
  for (int i = 0; i < children; i += at_once) {
    std::vector<pid_t> running;
    for (int j = i; j < i + at_once; ++j)
      running.push_back(child_of([&] {
        open_and_use((j % 2 == 0 ? "undo-child" : "shadow-child") + std::to_string(j));
        return code_of([&] { shared.update(add); }) == Code::closed ? 0 : 1;
      }));
    for (const pid_t child : running) ends.push_back(end_of(child));
  }
  stop = true;
  for (auto& t : threads) t.join();
  EXPECT_EQ(ends, std::vector<std::string>(children, well));
  EXPECT_TRUE(shared.check().problems.empty());
}

// ThreadSanitizer allows no new threads in a child of a process that has several, and the engine's
// threads may hold a lock of AddressSanitizer's allocator: an engine without threads of its own
// works.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
INSTANTIATE_TEST_SUITE_P(Engines, Fork,
                         testing::Combine(testing::Values("undo"), testing::Values(durable)));
#else
INSTANTIATE_TEST_SUITE_P(Engines, Fork,
                         testing::Combine(testing::Values("shadow", "dudetm", "undo",
                                                          "rewind-1l-nfp-optimized", "volatile"),
                                          testing::Values(durable, group, async)));
#endif

}  // namespace
}  // namespace perdure
