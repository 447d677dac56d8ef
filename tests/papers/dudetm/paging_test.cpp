// SPDX-License-Identifier: BSD-3-Clause
//
// Paging: a page of the shadow is dropped when home has all of it and nobody stores to it; the race
// of writers and evictors (DudeTM section 4.3). What the guard is for is shown too: without it,
// words are lost.
#include "papers/dudetm/paging.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <deque>
#include <random>
#include <thread>

#include "tests/engine/suite.hpp"
#include "tests/support/asleep.hpp"

namespace perdure::papers::dudetm::testing {
namespace {

constexpr std::uint64_t page = Paging::page_bytes;

/// Home, its private view, and a Reproduce that applies what was committed, in id order, when it is
/// told to.
class World {
 public:
  World(std::uint64_t pages, std::uint64_t limit_pages, bool software = false)
      : pages_(pages), fd_(memfd_create("paging", 0)) {
    if (ftruncate(fd_, static_cast<off_t>(pages * page)) != 0) std::abort();
    const auto map = [&](int how) {
      return static_cast<std::byte*>(
          ::mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, how | MAP_NORESERVE, fd_, 0));
    };
    data = map(MAP_SHARED);
    view = map(MAP_PRIVATE);
    paging = std::make_unique<Paging>(view, pages * page, 0, limit_pages * page, software);
  }
  ~World() {
    ::munmap(data, pages_ * page);
    ::munmap(view, pages_ * page);
    ::close(fd_);
  }
  std::uint64_t& word(std::byte* where, std::uint64_t p, std::uint64_t at) {
    return reinterpret_cast<std::uint64_t*>(where + p * page)[at];
  }
  /// As a transaction stores to it and reads it, that is in the page.
  std::uint64_t& shadow(std::uint64_t p, std::uint64_t at) {
    return paging->frames() != nullptr ? *paging->frames()->at(p * page + at * 8)
                                       : word(view, p, at);
  }
  /// As one reads it that is not.
  std::uint64_t look(std::uint64_t p, std::uint64_t at) {
    return paging->frames() != nullptr ? paging->frames()->load(p * page + at * 8)
                                       : tm::load_word(&word(view, p, at));
  }
  /// As a commit: the id is drawn and the words are logged, before the writer leaves.
  std::uint64_t commit(Paging::Use& use,
                       std::vector<std::pair<std::uint64_t*, std::uint64_t>> words) {
    const std::lock_guard lock(mutex_);
    log_.emplace_back(std::move(words));
    use.committed(++id_);
    return id_;
  }
  /// Applies one transaction to home.
  bool reproduce_one() {
    const std::lock_guard lock(mutex_);
    if (log_.empty()) return false;
    for (const auto& [to, value] : log_.front()) __atomic_store_n(to, value, __ATOMIC_RELAXED);
    log_.pop_front();
    reproduced_.fetch_add(1, std::memory_order_release);
    return true;
  }
  Result<bool> evict() {
    return paging->evict([this] { return reproduced_.load(std::memory_order_acquire); },
                         [this](std::uint64_t id) {
                           while (reproduced_.load(std::memory_order_acquire) < id)
                             if (!reproduce_one()) std::this_thread::yield();
                           return Status();
                         });
  }
  [[nodiscard]] std::uint64_t reproduced() const {
    return reproduced_.load(std::memory_order_acquire);
  }

  std::byte *data, *view;
  std::unique_ptr<Paging> paging;

 private:
  const std::uint64_t pages_;
  const int fd_;
  std::mutex mutex_;
  std::deque<std::vector<std::pair<std::uint64_t*, std::uint64_t>>> log_;
  std::uint64_t id_ = 0;
  std::atomic<std::uint64_t> reproduced_{0};
};

// The eviction of a page waits for the writer that is in, then for Reproduce.
TEST(Paging, DropsAPageWhenItsWriterHasLeftAndTheDataRegionHasIt) {
  World w(8, 4);
  Paging::Use use(*w.paging, base::thread_slot()), other(*w.paging, base::max_threads - 1);
  for (std::uint64_t p = 0; p < 2; ++p) {  // two pages that are copies, home up to date
    ASSERT_TRUE(use.touch(p * page));
    w.word(w.view, p, 0) = 1;
    w.commit(use, {{&w.word(w.data, p, 0), 1}});
    use.leave();
  }
  while (w.reproduce_one()) {}
  ASSERT_EQ(2U, w.paging->copies());
  ASSERT_TRUE(use.touch(0) && use.touch(page));
  w.word(w.view, 0, 1) = 7;
  std::atomic<bool> over{false};
  std::atomic<pid_t> id_of_evictor{0};
  std::thread evictor([&] {
    id_of_evictor = ::gettid();
    for (int i = 0; i < 3 && w.paging->evictions() < 2; ++i) EXPECT_TRUE(w.evict().ok());
    over = true;
  });
  // Until a page is marked, then for as long again: who comes now is sent away, and the writer's
  // word stays.
  for (bool marked = false; !marked && !over; std::this_thread::yield()) {
    marked = !other.touch(0) || !other.touch(page);
    other.leave();
  }
  EXPECT_TRUE(test::falls_asleep(id_of_evictor, [&] { return over.load(); })) << "it does not spin";
  EXPECT_FALSE(over);
  EXPECT_EQ(7U, w.word(w.view, 0, 1));
  EXPECT_EQ(0U, w.paging->evictions());
  const std::uint64_t id = w.commit(use, {{&w.word(w.data, 0, 1), 7}});
  use.leave();
  evictor.join();
  EXPECT_GE(w.reproduced(), id) << "dropped only once home has it";
  EXPECT_EQ(7U, w.word(w.view, 0, 1));
  EXPECT_EQ(w.word(w.data, 0, 1), w.word(w.view, 0, 1));
  w.word(w.data, 1, 5) = 9;  // it shows home again
  EXPECT_EQ(9U, w.word(w.view, 1, 5));
}

TEST(Paging, PassesOverPagesInUse) {
  World w(64, 32);
  Paging::Use use(*w.paging, base::thread_slot());
  const auto store = [&](std::uint64_t p) {
    ASSERT_TRUE(use.touch(p * page));
    w.word(w.view, p, 0) = p + 1;
    w.commit(use, {{&w.word(w.data, p, 0), p + 1}});
    use.leave();
    while (w.reproduce_one()) {}
  };
  for (std::uint64_t p = 0; p < 24; ++p) store(p);
  EXPECT_TRUE(w.paging->full());
  ASSERT_TRUE(w.evict().ok());  // all were used: the clock's first round takes that from them
  const std::uint64_t before = w.paging->evictions();
  EXPECT_GT(before, 0U);
  std::vector<std::uint64_t> left;
  for (std::uint64_t p = 0; p < 24; ++p) {
    // which are copies still: a word put there past the log shows it
    w.word(w.data, p, 1) = 77;
    if (w.word(w.view, p, 1) != 77) left.push_back(p);
  }
  ASSERT_EQ(24 - before, left.size());
  for (std::size_t i = 0; i < 4; ++i) store(left[i]);
  while (w.paging->copies() > 4) ASSERT_TRUE(w.evict().ok());
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NE(77U, w.word(w.view, left[i], 1)) << "used last, dropped last";
}

/// Threads that count in pages far more than the limit, each in words of its own, while pages are
/// evicted. Returns how many counts home lacks in the end.
std::uint64_t race(bool guarded, bool software, std::uint64_t each) {
  constexpr int threads = 3;
  World w(96, 16, software);
  std::atomic<int> working{threads};
  std::atomic<std::uint64_t> lost{0};
  std::thread reproducer([&] {
    while (working != 0 || w.reproduce_one())
      if (!w.reproduce_one()) std::this_thread::yield();
  });
  test::in_threads(threads, [&](int me) {
    std::mt19937_64 random(static_cast<std::uint64_t>(me));
    Paging::Use use(*w.paging, base::thread_slot());
    std::vector<std::uint64_t> counts(96);
    const auto mine = static_cast<std::uint64_t>(me);
    for (std::uint64_t i = 0; i < each; ++i) {
      if (w.paging->full() && guarded) {
        EXPECT_TRUE(w.evict().ok());
      }
      const std::uint64_t p = random() % 96, q = random() % 96;
      if (!use.touch(p * page) || !use.touch(q * page)) {
        use.leave();
        w.paging->wait();
        continue;
      }
      // As a transaction does: what it read is what it wrote before.
      const std::uint64_t a = w.shadow(p, mine), b = w.shadow(q, 8 + mine);
      lost += a != counts[p] ? 1 : 0;
      tm::store_word(&w.shadow(p, mine), a + 1);
      if (i % 16 == 0) std::this_thread::yield();
      tm::store_word(&w.shadow(q, 8 + mine), b + 1);
      counts[p] = a + 1;
      w.commit(use, {{&w.word(w.data, p, mine), a + 1}, {&w.word(w.data, q, 8 + mine), b + 1}});
      use.leave();
      const std::uint64_t other = random() % 96;  // not in it: what it shows is what was committed
      if (w.look(other, mine) != counts[other]) ++lost;
      if (!guarded && i % 8 == 0) {  // an eviction that looks at nothing
        const std::uint64_t victim = random() % 96;
        (void)::madvise(w.view + victim * page, page, MADV_DONTNEED);
      }
    }
    --working;
  });
  reproducer.join();
  for (std::uint64_t p = 0; p < 96; ++p)
    for (std::uint64_t i = 0; i < 16; ++i) lost += w.word(w.data, p, i) != w.look(p, i) ? 1 : 0;
  if (guarded) {
    EXPECT_GT(w.paging->evictions(), each / 8);
    EXPECT_LE(w.paging->copies(), w.paging->limit() + threads * 2);
  }
  return lost;
}

TEST(Paging, LosesNothingWhileWritersRaceWithEvictors) {
  EXPECT_EQ(0U, race(true, false, 30000 / test::scale));
}

TEST(Paging, LosesNothingInFrames) { EXPECT_EQ(0U, race(true, true, 30000 / test::scale)); }

TEST(Paging, WithoutTheGuardWordsAreLost) {
  EXPECT_GT(race(false, false, 30000 / test::scale), 0U) << "then the tests above show nothing";
}

// PAGING-5: what a reader found the page's frame to be may be another page's when it reads the
// word, or the same page's again.
TEST(Paging, AReaderLooksAtThePagesEntryAgain) {
  World w(64, 4, true);
  const Frames& frames = *w.paging->frames();
  Paging::Use use(*w.paging, base::thread_slot());
  const auto store = [&](std::uint64_t p) {
    EXPECT_TRUE(use.touch(p * page));
    w.shadow(p, 3) = 100 + p;
    w.commit(use, {{&w.word(w.data, p, 3), 100 + p}});
    use.leave();
    while (w.reproduce_one()) {}
  };
  const auto evict_all = [&] {
    while (w.paging->copies() != 0) ASSERT_TRUE(w.evict().ok());
  };
  store(5);
  const Frames::Entry seen = frames.entry(5);
  EXPECT_NE(0U, seen);
  EXPECT_EQ(105U, *frames.word(seen, 5 * page + 24));
  unsigned looks = 0;
  EXPECT_EQ(105U, frames.load(5 * page + 24, [&] {
    if (looks++ != 0) return;
    evict_all();
    EXPECT_EQ(0U, frames.entry(5));
    bool reused = false;
    for (std::uint64_t p = 6; p < 10 && !reused; ++p) {
      store(p);
      reused = *frames.word(seen, 5 * page + 24) == 100 + p;
    }
    EXPECT_TRUE(reused) << "the frame is another page's: who looks once reads that page's word";
  }));
  EXPECT_EQ(2U, looks);
  evict_all();
  for (std::uint64_t p = 5; p < 10; ++p) store(p);
  EXPECT_NE(seen, frames.entry(5)) << "an entry does not return, though the frame may";
}

// PAGING-4: who comes while another swaps the page in stores to the frame, after the copy is whole.
TEST(Paging, APageIsSwappedInOnce) {
  constexpr std::uint64_t pages = 4096;
  constexpr int threads = 2;
  World w(pages, pages, true);
  for (std::uint64_t p = 0; p < pages; ++p) w.word(w.data, p, 9) = p;
  std::atomic<std::uint64_t> arrived{0};
  test::in_threads(threads, [&](int me) {
    Paging::Use use(*w.paging, base::thread_slot());
    for (std::uint64_t p = 0; p < pages; ++p) {
      // the copy's first look at home faults: it takes longer
      (void)::madvise(w.view + p * page, page, MADV_DONTNEED);
      int spins = 0;
      for (++arrived; arrived < (p + 1) * threads;)  // both at once
        if (++spins > 1000) std::this_thread::yield();
      EXPECT_TRUE(use.touch(p * page));
      // the end is copied last
      tm::store_word(&w.shadow(p, 510 + static_cast<std::uint64_t>(me)), p + 1);
      EXPECT_EQ(p, w.shadow(p, 9));
      use.leave();
    }
  });
  for (std::uint64_t p = 0; p < pages; ++p)
    for (std::uint64_t me = 0; me < threads; ++me) ASSERT_EQ(p + 1, w.look(p, 510 + me)) << p;
}

// PAGING-4, one schedule: the thread that swaps the page in stops before the first word is copied.
// Another thread that touches the page is still waiting when it goes on.
TEST(Paging, APageThatAnotherSwapsInIsWaitedFor) {
  World w(8, 8, true);
  constexpr std::uint64_t p = 3;
  std::atomic<int> touching{0};  // 1: about to touch the page, 2: inside it
  std::thread other;
  w.paging->before_swap_in = [&] {
    other = std::thread([&] {
      Paging::Use use(*w.paging, base::thread_slot());
      touching = 1;
      EXPECT_TRUE(use.touch(p * page));
      touching = 2;
      tm::store_word(&w.shadow(p, 511), 7);
      use.leave();
    });
    // It does not get further; a thread that did would have half a second for it.
    for (int look = 0; look < 500 && touching != 2; ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(1, touching) << "it has not waited for the copy";
  };
  Paging::Use use(*w.paging, base::thread_slot());
  ASSERT_TRUE(use.touch(p * page));
  other.join();
  EXPECT_EQ(2, touching);
  EXPECT_EQ(7U, w.look(p, 511)) << "the copy has overwritten what it stored";
  use.leave();
}

// Frames that are beyond the limit are taken last: one burst does not leave them in use, and each
// of them is given back to the system when it is free.
TEST(Paging, FramesBeyondTheLimitAreNotKeptInUse) {
  constexpr std::uint64_t limit = 16, pages = 256;
  World w(pages, limit, true);
  const Frames& frames = *w.paging->frames();
  Paging::Use use(*w.paging, base::thread_slot());
  std::uint64_t id = 0;
  const auto store = [&](std::uint64_t from, std::uint64_t n) {
    for (std::uint64_t p = from; p < from + n; ++p) EXPECT_TRUE(use.touch(p % pages * page));
    id = w.commit(use, {});
    use.leave();
    while (w.reproduce_one()) {}
    while (w.paging->full()) ASSERT_TRUE(w.evict().ok());
  };
  store(0, 200);
  const auto beyond = [&] {
    std::uint64_t n = 0;
    for (std::uint64_t p = 0; p < pages; ++p) n += (frames.entry(p) & 0xffffffff) > limit ? 1 : 0;
    return n;
  };
  for (std::uint64_t i = 0; i < 100; ++i) store(i * 3, 2);
  EXPECT_EQ(0U, beyond());
}

// What the heap reads in the view is there: a chunk's first page has no frame.
TEST(Paging, PagesOfBitmapsStayInTheView) {
  World w(64, 8, true);
  Paging::Use use(*w.paging, base::thread_slot());
  ASSERT_TRUE(use.touch(16 * page) && use.touch(17 * page));
  EXPECT_EQ(&w.word(w.view, 16, 1), &w.shadow(16, 1));
  EXPECT_NE(&w.word(w.view, 17, 1), &w.shadow(17, 1));
  w.shadow(16, 1) = w.shadow(17, 1) = 4;
  EXPECT_EQ(0U, w.word(w.view, 17, 1));
  w.commit(use, {{&w.word(w.data, 16, 1), 4}, {&w.word(w.data, 17, 1), 4}});
  use.leave();
  while (w.paging->copies() != 0) ASSERT_TRUE(w.evict().ok());
  EXPECT_EQ(4U, w.look(16, 1));
  EXPECT_EQ(4U, w.look(17, 1));
}

}  // namespace
}  // namespace perdure::papers::dudetm::testing
