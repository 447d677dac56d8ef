// SPDX-License-Identifier: BSD-3-Clause
//
// Damaged files: bits flipped in header and log, files cut short, foreign files, other layouts, engines, versions: each refused by name,
// with not a byte written (law L10); what can't be told from a torn last record is cut, and nothing else.
#include "faults.hpp"

namespace perdure::faults {
namespace {

/// The pool's file as it was, to be put back after every opening that wrote.
class Image {
 public:
  explicit Image(std::string path) : path_(std::move(path)), bytes_(read_all(path_)) {}
  [[nodiscard]] bool unchanged_but(std::uint64_t at, char value) {
    std::string now = read_all(path_);
    if (now.size() != bytes_.size() || now[at] != value) return false;
    now[at] = bytes_[at];
    return now == bytes_;
  }
  [[nodiscard]] bool unchanged() const { return read_all(path_) == bytes_; }
  void restore() const { poke(path_, 0, bytes_.data(), bytes_.size()); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string path_, bytes_;
};

class Damage : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr std::uint64_t steps = 12;
  Options options() const {
    Options o = small(GetParam());
    o.max_size = 2 * MiB;
    o.log_size = 32 * KiB;
    return o;
  }
  Scratch scratch;
  const std::string path = scratch.path();
};

// One bit of every byte that the log's records take, the last record's apart: damage is named, never skipped.
TEST_P(Damage, FlipsInTheLog) {
  make_unclean(path, options(), steps);
  Image image(path);
  const pool::Header h = header_of(path);
  const auto ring = [&](std::uint64_t at) { return pool::first_ring + at; };
  // Where the records lie: read as recovery reads them.
  auto medium = medium::open_medium([&] {
    medium::OpenMedium m;
    m.path = path, m.kind = GetParam().medium, m.read_only = true, m.log_bytes = h.log_bytes;
    return m;
  }()).value();
  std::uint64_t end = 0, last = 0, records = 0;
  const auto scan = log::scan_ring(medium->map_ring(pool::first_ring, h.ring_bytes).value(), h.ring_head[0], log::ring_seed(h.uuid, h.epoch, 0), h.append_unit, path,
                                   [&](const log::RecordView& r) { last = r.position, end = r.position + r.bytes(h.append_unit), ++records; });
  ASSERT_TRUE(scan.damage.ok());
  ASSERT_GE(records, steps);
  ASSERT_EQ(h.ring_head[0], 0U);
  medium.reset();

  std::uint64_t corrupt = 0, cut = 0, unseen = 0;
  const std::uint64_t stride = (sanitized ? 13 : 1) * (end > 8192 ? end / 8192 : 1);  // on a file a record takes a block, most of it zeros
  for (std::uint64_t at = 0; at < end; at += at % 4096 < 256 || h.append_unit == 64 ? (sanitized ? 13 : 1) : stride) {
    const char flipped = static_cast<char>(image.bytes()[ring(at)] ^ (1 << at % 8));
    poke(path, ring(at), &flipped, 1);
    auto pool = TestPool::try_open(path, options());
    if (!pool.ok()) {
      EXPECT_EQ(pool.code(), Code::corrupt) << at << ": " << pool.status().message();
      EXPECT_NE(pool.status().message().find(path), std::string::npos);
      if (corrupt++ % 8 == 0) EXPECT_TRUE(image.unchanged_but(ring(at), flipped)) << "refused, and written, at " << at;
      EXPECT_LT(at, last) << "a damaged last record can't be told from a torn one";
      poke(path, ring(at), &image.bytes()[ring(at)], 1);
      continue;
    }
    const std::uint64_t n = steps_in(*pool);
    if (n == steps) {
      ++unseen;  // the padding of a record, which no checksum covers, and nobody reads
    } else {
      EXPECT_EQ(n, steps - 1) << "a state that is neither the last nor the one before, at " << at;
      EXPECT_GE(at, last) << "records were cut below a whole one";
      ++cut;
    }
    expect_sound(*pool);
    pool = failure(Code::closed, "", "");  // gone before its file is put back
    image.restore();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(corrupt, 0U);
  EXPECT_GT(cut, 0U);
  std::printf("  %llu bytes of records: %llu flips named, %llu cut the last record, %llu in padding\n", static_cast<unsigned long long>(end),
              static_cast<unsigned long long>(corrupt), static_cast<unsigned long long>(cut), static_cast<unsigned long long>(unseen));
}

// Beyond the records lies what earlier laps left, or zeros: a flip there changes nothing.
TEST_P(Damage, FlipsInTheUnusedLog) {
  make_unclean(path, options(), steps);
  Image image(path);
  const pool::Header h = header_of(path);
  for (std::uint64_t at = h.ring_bytes - 4096; at < h.ring_bytes; at += 97) {
    const char flipped = static_cast<char>(image.bytes()[pool::first_ring + at] ^ 16);
    poke(path, pool::first_ring + at, &flipped, 1);
    {
      TestPool pool = TestPool::open(path, options());
      EXPECT_EQ(steps_in(pool), steps);
    }
    image.restore();
  }
}

// Either copy of the header may be damaged in any byte: the other serves. Both: refused.
TEST_P(Damage, FlipsInTheHeader) {
  make_unclean(path, options(), steps);
  Image image(path);
  const std::uint64_t stride = sanitized ? 61 : 3;
  for (const std::uint64_t copy : {pool::header_a, pool::header_b}) {
    for (std::uint64_t at = 0; at < sizeof(pool::Header); at += stride) {
      const char flipped = static_cast<char>(image.bytes()[copy + at] ^ (1 << (at / 3) % 8));
      poke(path, copy + at, &flipped, 1);
      {
        auto pool = TestPool::try_open(path, options());
        ASSERT_TRUE(pool.ok()) << at << ": " << pool.status().message();
        EXPECT_EQ(steps_in(*pool), steps);
      }
      image.restore();
    }
  }
  for (std::uint64_t at = 0; at < sizeof(pool::Header); at += stride * 5) {
    for (const std::uint64_t copy : {pool::header_a, pool::header_b}) {
      const char flipped = static_cast<char>(image.bytes()[copy + at] ^ 2);
      poke(path, copy + at, &flipped, 1);
    }
    EXPECT_EQ(TestPool::try_open(path, options()).code(), Code::corrupt) << at;
    for (const std::uint64_t copy : {pool::header_a, pool::header_b}) poke(path, copy + at, &image.bytes()[copy + at], 1);
  }
  EXPECT_TRUE(image.unchanged());
  TestPool pool = TestPool::open(path, options());
  EXPECT_EQ(steps_in(pool), steps);
}

TEST_P(Damage, CutAtEvery512Bytes) {
  make_unclean(path, options(), steps);
  Image image(path);
  const std::string short_path = scratch.path("short");
  for (std::uint64_t n = 0; n < image.bytes().size(); n += 512 * (sanitized ? 9 : 1)) {
    // Made longer and longer: writing whole files for every length would be most of the work.
    if (n == 0) write_all(short_path, "");
    const std::uint64_t from = std::filesystem::file_size(short_path);
    poke(short_path, from, image.bytes().data() + from, n - from);
    const auto before = std::filesystem::last_write_time(short_path);
    const auto pool = TestPool::try_open(short_path, options());
    ASSERT_FALSE(pool.ok()) << n;
    EXPECT_EQ(pool.code(), n < 8 ? Code::incompatible : Code::corrupt) << n << ": " << pool.status().message();
    EXPECT_NE(pool.status().message().find(std::to_string(n) + " bytes"), std::string::npos) << n << ": " << pool.status().message();
    EXPECT_EQ(std::filesystem::file_size(short_path), n);
    EXPECT_EQ(std::filesystem::last_write_time(short_path), before);
  }
  EXPECT_EQ(read_all(short_path), image.bytes().substr(0, std::filesystem::file_size(short_path)));
  TestPool whole = TestPool::open(path, options());
  EXPECT_EQ(steps_in(whole), steps);
}

INSTANTIATE_TEST_SUITE_P(Engines, Damage, ::testing::ValuesIn(durable_cases()), CaseName());

// --- other files ------------------------------------------------------------------------------------------------------------------

TEST(Foreign, FilesAreRefusedUntouched) {
  Scratch scratch;
  const std::string path = scratch.path();
  const std::string program = read_all("/proc/self/exe");
  const std::pair<const char*, std::string> files[] = {
      {"empty", ""},
      {"a word", "hello\n"},
      {"text", std::string(100000, 'x')},
      {"zeros", std::string(5 << 20, '\0')},
      {"a program", program.substr(0, 5 << 20)},
      {"SQLite", "SQLite format 3" + std::string(1 << 20, '\0')},
      {"the magic alone", std::string(pool::magic, sizeof pool::magic)},
  };
  for (const auto& [what, bytes] : files) {
    write_all(path, bytes);
    for (const bool create : {false, true}) {
      Options o = small({});
      o.create = create;
      const auto pool = TestPool::try_open(path, o);
      ASSERT_FALSE(pool.ok()) << what;
      EXPECT_TRUE(pool.code() == Code::incompatible || (pool.code() == Code::corrupt && bytes.size() <= 8 && !bytes.empty())) << what << ": " << pool.status().message();
      EXPECT_NE(pool.status().message().find(path), std::string::npos) << pool.status().message();
    }
    EXPECT_EQ(read_all(path), bytes) << what;
  }
  EXPECT_EQ(TestPool::try_open(scratch.folder(), small({})).code(), Code::incompatible);
}

struct Other {
  p<std::uint64_t> count;
  struct alignas(64) Slot {
    p<std::int64_t> value;
  };
  Slot slot[8];
  map<std::uint64_t, std::string> names;
  vector<std::uint64_t> numbers;
  ptr<std::byte> block;
};

class Mismatch : public ::testing::TestWithParam<Case> {};

TEST_P(Mismatch, LayoutEngineVersionEndianness) {
  Scratch scratch;
  const std::string path = scratch.path();
  Options o = small(GetParam());
  make_unclean(path, o, 5);
  Image image(path);
  o.engine.clear();

  const auto layout = Pool<Other, Tested>::try_open(path, o);
  EXPECT_EQ(layout.code(), Code::incompatible);
  EXPECT_NE(layout.status().message().find("i64"), std::string::npos) << layout.status().message();
  EXPECT_NE(layout.status().message().find("u64"), std::string::npos) << layout.status().message();
  EXPECT_TRUE(image.unchanged());

  const std::string family = GetParam().engine.substr(0, GetParam().engine.find('/'));
  const auto by_name = [&](auto list) {
    const auto engine = Pool<Root, decltype(list)>::try_open(path, o);
    EXPECT_EQ(engine.code(), Code::incompatible) << engine.status().message();
    EXPECT_NE(engine.status().message().find("engine '" + family + "'"), std::string::npos) << engine.status().message();
    EXPECT_NE(engine.status().message().find("perdure::engines<perdure::" + family), std::string::npos) << engine.status().message();
  };
  if (family == "undo") by_name(engines<shadow, dudetm>());
  else by_name(engines<undo>());
  EXPECT_TRUE(image.unchanged());

  Options wrong = o;
  wrong.engine = "no such engine";
  EXPECT_EQ(TestPool::try_open(path, wrong).code(), Code::incompatible);
  wrong.engine = family == "undo" ? "shadow" : "undo";
  EXPECT_EQ(TestPool::try_open(path, wrong).code(), Code::incompatible);
  EXPECT_TRUE(image.unchanged());

  for (const bool endian : {false, true}) {
    for (const std::uint64_t copy : {pool::header_a, pool::header_b}) {
      pool::Header h;
      std::memcpy(&h, image.bytes().data() + copy, sizeof h);
      if (endian) h.endian = __builtin_bswap32(h.endian);
      else h.version += 1;
      h.checksum = pool::header_checksum(h);
      poke(path, copy, &h, sizeof h);
    }
    const std::string before = read_all(path);
    const auto pool = TestPool::try_open(path, o);
    EXPECT_EQ(pool.code(), Code::incompatible) << pool.status().message();
    EXPECT_NE(pool.status().message().find(endian ? "byte order" : "version"), std::string::npos) << pool.status().message();
    EXPECT_EQ(read_all(path), before);
    image.restore();
  }
  TestPool pool = TestPool::open(path, o);
  EXPECT_EQ(steps_in(pool), 5U);
}

INSTANTIATE_TEST_SUITE_P(Engines, Mismatch, ::testing::ValuesIn(durable_cases()), CaseName());

}  // namespace
}  // namespace perdure::faults
