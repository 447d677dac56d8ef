// SPDX-License-Identifier: BSD-3-Clause
//
// Sessions: epochs (HEADER-2), the two kinds of mapping, growth while threads run and on a failing
// medium, the clean end.
#include <thread>

#include "pool_test.hpp"
#include "testing/faulty_medium.hpp"

namespace perdure::pool {
namespace {

using namespace testing;

std::unique_ptr<medium::RecordingMedium> recorder(std::uint64_t data = 2 * MiB,
                                                  std::uint64_t max_data = 16 * MiB) {
  medium::RecordingOptions options;
  options.log_bytes = 2 * MiB;
  options.data_bytes = data;
  options.max_data_bytes = max_data;
  auto m = medium::RecordingMedium::make(options);
  return std::move(*m);
}

TEST(Session, EpochRisesDurablyBeforeAnythingElse) {
  const Scratch scratch;
  for (std::uint64_t epoch = 1; epoch < 4; ++epoch) {
    auto pool = OpenPool::open(small(scratch.path()), tester());
    ASSERT_TRUE(pool.ok());
    EXPECT_EQ((*pool)->header().epoch, epoch - 1);
    ASSERT_TRUE((*pool)->publish([](Header& h) { h.ring_head[1] = 4096; }).ok());
    ASSERT_TRUE((*pool)->start_session(ViewPolicy::shadow).ok());
    for (const std::uint64_t at : {header_a, header_b}) {
      const Header h = header_of(scratch.path(), at);
      EXPECT_EQ(judge(h), CopyState::valid);
      EXPECT_EQ(h.epoch, epoch);
      EXPECT_EQ(h.clean, 0U);
      EXPECT_EQ(h.ring_head[1], 0U);
    }
    ASSERT_TRUE((*pool)->close_clean(epoch * 10).ok());
    EXPECT_EQ(header_of(scratch.path()).clean, 1U);
    EXPECT_EQ(header_of(scratch.path()).checkpoint_id, epoch * 10);
  }
}

TEST(Session, PublishingCostsTwoFences) {
  auto pool = OpenPool::open_on(recorder(), true, small("p"), tester());
  ASSERT_TRUE(pool.ok()) << pool.status().message();
  ASSERT_TRUE((*pool)->start_session(ViewPolicy::none).ok());
  EXPECT_FALSE((*pool)->has_heap());
  const auto before = (*pool)->medium().counters();
  ASSERT_TRUE((*pool)->publish().ok());
  const auto cost = (*pool)->medium().counters() - before;
  EXPECT_EQ(cost.fences, 2U);
  EXPECT_EQ(cost.flushed_lines, 128U);
}

TEST(Session, HeapUsedIsExactUnlessRecovered) {
  const Scratch scratch;
  const OpenFile how = small(scratch.path());
  std::uint64_t used = 0;
  {
    auto pool = OpenPool::open(how, tester());
    ASSERT_TRUE(pool.ok());
    ASSERT_TRUE((*pool)->start_session(ViewPolicy::shadow).ok());
    HeapUser user(**pool);
    ASSERT_TRUE(user.allocate(100).ok());
    const auto b = user.allocate(5000);
    ASSERT_TRUE(user.allocate(100000).ok());
    ASSERT_TRUE(user.free(*b).ok());
    used = 48 + 112 + 131072;
    EXPECT_EQ((*pool)->heap().used_bytes(), used);
    user.close();
  }
  {
    auto pool = OpenPool::open(how, tester());
    ASSERT_TRUE(pool.ok());
    EXPECT_EQ((*pool)->header().heap_used, used);
    EXPECT_EQ((*pool)->header().heap_exact, 1U);
    EXPECT_TRUE(audit_heap((*pool)->medium().data(), (*pool)->header()).problems.empty());
    ASSERT_TRUE((*pool)->start_session(ViewPolicy::shadow).ok());
  }  // not closed
  {
    auto pool = OpenPool::open(how, tester());
    ASSERT_TRUE(pool.ok());
    ASSERT_TRUE((*pool)->start_session(ViewPolicy::shadow).ok());
    EXPECT_EQ((*pool)->header().heap_exact, 0U);
    EXPECT_EQ((*pool)->heap().used_bytes(), used);
  }
}

TEST(Session, ASharedViewIsTheDataRegionAndAShadowIsNot) {
  const Scratch scratch;
  const OpenFile how = small(scratch.path());
  make_pool(how);
  for (const auto policy : {ViewPolicy::shared, ViewPolicy::shadow}) {
    auto pool = OpenPool::open(how, tester());
    ASSERT_TRUE(pool.ok());
    ASSERT_TRUE((*pool)->start_session(policy).ok());
    auto& m = (*pool)->medium();
    const std::uint64_t at = (*pool)->header().root_offset, value = 0x1234;
    m.store(m.log_bytes() + at, &value, 8);
    std::uint64_t seen = 0;
    std::memcpy(&seen, (*pool)->view() + at, 8);
    EXPECT_EQ(seen, value);  // both show the data region where nothing else was stored
    const std::uint64_t mine = 0x5678;
    if (policy == ViewPolicy::shadow) {
      std::memcpy((*pool)->view() + at, &mine, 8);
      std::memcpy(&seen, m.data() + at, 8);
      EXPECT_EQ(seen, value);
    }
    ASSERT_TRUE((*pool)->close_clean(0).ok());
  }
}

// A device-dax refuses private mappings: the shadow is then anonymous memory, filled at once with
// everything that is allocated.
TEST(Session, ShadowWhereTheMediumRefusesCopyOnWrite) {
  class NoPrivate final : public medium::Medium {
   public:
    explicit NoPrivate(std::unique_ptr<Medium> inner) : inner_(std::move(inner)) {
      path_ = inner_->path();
      log_bytes_ = inner_->log_bytes();
      max_data_bytes_ = inner_->max_data_bytes();
      data_bytes_ = inner_->data_bytes();
      log_ = const_cast<std::byte*>(inner_->at(0));
      data_ = const_cast<std::byte*>(inner_->data());
      pages_ = inner_->pages();
    }
    std::string_view kind() const noexcept override { return "test"; }
    std::string describe() const override { return "test"; }
    void store(std::uint64_t o, const void* s, std::size_t n) noexcept override {
      inner_->store(o, s, n);
    }
    void stream(std::uint64_t o, const void* s, std::size_t n) noexcept override {
      inner_->stream(o, s, n);
    }
    void flush(std::uint64_t o, std::size_t n) noexcept override { inner_->flush(o, n); }
    Status fence() noexcept override { return inner_->fence(); }
    Status flush_all() noexcept override { return inner_->flush_all(); }
    Result<medium::RingMap> map_ring(std::uint64_t o, std::uint64_t n) override {
      return inner_->map_ring(o, n);
    }
    void append(const medium::RingMap& r, std::uint64_t p, const void* s,
                std::size_t n) noexcept override {
      inner_->append(r, p, s, n);
    }
    Status allocate(std::uint64_t o, std::uint64_t n) override { return inner_->allocate(o, n); }
    Status grow(std::uint64_t n) override { return inner_->grow(n); }
    Status map_view(std::byte* a, std::uint64_t o, std::uint64_t n,
                    medium::ViewKind kind) override {
      if (kind == medium::ViewKind::copy_on_write)
        return failure(Code::unsupported, path_, "a private mapping of a device");
      return inner_->map_view(a, o, n, kind);
    }

   private:
    std::unique_ptr<Medium> inner_;
  };
  auto m = recorder();
  auto* const raw = m.get();
  auto first = OpenPool::open_on(std::move(m), true, small("p"), tester());
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_TRUE((*first)->start_session(ViewPolicy::shadow).ok());
  HeapUser user(**first);
  std::vector<std::uint64_t> blocks;
  for (const std::uint64_t n : {20ULL, 300ULL, 9000ULL, 200000ULL}) {
    blocks.push_back(*user.allocate(n));
    std::memset((*first)->view() + blocks.back(), static_cast<int>(blocks.size()), n);
  }
  user.close();
  const auto image = raw->current_image();
  first->reset();

  medium::RecordingOptions options;
  options.log_bytes = 2 * MiB;
  options.data_bytes = image.size() - 2 * MiB;
  options.max_data_bytes = 16 * MiB;
  auto again = medium::RecordingMedium::make(options, image);
  ASSERT_TRUE(again.ok());
  auto pool = OpenPool::open_on(std::make_unique<NoPrivate>(std::move(*again)), false, small("p"),
                                tester());
  ASSERT_TRUE(pool.ok()) << pool.status().message();
  ASSERT_TRUE((*pool)->start_session(ViewPolicy::shadow).ok());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ((*pool)->view()[blocks[i] + 19], static_cast<std::byte>(i + 1));
    EXPECT_TRUE((*pool)->heap().prepare_free(blocks[i]).ok());
  }
  EXPECT_TRUE(audit_heap((*pool)->view(), (*pool)->header()).problems.empty());
}

TEST(Session, GrowsInStepsToTheMaximum) {
  const Scratch scratch;
  OpenFile how = small(scratch.path());
  how.max_bytes = 50 * MiB;
  auto pool = OpenPool::open(how, tester());
  ASSERT_TRUE(pool.ok());
  ASSERT_TRUE((*pool)->start_session(ViewPolicy::shadow).ok());
  const std::uint64_t start = (*pool)->data_bytes();
  ASSERT_TRUE((*pool)->grow(start).ok());
  EXPECT_EQ((*pool)->data_bytes(), start);
  ASSERT_TRUE((*pool)->grow(start + 1).ok());
  EXPECT_EQ((*pool)->data_bytes(), (start + 4 * MiB + 2 * MiB - 1) / (2 * MiB) * (2 * MiB));
  ASSERT_TRUE((*pool)->grow(40 * MiB).ok());
  EXPECT_EQ((*pool)->data_bytes(), 40 * MiB);
  ASSERT_TRUE((*pool)->grow(40 * MiB + 1).ok());
  EXPECT_EQ((*pool)->data_bytes(), 46 * MiB);  // an eighth, in whole 2 MiB
  EXPECT_EQ((*pool)->grow(51 * MiB).code(), Code::full);
  ASSERT_TRUE((*pool)->grow(50 * MiB).ok());
  EXPECT_EQ((*pool)->data_bytes(), 50 * MiB);
  EXPECT_EQ((*pool)->grow(50 * MiB + 1).code(), Code::full);
  (*pool)->view()[50 * MiB - 1] = std::byte{1};
  EXPECT_EQ(header_of(scratch.path()).data_bytes, 50 * MiB);
  EXPECT_EQ(std::filesystem::file_size(scratch.path()), 52 * MiB);
}

// Medium first, then the header: at no fence does the durable header promise more than the medium
// has.
TEST(Session, HeaderNeverPromisesMoreThanTheMediumHas) {
  auto m = recorder();
  auto* const raw = m.get();
  OpenFile how = small("p");
  how.max_bytes = 16 * MiB;
  auto pool = OpenPool::open_on(std::move(m), true, how, tester());
  ASSERT_TRUE(pool.ok());
  ASSERT_TRUE((*pool)->start_session(ViewPolicy::shadow).ok());
  raw->set_fence_hooks(
      [&] {
        const auto image = raw->current_image();
        for (const std::uint64_t at : {header_a, header_b}) {
          Header h;
          std::memcpy(&h, image.data() + at, sizeof h);
          if (judge(h) == CopyState::valid) {
            EXPECT_LE(h.data_bytes, raw->data_bytes());
          }
        }
      },
      {});
  for (std::uint64_t n = 3 * MiB; n <= 16 * MiB; n += MiB) ASSERT_TRUE((*pool)->grow(n).ok());
  raw->set_fence_hooks({}, {});
}

TEST(Session, GrowthThatFails) {
  auto faulty = std::make_unique<medium::FaultyMedium>(recorder());
  auto* const faults = faulty.get();
  auto opened = OpenPool::open_on(std::move(faulty), true, small("p"), tester());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  OpenPool& pool = **opened;
  ASSERT_TRUE(pool.start_session(ViewPolicy::shadow).ok());
  HeapUser user(pool);
  using Call = medium::FaultyMedium::Call;
  const std::uint64_t data = pool.data_bytes();
  // The disk is full: smaller steps are tried, then the caller gets the error, and nothing has
  // changed.
  faults->fail(Call::grow, 1, ENOSPC, true);
  EXPECT_EQ(pool.grow(data + 1).code(), Code::full);
  EXPECT_GT(faults->calls(Call::grow), 3U);
  EXPECT_EQ(pool.data_bytes(), data);
  EXPECT_EQ(user.allocate(data).code(), Code::full);
  EXPECT_TRUE(user.allocate(100).ok());
  // The disk is full only for a moment.
  faults->fail(Call::grow, 1, ENOSPC);
  EXPECT_TRUE(pool.grow(data + 1).ok());
  EXPECT_GT(pool.data_bytes(), data);
  // No memory for the mapping: the medium has grown, the pool has not; the next attempt uses what
  // exists.
  const std::uint64_t grown = pool.data_bytes();
  faults->fail(Call::map_view, 1, ENOMEM);
  EXPECT_FALSE(pool.grow(grown + MiB).ok());
  EXPECT_EQ(pool.data_bytes(), grown);
  EXPECT_TRUE(pool.grow(grown + MiB).ok());
  // The header can't be made durable: the pool's size does not change.
  const std::uint64_t last = pool.data_bytes();
  faults->fail(Call::fence, 1, EIO);
  const Status s = pool.grow(last + MiB);
  EXPECT_FALSE(s.ok());
  EXPECT_EQ(pool.data_bytes(), last);
  EXPECT_FALSE(pool.publish().ok());
}

TEST(Session, GrowsBesideThreads) {
  const Scratch scratch;
  OpenFile how = small(scratch.path());
  how.max_bytes = 60 * MiB;
  auto pool = OpenPool::open(how, tester());
  ASSERT_TRUE(pool.ok());
  ASSERT_TRUE((*pool)->start_session(ViewPolicy::shadow).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 12; ++i) {
        ASSERT_TRUE(
            (*pool)
                ->grow(static_cast<std::uint64_t>(i + 1) * 4 * MiB + static_cast<std::uint64_t>(t))
                .ok());
        (*pool)->view()[(*pool)->data_bytes() - 1 - static_cast<std::uint64_t>(t)] = std::byte{1};
        ASSERT_TRUE((*pool)->publish([](Header& h) { ++h.checkpoint_id; }).ok());
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(header_of(scratch.path()).checkpoint_id, 48U);
  EXPECT_EQ(header_of(scratch.path()).data_bytes, (*pool)->data_bytes());
}

}  // namespace
}  // namespace perdure::pool
