// SPDX-License-Identifier: BSD-3-Clause
//
// The header with damage and with foreign contents: every byte of either copy flipped, the file
// truncated at every 512 bytes, foreign, newer, other byte order, other engine, other layout. An
// opening that is refused never writes.
#include <sys/types.h>

#include "perdure/pool/features.hpp"
#include "pool_test.hpp"

namespace perdure::pool {
namespace {

using namespace testing;

class HeaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    make_pool(small(path));
    image = read_all(path);
  }

  // Opens for writing; must be refused, with that code and those words, without a byte written.
  void refused(Code code, const std::string& words, const Identity& who = tester()) {
    const std::string before = read_all(path);
    OpenFile how = small(path);
    for (const bool read_only : {false, true}) {
      how.read_only = read_only;
      auto r = OpenPool::open(how, who);
      ASSERT_FALSE(r.ok());
      EXPECT_EQ(r.code(), code) << r.status().message();
      EXPECT_NE(r.status().message().find(words), std::string::npos) << r.status().message();
      EXPECT_EQ(r.status().message().find(path), 0U) << r.status().message();
    }
    EXPECT_TRUE(read_all(path) == before);
  }
  void opens() {
    auto r = OpenPool::open(small(path), tester());
    ASSERT_TRUE(r.ok()) << r.status().message();
  }
  // Changes both copies with `change`, and seals them.
  void rewrite(const std::function<void(Header&)>& change) {
    for (const std::uint64_t at : {header_a, header_b}) {
      Header h = header_of(path, at);
      change(h);
      h.checksum = header_checksum(h);
      poke(path, at, &h, sizeof h);
    }
  }

  Scratch scratch;
  const std::string path = scratch.path();
  std::string image;
};

TEST_F(HeaderTest, EveryByteOfEitherCopy) {
  const auto* a = reinterpret_cast<const Header*>(image.data() + header_a);
  const auto* b = reinterpret_cast<const Header*>(image.data() + header_b);
  ASSERT_EQ(judge(*a), CopyState::valid);
  ASSERT_EQ(judge(*b), CopyState::valid);
  for (std::size_t i = 0; i < sizeof(Header); ++i) {
    for (const unsigned flip : {1U << i % 8, 0xffU}) {
      const auto flipped = [&](const Header* h) {
        Header copy = *h;
        reinterpret_cast<unsigned char*>(&copy)[i] ^= static_cast<unsigned char>(flip);
        return copy;
      };
      const Header bad_a = flipped(a), bad_b = flipped(b);
      auto r = choose_header(path, &bad_a, b, image.size());
      ASSERT_TRUE(r.ok()) << i;
      EXPECT_EQ(r->copy_a, CopyState::damaged) << i;
      EXPECT_FALSE(r->write_b_first) << i;
      r = choose_header(path, a, &bad_b, image.size());
      ASSERT_TRUE(r.ok()) << i;
      EXPECT_EQ(r->copy_b, CopyState::damaged) << i;
      EXPECT_TRUE(r->write_b_first) << i;
      r = choose_header(path, &bad_a, &bad_b, image.size());
      ASSERT_FALSE(r.ok()) << i;
      EXPECT_EQ(r.code(), Code::corrupt) << i;
    }
  }
}

TEST_F(HeaderTest, DamagedInTheFile) {
  for (const std::size_t i :
       {std::size_t{0}, std::size_t{9}, std::size_t{13}, std::size_t{40}, sizeof(Header) - 1}) {
    const char bad = static_cast<char>(image[i] ^ 1);
    poke(path, header_a + i, &bad, 1);
    opens();
    poke(path, header_b + i, &bad, 1);
    refused(Code::corrupt, "both copies of the header are damaged");
    write_all(path, image);
  }
}

// The next session repairs the damaged copy, and writes it before the good one (HEADER-1).
TEST_F(HeaderTest, SessionRepairsTheOtherCopy) {
  for (const std::uint64_t at : {header_a, header_b}) {
    const char bad = static_cast<char>(image[at + 100] ^ 1);
    poke(path, at + 100, &bad, 1);
    {
      auto r = OpenPool::open(small(path), tester());
      ASSERT_TRUE(r.ok());
      ASSERT_TRUE((*r)->start_session(ViewPolicy::none).ok());
    }
    EXPECT_EQ(judge(header_of(path, header_a)), CopyState::valid);
    EXPECT_EQ(judge(header_of(path, header_b)), CopyState::valid);
    EXPECT_EQ(header_of(path, header_a).sequence, header_of(path, header_b).sequence);
  }
}

// At every fence of a write one copy is whole and durable, and the newest durable one is the old
// state or the new one.
TEST_F(HeaderTest, WritingIsNeverWithoutAWholeCopy) {
  for (const std::uint64_t damaged : {header_a, header_b, first_ring}) {
    medium::RecordingOptions options;
    options.log_bytes = 2 * MiB;
    options.data_bytes = 2 * MiB;
    options.max_data_bytes = 4 * MiB;
    auto made = medium::RecordingMedium::make(options);
    ASSERT_TRUE(made.ok());
    medium::RecordingMedium* const m = made->get();
    OpenFile how = small("recorded");
    {
      auto first = OpenPool::open_on(std::move(*made), true, how, tester());
      ASSERT_TRUE(first.ok()) << first.status().message();
      std::vector<std::byte> bytes = m->current_image();
      bytes[damaged + 50] ^= std::byte{1};
      made = medium::RecordingMedium::make(options, bytes);
      ASSERT_TRUE(made.ok());
    }
    medium::RecordingMedium* const again = made->get();
    auto pool = OpenPool::open_on(std::move(*made), false, how, tester());
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    const std::uint64_t before = (*pool)->header().sequence;
    again->set_fence_hooks(
        [&] {
          // Torn as badly as possible: everything not surely durable is lost, or everything is
          // present except for the last word of each line.
          const auto image_now = again->durable_image();
          const auto* a = reinterpret_cast<const Header*>(image_now.data() + header_a);
          const auto* b = reinterpret_cast<const Header*>(image_now.data() + header_b);
          const auto r = choose_header("recorded", a, b, image_now.size());
          ASSERT_TRUE(r.ok());
          EXPECT_GE(r->header.sequence, before);
          std::vector<std::byte> torn = again->current_image();
          for (const std::uint64_t at : {header_a, header_b})
            if (!again->is_durable(at, sizeof(Header)))
              std::fill_n(torn.begin() + static_cast<std::ptrdiff_t>(at) + 2048, 64,
                          std::byte{0xee});
          const auto t =
              choose_header("recorded", reinterpret_cast<const Header*>(torn.data() + header_a),
                            reinterpret_cast<const Header*>(torn.data() + header_b), torn.size());
          EXPECT_TRUE(t.ok());
        },
        {});
    for (int i = 0; i < 3; ++i)
      ASSERT_TRUE((*pool)->publish([](Header& h) { ++h.checkpoint_id; }).ok());
    again->set_fence_hooks({}, {});
  }
}

TEST_F(HeaderTest, HighestSequenceWins) {
  Header a = header_of(path, header_a), b = a;
  b.sequence += 1;
  b.checkpoint_id = 77;
  b.checksum = header_checksum(b);
  auto r = choose_header(path, &a, &b, image.size());
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->header.checkpoint_id, 77U);
  EXPECT_FALSE(r->write_b_first);
  r = choose_header(path, &b, &a, image.size());
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->header.checkpoint_id, 77U);
  EXPECT_TRUE(r->write_b_first);
}

TEST_F(HeaderTest, TruncatedAtEvery512Bytes) {
  const std::string full = image;
  for (std::size_t n = 0; n < full.size(); n += 512) {
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(full.size() - n)), 0);
    auto r = OpenPool::open(small(path), tester());
    if (n == 0) {
      ASSERT_TRUE(r.ok());
      continue;
    }
    ASSERT_FALSE(r.ok()) << n;
    EXPECT_EQ(r.code(), Code::corrupt) << r.status().message();
    EXPECT_NE(r.status().message().find("cut short"), std::string::npos)
        << full.size() - n << ": " << r.status().message();
  }
  for (const off_t n : {511, 100, 8}) {
    ASSERT_EQ(::truncate(path.c_str(), n), 0);
    refused(Code::corrupt, "cut short: the file has " + std::to_string(n) + " bytes");
  }
  ASSERT_EQ(::truncate(path.c_str(), 0), 0);
  OpenFile how = small(path);
  how.create = false;  // otherwise a new pool replaces it (create_test.cpp)
  const auto empty = OpenPool::open(how, tester());
  EXPECT_EQ(empty.code(), Code::incompatible);
  EXPECT_NE(empty.status().message().find("an empty file"), std::string::npos)
      << empty.status().message();
}

TEST_F(HeaderTest, ForeignFiles) {
  write_all(path, std::string(10'000'000, 'x'));
  refused(Code::incompatible, "a perdure pool");
  write_all(path, std::string(10'000'000, '\0'));
  refused(Code::incompatible, "a perdure pool");
  write_all(path, "SQLite format 3");
  refused(Code::incompatible, "a perdure pool");
  write_all(path, "x");
  refused(Code::incompatible, "1 bytes");
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  auto r = OpenPool::open(small(path), tester());
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.code(), Code::incompatible) << r.status().message();
}

TEST_F(HeaderTest, NewerVersion) {
  const std::string newer = "format version " + std::to_string(format_version + 1);
  rewrite([](Header& h) { h.version = format_version + 1; });
  refused(Code::incompatible, newer + ", expected version " + std::to_string(first_version) +
                                  " to " + std::to_string(format_version) +
                                  "; open it with a newer Perdure");
  for (const std::uint64_t at : {header_a, header_b}) {
    // And one of a version whose checksum this build can't know.
    const std::uint64_t other = 12345;
    poke(path, at + offsetof(Header, checksum), &other, sizeof other);
  }
  refused(Code::incompatible, newer);
}

TEST_F(HeaderTest, OtherByteOrder) {
  rewrite([](Header& h) {
    h.version = __builtin_bswap32(h.version);
    h.endian = __builtin_bswap32(h.endian);
  });
  refused(Code::incompatible, "other byte order");
}

TEST_F(HeaderTest, OtherEngine) {
  Identity who = tester();
  who.engine = "other";
  refused(Code::incompatible,
          "a pool of engine \"tester\", expected engine \"other\"; open it with "
          "perdure::Pool<Root, perdure::engines<perdure::tester>>",
          who);
  who.engine_any = true;
  auto r = OpenPool::open(small(path), who);
  EXPECT_TRUE(r.ok());
}

TEST_F(HeaderTest, OtherLayoutNamesTheField) {
  Identity who = tester();
  who.layout = "0 count: u64 @0 8\n1 items: vector<u32>/1 @8 24\n2 name: string/1 @32 16\n";
  refused(Code::incompatible,
          "field 1 is \"1 items: vector<u64>/1 @8 24\", expected \"1 items: vector<u32>/1 @8 24\"",
          who);
  who.layout = "0 count: u64 @0 8\n";
  refused(Code::incompatible, "field 1 is \"1 items: vector<u64>/1 @8 24\", expected nothing more",
          who);
  who.layout = tester().layout + "3 more: u8 @48 1\n";
  refused(Code::incompatible, "field 3 is nothing more, expected \"3 more: u8 @48 1\"", who);
  who = tester();
  who.root_bytes = 56;
  refused(Code::incompatible, "another layout", who);
}

TEST_F(HeaderTest, LayoutLongerThanItsRoom) {
  Identity who = tester();
  who.layout.clear();
  for (int i = 0; i < 200; ++i)
    who.layout += std::to_string(i) + " field: u64 @" + std::to_string(i * 8) + " 8\n";
  ASSERT_GT(who.layout.size(), layout_capacity);
  OpenFile how = small(scratch.path("long"));
  make_pool(how, who);
  EXPECT_TRUE(OpenPool::open(how, who).ok());
  who.layout.back() = ' ';
  auto r = OpenPool::open(how, who);
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.status().message().find("beyond the first 2048 bytes"), std::string::npos)
      << r.status().message();
  who.layout[30] = '#';
  r = OpenPool::open(how, who);
  EXPECT_NE(r.status().message().find("field 1 is"), std::string::npos) << r.status().message();
}

TEST_F(HeaderTest, NumbersThatContradict) {
  const std::vector<std::function<void(Header&)>> wrongs = {
      [](Header& h) { h.base += 1; }, [](Header& h) { h.max_data_bytes += 1; },
      [](Header& h) { h.data_bytes = h.max_data_bytes + 4096; },
      [](Header& h) { h.data_bytes = 4096; }, [](Header& h) { h.ring_count = 129; },
      [](Header& h) { h.ring_bytes = 1ULL << 40; }, [](Header& h) { h.log_bytes = 0; },
      [](Header& h) { h.order = CommitOrder{7}; }, [](Header& h) { h.append_unit = 5; },
      [](Header& h) { h.layout_bytes = 9999; }, [](Header& h) { h.root_offset = ~0ULL; },
      [](Header& h) { h.ring_bytes = ~0ULL / 2; },
      // A raised limit without its feature, and the feature without it.
      [](Header& h) { h.raised_max_bytes = 16 * MiB; },
      [](Header& h) { h.first_max_bytes = h.max_data_bytes; },
      [](Header& h) { set_feature(h, Feature::raised_limit); },
      [](Header& h) { raise_limit(h, h.max_data_bytes); },
      [](Header& h) { raise_limit(h, 2 * max_data_limit); },
      [](Header& h) { raise_limit(h, 16 * MiB + 8); },
      [](Header& h) { raise_limit(h, 16 * MiB), h.max_data_bytes += chunk_bytes; },
      [](Header& h) { raise_limit(h, 16 * MiB), h.first_max_bytes += 8; },
      [](Header& h) { raise_limit(h, 16 * MiB), h.first_max_bytes = chunk_bytes; },
      [](Header& h) { raise_limit(h, 16 * MiB), set_data_bytes(h, 17 * MiB); }};
  for (std::size_t i = 0; i < wrongs.size(); ++i) {
    rewrite(wrongs[i]);
    SCOPED_TRACE(i);
    refused(Code::corrupt, "contradicts itself");
    write_all(path, image);
  }
}

}  // namespace
}  // namespace perdure::pool
