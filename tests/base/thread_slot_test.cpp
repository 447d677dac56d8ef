// SPDX-License-Identifier: BSD-3-Clause
//
// Thread slots are returned when their threads end, in whatever order the threads' own objects are
// destroyed: thread_local objects made before and after the first use of a pool, and values of
// pthread keys, whose destructors use the pool, in each of the rounds that the C library gives
// them. Running out of slots has an error of its own, after which nothing is lost.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "perdure/perdure.hpp"
#include "tests/pool/pool_test.hpp"

namespace perdure {
namespace {

struct Root {
  p<std::uint64_t> count;
};
using CountPool = Pool<Root, engines<any_engine>>;

constexpr auto add_one = [](auto& tx, Root& root) { tx(root.count) += 1; };

CountPool open(const std::string& path) {
  Options options;
  options.medium = "emulated";
  options.creation.max_size = 4 << 20;
  options.creation.log_size = 64 << 10;
  return CountPool::open(path, options);
}
std::uint64_t count_of(CountPool& pool) {
  return pool.view([](auto& tx, const Root& root) { return tx(root.count); });
}

CountPool* used_at_the_end = nullptr;
std::atomic<int> refused{0};  // failed uses at the end of a thread

void use() noexcept {
  try {
    used_at_the_end->update(add_one);
  } catch (const error&) {
    ++refused;
  }
}

// Uses the pool when its thread ends.
struct AtEnd {
  bool uses = false;
  ~AtEnd() {
    if (uses) use();
  }
};
thread_local AtEnd made_first, made_last;

// Keys whose values' destructors use the pool and set the value again, as often as the value says:
// one key made before any code of the library has run, one made later. The C library runs the
// destructors of all keys in turn, in at most 4 rounds.
pthread_key_t early_key, late_key;
template <pthread_key_t& key>
void at_end(void* rounds) {
  use();
  auto* const left = static_cast<int*>(rounds);
  if (--*left > 0) ::pthread_setspecific(key, left);
}
[[gnu::constructor(101)]] void make_early_key() {
  ::pthread_key_create(&early_key, at_end<early_key>);
}
const int made_late = ::pthread_key_create(&late_key, at_end<late_key>);

class ThreadSlot : public ::testing::Test {
 protected:
  ThreadSlot() {
    used_at_the_end = &pool;
    refused = 0;
  }
  // Runs f in 300 threads, one after another.
  template <class F>
  void in_turn(F&& f) {
    for (int i = 0; i < 300; ++i) std::thread(f).join();
  }
  pool::testing::Scratch scratch;
  CountPool pool = open(scratch.path("pool"));
};

TEST_F(ThreadSlot, AnObjectMadeBeforeTheFirstUseIsDestroyedAfterTheLibrarysOwn) {
  in_turn([&] {
    made_first.uses = true;
    pool.update(add_one);
  });
  EXPECT_EQ(0, refused);
  EXPECT_EQ(600U, count_of(pool));
}

TEST_F(ThreadSlot, ObjectsMadeBeforeAndAfterTheFirstUse) {
  in_turn([&] {
    made_first.uses = true;
    pool.update(add_one);
    made_last.uses = true;
  });
  EXPECT_EQ(0, refused);
  EXPECT_EQ(900U, count_of(pool));
}

TEST_F(ThreadSlot, TheFirstUseIsAtTheEnd) {
  in_turn([] { made_first.uses = made_last.uses = true; });
  EXPECT_EQ(0, refused);
  EXPECT_EQ(600U, count_of(pool));
}

// ThreadSanitizer ends its own part of a thread in the last round: no code that it instruments may
// run after that, and the library's destructor runs in the round after the last use.
#if defined(__SANITIZE_THREAD__)
constexpr int max_rounds = 2;
#else
constexpr int max_rounds = PTHREAD_DESTRUCTOR_ITERATIONS;
#endif

TEST_F(ThreadSlot, KeysInEachRoundOfTheirDestructors) {
  ASSERT_EQ(0, made_late);
  ASSERT_EQ(PTHREAD_DESTRUCTOR_ITERATIONS, 4);
  std::uint64_t expected = 0;
  for (const bool uses_before : {false, true})
    for (int early = 0; early <= max_rounds; early += 2)
      for (int late = 0; late <= max_rounds; ++late) {
        in_turn([&] {
          int rounds_early = early, rounds_late = late;
          static thread_local int left_early, left_late;  // these outlive the keys' destructors
          left_early = rounds_early;
          left_late = rounds_late;
          if (early != 0) ::pthread_setspecific(early_key, &left_early);
          if (late != 0) ::pthread_setspecific(late_key, &left_late);
          if (uses_before) pool.update(add_one);
        });
        expected += 300U * static_cast<unsigned>(early + late + (uses_before ? 1 : 0));
        ASSERT_EQ(0, refused) << early << " rounds of an early key, " << late << " of a late one";
        ASSERT_EQ(expected, count_of(pool));
      }
}

// A number of threads, each with its slot, that wait until they are released.
class Crowd {
 public:
  Crowd(CountPool& pool, int threads) : both_(threads + 1) {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([&] {
        pool.update(add_one);
        both_.arrive_and_wait();  // all have a slot
        both_.arrive_and_wait();  // all may end
      });
    both_.arrive_and_wait();
  }
  ~Crowd() {
    both_.arrive_and_wait();
    for (auto& t : threads_) t.join();
  }

 private:
  std::barrier<> both_;
  std::vector<std::thread> threads_;
};

TEST_F(ThreadSlot, RunningOutHasItsOwnError) {
  pool.update(add_one);
  const auto full = [](auto&& call) {
    try {
      call();
    } catch (const error& e) {
      EXPECT_NE(std::string::npos, std::string(e.what()).find("256 threads")) << e.what();
      return e.code();
    }
    return Code::ok;
  };
  {
    const Crowd crowd(pool, base::max_threads - 1);  // and this thread
    std::thread([&] {
      EXPECT_EQ(Code::too_many_threads, full([&] { pool.update(add_one); }));
      EXPECT_EQ(Code::too_many_threads, full([&] {
                  pool.view([](auto& tx, const Root& root) { return tx(root.count); });
                }));
      EXPECT_EQ(Code::too_many_threads, full([&] { pool.checkpoint(); }));
      const auto other = CountPool::try_open(scratch.path("other"));
      EXPECT_EQ(Code::too_many_threads, other.code()) << other.status().message();
    }).join();
    pool.update(add_one);  // a thread that has a slot can continue
  }
  std::thread([&] { EXPECT_EQ(Code::ok, full([&] { pool.update(add_one); })); }).join();
  EXPECT_EQ(256U + 2, count_of(pool));
}

// A pool that is destroyed by a thread without a slot loses nothing.
TEST_F(ThreadSlot, APoolIsDestroyedByAThreadThatGetsNone) {
  pool.update(add_one);
  {
    CountPool doomed = open(scratch.path("doomed"));
    doomed.update(add_one);
    const Crowd crowd(pool, base::max_threads - 1);
    std::thread([&] { const CountPool last = std::move(doomed); }).join();
  }
  CountPool again = open(scratch.path("doomed"));
  EXPECT_EQ(1U, count_of(again));
}

// In a forked child the parent's other threads no longer have slots.
TEST_F(ThreadSlot, AForkedChildHasThemAll) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "ThreadSanitizer allows no new threads after a fork of a process that has several";
#endif
  pool.update(add_one);
  int status = -1;
  {
    const Crowd crowd(pool, base::max_threads - 1);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(50);
      CountPool own = open(scratch.path("own"));
      { const Crowd own_crowd(own, base::max_threads - 1); }
      ::_exit(count_of(own) == base::max_threads - 1 ? 0 : 1);
    }
    ASSERT_EQ(child, ::waitpid(child, &status, 0));
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace perdure
