// SPDX-License-Identifier: BSD-3-Clause
//
// Damaged files: bits flipped in header and log, truncated files, foreign files, other layouts,
// engines, versions: each is refused with its reason, without a byte written (LAW-10); what can't
// be distinguished from a torn last record is cut, and nothing else.
#include "faults.hpp"
#include "papers/engines.hpp"
#include "perdure/api/compiled_pool.hpp"

namespace perdure::faults {
namespace {

/// The original bytes of the pool's file, to be restored after every opening that wrote.
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
  // The number of steps, and a log so large that it is not truncated meanwhile. Undo logs one
  // record per line; a record on a file takes a block.
  const bool undo = GetParam().engine == "undo", file = GetParam().medium == "file";
  const std::uint64_t steps = undo ? 3 : file ? 5 : 8;
  // The others test every byte.
  const bool sampled =
      file || GetParam().engine == "shadow/global_lock" || GetParam().durability == async;
  Options options() const {
    Options o = small(GetParam());
    o.creation.max_size = 2 * MiB;
    o.creation.log_size = (undo ? 128 : 32) * (file ? 8 : 1) * KiB;
    return o;
  }
  Scratch scratch;
  const std::string path = scratch.path();
};

// One bit of every byte of the log's records: damage is reported, never skipped. Damage of the last
// record: it is cut, like a torn one.
TEST_P(Damage, FlipsInTheLog) {
  if (GetParam().engine.starts_with("rewind"))
    GTEST_SKIP() << "its log is a list: conformance_laws_test goes through it word by word";
  // The places of the records, read as recovery reads them.
  struct Extent {
    std::uint64_t begin, end, padded;
  };
  std::vector<Extent> records;
  pool::Header h{};
  // Reproduce by replay may have truncated a part before the process ended: then it is tried again.
  for (int tries = 0; tries < 40 && records.size() < steps; ++tries) {
    std::filesystem::remove(path);
    records.clear();
    make_unclean(path, options(), steps);
    h = header_of(path);
    medium::OpenMedium m;
    m.path = path, m.kind = GetParam().medium, m.read_only = true, m.log_bytes = h.log_bytes;
    const auto medium = medium::open_medium(m).value();
    const auto scan = log::scan_ring(
        medium->map_ring(pool::ring_offset(h, 0), h.ring_bytes).value(), h.ring_head[0],
        log::ring_seed(h.uuid, h.epoch, 0), h.append_unit, path, [&](const log::RecordView& r) {
          records.push_back({r.position, r.position + (r.payload_words() + log::header_words) * 8,
                             r.position + r.bytes(h.append_unit)});
        });
    ASSERT_TRUE(scan.damage.ok());
  }
  if (sanitized && GetParam().engine == "dudetm" && records.size() < steps)
    GTEST_SKIP() << "Reproduce was faster each time";
  ASSERT_GE(records.size(), steps);
  ASSERT_EQ(h.ring_head[0], 0U) << "the log was recycled: make it larger";
  Image image(path);

  std::uint64_t corrupt = 0, cut = 0, unseen = 0;
  const auto flip = [&](std::uint64_t at, const Extent& record) {
    const std::uint64_t offset = pool::ring_offset(h, 0) + at;
    const bool last = &record == &records.back(), padding = at >= record.end;
    const char flipped = static_cast<char>(image.bytes()[offset] ^ (1 << at % 8));
    poke(path, offset, &flipped, 1);
    auto pool = TestPool::try_open(path, options());
    if (!pool.ok()) {
      ASSERT_EQ(pool.code(), Code::corrupt) << at << ": " << pool.status().message();
      ASSERT_NE(pool.status().message().find(path), std::string::npos);
      ASSERT_FALSE(last) << "a damaged last record can't be told from a torn one";
      if (corrupt++ % 16 == 0) {
        ASSERT_TRUE(image.unchanged_but(offset, flipped)) << "refused, and written, at " << at;
      }
      poke(path, offset, &image.bytes()[offset], 1);
      return;
    }
    const std::uint64_t n = steps_in(*pool);
    if (padding) {
      ASSERT_EQ(n, steps) << "padding, which no checksum covers and nobody reads, at " << at;
      ++unseen;
    } else {
      ASSERT_TRUE(last) << "a record below a whole one was cut, or its damage not seen, at " << at;
      ASSERT_EQ(n, steps - 1) << "neither the last state nor the one before, at " << at;
      ++cut;
    }
    // After undo's commit record is durable, its heap bits follow: if it is damaged afterwards, it
    // rolls back the data, not the bits.
    if (!undo || n == steps) expect_sound(*pool);
    pool = failure(Code::closed, "", "");  // closed before its file is restored
    image.restore();
  };
  const std::uint64_t every = sanitized ? 31 : sampled ? 11 : 1;
  for (const Extent& record : records) {
    for (std::uint64_t at = record.begin; at < record.end && !HasFatalFailure(); at += every)
      flip(at, record);
    for (std::uint64_t at = record.end; at < record.padded && !HasFatalFailure();
         at += 16 + (record.padded - record.end) / 3)
      flip(at, record);
  }
  EXPECT_GT(corrupt, 0U);
  EXPECT_GT(cut, 0U);
  std::printf("  %zu records: %llu flips named, %llu cut the last record, %llu in padding\n",
              records.size(), static_cast<unsigned long long>(corrupt),
              static_cast<unsigned long long>(cut), static_cast<unsigned long long>(unseen));
}

// Beyond the records lies what earlier generations left, or zeros: a flip there changes nothing.
TEST_P(Damage, FlipsInTheUnusedLog) {
  make_unclean(path, options(), steps);
  Image image(path);
  const pool::Header h = header_of(path);
  for (std::uint64_t at = h.ring_bytes - 4096; at < h.ring_bytes; at += 311) {
    const char flipped = static_cast<char>(image.bytes()[pool::ring_offset(h, 0) + at] ^ 16);
    poke(path, pool::ring_offset(h, 0) + at, &flipped, 1);
    {
      TestPool pool = TestPool::open(path, options());
      EXPECT_EQ(steps_in(pool), steps);
    }
    image.restore();
  }
}

// Either copy of the header may be damaged in any byte: the other one is used. If both are damaged,
// the pool is refused.
TEST_P(Damage, FlipsInTheHeader) {
  make_unclean(path, options(), steps);
  Image image(path);
  // Every byte is tested in tests/pool, on the header alone.
  const std::uint64_t stride = sanitized ? 173 : sampled || undo ? 83 : 23;
  for (const std::uint64_t copy : {pool::header_a, pool::header_b}) {
    for (std::uint64_t at = 0; at < sizeof(pool::Header); at += stride) {
      const char flipped = static_cast<char>(image.bytes()[copy + at] ^ (1 << (at / stride) % 8));
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
    for (const std::uint64_t copy : {pool::header_a, pool::header_b})
      poke(path, copy + at, &image.bytes()[copy + at], 1);
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
    // The file is made longer in steps: writing whole files for every length would be most of the
    // work.
    if (n == 0) write_all(short_path, "");
    const std::uint64_t from = std::filesystem::file_size(short_path);
    poke(short_path, from, image.bytes().data() + from, n - from);
    const auto before = std::filesystem::last_write_time(short_path);
    Options o = options();
    // If a pool may be created, an empty file becomes one: pool/create_test.cpp.
    o.create = n != 0;
    const auto pool = TestPool::try_open(short_path, o);
    ASSERT_FALSE(pool.ok()) << n;
    EXPECT_EQ(pool.code(), n < 8 ? Code::incompatible : Code::corrupt)
        << n << ": " << pool.status().message();
    EXPECT_NE(pool.status().message().find(n == 0 ? "empty" : std::to_string(n) + " bytes"),
              std::string::npos)
        << n << ": " << pool.status().message();
    EXPECT_EQ(std::filesystem::file_size(short_path), n);
    EXPECT_EQ(std::filesystem::last_write_time(short_path), before);
  }
  EXPECT_EQ(read_all(short_path), image.bytes().substr(0, std::filesystem::file_size(short_path)));
  TestPool whole = TestPool::open(path, options());
  EXPECT_EQ(steps_in(whole), steps);
}

INSTANTIATE_TEST_SUITE_P(Engines, Damage, ::testing::ValuesIn(durable_cases()), CaseName());

// --- other files ---------------------------------------------------------------------------------

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
      if (create && bytes.empty()) continue;  // it becomes a pool: pool/create_test.cpp
      Options o = small({});
      o.create = create;
      const auto pool = TestPool::try_open(path, o);
      ASSERT_FALSE(pool.ok()) << what;
      EXPECT_TRUE(pool.code() == Code::incompatible ||
                  (pool.code() == Code::corrupt && bytes.size() <= 8 && !bytes.empty()))
          << what << ": " << pool.status().message();
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

  const std::string family = GetParam().engine.substr(0, GetParam().engine.find('/'));
  const auto by_name = [&](auto list) {
    const auto engine = Pool<Root, decltype(list)>::try_open(path, o);
    EXPECT_EQ(engine.code(), Code::incompatible) << engine.status().message();
    EXPECT_NE(engine.status().message().find("engine '" + family + "'"), std::string::npos)
        << engine.status().message();
    EXPECT_NE(engine.status().message().find(
                  "perdure::engines<perdure::" + family.substr(0, family.find('-')) + ">>"),
              std::string::npos)
        << engine.status().message();
  };
  if (family == "undo")
    by_name(engines<shadow, dudetm>());
  else
    by_name(engines<undo>());
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
      if (endian)
        h.endian = __builtin_bswap32(h.endian);
      else
        h.version = pool::format_version + 1;
      h.checksum = pool::header_checksum(h);
      poke(path, copy, &h, sizeof h);
    }
    const std::string before = read_all(path);
    const auto pool = TestPool::try_open(path, o);
    EXPECT_EQ(pool.code(), Code::incompatible) << pool.status().message();
    EXPECT_NE(pool.status().message().find(endian ? "byte order" : "version"), std::string::npos)
        << pool.status().message();
    EXPECT_EQ(read_all(path), before);
    image.restore();
  }

  // Which layout a pool has is known after its recovery, since that may end a change of layout.
  // Nothing is changed in a pool that was closed in order.
  for (const bool in_order : {false, true}) {
    Image before(path);
    const auto layout = Pool<Other, Tested>::try_open(path, o);
    EXPECT_EQ(layout.code(), Code::incompatible);
    for (const char* type : {"i64", "u64"})
      EXPECT_NE(layout.status().message().find(type), std::string::npos)
          << layout.status().message();
    EXPECT_TRUE(before.unchanged() || !in_order);
  }
  TestPool pool = TestPool::open(path, o);
  EXPECT_EQ(steps_in(pool), 5U);
}

INSTANTIATE_TEST_SUITE_P(Engines, Mismatch, ::testing::ValuesIn(durable_cases()), CaseName());

}  // namespace
}  // namespace perdure::faults
