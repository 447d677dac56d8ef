// SPDX-License-Identifier: BSD-3-Clause
//
// Versions: an entry's memory is used again while a reader is between its two looks, or the head of
// another line still leads to it (SNAP-1, SNAP-2). Threads that run freely hardly ever meet it.
#include "perdure/engine/shadow/versions.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace perdure::engine::shadow {
namespace {

constexpr std::uint64_t lines = 64, memory = 64 << 10;

std::function<void()> at_point;
void call_at_point() {
  if (auto f = std::exchange(at_point, nullptr)) f();
}

class VersionsTest : public ::testing::Test {
 protected:
  VersionsTest() { snapshot_point = &call_at_point; }
  ~VersionsTest() override { snapshot_point = nullptr, at_point = nullptr; }

  /// What a saver stores, in its order, in the entry `index`.
  void push(std::uint32_t index, std::uint64_t line, std::uint64_t stamp) {
    Versions::Entry& entry = versions_.entry(index);
    const std::uint32_t first = versions_.head(line);
    const bool linked = first != 0 && first != index && versions_.entry(first).line == line;
    entry.line = line;
    entry.before = linked ? versions_.entry(first).stamp.load() : 0;
    entry.next = linked ? first : 0;
    for (std::size_t i = 0; i < Versions::line_words; ++i)
      entry.words[i] = view_[line * Versions::line_words + i];
    entry.stamp = Versions::in_flight;
    versions_.head(line) = index;
    entry.stamp = stamp;
  }
  std::uint64_t& word(std::uint64_t line) { return view_[line * Versions::line_words]; }
  std::uint64_t read(std::uint64_t id, std::uint64_t line) {
    std::uint64_t found = 0;
    versions_.read(id, line * Versions::line_bytes, &found, 1, expired_);
    return found;
  }

  std::vector<std::uint64_t> view_ = std::vector<std::uint64_t>(lines * Versions::line_words);
  Versions versions_{reinterpret_cast<const std::byte*>(view_.data()), lines * 64, memory};
  std::atomic<bool> expired_{false};
};

TEST_F(VersionsTest, TheOldestEntryAboveAnIdHasItsState) {
  for (std::uint64_t id = 1; id <= 5; ++id) {
    push(static_cast<std::uint32_t>(id), 7, Versions::committed(id));
    word(7) = id;
  }
  for (std::uint64_t id = 0; id <= 6; ++id) EXPECT_EQ(read(id, 7), std::min<std::uint64_t>(id, 5));
  EXPECT_EQ(read(2, 8), 0U);
}

TEST_F(VersionsTest, ATransactionThatWasRolledBackChangesNothing) {
  word(7) = 1;
  push(1, 7, Versions::rolled_back(4));
  for (const std::uint64_t id : {3, 4, 5}) EXPECT_EQ(read(id, 7), 1U);
  push(2, 7, Versions::committed(6));
  word(7) = 6;
  for (const std::uint64_t id : {3, 4, 5}) EXPECT_EQ(read(id, 7), 1U);
  EXPECT_EQ(read(6, 7), 6U);
}

TEST_F(VersionsTest, AStoreBetweenTheLooksIsNotSeen) {
  word(7) = 1;
  at_point = [this] {
    push(1, 7, Versions::committed(9));
    word(7) = 9;
  };
  EXPECT_EQ(read(5, 7), 1U);
}

TEST_F(VersionsTest, AnEntryThatIsUsedAgainForItsLineBetweenTheLooksIsNotSeen) {
  push(1, 7, Versions::committed(2));
  word(7) = 2;
  at_point = [this] {
    push(1, 7, Versions::committed(9));
    word(7) = 9;
  };
  EXPECT_EQ(read(5, 7), 2U);
}

TEST_F(VersionsTest, AHeadDoesNotLeadToAnotherLineSEntry) {
  push(1, 7, Versions::committed(2));
  word(7) = 2;
  word(9) = 3;
  push(1, 9, Versions::committed(9));
  word(9) = 9;
  EXPECT_EQ(read(5, 7), 2U);
  EXPECT_EQ(read(5, 9), 3U);
}

TEST_F(VersionsTest, ALinkIsNotFollowedToWhatIsUsedAgain) {
  push(1, 7, Versions::committed(2));
  word(7) = 2;
  push(2, 7, Versions::committed(8));
  word(7) = 8;
  push(1, 9, Versions::committed(9));
  EXPECT_EQ(read(5, 7), 2U);
}

TEST_F(VersionsTest, AChunkIsUsedAgainWhenNoneNeedsItsEntries) {
  const auto chunks = static_cast<std::uint32_t>(memory / Versions::chunk_bytes);
  for (std::uint32_t i = 0; i < chunks; ++i) EXPECT_EQ(versions_.claim(100), i);
  EXPECT_EQ(versions_.claim(100), Versions::no_chunk);  // threads have them
  versions_.left(2, 50);
  EXPECT_EQ(versions_.claim(49), Versions::no_chunk);
  EXPECT_EQ(versions_.claim(50), 2U);
  EXPECT_EQ(versions_.claim(50), Versions::no_chunk);
  EXPECT_EQ(versions_.bytes(), chunks * Versions::chunk_bytes);
}

}  // namespace
}  // namespace perdure::engine::shadow
