// SPDX-License-Identifier: BSD-3-Clause
//
// Power cuts at every fence of small workloads, recovered and compared with a model in full: root, blocks, what is in them (laws L1-L3,
// L5, L6). An image is what is surely durable, and in addition any of the lines written since (M2): none, all, one alone, random ones.
//
// One line alone is the log-before-home order: what home is given may reach it at once, and must change nothing that recovery makes.
#include <malloc.h>

#include <atomic>
#include <mutex>

#include "perdure/pool/heap.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

struct Small {
  std::array<p<std::uint64_t>, 64> word;
  std::array<ptr<std::uint64_t>, 10> slot;
};
struct Oops {};

// Images are large and short-lived: their memory is kept, not mapped anew and faulted in each time.
const bool keeps_memory = ::mallopt(M_MMAP_THRESHOLD, 64 << 20) == 1 && ::mallopt(M_TRIM_THRESHOLD, 512 << 20) == 1;

/// Blocks hold their length in words first; what lies behind was never written.
State trimmed(State s) {
  for (auto& [offset, bytes] : s.blocks) {
    std::uint64_t words = 0;
    std::memcpy(&words, bytes.data(), 8);
    if (words * 8 <= bytes.size()) bytes.resize(words * 8);
  }
  return s;
}

/// Runs a workload on one thread, keeps every state it has been in, and judges images taken on the way.
template <class Instance>
class Explorer {
 public:
  Explorer(const Shape& setup, std::uint64_t seed) : setup_(setup), random_(seed), rig_(open_rig<Instance, Small>(setup)) {
    states_.push_back(now());
    rig_.medium->set_fence_hooks([this] { take(); }, {});
  }
  ~Explorer() { rig_.medium->set_fence_hooks({}, {}); }

  void run(int steps, bool async_mode) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      step(async_mode);
      judge();
    }
    if (::testing::Test::HasFailure()) return;
    rig_.pool.checkpoint();
    judge();
    rig_.pool.close();
    acknowledged_ = states_.size() - 1;
    take();
    judge();
  }
  std::size_t images = 0, recoveries = 0, fences = 0;
  [[nodiscard]] Stats stats() { return rig_.pool.stats(); }

 private:
  struct Image {
    std::vector<std::byte> bytes;
    std::size_t least;  // the newest state acknowledged when it was taken
    const char* what;
  };
  State now() { return trimmed(state_of(rig_.pool.file().view(), rig_.pool.file().header())); }

  void step(bool async_mode) {
    const std::uint64_t choice = random_();
    const unsigned kind = static_cast<unsigned>(random_() % 100);
    if (kind < 4) return rig_.pool.checkpoint();
    if (kind < 8) return rig_.pool.view([](auto& tx, const Small& r) { (void)tx(r.word[0]); });
    const bool fail = kind < 18;
    try {
      const auto receipt = rig_.pool.update(async_mode ? async : setup_.durability, [&](auto& tx, Small& r) {
        std::mt19937_64 inner(choice);
        const std::uint64_t n = 1 + inner() % 4;
        for (std::uint64_t k = 0; k < n; ++k) change(tx, r, inner);
        if (fail) throw Oops();
      });
      states_.push_back(now());
      if (async_mode && random_() % 4 == 0) receipt.wait();
      if (!async_mode || receipt.durable()) acknowledged_ = states_.size() - 1;
    } catch (const Oops&) {}
  }
  template <class Tx>
  static void change(Tx& tx, Small& r, std::mt19937_64& random) {
    const unsigned kind = static_cast<unsigned>(random() % 10);
    const std::size_t at = random() % 64;
    if (kind < 5) {
      tx(r.word[at]) = random();
    } else if (kind == 5) {
      std::uint64_t values[64];
      for (auto& v : values) v = random();
      tx.write_bytes(&r.word[at], values, (64 - at) * 8 / (1 + random() % 4));
    } else if (kind == 6) {
      const auto v = static_cast<std::uint32_t>(random());
      tx.write_bytes(reinterpret_cast<std::byte*>(&r.word[at]) + random() % 5, &v, 1 + random() % 3);
    } else {
      auto slot = tx(r.slot[random() % 10]);
      if (std::uint64_t* const block = slot; block != nullptr) {
        tx.free(block);
        slot = nullptr;
      } else {
        const std::uint64_t words = random() % 30 == 0 ? 9000 : 2 + random() % (random() % 4 == 0 ? 500 : 30);
        auto* const fresh = reinterpret_cast<std::uint64_t*>(tx.alloc(words * 8));
        std::uint64_t values[40] = {std::min<std::uint64_t>(words, 40)};
        for (std::uint64_t i = 1; i < values[0]; ++i) values[i] = random();
        tx.write_bytes(fresh, values, values[0] * 8);
        slot = fresh;
      }
    }
  }

  // At a fence, by whichever thread: the images of a power cut before it takes effect.
  void take() {
    const std::size_t least = acknowledged_;
    std::vector<std::byte> durable_now = rig_.medium->durable_image();
    const std::vector<std::byte> current = rig_.medium->current_image();
    const std::vector<std::byte> again = rig_.medium->durable_image();
    const std::lock_guard lock(mutex_);
    ++fences;
    if (durable_now != again || current.size() != again.size()) {  // another thread's fence came between: lines of the two do not mix
      waiting_.push_back({again, least, "what is durable"});
      return;
    }
    std::vector<std::size_t> lines;
    for (std::size_t l = 0; l < current.size() / 64; ++l)
      if (std::memcmp(current.data() + l * 64, durable_now.data() + l * 64, 64) != 0) lines.push_back(l);
    const auto with = [&](const std::vector<std::size_t>& some) {
      std::vector<std::byte> image = durable_now;
      for (const std::size_t l : some) std::memcpy(image.data() + l * 64, current.data() + l * 64, 64);
      return image;
    };
    if (!lines.empty()) waiting_.push_back({current, least, "all lines written"});
    const std::size_t first_home = setup_.medium().log_bytes / 64;
    std::vector<std::size_t> home;
    std::copy_if(lines.begin(), lines.end(), std::back_inserter(home), [&](std::size_t l) { return l >= first_home; });
    for (unsigned i = 0; i < (scale > 1 ? 1 : 3) && !home.empty(); ++i)
      waiting_.push_back({with({home[picks_() % home.size()]}), least, "one line of home alone"});
    if (!home.empty() && home.size() != lines.size()) waiting_.push_back({with(home), least, "home without the log"});
    for (unsigned i = 0; i < (scale > 1 ? 1 : 2) && lines.size() > 1; ++i) {
      std::vector<std::size_t> some;
      std::copy_if(lines.begin(), lines.end(), std::back_inserter(some), [&](std::size_t) { return picks_() % 2 == 0; });
      waiting_.push_back({with(some), least, "some lines"});
    }
    waiting_.push_back({std::move(durable_now), least, "what is durable"});
  }

  void judge() {
    std::vector<Image> images_now;
    {
      const std::lock_guard lock(mutex_);
      images_now.swap(waiting_);
    }
    for (const Image& image : images_now) {
      ++images;
      const Recovered r = recover<Instance>(image.bytes, setup_);
      ++recoveries;
      ASSERT_TRUE(r.status.ok()) << image.what << ": " << r.status.message();
      ASSERT_TRUE(r.problems.empty()) << image.what << ": " << r.problems.front();
      const State state = trimmed(r.state);
      std::size_t found = states_.size();
      while (found > image.least && states_[found - 1] != state) --found;
      ASSERT_NE(found, image.least) << image.what << ": " << complaint(state, image.least);
      if (images % 7 != 0) continue;
      // L5: a power cut in recovery, or before the session that follows has raised the epoch, ends in the same state
      std::vector<std::vector<std::byte>> within;
      const Recovered watched = recover<Instance>(
          image.bytes, setup_,
          [&](medium::RecordingMedium& m) {
            m.set_fence_hooks(
                [&] {
                  within.push_back(m.durable_image());
                  const auto all = m.current_image();
                  auto some = within.back();
                  for (std::size_t l = 0; l < all.size() / 64; ++l)
                    if (tears_() % 2 == 0) std::memcpy(some.data() + l * 64, all.data() + l * 64, 64);
                  within.push_back(std::move(some));
                },
                [&] { within.push_back(m.durable_image()); });
          },
          true);
      ASSERT_TRUE(watched.status.ok());
      ASSERT_EQ(state, trimmed(watched.state));
      for (const auto& image_within : within) {
        const Recovered second = recover<Instance>(image_within, setup_);
        ++recoveries;
        ASSERT_TRUE(second.status.ok()) << "in recovery: " << second.status.message();
        ASSERT_TRUE(second.problems.empty()) << "in recovery: " << second.problems.front();
        ASSERT_EQ(state, trimmed(second.state)) << "a crash in recovery ends in another state";
      }
    }
  }
  std::string complaint(const State& state, std::size_t least) {
    std::string text = "recovery makes a state that never was, or one older than number " + std::to_string(least) +
                       ", which was acknowledged (of " + std::to_string(states_.size()) + ")";
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (states_[i] == state) text += "; it is number " + std::to_string(i);
    const State& last = states_.back();
    for (std::size_t w = 0; w + 8 <= state.root.size(); w += 8)
      if (std::memcmp(state.root.data() + w, last.root.data() + w, 8) != 0) text += " word " + std::to_string(w / 8);
    for (const auto& [offset, bytes] : state.blocks)
      if (last.blocks.count(offset) == 0)
        text += " block " + std::to_string(offset) + " too many";
      else if (last.blocks.at(offset) != bytes)
        text += " block " + std::to_string(offset) + " differs";
    for (const auto& [offset, bytes] : last.blocks)
      if (state.blocks.count(offset) == 0) text += " block " + std::to_string(offset) + " missing";
    return text;
  }

  const Shape setup_;
  std::mt19937_64 random_, tears_{98};
  std::mt19937_64 picks_{99};  // guarded by mutex_: a pool's own thread takes images too
  Rig<Instance, Small> rig_;
  std::vector<State> states_;
  std::atomic<std::size_t> acknowledged_{0};
  std::mutex mutex_;
  std::vector<Image> waiting_;
};

template <class Instance>
class Crash : public ::testing::Test {
 public:
  static Shape small() {
    Shape s;
    s.threads = 1;
    s.ring_bytes = 8192;
    s.home_bytes = 8 * pool::chunk_bytes;
    s.max_home_bytes = 12 * pool::chunk_bytes;
    return s;
  }
  void explore(const Shape& setup, std::uint64_t seed, int count, bool async_mode = false) {
    Explorer<Instance> explorer(setup, seed);
    explorer.run(count / static_cast<int>(scale > 5 ? 8 : scale > 1 ? 4 : 1), async_mode);
    EXPECT_GT(explorer.fences, 10U);
    this->RecordProperty("images", static_cast<int>(explorer.images));
    this->RecordProperty("recoveries", static_cast<int>(explorer.recoveries));
  }
  static constexpr bool default_tm = std::string_view(Instance::name) == std::string_view(Instance::type::name);
  static constexpr int steps = default_tm ? 90 : 40;
};
TYPED_TEST_SUITE(Crash, DurableEngines, EngineName);

TYPED_TEST(Crash, AtEveryFenceOfDurableUpdates) {
  for (std::uint64_t seed = 1; seed <= (this->default_tm ? 2 : 1); ++seed) this->explore(this->small(), seed, this->steps);
}

TYPED_TEST(Crash, AtEverySyncOfAPoolLikeAFile) {
  Shape setup = this->small();
  setup.like_a_file = true;
  setup.ring_bytes = 128 << 10;
  this->explore(setup, 3, this->steps);
}

TYPED_TEST(Crash, AtEveryFenceOfAPrefixPool) {
  Shape setup = this->small();
  setup.durability = group;
  setup.ring_bytes = 16384;
  this->explore(setup, 4, this->steps);
}

TYPED_TEST(Crash, AtEveryFenceOfUpdatesThatNobodyWaitsFor) {
  Shape setup = this->small();
  setup.durability = async;
  setup.ring_bytes = 16384;
  this->explore(setup, 5, this->steps, true);
}

// Chunks change hands in the middle of a checkpoint: large blocks full of ones give way to spans of small ones, and back.
TYPED_TEST(Crash, WhileChunksChangeHands) {
  Shape setup = this->small();
  setup.home_bytes = 5 * pool::chunk_bytes;
  setup.max_home_bytes = 5 * pool::chunk_bytes;
  setup.ring_bytes = 32768;                                    // undo: a record a line
  std::vector<std::pair<std::vector<std::byte>, int>> images;  // and how many of the phases below were over
  std::atomic<int> phase{0};
  std::mutex mutex;
  std::mt19937_64 picks(7);
  auto rig = open_rig<TypeParam, Small>(setup);  // last: closing it calls the hooks
  rig.medium->set_fence_hooks(
      [&] {
        const int at = phase;
        const auto before = rig.medium->durable_image(), all = rig.medium->current_image(), after = rig.medium->durable_image();
        const std::lock_guard lock(mutex);
        images.emplace_back(after, at);
        if (before != after) return;
        for (unsigned i = 0; i < (scale > 1 ? 1 : 4); ++i) {
          auto image = before;
          for (std::size_t l = 0; l < all.size() / 64; ++l)
            if (picks() % (i + 2) == 0) std::memcpy(image.data() + l * 64, all.data() + l * 64, 64);
          images.emplace_back(std::move(image), at);
        }
      },
      {});
  const auto judge = [&](const char* where) {
    std::vector<std::pair<std::vector<std::byte>, int>> now;
    {
      const std::lock_guard lock(mutex);
      now.swap(images);
    }
    for (const auto& [image, at] : now) {
      const Recovered r = recover<TypeParam>(image, setup);
      ASSERT_TRUE(r.status.ok()) << r.status.message();
      ASSERT_TRUE(r.problems.empty()) << where << ": " << r.problems.front();
      // L6: exactly the blocks that slots point to
      std::size_t owned = 0;
      std::uint64_t slots[10];
      std::memcpy(slots, r.state.root.data() + 64 * 8, sizeof slots);
      for (const std::uint64_t s : slots) owned += s != 0 ? 1 : 0;
      ASSERT_EQ(owned, r.state.blocks.size()) << where << ": blocks leaked or lost";
    }
  };
  const auto free_all = [&] {
    rig.pool.update([&](auto& tx, Small& r) {
      for (auto& slot : r.slot)
        if (std::uint64_t* const block = tx(slot); block != nullptr) {
          tx.free(block);
          tx(slot) = nullptr;
        }
    });
  };
  for (int round = 0; round < (scale > 1 ? 2 : 4); ++round) {
    rig.pool.update([&](auto& tx, Small& r) {  // all of the heap's chunks as large blocks full of ones
      for (std::size_t s = 0; s < 2; ++s) {
        auto* const block = reinterpret_cast<std::uint64_t*>(tx.alloc(65537 - 8192 * s));  // two chunks, then one
        std::uint64_t ones[256];
        std::fill(ones, ones + 256, ~0ULL);
        tx.write_bytes(block, ones, 1024);
        tx(r.slot[s]) = block;
      }
    });
    judge("large blocks");
    rig.pool.checkpoint();
    judge("checkpoint of large blocks");
    free_all();
    judge("freed");
    rig.pool.update([&](auto& tx, Small& r) {
      for (std::size_t s = 0; s < 10; ++s) tx(r.slot[s]) = reinterpret_cast<std::uint64_t*>(tx.alloc(16 << s % 3));
    });
    judge("small blocks");
    rig.pool.checkpoint();
    judge("checkpoint of small blocks");
    free_all();
    judge("freed again");
  }
  rig.medium->set_fence_hooks({}, {});
  const CheckReport check = rig.pool.check();
  EXPECT_TRUE(check.ok()) << check.problems.front();
}

// --- several threads --------------------------------------------------------------------------------------------------------------

constexpr std::size_t most_threads = 4, accounts = 32;
struct Shared {
  std::array<p<std::uint64_t>, accounts> account;
  std::array<p<std::uint64_t>, most_threads * 8> counter;          // a line each
  std::array<p<std::uint64_t>, most_threads * most_threads> seen;  // [t][u]: t's latest transaction had read that of u
};
struct Plain {
  std::uint64_t account[accounts], counter[most_threads * 8], seen[most_threads * most_threads];
};
static_assert(sizeof(Plain) == sizeof(Shared));

template <class Instance>
class CrashThreads : public ::testing::Test {
 public:
  /// Threads transfer money, count, and note what they have read of each other, while images are taken at their fences.
  void run(const Shape& setup, std::size_t threads, unsigned each, bool async_mode) {
    auto rig = open_rig<Instance, Shared>(setup);
    rig.pool
        .update([](auto& tx, Shared& r) {
          for (auto& a : r.account) tx(a) = 1000;
        })
        .wait();
    struct Image {
      std::vector<std::byte> bytes;
      std::array<std::uint64_t, most_threads> least;
    };
    std::array<std::atomic<std::uint64_t>, most_threads> acknowledged{};
    std::vector<Image> images;
    std::mutex mutex;
    std::atomic<unsigned> fences{0};
    const auto take = [&] {
      Image image;
      for (std::size_t t = 0; t < most_threads; ++t) image.least[t] = acknowledged[t];  // before: they stay true
      image.bytes = rig.medium->durable_image();
      const std::lock_guard lock(mutex);
      images.push_back(std::move(image));
    };
    const unsigned every = std::max(1U, each * static_cast<unsigned>(threads) / (scale > 1 ? 10 : 60));
    rig.medium->set_fence_hooks(
        [&] {
          if (++fences % every == 0) take();
        },
        {});
    in_threads(static_cast<int>(threads), [&](int t) {
      const auto me = static_cast<std::size_t>(t);
      std::mt19937_64 random(me);
      for (unsigned i = 0; i < each; ++i) {
        const std::uint64_t choice = random();
        const auto receipt = rig.pool.update(async_mode ? async : setup.durability, [&](auto& tx, Shared& r) {
          std::mt19937_64 inner(choice);
          const std::size_t from = inner() % accounts, to = inner() % accounts;
          if (tx(r.account[from]) > 0) {
            --tx(r.account[from]);
            ++tx(r.account[to]);
          }
          for (std::size_t u = 0; u < threads; ++u)
            if (u != me) tx(r.seen[me * most_threads + u]) = static_cast<std::uint64_t>(tx(r.counter[u * 8]));
          return ++tx(r.counter[me * 8]);
        });
        if (async_mode && i % 16 == 0) receipt.wait();
        if (!async_mode || i % 16 == 0) {
          acknowledged[me] = receipt.value();
          if (i % every == 0) take();  // log before acknowledge: at the return of the update, with no fence to come
        }
      }
    });
    rig.medium->set_fence_hooks({}, {});
    const auto judge = [&](const Image& image) {
      const Recovered r = recover<Instance>(image.bytes, setup);
      ASSERT_TRUE(r.status.ok()) << r.status.message();
      Plain plain;
      std::memcpy(&plain, r.state.root.data(), sizeof plain);
      std::uint64_t sum = 0;
      for (const std::uint64_t a : plain.account) sum += a;
      ASSERT_EQ(accounts * 1000, sum) << "half a transaction";
      for (std::size_t t = 0; t < threads; ++t) {
        ASSERT_GE(plain.counter[t * 8], image.least[t]) << "an acknowledged transaction of thread " << t << " is lost";
        for (std::size_t u = 0; u < threads; ++u)
          if (u != t) {
            ASSERT_LE(plain.seen[t * most_threads + u], plain.counter[u * 8]) << "thread " << t << " had read of " << u << " what is lost";
          }
      }
    };
    for (const Image& image : images) {
      judge(image);
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_GT(images.size(), async_mode ? 1U : 5U);  // nobody waits: fences are few
    rig.pool.close();
    Image last{rig.medium->durable_image(), {}};
    for (std::size_t t = 0; t < threads; ++t) last.least[t] = each;
    judge(last);
  }
};
TYPED_TEST_SUITE(CrashThreads, DurableIsolatingEngines, EngineName);

TYPED_TEST(CrashThreads, DurableUpdates) { this->run(Shape(), 2, 1500 / scale, false); }
TYPED_TEST(CrashThreads, MoreThreadsThanRings) { this->run(Shape(), 4, 500 / scale, false); }
TYPED_TEST(CrashThreads, AFile) {
  Shape setup;
  setup.like_a_file = true;
  setup.ring_bytes = 256 << 10;
  this->run(setup, 3, 600 / scale, false);
}
TYPED_TEST(CrashThreads, NobodyWaits) {
  Shape setup;
  setup.durability = async;
  this->run(setup, 2, 1500 / scale, true);
}

}  // namespace
}  // namespace perdure::test
