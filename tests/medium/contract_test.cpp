// SPDX-License-Identifier: BSD-3-Clause
//
// The contract of medium.hpp, on every medium that this machine can run: one suite, one parameter
// per medium.
#include <sys/mman.h>

#include <cstring>
#include <functional>
#include <map>
#include <ostream>
#include <thread>
#include <vector>

#include "scratch.hpp"
#include "testing/recording_medium.hpp"

namespace perdure::medium {
namespace {

using testing::bytes_at;
using testing::pattern;
using testing::Scratch;
using testing::zero_at;

constexpr std::uint64_t MiB = 1ULL << 20;

struct Kind {
  const char* name;
  const char* kind;              // the value of OpenMedium::kind or Medium::kind()
  const char* folder = nullptr;  // nullptr: the temporary folder
  bool direct = true;
  std::uint64_t log_bytes = 2 * MiB;
  const char* delays = "none";
  std::size_t append_unit = 64;
  bool on_file = false;  // fences are system calls
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

const Kind kinds[] = {
    {.name = "file", .kind = "file", .append_unit = 4096, .on_file = true},
    {.name = "file_buffered",
     .kind = "file",
     .direct = false,
     .append_unit = 4096,
     .on_file = true},
    {.name = "file_small_log",
     .kind = "file",
     .log_bytes = 64 << 10,
     .append_unit = 4096,
     .on_file = true},
    {.name = "file_on_tmpfs",
     .kind = "file",
     .folder = "/dev/shm",
     .append_unit = 4096,
     .on_file = true},
    {.name = "emulated", .kind = "emulated", .folder = "/dev/shm"},
    {.name = "emulated_on_disk", .kind = "emulated", .log_bytes = 64 << 10},
    {.name = "emulated_rewind", .kind = "emulated", .folder = "/dev/shm", .delays = "rewind"},
    {.name = "emulated_dudetm", .kind = "emulated", .folder = "/dev/shm", .delays = "dudetm"},
    {.name = "emulated_softwrap", .kind = "emulated", .folder = "/dev/shm", .delays = "softwrap"},
    {.name = "recording", .kind = "recording"},
    {.name = "recording_as_file", .kind = "recording", .append_unit = 4096},
};

class Contract : public ::testing::TestWithParam<Kind> {
 protected:
  static constexpr std::uint64_t data_bytes = 4 * MiB;
  static constexpr std::uint64_t max_data_bytes = 32 * MiB;
  const std::uint64_t log_bytes = GetParam().log_bytes;

  void SetUp() override {
    if (GetParam().folder != nullptr && ::access(GetParam().folder, W_OK) != 0)
      GTEST_SKIP() << "no " << GetParam().folder;
    medium_ = open(true, {});
  }

  OpenMedium how(bool create) const {
    OpenMedium h;
    h.path = scratch_.path();
    h.kind = GetParam().kind;
    h.create = create;
    h.direct = GetParam().direct;
    h.log_bytes = log_bytes;
    h.data_bytes = create ? data_bytes : 0;
    h.max_data_bytes = max_data_bytes;
    h.delays = Delays::named(GetParam().delays).value();
    return h;
  }

  std::unique_ptr<Medium> open(bool create, const std::vector<std::byte>& image) const {
    if (GetParam().kind == std::string("recording")) {
      RecordingOptions o;
      o.log_bytes = log_bytes;
      o.data_bytes = create ? data_bytes : image.size() - log_bytes;
      o.max_data_bytes = max_data_bytes;
      o.append_unit = GetParam().append_unit;
      o.fence_is_sync = GetParam().append_unit != 64;
      return RecordingMedium::make(o, image).value();
    }
    return open_medium(how(create)).value();
  }

  /// Makes the state that a later opening finds. On `recording`: what was durable; on other media a
  /// process may see more than that, never less.
  void reopen() {
    std::vector<std::byte> image;
    if (auto* r = dynamic_cast<RecordingMedium*>(medium_.get())) image = r->durable_image();
    medium_.reset();
    medium_ = open(false, image);
    // What was never written may be taken for a hole.
    EXPECT_TRUE(medium_->allocate(0, log_bytes + medium_->data_bytes()).ok());
  }

  /// What is durable, as far as it can be known from outside: a file's bytes, a recording's image;
  /// memory only shows its contents.
  std::vector<std::byte> durable(std::uint64_t offset, std::size_t n) const {
    if (auto* r = dynamic_cast<RecordingMedium*>(medium_.get())) {
      const auto image = r->durable_image();
      return {image.begin() + static_cast<std::ptrdiff_t>(offset),
              image.begin() + static_cast<std::ptrdiff_t>(offset + n)};
    }
    if (!GetParam().on_file) return bytes_at(*medium_, offset, n);
    std::vector<std::byte> bytes(n);
    const int fd = ::open(scratch_.path().c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(::pread(fd, bytes.data(), n, static_cast<off_t>(offset)), static_cast<ssize_t>(n));
    ::close(fd);
    return bytes;
  }

  std::uint64_t data_at(std::uint64_t offset) const { return log_bytes + offset; }
  std::size_t unit() const { return medium_->append_unit(); }

  Scratch scratch_{GetParam().folder != nullptr ? GetParam().folder : ::testing::TempDir()};
  std::unique_ptr<Medium> medium_;
};

TEST_P(Contract, a_new_medium_is_zero_and_says_what_it_is) {
  EXPECT_EQ(medium_->kind(), GetParam().kind);
  EXPECT_EQ(medium_->log_bytes(), log_bytes);
  EXPECT_EQ(medium_->data_bytes(), data_bytes);
  EXPECT_EQ(medium_->max_data_bytes(), max_data_bytes);
  EXPECT_EQ(medium_->append_unit(), GetParam().append_unit);
  EXPECT_EQ(medium_->fence_is_sync(), GetParam().append_unit == 4096);
  EXPECT_FALSE(medium_->read_only());
  EXPECT_FALSE(medium_->describe().empty());
  EXPECT_TRUE(zero_at(*medium_, 0, log_bytes));
  EXPECT_TRUE(zero_at(*medium_, log_bytes, data_bytes));
  EXPECT_EQ(medium_->data(), medium_->at(log_bytes));
  EXPECT_EQ(medium_->counters().writes(), 0U);
}

TEST_P(Contract, stores_of_every_size_and_alignment_are_seen_at_once_and_touch_nothing_else) {
  for (const std::uint64_t base : {std::uint64_t{4096}, data_at(8192)}) {
    std::vector<std::byte> model(256);
    for (std::size_t at = 0; at < 17; ++at) {
      for (std::size_t n = 0; n < 130; n += n < 20 ? 1 : 7) {
        const auto bytes = pattern(n, at * 1000 + n);
        medium_->store(base + 64 + at, bytes.data(), n);
        std::copy(bytes.begin(), bytes.end(), model.begin() + static_cast<std::ptrdiff_t>(64 + at));
        ASSERT_EQ(bytes_at(*medium_, base, model.size()), model) << n << " bytes at " << at;
      }
    }
  }
}

TEST_P(Contract, stored_flushed_and_fenced_bytes_are_there_after_reopening) {
  const auto a = pattern(5000, 1), b = pattern(5000, 2);
  medium_->store(4100, a.data(), a.size());
  medium_->flush(4100, a.size());
  medium_->store(data_at(777), b.data(), b.size());
  medium_->flush(data_at(777), b.size());
  ASSERT_TRUE(medium_->fence().ok());
  reopen();
  EXPECT_EQ(bytes_at(*medium_, 4100, a.size()), a);
  EXPECT_EQ(bytes_at(*medium_, data_at(777), b.size()), b);
  EXPECT_EQ(medium_->data_bytes(), data_bytes);
}

TEST_P(Contract, streamed_and_fenced_lines_are_there_after_reopening) {
  const auto a = pattern(64 * 100, 3);
  medium_->stream(128, a.data(), a.size());
  medium_->stream(data_at(4096 - 64), a.data(), a.size());
  EXPECT_EQ(bytes_at(*medium_, 128, a.size()), a);
  ASSERT_TRUE(medium_->fence().ok());
  reopen();
  EXPECT_EQ(bytes_at(*medium_, 128, a.size()), a);
  EXPECT_EQ(bytes_at(*medium_, data_at(4096 - 64), a.size()), a);
}

TEST_P(Contract, flush_all_covers_stores_that_nobody_flushed) {
  std::vector<std::uint64_t> at;
  for (std::uint64_t i = 0; i < 300; ++i) at.push_back((i % 3 == 0 ? 8 * i : data_at(i * 8200)));
  for (const std::uint64_t offset : at) medium_->store(offset, &offset, sizeof offset);
  ASSERT_TRUE(medium_->flush_all().ok());
  reopen();
  for (const std::uint64_t offset : at) {
    std::uint64_t found = 0;
    std::memcpy(&found, medium_->at(offset), sizeof found);
    ASSERT_EQ(found, offset);
  }
}

TEST_P(Contract, counters_are_exact) {
  const auto bytes = pattern(4096, 4);
  const Counters before = medium_->counters();
  medium_->store(data_at(60), bytes.data(), 8);  // two lines
  medium_->store(data_at(1000), bytes.data(), 3);
  medium_->flush(data_at(60), 8);
  medium_->flush(data_at(128), 64);
  medium_->flush(data_at(128), 0);
  medium_->stream(4096, bytes.data(), 192);
  ASSERT_TRUE(medium_->fence().ok());
  const RingMap ring = medium_->map_ring(8192, 16384).value();
  medium_->append(ring, 0, bytes.data(), 4096);
  ASSERT_TRUE(medium_->append_fence(ring, 4096, bytes.data(), 4096).ok());
  ASSERT_TRUE(medium_->fence().ok());
  const Counters c = medium_->counters() - before;
  EXPECT_EQ(c.stores, 2U);
  EXPECT_EQ(c.stored_bytes, 11U);
  EXPECT_EQ(c.flushed_lines, 3U);
  EXPECT_EQ(c.streamed_lines, 3U + 64 + 64);
  EXPECT_EQ(c.fences, 3U);
  // On a file: one fdatasync for the data region's page and the log's block together; one direct
  // write of two blocks (buffered: write and fdatasync); nothing for a fence with nothing marked.
  EXPECT_EQ(c.syncs, GetParam().on_file ? 2U : 0U);
  EXPECT_EQ(c.written_bytes, GetParam().on_file ? 2 * 4096U + 2 * 4096U : (3 + 3 + 64 + 64) * 64U);
  EXPECT_EQ(c.writes(), 2 + 131 + 3 + 3 + c.syncs);
}

// store_words is store() of each word: of two to one word the later one counts, all are counted,
// and flush_all finds them.
TEST_P(Contract, words_are_stored_in_their_order) {
  std::vector<WordStore> words;
  for (std::uint64_t i = 0; i < 500; ++i) words.push_back({i * 8008 % 40000 / 8 * 8, i + 1});
  words.push_back({words[7].offset, 12345});
  const Counters before = medium_->counters();
  medium_->store_words(data_at(0), words);
  medium_->store_words(data_at(0), {});
  const Counters c = medium_->counters() - before;
  EXPECT_EQ(c.stores, 501U);
  EXPECT_EQ(c.stored_bytes, 501U * 8);
  ASSERT_TRUE(medium_->flush_all().ok());
  std::map<std::uint64_t, std::uint64_t> expected;
  for (const WordStore& w : words) expected[w.offset] = w.value;
  const auto all_there = [&] {
    for (const auto& [offset, value] : expected) {
      std::uint64_t found = 0;
      std::memcpy(&found, medium_->at(data_at(offset)), sizeof found);
      ASSERT_EQ(value, found) << offset;
    }
  };
  all_there();
  reopen();
  all_there();
}

// stream_words needs no flush: its words are durable after the fence.
TEST_P(Contract, streamed_words_are_durable_after_the_fence) {
  std::vector<WordStore> words;
  for (std::uint64_t i = 0; i < 500; ++i) words.push_back({i * 8008 % 40000 / 8 * 8, i + 1});
  for (std::uint64_t i = 0; i < 8; ++i) words.push_back({45056 + i * 8, 7});  // one line
  const Counters before = medium_->counters();
  medium_->stream_words(data_at(0), words);
  medium_->stream_words(data_at(0), {});
  ASSERT_TRUE(medium_->fence().ok());
  const Counters c = medium_->counters() - before;
  const std::uint64_t lines = c.flushed_lines + c.streamed_lines;
  EXPECT_GE(501U, lines) << "neighbours in one line are written once";
  EXPECT_LE(301U, lines);
  EXPECT_EQ(1U, c.fences);
  std::map<std::uint64_t, std::uint64_t> expected;
  for (const WordStore& w : words) expected[w.offset] = w.value;
  reopen();
  for (const auto& [offset, value] : expected) {
    std::uint64_t found = 0;
    std::memcpy(&found, medium_->at(data_at(offset)), sizeof found);
    ASSERT_EQ(value, found) << offset;
  }
}

TEST_P(Contract, reading_counts_nothing) {
  const Counters before = medium_->counters();
  (void)bytes_at(*medium_, 0, log_bytes);
  (void)bytes_at(*medium_, log_bytes, data_bytes);
  EXPECT_EQ((medium_->counters() - before).writes(), 0U);
}

TEST_P(Contract, a_ring_wraps_by_itself) {
  for (const std::uint64_t ring_bytes : {std::uint64_t{8192}, std::uint64_t{12288}}) {
    // A size that is a power of two, and one that is not.
    const RingMap ring = medium_->map_ring(16384, ring_bytes).value();
    EXPECT_EQ(ring.offset, 16384U);
    ASSERT_EQ(ring.bytes, ring_bytes);
    std::vector<std::byte> model(ring_bytes);
    std::copy(medium_->at(16384), medium_->at(16384) + ring_bytes, model.begin());
    std::uint64_t pos = 0;
    for (std::uint64_t i = 0; i < 60; ++i) {
      const std::size_t n = unit() == 64 ? 64 * (1 + i * 7 % 50) : 4096 * (1 + i % 3 % 2);
      const auto bytes = pattern(n, i + ring_bytes);
      if (i % 3 == 0) {
        medium_->append(ring, pos, bytes.data(), n);
      } else {
        ASSERT_TRUE(medium_->append_fence(ring, pos, bytes.data(), n).ok());
      }
      for (std::size_t k = 0; k < n; ++k) model[(pos + k) % ring_bytes] = bytes[k];
      ASSERT_EQ(std::memcmp(ring.base + pos % ring_bytes, bytes.data(), n), 0)
          << "a record is contiguous, also over the end";
      pos += n;
      ASSERT_EQ(bytes_at(*medium_, 16384, ring_bytes), model);
      if (i % 3 != 0) {
        ASSERT_EQ(durable(16384, ring_bytes), model) << "after fence " << i;
      }
    }
    EXPECT_EQ(std::memcmp(ring.base, model.data(), ring_bytes), 0);
    EXPECT_EQ(std::memcmp(ring.base + ring_bytes, model.data(), ring_bytes), 0);
    ASSERT_TRUE(medium_->fence().ok());
    reopen();
    EXPECT_EQ(bytes_at(*medium_, 16384, ring_bytes), model);
    EXPECT_TRUE(zero_at(*medium_, 0, 16384)) << "nothing beside the ring was touched";
  }
}

TEST_P(Contract, a_ring_shows_what_the_log_already_holds) {
  const auto bytes = pattern(4096, 9);
  medium_->stream(4096, bytes.data(), bytes.size());
  ASSERT_TRUE(medium_->fence().ok());
  reopen();
  const RingMap ring = medium_->map_ring(4096, 8192).value();
  EXPECT_EQ(std::memcmp(ring.base, bytes.data(), bytes.size()), 0);
  EXPECT_EQ(std::memcmp(ring.base + 8192, bytes.data(), bytes.size()), 0);
}

TEST_P(Contract, rings_that_cannot_be_are_refused) {
  EXPECT_EQ(medium_->map_ring(0, 0).code(), Code::invalid);
  EXPECT_EQ(medium_->map_ring(64, 4096).code(), Code::invalid);
  EXPECT_EQ(medium_->map_ring(0, 4096 + 64).code(), Code::invalid);
  EXPECT_EQ(medium_->map_ring(log_bytes - 4096, 8192).code(), Code::invalid);
  EXPECT_EQ(medium_->map_ring(~0ULL - 4095, 8192).code(), Code::invalid);
}

TEST_P(Contract, growth_keeps_the_place_and_the_bytes_and_adds_zeros) {
  const auto bytes = pattern(64, 5);
  const std::byte* const place = medium_->data();
  medium_->stream(data_at(data_bytes - 64), bytes.data(), 64);
  ASSERT_TRUE(medium_->fence().ok());
  ASSERT_TRUE(medium_->grow(data_bytes).ok()) << "to the same size: nothing to do";
  for (const std::uint64_t to : {data_bytes + 4096, 2 * data_bytes, max_data_bytes}) {
    const std::uint64_t from = medium_->data_bytes();
    ASSERT_TRUE(medium_->grow(to).ok());
    EXPECT_EQ(medium_->data_bytes(), to);
    EXPECT_EQ(medium_->data(), place);
    EXPECT_TRUE(zero_at(*medium_, data_at(from), to - from));
    medium_->stream(data_at(to - 64), bytes.data(), 64);
    ASSERT_TRUE(medium_->fence().ok());
  }
  reopen();
  EXPECT_EQ(medium_->data_bytes(), max_data_bytes);
  EXPECT_EQ(bytes_at(*medium_, data_at(data_bytes - 64), 64), bytes);
  EXPECT_EQ(bytes_at(*medium_, data_at(max_data_bytes - 64), 64), bytes);
}

TEST_P(Contract, growth_that_cannot_be_is_refused_and_changes_nothing) {
  EXPECT_EQ(medium_->grow(max_data_bytes + 4096).code(), Code::full);
  EXPECT_EQ(medium_->grow(data_bytes - 4096).code(), Code::invalid);
  EXPECT_EQ(medium_->grow(data_bytes + 100).code(), Code::invalid);
  EXPECT_EQ(medium_->data_bytes(), data_bytes);
  EXPECT_TRUE(medium_->fence().ok());
}

TEST_P(Contract, views_show_the_data_region) {
  constexpr std::size_t n = 64 << 10;
  void* space = ::mmap(nullptr, 2 * n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(space, MAP_FAILED);
  auto* view = static_cast<std::byte*>(space);
  const auto bytes = pattern(64, 6), other = pattern(64, 7);
  medium_->stream(data_at(n), bytes.data(), 64);
  ASSERT_TRUE(medium_->fence().ok());

  ASSERT_TRUE(medium_->map_view(view, n, n, ViewKind::shared).ok());
  EXPECT_EQ(std::memcmp(view, bytes.data(), 64), 0);
  medium_->stream(data_at(n + 64), other.data(), 64);
  EXPECT_EQ(std::memcmp(view + 64, other.data(), 64), 0);

  ASSERT_TRUE(medium_->map_view(view, n, n, ViewKind::shared_read).ok());
  EXPECT_EQ(std::memcmp(view + 64, other.data(), 64), 0);

  ASSERT_TRUE(medium_->map_view(view, n, n, ViewKind::copy_on_write).ok());
  EXPECT_EQ(std::memcmp(view, bytes.data(), 64), 0);
  medium_->stream(data_at(n + 128), bytes.data(), 64);
  EXPECT_EQ(std::memcmp(view + 128, bytes.data(), 64), 0)
      << "an unwritten page shows the data region";
  std::memset(view, 0x5a, 64);
  EXPECT_EQ(bytes_at(*medium_, data_at(n), 64), bytes) << "a written page is private";

  ASSERT_TRUE(medium_->map_view(view, 0, n, ViewKind::fresh).ok());
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(view[i], std::byte{0});
  std::memset(view, 0x5a, n);
  EXPECT_TRUE(zero_at(*medium_, data_at(0), n));

  EXPECT_EQ(medium_->map_view(view, data_bytes, 4096, ViewKind::shared).code(), Code::invalid);
  EXPECT_EQ(medium_->map_view(view, 0, 100, ViewKind::shared).code(), Code::invalid);
  EXPECT_EQ(medium_->map_view(view + 8, 0, 4096, ViewKind::shared).code(), Code::invalid);
  ::munmap(space, 2 * n);
}

TEST_P(Contract, threads_store_append_and_fence_at_once) {
  constexpr std::uint64_t threads = 4;
  const std::uint64_t rounds = GetParam().on_file ? 20 : 200;
  const std::uint64_t n = unit();
  const Counters before = medium_->counters();
  std::vector<RingMap> rings;
  for (std::uint64_t t = 0; t < threads; ++t)
    rings.push_back(medium_->map_ring(t * 16384, 16384).value());
  std::vector<std::thread> all;
  for (std::uint64_t t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      const auto bytes = pattern(n, t);
      for (std::uint64_t i = 0; i < rounds; ++i) {
        // Words of one line: the four threads store to it at once.
        medium_->store(data_at(8 * (i * threads + t)), &t, 8);
        medium_->flush(data_at(8 * (i * threads + t)), 8);
        EXPECT_TRUE(medium_->append_fence(rings[t], i * n, bytes.data(), n).ok());
      }
    });
  }
  for (auto& t : all) t.join();
  const Counters c = medium_->counters() - before;
  EXPECT_EQ(c.stores, threads * rounds);
  EXPECT_EQ(c.flushed_lines, threads * rounds);
  EXPECT_EQ(c.fences, threads * rounds);
  EXPECT_EQ(c.streamed_lines, threads * rounds * n / 64);
  reopen();
  for (std::uint64_t t = 0; t < threads; ++t) {
    EXPECT_EQ(bytes_at(*medium_, t * 16384 + (rounds - 1) * n % 16384, n), pattern(n, t));
    for (std::uint64_t i = 0; i < rounds; ++i) {
      std::uint64_t found = 99;
      std::memcpy(&found, medium_->at(data_at(8 * (i * threads + t))), 8);
      ASSERT_EQ(found, t);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Media, Contract, ::testing::ValuesIn(kinds),
                         [](const ::testing::TestParamInfo<Kind>& p) {
                           return std::string(p.param.name);
                         });

}  // namespace
}  // namespace perdure::medium
