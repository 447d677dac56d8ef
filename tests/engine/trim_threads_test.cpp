// SPDX-License-Identifier: BSD-3-Clause
//
// Pool::trim() on every engine while threads allocate, free and read (TRIM-3, TRIM-4), and the
// images that power cuts leave. An assertion of the medium fails if a line of a hole is stored to
// (ALLOC-1).
#include <atomic>
#include <mutex>

#include "tests/engine/trim_blocks.hpp"

namespace perdure::test {
namespace {

std::uint64_t random_size(std::mt19937_64& random) {
  constexpr std::uint64_t sizes[] = {64 << 10, 130 << 10, 3000, 8000, 20000};
  return sizes[random() % std::size(sizes)];
}

class TrimThreads : public EngineTest {
 public:
  static void run(std::uint64_t max_resident);
};
ENGINE_SUITE(TrimThreads, durable_isolating_ones);

// Free chunks are scarce, so transactions take back what a trim has claimed, and wait for trims.
void TrimThreads::run(std::uint64_t max_resident) {
  Shape shape;
  shape.threads = 4;
  shape.max_data_bytes = 96 * pool::chunk_bytes;
  Options options = shape.options(GetParam());
  options.max_resident = max_resident;
  auto made = medium::RecordingMedium::make(shape.medium()).value();
  medium::RecordingMedium* const raw = made.get();
  Rig<Blocks> rig{
      raw, AnyPool<Blocks>::try_open_on("recording", options, std::move(made), true).value()};
  auto& pool = rig.pool;
  constexpr int workers = 3;
  const unsigned each = 600 / scale / heavy(GetParam()) + 10;
  std::atomic<int> working{workers};
  std::atomic<std::uint64_t> given{0}, torn{0}, views{0};
  in_threads(workers + 2, [&](int t) {
    if (t == workers) {
      while (working != 0) given += pool.trim(32 * pool::chunk_bytes).bytes;
      return;
    }
    if (t == workers + 1) {
      while (working != 0) {
        torn += pool.view([&](auto& tx, const Blocks& r) -> std::uint64_t {
          std::uint64_t bad = 0;
          for (const Slot& s : r.slot) bad += sound(tx, s) ? 0 : 1;
          return bad;
        });
        ++views;
        std::this_thread::yield();
      }
      return;
    }
    std::mt19937_64 random(static_cast<std::uint64_t>(t));
    // On a busy machine, each trim may have lost its chunks until now, or none has come to its end.
    // After `each` rounds nothing is allocated, so no transaction needs the chunks of the next
    // trim.
    for (unsigned i = 0; i < each || given == 0; ++i) {
      const std::size_t at = random() % slots;
      const std::uint64_t bytes = random_size(random), stamp = random() % 1000000 + 1;
      const bool fails = random() % 8 == 0;
      try {
        torn += pool.update([&](auto& tx, Blocks& r) -> std::uint64_t {
                      Slot& s = r.slot[at];
                      const bool good = sound(tx, s);
                      if (tx.read(s.at) != nullptr)
                        drop(tx, s);
                      else if (i < each)
                        make(tx, s, bytes, stamp);
                      if (fails) throw 1;
                      ++tx(r.version);
                      return good ? 0 : 1;
                    })
                    .value();
      } catch (int) {}
    }
    --working;
  });
  EXPECT_EQ(0U, torn) << "a block lost its contents";
  EXPECT_GT(given, 0U);
  EXPECT_GT(views, 0U);
  given += trim_all(pool);
  pool.view([&](auto& tx, const Blocks& r) {
    for (const Slot& s : r.slot) EXPECT_TRUE(sound(tx, s));
  });
  const CheckReport check = pool.check();
  EXPECT_TRUE(check.ok()) << check.problems.front();
  EXPECT_TRUE(pool.close().clean);
  auto second = opened_again(rig, GetParam(), shape);
  second.pool.view([&](auto& tx, const Blocks& r) {
    for (const Slot& s : r.slot) EXPECT_TRUE(sound(tx, s));
  });
  const CheckReport last = second.pool.check();
  EXPECT_TRUE(last.ok()) << last.problems.front();
}

TEST_P(TrimThreads, BesideThreadsThatAllocateFreeAndRead) { run(0); }

std::vector<EngineInfo> limited_ones() {
  return engines_that([](const EngineInfo& e) { return isolates(e) && e.limits_resident; });
}
class TrimResident : public TrimThreads {};
ENGINE_SUITE(TrimResident, limited_ones);

// Checkpoints give copies of pages back while trims run, too.
TEST_P(TrimResident, BesideALimitOfMemory) { run(64 << 10); }

class TrimCrashes : public EngineTest {
 public:
  struct Image {
    std::vector<std::byte> bytes;
    std::uint64_t version = 0;  ///< acknowledged before
  };
  static void judge(std::span<const std::byte> bytes, std::uint64_t version, const Shape& shape) {
    const Recovered r = recover(GetParam(), bytes, shape);
    ASSERT_TRUE(r.status.ok()) << r.status.message();
    ASSERT_TRUE(r.problems.empty() || r.problems.front().find("heap_used") != std::string::npos)
        << r.problems.front();
    std::array<PlainSlot, slots> plain;
    std::uint64_t found = 0;
    std::memcpy(plain.data(), r.state.root.data(), sizeof plain);
    std::memcpy(&found, r.state.root.data() + sizeof plain, 8);
    ASSERT_GE(found, version) << "an acknowledged transaction is lost";
    // Each stamp is drawn once, so it says which block a slot has.
    std::map<std::uint64_t, const std::vector<std::byte>*> by_stamp;
    for (const auto& [offset, block] : r.state.blocks) {
      std::uint64_t stamp = 0;
      std::memcpy(&stamp, block.data(), 8);
      by_stamp[stamp] = &block;
    }
    for (const PlainSlot& s : plain) {
      if (s.stamp == 0) continue;
      ASSERT_TRUE(by_stamp.contains(s.stamp)) << "block " << s.stamp << " is lost";
      const std::vector<std::byte>& block = *by_stamp[s.stamp];
      ASSERT_GE(block.size(), s.bytes);
      each_word(s.bytes, [&](std::uint64_t i) {
        std::uint64_t word = 0;
        std::memcpy(&word, block.data() + i * 8, 8);
        ASSERT_EQ(s.stamp + i, word) << "word " << i << " of block " << s.stamp;
      });
    }
  }
  static void run(Shape shape, unsigned each) {
    each = each / heavy(GetParam()) + 10;
    shape.max_data_bytes = 48 * pool::chunk_bytes;
    auto rig = open_rig<Blocks>(GetParam(), shape);
    std::atomic<std::uint64_t> acknowledged{0};
    std::atomic<bool> working{true};
    std::atomic<unsigned> fences{0};
    std::vector<Image> images;
    std::mutex mutex;
    std::atomic<std::uint64_t> given{0};
    std::mt19937_64 choice(3);
    const unsigned every = std::max(1U, each / 5) * heavy(GetParam());
    rig.medium->set_fence_hooks(
        [&] {
          if (++fences % every != 0) return;
          {
            const std::lock_guard lock(mutex);
            if (images.size() >= 60 / scale) return;
          }
          Image image{{}, acknowledged};  // read before the image is taken: it stays true
          image.bytes = rig.medium->durable_image();
          Image mixed = image;
          const std::vector<std::byte> now = rig.medium->current_image();
          const bool one_moment = rig.medium->durable_image() == image.bytes;
          const std::lock_guard lock(mutex);
          // Each line that is not durable has either its durable bytes or all that was stored.
          for (std::size_t at = 0; at + 64 <= std::min(mixed.bytes.size(), now.size()); at += 64)
            if (choice() % 2 == 0) std::memcpy(&mixed.bytes[at], &now[at], 64);
          images.push_back(std::move(image));
          // If the two images differ, a line has become durable between them.
          if (one_moment) images.push_back(std::move(mixed));
        },
        {});
    in_threads(2, [&](int t) {
      if (t == 1) {
        while (working) given += rig.pool.trim().bytes;
        return;
      }
      std::mt19937_64 random(11);
      std::uint64_t stamp = 0;
      // In the end nothing is allocated, as above: with one seed, blocks that are in the way of a
      // large one would make the pool full at the same transaction each time.
      for (unsigned i = 0; i < each || given == 0; ++i) {
        const std::size_t at = random() % slots;
        const std::uint64_t bytes = random_size(random);
        stamp += 100000;  // more than a block has words
        auto receipt = rig.pool.update([&](auto& tx, Blocks& r) {
          Slot& s = r.slot[at];
          if (tx.read(s.at) != nullptr)
            drop(tx, s);
          else if (i < each)
            make(tx, s, bytes, stamp);
          return ++tx(r.version);
        });
        receipt.wait();
        acknowledged = receipt.value();
      }
      working = false;
    });
    rig.medium->set_fence_hooks({}, {});
    EXPECT_GT(given, 0U);
    EXPECT_FALSE(images.empty());
    for (const Image& image : images) {
      judge(image.bytes, image.version, shape);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
};
ENGINE_SUITE(TrimCrashes, durable_isolating_ones);

TEST_P(TrimCrashes, EveryImageHasWhatWasAcknowledged) { run(Shape(), 200 / scale); }
TEST_P(TrimCrashes, AFile) {
  Shape shape;
  shape.like_a_file = true;
  shape.ring_bytes = 1 << 20;
  run(shape, 150 / scale);
}

}  // namespace
}  // namespace perdure::test
