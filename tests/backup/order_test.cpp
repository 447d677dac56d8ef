// SPDX-License-Identifier: BSD-3-Clause
//
// What the archive takes from the log and when the log gets it back (ARCHIVE-1, ARCHIVE-2), over a
// log whose instants the test chooses.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "perdure/backup/archive.hpp"
#include "perdure/engine/stat_page.hpp"
#include "perdure/log/record_writer.hpp"
#include "perdure/log/ring.hpp"
#include "tests/backup/failing_store.hpp"
#include "tests/pool/pool_test.hpp"

namespace perdure::backup {
namespace {

using namespace pool::testing;

// A log of two rings, without an engine.
class TestLog final : public engine::FollowedLog {
 public:
  explicit TestLog(pool::OpenPool& file) {
    const pool::Header& header = file.header();
    for (std::uint32_t i = 0; i < 2; ++i) {
      const auto map =
          file.medium().map_ring(pool::ring_offset(header, i), header.ring_bytes).value();
      const std::uint64_t seed = log::ring_seed(header.uuid, header.epoch, i);
      rings_[i].configure(file.medium(), map, seed);
      writers_[i].configure(seed, rings_[i].max_record(), file.medium().append_unit());
    }
  }
  // A transaction's record is below its ring's tail.
  void append(std::size_t ring, std::uint64_t id) {
    log::RecordWriter& writer = writers_[ring];
    writer.reset();
    writer.words(pool::chunk_bytes, &id, 1);
    writer.end_of(id);
    ASSERT_TRUE(rings_[ring].append_fence(writer, log::RecordKind::commit, id, 1).ok());
  }
  [[nodiscard]] std::uint64_t followable_id() const noexcept override { return durable; }
  [[nodiscard]] std::uint32_t refuses() const noexcept override { return 0; }
  void depose(const Status&) noexcept override {}
  [[nodiscard]] engine::StatWriter& page() noexcept override { return page_; }
  [[nodiscard]] log::LogCursor cursor() const override {
    log::LogCursor result;
    for (const log::Ring& ring : rings_) result.add(ring, ring.head());
    return result;
  }
  std::atomic<std::uint64_t> durable{0};

 private:
  log::Ring rings_[2];
  log::RecordWriter writers_[2];
  engine::StatWriter page_{{}, "", "none"};
};

class ArchiveOrder : public ::testing::Test {
 protected:
  ArchiveOrder() {
    file_ = pool::OpenPool::open(small(scratch_.path()), tester()).value();
    ArchiveOptions options;
    options.store = store_;
    archive_ = Archive::open(options, *file_).value();
    EXPECT_TRUE(archive_->catch_up(*file_).ok());
    EXPECT_TRUE(file_->start_session(pool::ViewPolicy::none).ok());
    log_ = std::make_unique<TestLog>(*file_);
    EXPECT_TRUE(archive_->start(*log_, *file_).ok());
  }
  // The ids of all transactions in the store, in order.
  [[nodiscard]] std::vector<std::uint64_t> archived() const {
    std::vector<std::uint64_t> ids;
    const std::vector<SegmentName> names = list_segments(*store_).value();
    for (const SegmentName& name : names) {
      auto segment = read_segment(name, store_->get(name.text()).value(), store_->name()).value();
      HistoryEnd end = segment.begin();
      const Status s = each_frame(
          segment.frames(), segment.frames_bytes(), name.text(), end, [&](const Frame& frame) {
            if (frame.header.kind != FrameKind::group) return Status();
            EXPECT_TRUE(log::each_entry(reinterpret_cast<const std::uint64_t*>(frame.payload),
                                        frame.header.payload_bytes / 8, [&](const log::Entry& e) {
                                          if (e.kind == log::EntryKind::end)
                                            ids.push_back(e.values[0]);
                                        }));
            return Status();
          });
      EXPECT_TRUE(s.ok()) << s.message();
    }
    return ids;
  }
  Scratch scratch_;
  std::shared_ptr<test::FailingStore> store_ =
      std::make_shared<test::FailingStore>(scratch_.path("archive"));
  std::unique_ptr<pool::OpenPool> file_;
  std::unique_ptr<TestLog> log_;
  std::unique_ptr<Archive> archive_;  // last: its thread uses the others
};

// ARCHIVE-1: transaction 2 is in its ring when the one before it is not yet in another.
TEST_F(ArchiveOrder, TakesWhatIsDurableInTheOrderOfIds) {
  log_->append(1, 2);
  ASSERT_TRUE(archive_->flush(0).ok());
  EXPECT_EQ(0U, archive_->stats().last_id);
  log_->append(0, 1);
  log_->durable = 2;
  ASSERT_TRUE(archive_->flush(2).ok());
  EXPECT_EQ(2U, archive_->stats().last_id);
  EXPECT_EQ((std::vector<std::uint64_t>{1, 2}), archived());
}

// ARCHIVE-2: the log keeps what the store does not have.
TEST_F(ArchiveOrder, TheLogKeepsWhatTheStoreLacks) {
  log_->append(0, 1);
  store_->fails = true;
  log_->durable = 1;
  EXPECT_EQ(Code::full, archive_->flush(1).code());
  EXPECT_EQ(0U, log_->floors().lowest());
  store_->fails = false;
  ASSERT_TRUE(archive_->flush(1).ok());
  EXPECT_EQ(1U, log_->floors().lowest());
}

}  // namespace
}  // namespace perdure::backup
