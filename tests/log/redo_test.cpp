// SPDX-License-Identifier: BSD-3-Clause
//
// HomeWriter: what it stores is written back before its caller's fence, and a span's zeroed bitmap is durable before home names the span
// (the heap's invariant H4), whatever lay there before.
#include "perdure/log/redo.hpp"

#include "perdure/pool/format.hpp"
#include "perdure/pool/heap_apply.hpp"
#include "tests/log/suite.hpp"

namespace perdure::log::testing {
namespace {

constexpr std::uint64_t home_bytes = 8 * pool::chunk_bytes;

std::unique_ptr<medium::RecordingMedium> medium_with_garbage() {
  medium::RecordingOptions options;
  options.log_bytes = 4096;
  options.home_bytes = home_bytes;
  options.keep_bytes = true;
  std::vector<std::byte> image(4096 + home_bytes, std::byte{0xa5});  // chunks change hands: what lies there was data
  std::memset(image.data(), 0, 4096 + pool::chunk_bytes);
  return medium::RecordingMedium::make(options, image).value();
}

TEST(HomeWriter, EverythingStoredIsDurableAfterFlushAndFence) {
  auto m = medium_with_garbage();
  HomeWriter home(*m, home_bytes);
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> values(300);
  for (unsigned i = 0; i < 5000 / scale; ++i) {  // more lines than a batch
    for (auto& v : values) v = random();
    const std::uint64_t n = 1 + random() % (i % 50 == 0 ? 300 : 8);
    home.words(pool::chunk_bytes + random() % (6 * pool::chunk_bytes / 8) * 8, values.data(), n);
  }
  home.flush();
  ASSERT_TRUE(m->fence().ok());
  EXPECT_TRUE(m->is_durable(4096, home_bytes));
  EXPECT_EQ(m->current_image(), m->durable_image());
}

TEST(HomeWriter, ASpanIsNamedOnlyOverADurableBitmapOfZeros) {
  for (const std::uint32_t cls : {0U, 7U, 20U, 30U}) {
    auto m = medium_with_garbage();
    HomeWriter home(*m, home_bytes);
    const auto& info = pool::classes[cls];
    const std::uint64_t span = pool::chunk_bytes * info.chunks * ((1 + info.chunks - 1) / info.chunks);
    const std::uint64_t first = pool::first_chunk(home_bytes) * pool::chunk_bytes;
    (void)span;
    pool::apply(home, {first + info.first, cls, 0, true}, home_bytes);
    // At the store of the directory word, the bitmap must have been made durable: look at the events up to it.
    const std::uint64_t word = 4096 + pool::directory_word(first / pool::chunk_bytes);
    bool named = false, fenced_after_zeros = false;
    for (const auto& e : m->events()) {
      if (e.kind == medium::Event::Kind::fence) fenced_after_zeros = true;
      if (e.kind == medium::Event::Kind::store && e.offset == word) {
        named = true;
        EXPECT_TRUE(fenced_after_zeros) << "class " << cls << ": a crash here leaves the span's name over a bitmap of garbage";
      }
    }
    EXPECT_TRUE(named);
    home.flush();
    ASSERT_TRUE(m->fence().ok());
    pool::Header header{};
    header.max_home_bytes = header.home_bytes = home_bytes;
    header.log_bytes = 4096;
    std::uint64_t blocks = 0;
    const auto audit = pool::audit_heap(m->durable_image().data() + 4096, header, [&](std::uint64_t, std::uint64_t) { ++blocks; });
    EXPECT_EQ(1U, blocks) << (audit.problems.empty() ? "" : audit.problems.front());
  }
}

TEST(HomeWriter, EntriesOutsideHomeAreRefused) {
  auto m = medium_with_garbage();
  HomeWriter home(*m, home_bytes);
  const std::uint64_t values[4] = {};
  EXPECT_TRUE(home.entry({EntryKind::words, home_bytes - 8, 1, values}));
  EXPECT_FALSE(home.entry({EntryKind::words, home_bytes - 8, 2, values}));
  EXPECT_FALSE(home.entry({EntryKind::words, pool::max_home_limit - 8, 1, values}));
  EXPECT_FALSE(home.entry({EntryKind::alloc, home_bytes, 3, values}));
  EXPECT_FALSE(home.entry({EntryKind::before, 64, 1, values}));
  EXPECT_TRUE(home.entry({EntryKind::end, 0, 0, values}));
}

}  // namespace
}  // namespace perdure::log::testing
