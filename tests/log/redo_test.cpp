// SPDX-License-Identifier: BSD-3-Clause
//
// DataWriter: what it stores is written back before its caller's fence, and a span's zeroed bitmap
// is durable before the data region names the span (the heap's invariant HEAP-4), whatever was
// there before.
#include "perdure/log/redo.hpp"

#include "perdure/log/redo_team.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/pool/heap_apply.hpp"
#include "tests/log/suite.hpp"

namespace perdure::log::testing {
namespace {

constexpr std::uint64_t data_bytes = 8 * pool::chunk_bytes;

std::unique_ptr<medium::RecordingMedium> medium_with_garbage(bool fence_is_sync = false) {
  medium::RecordingOptions options;
  options.fence_is_sync = fence_is_sync;
  options.log_bytes = 4096;
  options.data_bytes = data_bytes;
  options.keep_bytes = true;
  // Chunks change their use: the old contents are data.
  std::vector<std::byte> image(4096 + data_bytes, std::byte{0xa5});
  std::memset(image.data(), 0, 4096 + pool::chunk_bytes);
  return medium::RecordingMedium::make(options, image).value();
}

TEST(DataWriter, EverythingStoredIsDurableAfterFlushAndFence) {
  auto m = medium_with_garbage();
  DataWriter data(*m, data_bytes);
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> values(300);
  for (unsigned i = 0; i < 5000 / scale; ++i) {  // more lines than a batch has
    for (auto& v : values) v = random();
    const std::uint64_t n = 1 + random() % (i % 50 == 0 ? 300 : 8);
    data.words(pool::chunk_bytes + random() % (6 * pool::chunk_bytes / 8) * 8, values.data(), n);
  }
  data.flush();
  ASSERT_TRUE(m->fence().ok());
  EXPECT_TRUE(m->is_durable(4096, data_bytes));
  EXPECT_EQ(m->current_image(), m->durable_image());
}

std::uint64_t lines_flushed(const medium::RecordingMedium& m) {
  std::uint64_t lines = 0;
  for (const auto& e : m.events())
    if (e.kind == medium::Event::Kind::flush) lines += e.bytes / 64;
  return lines;
}

// When masks are lent to several writers in turn, each line is written back once, at a time that
// the lender chooses.
TEST(LineMasks, ALineThatManyWritersStoreToIsWrittenBackOnce) {
  auto m = medium_with_garbage();
  LineMasks masks;
  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
    DataWriter data(*m, data_bytes, DataWriter::Use::running, &masks);
    for (std::uint64_t at : {0U, 640U, 8U, 4096U, 640U, 0U})
      data.words(pool::chunk_bytes + at, &turn, 1);
    data.flush();
  }
  EXPECT_EQ(0U, lines_flushed(*m));
  masks.begin();
  EXPECT_TRUE(masks.write_back(*m));
  EXPECT_TRUE(masks.empty());
  EXPECT_EQ(3U, lines_flushed(*m));
  ASSERT_TRUE(m->fence().ok());
  EXPECT_TRUE(m->is_durable(4096, data_bytes));
  masks.begin();
  EXPECT_TRUE(masks.write_back(*m));
  EXPECT_EQ(3U, lines_flushed(*m)) << "nothing was stored since";
}

// A write-back in slices during stores: what was recorded before begin() is durable at its end,
// what came later at the end of the next one.
TEST(LineMasks, AWriteBackHasAnEnd) {
  auto m = medium_with_garbage();
  LineMasks masks;
  const std::uint64_t value = 7;
  const auto store = [&](std::uint64_t page, std::uint64_t line) {
    DataWriter(*m, data_bytes, DataWriter::Use::running, &masks)
        .words(pool::chunk_bytes + page * 4096 + line * 64, &value, 1);
  };
  for (std::uint64_t page = 0; page < 32; ++page)
    for (std::uint64_t line = 0; line < 8; ++line) store(page, line);
  masks.begin();
  std::uint64_t slices = 1;
  for (; !masks.write_back(*m, 16); ++slices) store(40 + slices % 8, slices % 64), store(0, 9);
  EXPECT_EQ(16U, slices);
  ASSERT_TRUE(m->fence().ok());
  EXPECT_TRUE(m->is_durable(4096 + pool::chunk_bytes + 4096, 31 * 4096));
  EXPECT_FALSE(m->is_durable(4096 + pool::chunk_bytes + 40 * 4096, 8 * 4096));
  EXPECT_FALSE(masks.empty());
  masks.fit(2 * data_bytes * 4096);  // the data region has grown
  masks.begin();
  EXPECT_TRUE(masks.write_back(*m));
  ASSERT_TRUE(m->fence().ok());
  EXPECT_TRUE(m->is_durable(4096, data_bytes));
}

TEST(DataWriter, ASpanIsNamedOnlyOverADurableBitmapOfZeros) {
  for (const std::uint32_t cls : {0U, 7U, 20U, 30U})
    for (const bool lent : {false, true}) {
      auto m = medium_with_garbage();
      LineMasks masks;
      DataWriter data(*m, data_bytes, DataWriter::Use::running, lent ? &masks : nullptr);
      const auto& info = pool::classes[cls];
      const std::uint64_t span =
          pool::chunk_bytes * info.chunks * ((1 + info.chunks - 1) / info.chunks);
      const std::uint64_t first = pool::first_chunk(data_bytes) * pool::chunk_bytes;
      (void)span;
      pool::apply(data, {first + info.first, cls, 0, true}, data_bytes);
      // At the store of the directory word, the bitmap must have been made durable: look at the
      // events up to it.
      const std::uint64_t word = 4096 + pool::Directory(data_bytes).word(first / pool::chunk_bytes);
      bool named = false, fenced_after_zeros = false;
      for (const auto& e : m->events()) {
        if (e.kind == medium::Event::Kind::fence) fenced_after_zeros = true;
        if (e.kind == medium::Event::Kind::store && e.offset == word) {
          named = true;
          EXPECT_TRUE(fenced_after_zeros)
              << "class " << cls
              << ": a crash here leaves the span's name over a bitmap of garbage";
        }
      }
      EXPECT_TRUE(named);
      data.flush();
      masks.begin();
      (void)masks.write_back(*m);
      ASSERT_TRUE(m->fence().ok());
      pool::Header header{};
      header.max_data_bytes = header.data_bytes = data_bytes;
      header.log_bytes = 4096;
      std::uint64_t blocks = 0;
      const auto audit = pool::audit_heap(m->durable_image().data() + 4096, header,
                                          [&](std::uint64_t, std::uint64_t) { ++blocks; });
      EXPECT_EQ(1U, blocks) << (audit.problems.empty() ? "" : audit.problems.front());
    }
}

TEST(DataWriter, EntriesOutsideTheDataRegionAreRefused) {
  auto m = medium_with_garbage();
  DataWriter data(*m, data_bytes);
  const std::uint64_t values[4] = {};
  EXPECT_TRUE(data.entry({EntryKind::words, data_bytes - 8, 1, values}));
  EXPECT_FALSE(data.entry({EntryKind::words, data_bytes - 8, 2, values}));
  EXPECT_FALSE(data.entry({EntryKind::words, pool::max_data_limit - 8, 1, values}));
  EXPECT_FALSE(data.entry({EntryKind::alloc, data_bytes, 3, values}));
  EXPECT_FALSE(data.entry({EntryKind::before, 64, 1, values}));
  EXPECT_TRUE(data.entry({EntryKind::end, 0, 0, values}));
}

// By pages: the words of a page in their order, heap operations in theirs, and both where bitmaps
// lie, whichever thread does it; all of it is durable.
TEST(RedoTeam, ComesToWhatOneThreadComesTo) {
  std::mt19937_64 random(9);
  for (unsigned round = 0; round < 20 / scale + 1; ++round) {
    std::vector<std::vector<std::uint64_t>> kept;
    RecordWriter writer;
    writer.configure(1, 1 << 20, 64);
    const std::uint64_t first = pool::first_chunk(data_bytes) * pool::chunk_bytes;
    for (int t = 0; t < 200; ++t) {
      writer.reset();
      for (int i = 0; i < 5; ++i) {
        std::vector<std::uint64_t> values(1 + random() % (i == 0 ? 700 : 3));
        for (auto& v : values) v = random();
        writer.words(first + random() % (5 * pool::chunk_bytes / 8) * 8, values.data(),
                     values.size());
      }
      // A span that is made and removed over the pages of words, and one that stays.
      const std::uint64_t chunk = random() % 2 == 0 ? 1 : 5;
      const std::uint32_t cls = static_cast<std::uint32_t>(random() % 8);
      writer.heap_op({first + chunk * pool::chunk_bytes + pool::classes[cls].first +
                          random() % 9 * pool::classes[cls].bytes,
                      cls, 0, random() % 3 != 0});
      kept.emplace_back(writer.payload(), writer.payload() + writer.payload_words());
    }
    std::vector<Payload> payloads;
    for (const auto& p : kept) payloads.push_back({p.data(), p.size()});
    auto one = medium_with_garbage(), team = medium_with_garbage(round % 2 == 0);
    ASSERT_EQ(no_strange, redo(*one, data_bytes, payloads, DataWriter::Use::running, 1));
    ASSERT_EQ(no_strange, redo(*team, data_bytes, payloads, DataWriter::Use::running, 4));
    ASSERT_TRUE(one->fence().ok() && team->fence().ok());
    ASSERT_EQ(one->current_image(), team->current_image()) << round;
    ASSERT_EQ(team->current_image(), team->durable_image())
        << "each thread fences what it wrote back";
    ASSERT_EQ(one->durable_image(), team->durable_image());
  }
}

// Words in many buckets, and more than those hold at a time: the same as entry by entry, by one
// thread and by several.
TEST(RedoTeam, ComesToWhatEntryByEntryComesTo) {
  constexpr std::uint64_t bytes = 12 << 20;
  std::mt19937_64 random(11);
  std::vector<std::vector<std::uint64_t>> kept;
  RecordWriter writer;
  writer.configure(1, 1 << 20, 64);
  const std::uint64_t first = pool::first_chunk(bytes) * pool::chunk_bytes,
                      chunks = (bytes - first) / pool::chunk_bytes;
  // 64 pages that are stored to again and again, bitmaps' pages among them.
  std::vector<std::uint64_t> pages(64);
  for (auto& page : pages)
    page = first + random() % chunks * pool::chunk_bytes + random() % 4 * 4096;
  for (unsigned t = 0; t < 4000 / scale; ++t) {
    writer.reset();
    for (int i = 0; i < 6; ++i) {
      std::vector<std::uint64_t> values(random() % 8 == 0 ? 1 + random() % 900 : 1);
      for (auto& v : values) v = random();
      const std::uint64_t at = pages[random() % pages.size()] + random() % 64 * 8;
      writer.words(std::min(at, bytes - values.size() * 8), values.data(), values.size());
    }
    if (t % 3 == 0) {
      const std::uint32_t cls = static_cast<std::uint32_t>(random() % 8);
      writer.heap_op({first + random() % chunks * pool::chunk_bytes + pool::classes[cls].first +
                          random() % 9 * pool::classes[cls].bytes,
                      cls, 0, random() % 3 != 0});
    }
    kept.emplace_back(writer.payload(), writer.payload() + writer.payload_words());
  }
  std::vector<Payload> payloads;
  for (const auto& p : kept) payloads.push_back({p.data(), p.size()});
  const auto make = [&] {
    medium::RecordingOptions options;
    options.log_bytes = 4096;
    options.data_bytes = bytes;
    return medium::RecordingMedium::make(options).value();
  };
  for (const DataWriter::Use use : {DataWriter::Use::running, DataWriter::Use::recovery}) {
    const auto plain = make();
    DataWriter writer_of_entries(*plain, bytes, use);
    for (const Payload& p : payloads)
      each_entry(p.words, p.n, [&](const Entry& e) { ASSERT_TRUE(writer_of_entries.entry(e)); });
    writer_of_entries.flush();
    ASSERT_TRUE(plain->fence().ok());
    for (const unsigned threads : {1U, 3U}) {
      const auto m = make();
      Redo redo(*m, bytes, use, threads, threads == 1 ? 100 : 10'000);
      const std::span<const Payload> all(payloads);
      ASSERT_EQ(no_strange, redo.apply(all.first(1000)));
      redo.store();
      ASSERT_EQ(no_strange, redo.apply(all.subspan(1000)));
      redo.finish();
      ASSERT_TRUE(m->fence().ok());
      EXPECT_EQ(plain->current_image(), m->current_image()) << threads;
      EXPECT_EQ(m->current_image(), m->durable_image()) << threads;
    }
  }
}

TEST(RedoTeam, NamesAStrangePayload) {
  const std::vector<std::uint64_t> good{entry_key(EntryKind::words, 2 * pool::chunk_bytes, 1), 1},
      outside{entry_key(EntryKind::words, data_bytes, 1), 1},
      cut{entry_key(EntryKind::words, 64, 9), 1};
  for (const unsigned threads : {1U, 3U})
    for (const auto* strange : {&outside, &cut}) {
      auto m = medium_with_garbage();
      const Payload payloads[] = {{good.data(), good.size()},
                                  {good.data(), good.size()},
                                  {strange->data(), strange->size()}};
      EXPECT_EQ(2U, redo(*m, data_bytes, payloads, DataWriter::Use::recovery, threads));
    }
}

}  // namespace
}  // namespace perdure::log::testing
