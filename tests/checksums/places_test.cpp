// SPDX-License-Identifier: BSD-3-Clause
//
// Where checksums of pages lie, and what is stored there when a pool is made, copied, trimmed, and
// raised. tests/engine has them beside checkpoints, tests/conformance at every power cut.
#include "perdure/pool/page_checksums.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "perdure/api/pool.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/log/replayed_checksums.hpp"
#include "perdure/pool/create.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/heap_apply.hpp"
#include "perdure/pool/scrub.hpp"
#include "testing/recording_medium.hpp"

namespace perdure::pool {
namespace {

TEST(PageSum, TheTermsOfLinesAndPairsAddUp) {
  std::vector<std::byte> page(4096);
  for (std::size_t i = 0; i < page.size(); ++i) page[i] = static_cast<std::byte>(i * 7 + i / 64);
  const PageSum sum(42);
  std::uint64_t lines = 0, pairs = 0;
  for (std::uint64_t line = 0; line < 64; ++line) lines += sum.line(line, &page[line * 64]);
  for (std::uint64_t pair = 0; pair < 256; ++pair) {
    std::uint64_t w[2];
    std::memcpy(w, &page[pair * 16], sizeof w);
    pairs += sum.pair(pair, w[0], w[1]);
  }
  EXPECT_EQ(PageSum::of(42, page.data()), lines);
  EXPECT_EQ(lines, pairs);
  // In another page, or with two lines in each other's places, it is another one.
  EXPECT_NE(PageSum::of(43, page.data()), lines);
  std::swap_ranges(page.begin(), page.begin() + 64, page.begin() + 64);
  EXPECT_NE(PageSum::of(42, page.data()), lines);
}

TEST(PageSum, EveryFlippedBitChangesIt) {
  std::vector<std::byte> page(4096);
  for (std::size_t i = 0; i < page.size(); ++i) page[i] = static_cast<std::byte>(i * i);
  const std::uint64_t sum = PageSum::of(7, page.data());
  for (std::size_t bit = 0; bit < page.size() * 8; ++bit) {
    page[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_NE(sum, PageSum::of(7, page.data())) << bit;
    page[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

TEST(PageSum, TheReaderWordsHaveNoTerm) {
  std::vector<std::byte> page(4096);
  const std::uint64_t sum = PageSum::of(0, page.data());
  for (std::size_t i = reader_words_offset; i < reader_words_offset + sizeof(ReaderWords); ++i)
    page[i] = std::byte{0xff};
  EXPECT_EQ(sum, PageSum::of(0, page.data()));
  page[8] = std::byte{1};
  EXPECT_NE(sum, PageSum::of(0, page.data()));
}

// Whatever the places are: the chunks of checksums hold nothing else, and every other chunk is
// where it is in a pool without them.
void expect_divided(const Directory& with, const Directory& without) {
  const DataRange sums = with.checksums();
  for (std::uint64_t chunk = 0; chunk < with.chunks(); ++chunk) {
    const bool own =
        chunk >= sums.offset / chunk_bytes && chunk < (sums.offset + sums.bytes) / chunk_bytes;
    EXPECT_EQ(own, with.holds_checksums(chunk)) << chunk;
    EXPECT_EQ(own || without.holds_words(chunk), with.holds_words(chunk)) << chunk;
    EXPECT_EQ(without.word(chunk), with.word(chunk)) << chunk;
    if (!own) {
      EXPECT_EQ(chunk, with.chunk_of_word(with.word(chunk)));
    }
    const std::uint64_t end = with.section_end(chunk);
    EXPECT_GT(end, chunk);
    EXPECT_LE(end, without.section_end(chunk));
    for (std::uint64_t c = std::max(chunk, with.first_object(chunk)); c < end; ++c)
      EXPECT_FALSE(with.holds_words(c)) << chunk << " " << c;
  }
  std::uint64_t runs = 0, last = 0;
  with.each_run_of_words(with.max_data_bytes(), [&](std::uint64_t from, std::uint64_t to) {
    EXPECT_GE(from, last);
    for (std::uint64_t c = from; c < to; ++c) EXPECT_TRUE(with.holds_words(c));
    last = to;
    runs += to - from;
  });
  std::uint64_t words = 0;
  for (std::uint64_t chunk = 0; chunk < with.chunks(); ++chunk) words += with.holds_words(chunk);
  EXPECT_EQ(words, runs);
}

TEST(ChecksumsPlace, OfANewPoolIsBehindTheDirectory) {
  for (const std::uint64_t limit : {std::uint64_t{4} << 20, std::uint64_t{1} << 30}) {
    const Directory without(limit);
    const DataRange place = checksums_of_new_pool(limit);
    const Directory with(limit, limit, place);
    EXPECT_EQ(without.first_chunk() * chunk_bytes, place.offset);
    EXPECT_EQ((place.offset + place.bytes) / chunk_bytes, with.first_chunk());
    EXPECT_GE(place.bytes, limit / 512);
    expect_divided(with, without);
  }
}

TEST(ChecksumsPlace, OfAnExistingPoolIsBehindItsDataAndInOneSection) {
  const std::uint64_t first = std::uint64_t{4} << 20, limit = std::uint64_t{64} << 20;
  const Directory without(first, limit);
  for (std::uint64_t chunks = without.first_chunk() + 1; chunks < 200; ++chunks) {
    Header h{};
    h.max_data_bytes = first;
    raise_limit(h, limit);
    set_data_bytes(h, chunks * chunk_bytes);
    const DataRange place = checksums_of_old_pool(h, limit);
    ASSERT_NE(0U, place.bytes) << chunks;
    EXPECT_GE(place.offset, chunks * chunk_bytes);
    h.checksums_offset = place.offset;
    h.checksums_bytes = place.bytes;
    set_feature(h, Feature::data_checksums);
    EXPECT_NE("", contradiction_of_checksums(h));  // the data region ends before them
    set_data_bytes(h, place.offset + place.bytes);
    EXPECT_EQ("", contradiction_of_checksums(h));
    const Directory with(h);
    EXPECT_EQ(without.first_chunk(), with.first_chunk());
    // Spans stay where they may lie.
    EXPECT_EQ(0U, ((place.offset + place.bytes) / chunk_bytes - with.first_chunk()) % 16);
    expect_divided(with, without);
  }
}

TEST(ChecksumsPlace, WhatCantBeRightIsNamed) {
  Header h{};
  h.max_data_bytes = h.data_bytes = std::uint64_t{1} << 30;
  EXPECT_EQ("", contradiction_of_checksums(h));
  h.checksums_bytes = chunk_bytes;  // without the feature
  EXPECT_NE("", contradiction_of_checksums(h));
  const DataRange place = checksums_of_new_pool(h.max_data_bytes);
  set_feature(h, Feature::data_checksums);
  const auto with = [&](std::uint64_t offset, std::uint64_t bytes) {
    h.checksums_offset = offset;
    h.checksums_bytes = bytes;
    return contradiction_of_checksums(h);
  };
  EXPECT_EQ("", with(place.offset, place.bytes));
  EXPECT_NE("", with(place.offset, 0));
  EXPECT_NE("", with(place.offset + 4096, place.bytes));
  EXPECT_NE("", with(place.offset, place.bytes + 4096));
  EXPECT_NE("", with(0, place.bytes));  // over the directory
  EXPECT_NE("", with(place.offset, h.max_data_bytes));
  EXPECT_NE("", with(~std::uint64_t{0} / chunk_bytes * chunk_bytes, place.bytes));
}

/// Checksums on a medium that knows what a power cut leaves.
struct Checksums {
  Checksums() {
    h.log_bytes = 4096;
    h.max_data_bytes = std::uint64_t{64} << 20;
    place = checksums_of_new_pool(h.max_data_bytes);
    h.checksums_offset = place.offset;
    h.checksums_bytes = place.bytes;
    set_feature(h, Feature::data_checksums);
    set_data_bytes(h, place.offset + place.bytes + 16 * chunk_bytes);
    medium::RecordingOptions how;
    how.log_bytes = h.log_bytes;
    how.data_bytes = h.data_bytes;
    how.max_data_bytes = h.max_data_bytes;
    medium = medium::RecordingMedium::make(how).value();
    chunk = (place.offset + place.bytes) / chunk_bytes + 3;
    // The pages of a chunk, and one page on either side.
    PageChecksums sums(*medium, h);
    for (std::uint64_t page = first() - 1; page <= first() + pages; ++page)
      sums.set(page, 1000 + page);
    fence();
  }
  void fence() { EXPECT_TRUE(medium->fence().ok()); }
  [[nodiscard]] std::uint64_t first() const { return chunk * pages; }
  [[nodiscard]] std::uint64_t durable(std::uint64_t page) const {
    std::uint64_t word = 0;
    std::memcpy(&word, &medium->durable_image()[h.log_bytes + place.offset + page * 8],
                sizeof word);
    return word;
  }
  void expect(bool kept) const {
    for (std::uint64_t page = first(); page < first() + pages; ++page)
      EXPECT_EQ(kept ? 1000 + page : 0, durable(page)) << page;
    for (const std::uint64_t other : {first() - 1, first() + pages})
      EXPECT_EQ(1000 + other, durable(other)) << "another chunk's";
  }
  static constexpr std::uint64_t pages = chunk_bytes / 4096;
  Header h{};
  DataRange place;
  std::unique_ptr<medium::RecordingMedium> medium;
  std::uint64_t chunk = 0;
};

// CHECKSUM-4: after the fence that follows, a power cut finds the words of the chunk 0.
TEST(ChecksumsPlace, WhatIsForgottenIsDurable) {
  Checksums c;
  PageChecksums(*c.medium, c.h).forget(c.chunk, 1);
  c.fence();
  c.expect(false);
}

// A checkpoint that makes a chunk free takes its pages' checksums, unless it is in use again.
TEST(ChecksumsPlace, FreedChunksHaveNone) {
  for (const bool used_again : {false, true}) {
    Checksums c;
    const std::uint64_t word = Directory(c.h).word(c.chunk), line = word / 64 * 64, in_use = 1;
    c.medium->store(c.h.log_bytes + word, &in_use, sizeof in_use);
    c.fence();
    std::uint64_t words[8];  // what the checkpoint stores there
    std::memcpy(words, c.medium->data() + line, sizeof words);
    words[(word - line) / 8] = 0;
    std::vector<std::byte> view(c.h.data_bytes);
    if (used_again) std::memcpy(&view[word], &in_use, sizeof in_use);
    PageChecksums(*c.medium, c.h).forget_freed(&line, 1, words, view.data());
    c.fence();
    c.expect(used_again);
  }
}

// CHECKSUM-3: a page has no checksum while it changes, and then the one of what it holds.
TEST(ChecksumsPlace, APageThatChangesHasNone) {
  Checksums c;
  PageChecksums sums(*c.medium, c.h);
  const std::uint64_t page = c.first() + 2, line = page * 4096 + 128;
  sums.set(page, sums.computed(page));
  PageChecksums::Change change(sums);
  change.reserve(1);
  const std::uint64_t words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  change.prepare(&line, 1, words);
  EXPECT_EQ(0U, sums.load(page));
  EXPECT_EQ(1000 + c.first(), sums.load(c.first())) << "another page's";
  c.medium->store(c.h.log_bytes + line, words, sizeof words);
  change.publish();
  EXPECT_NE(0U, sums.load(page));
  EXPECT_EQ(sums.computed(page), sums.load(page));
}

// CHECKSUM-2: a recovery was killed when it had freed a block and given the block's span to a large
// object, and had not stored the checksums. The next one finds both done, and the bitmap's page
// changed.
TEST(ChecksumsPlace, ARecoveryAfterAKilledOneKeepsThoseOfBitmaps) {
  Checksums c;
  c.h.checkpoint_id = 7;
  const Directory directory(c.h);
  const std::uint64_t span = c.chunk * chunk_bytes, bits = 1, none = 0, one_chunk = 1;
  const std::uint32_t cls = 0;
  ASSERT_EQ(1U, classes[cls].chunks);
  const auto store = [&](std::uint64_t offset, std::uint64_t word) {
    c.medium->store(c.h.log_bytes + offset, &word, sizeof word);
  };
  store(directory.word(c.chunk), span_word(cls).bits);
  store(span, bits);
  PageChecksums sums(*c.medium, c.h);
  sums.set(c.first(), sums.computed(c.first()));
  sums.mark(c.h.checkpoint_id);
  store(span, none);
  store(directory.word(c.chunk), ChunkWord::make(ChunkWord::large, 0, 1).bits);
  c.fence();
  ASSERT_NE(sums.computed(c.first()), sums.load(c.first()));

  log::ReplayedChecksums replayed(*c.medium, c.h);
  replayed.begin();
  log::DataWriter data(*c.medium, directory, log::DataWriter::Use::recovery, nullptr, &replayed);
  ASSERT_TRUE(data.entry({log::EntryKind::free, span + classes[cls].first, cls, &none}));
  ASSERT_TRUE(data.entry({log::EntryKind::alloc, span, large_class, &one_chunk}));
  data.flush();
  replayed.finish();
  c.fence();
  EXPECT_EQ(sums.computed(c.first()), sums.load(c.first()));
}

struct Words {
  std::array<p<std::uint64_t>, 4096> word;
};

// A raised limit moves the checksums: a power cut finds them in the place that the header names.
TEST(ChecksumsPlace, WhatIsMovedIsDurable) {
  Options options;
  options.checksums = true;
  options.creation.uuid_seed = 1;
  options.creation.max_size = 8 << 20;
  options.creation.log_size = 1 << 20;
  medium::RecordingOptions how;
  how.log_bytes = first_ring + (4 << 20);
  how.data_bytes = 4 << 20;
  how.max_data_bytes = std::uint64_t{1} << 30;
  how.sparse = true;
  std::vector<std::byte> image;
  Header before{};
  {
    auto made = medium::RecordingMedium::make(how).value();
    const medium::RecordingMedium& medium = *made;
    auto pool = Pool<Words>::try_open_on("moved", options, std::move(made), true).value();
    for (std::uint64_t i = 0; i < 4096; i += 100)
      pool.update([&](auto& tx, Words& w) { tx.write(w.word[i], i + 1); });
    pool.close();
    before = pool.header();
    image = medium.current_image();
  }
  how.data_bytes = before.data_bytes;
  options.creation.max_size = std::uint64_t{1} << 30;  // more than 1 MiB of checksums serves
  options.creation.raise_max_size = true;
  auto made = medium::RecordingMedium::make(how, image).value();
  medium::RecordingMedium& medium = *made;
  // Before a fence a header that was stored may be durable already: what it names has to be.
  bool named = false;
  medium.set_fence_hooks(
      [&] {
        const std::vector<std::byte> now = medium.current_image();
        for (const std::uint64_t at : {header_a, header_b}) {
          Header h{};
          std::memcpy(&h, &now[at], sizeof h);
          if (h.checksums_offset == 0 || h.checksums_offset == before.checksums_offset) continue;
          named = true;
          const std::uint64_t words = h.log_bytes + h.checksums_offset;
          EXPECT_TRUE(medium.is_durable(words, before.data_bytes / 4096 * 8));
        }
      },
      {});
  auto pool = Pool<Words>::try_open_on("moved", options, std::move(made), false).value();
  medium.set_fence_hooks({}, {});
  EXPECT_TRUE(named);
  const Header after = pool.header();
  ASSERT_NE(before.checksums_offset, after.checksums_offset);
  const std::vector<std::byte> durable = medium.durable_image();
  const auto sum = [](const std::vector<std::byte>& of, const Header& h, std::uint64_t page) {
    std::uint64_t word = 0;
    std::memcpy(&word, &of[h.log_bytes + h.checksums_offset + page * 8], sizeof word);
    return word;
  };
  std::uint64_t moved = 0;
  const std::uint64_t root = pool.file().root_offset() / 4096;
  for (std::uint64_t page = root; page < root + sizeof(Words) / 4096; ++page) {
    ASSERT_NE(0U, sum(image, before, page)) << page;
    EXPECT_EQ(sum(image, before, page), sum(durable, after, page)) << page;
    ++moved;
  }
  EXPECT_GE(moved, 8U);
}

}  // namespace
}  // namespace perdure::pool
