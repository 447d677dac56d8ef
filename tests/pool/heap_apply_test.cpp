// SPDX-License-Identifier: BSD-3-Clause
//
// Applying heap operations: to a sound target, to a newer one, and to one that a crash tore between
// a checkpoint's lines or during an earlier replay. Whatever the state of the data region was,
// replaying every operation above X in id order ends in the state that the operations describe.
#include <algorithm>
#include <random>
#include <set>
#include <span>

#include "perdure/log/redo.hpp"
#include "perdure/pool/allocation.hpp"
#include "pool_test.hpp"

namespace perdure::pool {
namespace {

using namespace testing;

// one chunk of directory
constexpr std::uint64_t max_data = 4 * MiB, chunks = max_data / chunk_bytes, objects = chunk_bytes;
using Image = std::vector<std::byte>;

std::uint64_t word_at(const Image& image, std::uint64_t offset) {
  std::uint64_t v = 0;
  std::memcpy(&v, image.data() + offset, 8);
  return v;
}
ChunkWord chunk_word(const Image& image, std::uint64_t chunk) {
  return {word_at(image, Directory(max_data).word(chunk))};
}

// LAW-10: what a log may name as words. The fuzzer found a record of REWIND that named a directory
// word, in a hole of the file.
TEST(HeapApply, WordsOfALogLieInObjectsOrInTheFirstPage) {
  const std::uint64_t bytes = 2 * MiB, last = ~std::uint64_t{7};
  const Directory small(max_data), raised(max_data, 2 * max_data);
  for (const Directory& directory : {small, raised}) {
    EXPECT_TRUE(possible_words(late_catalog, 1, bytes, directory));
    EXPECT_TRUE(possible_words(objects, 512, bytes, directory));
    EXPECT_TRUE(possible_words(bytes - 8, 1, bytes, directory));
    for (const std::uint64_t at : {directory_offset, objects - 8, bytes - 4, bytes, last})
      EXPECT_FALSE(possible_words(at, 1, bytes, directory)) << at;
    EXPECT_FALSE(possible_words(objects, 0, bytes, directory));
    EXPECT_FALSE(possible_words(objects - 8, 2, bytes, directory));
    EXPECT_FALSE(possible_words(bytes - 8, 2, bytes, directory));
    EXPECT_FALSE(possible_words(objects, last / 8, bytes, directory));
  }
  const std::uint64_t second = raised.word(chunks);  // where the raised part's words begin
  EXPECT_FALSE(possible_words(second, 1, 2 * max_data, raised));
}

TEST(HeapApply, MakesSetsClears) {
  ASSERT_EQ(first_chunk(max_data), 1U);
  Image image(max_data, std::byte{0xee});
  std::fill_n(image.begin(), objects, std::byte{0});
  MemoryTarget target(image.data());
  const std::uint32_t cls = size_class(48);
  const HeapOp a{3 * chunk_bytes + classes[cls].first, cls, 0, true},
      b{a.offset + 48 * 70, cls, 0, true};
  apply(target, a, max_data);
  EXPECT_EQ(chunk_word(image, 3), ChunkWord::make(ChunkWord::small, cls, 1));
  EXPECT_EQ(word_at(image, 3 * chunk_bytes), 1U);
  for (std::uint64_t w = 8; w < classes[cls].first; w += 8)
    EXPECT_EQ(word_at(image, 3 * chunk_bytes + w), 0U);
  EXPECT_EQ(word_at(image, a.offset), 0xeeeeeeeeeeeeeeee);
  apply(target, b, max_data);
  apply(target, b, max_data);
  EXPECT_EQ(word_at(image, 3 * chunk_bytes + 8), 1U << 6);
  apply(target, {a.offset, cls, 0, false}, max_data);
  EXPECT_EQ(word_at(image, 3 * chunk_bytes), 0U);
  EXPECT_EQ(word_at(image, 3 * chunk_bytes + 8), 1U << 6);
}

TEST(HeapApply, SpansAndObjectsOfManyChunks) {
  Image image(max_data, std::byte{0});
  MemoryTarget target(image.data());
  const std::uint32_t cls = size_class(20000);  // 8 chunks
  ASSERT_EQ(span_chunks(cls), 8U);
  const std::uint64_t span = 9 * chunk_bytes;  // first chunk + 8
  apply(target, {span + classes[cls].first + 5 * class_bytes(cls), cls, 0, true}, max_data);
  EXPECT_EQ(chunk_word(image, 9), ChunkWord::make(ChunkWord::small, cls, 8));
  for (std::uint64_t i = 1; i < 8; ++i)
    EXPECT_EQ(chunk_word(image, 9 + i), ChunkWord::make(ChunkWord::rest, 0, i));
  EXPECT_EQ(word_at(image, span), 1U << 5);
  // A large object across its end: the rest of the span is free.
  apply(target, {14 * chunk_bytes, large_class, 6, true}, max_data);
  for (std::uint64_t c = 9; c < 14; ++c) EXPECT_EQ(chunk_word(image, c).bits, 0U) << c;
  EXPECT_EQ(chunk_word(image, 14), ChunkWord::make(ChunkWord::large, 0, 6));
  EXPECT_EQ(chunk_word(image, 19), ChunkWord::make(ChunkWord::rest, 0, 5));
  // And a span across its beginning.
  apply(target, {span + classes[cls].first, cls, 0, true}, max_data);
  EXPECT_EQ(word_at(image, span), 1U);
  EXPECT_EQ(chunk_word(image, 16), ChunkWord::make(ChunkWord::rest, 0, 7));
  for (std::uint64_t c = 17; c < 20; ++c) EXPECT_EQ(chunk_word(image, c).bits, 0U) << c;
  apply(target, {20 * chunk_bytes, large_class, 3, true}, max_data);
  apply(target, {20 * chunk_bytes, large_class, 3, false}, max_data);
  for (std::uint64_t c = 17; c < 24; ++c) EXPECT_EQ(chunk_word(image, c).bits, 0U) << c;
}

TEST(HeapApply, ChecksOps) {
  Header h{};
  h.max_data_bytes = max_data;
  h.data_bytes = 2 * MiB;
  const auto good = [&](const HeapOp& op) { return check_op(op, h, "p").ok(); };
  const std::uint32_t c48 = size_class(48), c20k = size_class(20000);
  EXPECT_TRUE(good({chunk_bytes + classes[c48].first, c48, 0, true}));
  EXPECT_FALSE(good({chunk_bytes + classes[c48].first + 16, c48, 0, true}));
  EXPECT_FALSE(good({chunk_bytes, c48, 0, true}));
  EXPECT_FALSE(good({512, c48, 0, true}));
  EXPECT_FALSE(good({2 * MiB + 1024, c48, 0, true}));
  // Its span would end beyond the data region.
  EXPECT_FALSE(good({25 * chunk_bytes + classes[c20k].first, c20k, 0, true}));
  EXPECT_TRUE(good({17 * chunk_bytes + classes[c20k].first, c20k, 0, true}));
  EXPECT_FALSE(good({chunk_bytes + 1024, 44, 0, true}));
  EXPECT_TRUE(good({chunk_bytes, large_class, 31, true}));
  EXPECT_FALSE(good({chunk_bytes, large_class, 32, true}));
  EXPECT_FALSE(good({chunk_bytes, large_class, 0, true}));
  EXPECT_FALSE(good({chunk_bytes + 8, large_class, 1, true}));
}

// --- replay --------------------------------------------------------------------------------------

struct Entry {
  HeapOp op;               // of a block, or
  std::uint64_t fill = 0;  // every word of the block at op.offset becomes fill
};
using Transaction = std::vector<Entry>;

template <class Target>
void replay(Target& target, const std::vector<Transaction>& log, std::size_t from, std::size_t to,
            const Directory& directory) {
  for (std::size_t id = from; id < to; ++id) {
    for (const Entry& e : log[id]) {
      if (e.fill == 0) {
        apply_op(target, e.op, directory);
      } else {
        for (std::uint64_t at = 0; at < op_bytes(e.op); at += 8)
          target.store(e.op.offset + at, e.fill);
      }
    }
  }
}

// Everything that matters: the directory, the bitmaps of its spans, the words of allocated blocks.
void expect_same(const Image& found, const Image& expected, const Header& header,
                 const std::string& what) {
  const Directory directory(header);
  const auto chunk_word = [&](const Image& image, std::uint64_t c) {
    return ChunkWord{word_at(image, directory.word(c))};
  };
  for (std::uint64_t c = 0; c < chunks; ++c) {
    ASSERT_EQ(chunk_word(found, c).bits, chunk_word(expected, c).bits) << what << ": chunk " << c;
    if (chunk_word(found, c).kind() != ChunkWord::small) continue;
    const ClassInfo& info = classes[chunk_word(found, c).size_class()];
    ASSERT_EQ(
        std::memcmp(found.data() + c * chunk_bytes, expected.data() + c * chunk_bytes, info.first),
        0)
        << what << ": bitmap of chunk " << c;
  }
  Header h = header;
  h.heap_exact = 0;
  const auto audit = audit_heap(expected.data(), h, [&](std::uint64_t offset, std::uint64_t bytes) {
    ASSERT_EQ(std::memcmp(found.data() + offset, expected.data() + offset, bytes), 0)
        << what << ": block at " << offset;
  });
  ASSERT_TRUE(audit.problems.empty()) << what << ": " << audit.problems.front();
}

/// From here on a seed's pool was made with a limit of 1 MiB, which was then raised: its directory
/// has three sections.
constexpr int raised_seed = 5;

class Replay : public ::testing::TestWithParam<int> {
 protected:
  // A heap in use, as an engine would use it; so small that chunks change their use all the time.
  void SetUp() override {
    const bool raised = GetParam() >= raised_seed;
    medium::RecordingOptions options;
    options.log_bytes = 2 * MiB;
    options.data_bytes = raised ? 1 * MiB : max_data;
    options.max_data_bytes = max_data;
    auto m = medium::RecordingMedium::make(options);
    ASSERT_TRUE(m.ok());
    medium::RecordingMedium* const recorder = m->get();
    OpenFile how = small("replayed");
    Identity who = tester();
    who.root_bytes = 0;
    how.max_bytes = options.data_bytes;
    auto opened = OpenPool::open_on(std::move(*m), true, how, who);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    if (raised) {
      ASSERT_TRUE((*opened)->close_clean(0).ok());
      auto heir = medium::RecordingMedium::make(options, recorder->durable_image());
      ASSERT_TRUE(heir.ok());
      *opened = nullptr;
      how.raise_max = true;
      how.max_bytes = max_data;
      opened = OpenPool::open_on(std::move(*heir), false, how, who);
      ASSERT_TRUE(opened.ok()) << opened.status().message();
    }
    pool = std::move(*opened);
    ASSERT_TRUE(pool->start_session(ViewPolicy::shadow).ok());
    ASSERT_TRUE(pool->grow(max_data).ok());
    ASSERT_EQ(Directory(pool->header()).word(16) == 1 * MiB, raised);
    view = std::make_unique<MemoryTarget>(pool->view());
    next_session();
    log.resize(1);  // ids begin at 1
  }
  [[nodiscard]] Directory shape() const { return pool->header(); }
  [[nodiscard]] bool in_directory(std::uint64_t at) const {
    return shape().holds_words(at / chunk_bytes);
  }
  [[nodiscard]] Image now() const { return {pool->view(), pool->view() + max_data}; }

  // The heap's knowledge is built anew from the mapping: chunks of spans that are empty by then are
  // reused by other classes. The log continues, although a new session's log would be empty: replay
  // must succeed with less.
  void next_session() { heap = std::make_unique<Heap>(*pool, pool->view()); }

  void transaction() {
    if (random() % 16 == 0) next_session();
    static constexpr std::uint64_t sizes[] = {16,    64,    500,   1000,  4000,   5000,  9000,
                                              20000, 40000, 65536, 70000, 140000, 400000};
    Transaction t;
    for (std::uint64_t n = random() % 4 + 1; n > 0; --n) {
      if (blocks.size() < 12 ? random() % 4 != 0 : random() % 3 == 0) {
        auto op = heap->reserve(sizes[(phase() + random() % 4) % std::size(sizes)]);
        if (!op.ok()) continue;
        t.push_back({*op, 0});
        t.push_back({*op, fill()});
        mine.push_back(*op);
      } else if (!blocks.empty()) {
        const std::size_t i = random() % blocks.size();
        if (random() % 4 == 0) {
          t.push_back({blocks[i], fill()});
          continue;
        }
        auto op = heap->prepare_free(blocks[i].offset);
        ASSERT_TRUE(op.ok()) << op.status().message();
        t.push_back({*op, 0});
        freed.push_back(*op);
        blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    log.push_back(std::move(t));
    replay(*view, log, log.size() - 1, log.size(), shape());
    for (const HeapOp& op : freed) heap->reusable(op);
    blocks.insert(blocks.end(), mine.begin(), mine.end());
    freed.clear();
    mine.clear();
  }
  // Sizes drift, so that a span of small blocks becomes a large object and back.
  [[nodiscard]] std::uint64_t phase() const { return log.size() / 6; }
  // What a user stores: often small numbers, which look like valid bitmaps.
  std::uint64_t fill() {
    return random() % 2 == 0 ? random() | 1 : std::uint64_t{1} << random() % 64;
  }

  std::mt19937_64 random{static_cast<std::uint64_t>(GetParam())};
  std::unique_ptr<OpenPool> pool;
  std::unique_ptr<MemoryTarget> view;
  std::unique_ptr<Heap> heap;
  std::vector<Transaction> log;
  std::vector<HeapOp> blocks, mine, freed;
};

TEST_P(Replay, OverDataTornByACheckpoint) {
  Image data = now();
  std::size_t x = 1;  // ids below it are in the data region
  for (int round = 0; round < rounds_in(15); ++round) {
    const auto some = [&] {
      for (std::uint64_t n = random() % 12; n > 0; --n) transaction();
    };
    some();
    // A checkpoint: the directory is copied first (HEAP-4), then the rest at any time, a part of it
    // twice.
    const std::size_t t0 = log.size();
    const Image directory = now();
    some();
    const Image middle = now();
    some();
    const Image last = now();
    const std::size_t end = log.size();
    const Image* const times[] = {&directory, &middle, &last};

    for (const bool rest_written : {false, true}) {
      Image torn = data;
      for (std::uint64_t at = objects; at < max_data; at += 8)
        if (!in_directory(at) && (rest_written || random() % 2 == 0))
          std::memcpy(torn.data() + at, times[random() % 3]->data() + at, 8);
      if (rest_written)
        for (std::uint64_t at = 0; at < max_data; at += 8)
          if (in_directory(at) && random() % 2 == 0)
            std::memcpy(torn.data() + at, directory.data() + at, 8);
      Image recovered = torn;
      MemoryTarget target(recovered.data(), true);
      replay(target, log, x, end, shape());
      expect_same(recovered, last, pool->header(),
                  rest_written ? "torn in the directory" : "torn in the rest");
      // Once more, over the result of the first replay.
      replay(target, log, x, end, shape());
      expect_same(recovered, last, pool->header(), "replayed twice");
    }
    // The checkpoint finished: X = t0, the data region is as old as t0 or newer, the directory is
    // as of t0.
    data = directory;
    for (std::uint64_t at = objects; at < max_data; at += 64)
      if (!in_directory(at)) std::memcpy(data.data() + at, times[random() % 3]->data() + at, 64);
    x = t0;
  }
}

// A power cut ends a replay at each of its fences, with any part of what was not yet durable lost;
// the next replay repairs it.
TEST_P(Replay, CutShortAndRepeated) {
  for (int n = 0; n < 25; ++n) transaction();
  const Image data = now();
  const std::size_t x = log.size();
  for (int n = 0; n < 15 + rounds_in(45); ++n) transaction();
  const Image expected = now();

  medium::RecordingOptions options;
  options.log_bytes = 2 * MiB;
  options.data_bytes = options.max_data_bytes = max_data;
  Image whole(2 * MiB);
  whole.insert(whole.end(), data.begin(), data.end());
  auto m = medium::RecordingMedium::make(options, whole);
  ASSERT_TRUE(m.ok());
  auto& recorder = **m;
  int cuts = 0;
  recorder.set_fence_hooks(
      [&] {
        if (::testing::Test::HasFatalFailure() || ++cuts > rounds_in(25)) return;
        const auto durable = recorder.durable_image(), current = recorder.current_image();
        Image torn(max_data);
        for (std::uint64_t at = 0; at < max_data; at += 8)
          std::memcpy(torn.data() + at,
                      (random() % 2 == 0 ? durable : current).data() + 2 * MiB + at, 8);
        MemoryTarget target(torn.data(), true);
        replay(target, log, x, log.size(), shape());
        expect_same(torn, expected, pool->header(), "cut at fence " + std::to_string(cuts));
      },
      {});
  log::DataWriter target(recorder, shape());
  replay(target, log, x, log.size(), shape());
  target.flush();
  ASSERT_TRUE(recorder.fence().ok());
  const auto durable = recorder.durable_image();
  expect_same({durable.begin() + static_cast<std::ptrdiff_t>(2 * MiB), durable.end()}, expected,
              pool->header(), "finished");
  EXPECT_GE(cuts, rounds_in(45) > 30 ? 4 : 2);
  recorder.set_fence_hooks({}, {});
}

INSTANTIATE_TEST_SUITE_P(Seeds, Replay, ::testing::Range(1, 8));

}  // namespace
}  // namespace perdure::pool
