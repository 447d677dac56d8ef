// SPDX-License-Identifier: BSD-3-Clause
//
// Features (pool/features.hpp): a feature that this build does not know is refused by name, an
// optional one is kept, older versions stay as they are until they need a feature, and a feature's
// bit is durable before its first use (FEATURE-1), whenever the power is cut.
#include "perdure/pool/features.hpp"
#include "perdure/pool/page_checksums.hpp"

#include <filesystem>
#include <random>

#include "papers/dudetm/options.hpp"
#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/perdure.hpp"
#include "pool_test.hpp"
#include "testing/faulty_medium.hpp"

namespace perdure::pool {
namespace {

using namespace testing;

/// A pool whose header is changed in both copies, and sealed.
class Features : public ::testing::Test {
 protected:
  void SetUp() override {
    make_pool(small(path));
    // Like a pool that was allocated as a whole: without a feature.
    rewrite([](Header& h) { h.features_write = 0; });
  }
  void rewrite(const std::function<void(Header&)>& change) {
    for (const std::uint64_t at : {header_a, header_b}) {
      Header h = header_of(path, at);
      change(h);
      h.checksum = header_checksum(h);
      poke(path, at, &h, sizeof h);
    }
  }
  [[nodiscard]] Status open(bool read_only) {
    OpenFile how = small(path);
    how.read_only = read_only;
    return OpenPool::open(how, tester()).status();
  }
  void opens(bool read_only) {
    const Status s = open(read_only);
    EXPECT_TRUE(s.ok()) << s.message();
  }
  // Opening is refused with the words, without a byte written. Returns the message.
  std::string refused(bool read_only, const std::string& words) {
    const std::string before = read_all(path);
    const Status s = open(read_only);
    EXPECT_EQ(s.code(), Code::incompatible) << s.message();
    EXPECT_NE(s.message().find(words), std::string::npos) << s.message();
    EXPECT_TRUE(read_all(path) == before);
    return s.message();
  }
  void work_and_close() {
    auto pool = OpenPool::open(small(path), tester());
    ASSERT_TRUE(pool.ok()) << pool.status().message();
    ASSERT_TRUE((*pool)->start_session(ViewPolicy::shadow).ok());
    ASSERT_TRUE((*pool)->publish([](Header& h) { h.checkpoint_id += 7; }).ok());
    ASSERT_TRUE((*pool)->close_clean((*pool)->header().checkpoint_id).ok());
  }

  Scratch scratch;
  const std::string path = scratch.path();
};

TEST_F(Features, ANewPoolHasTheNewestVersionAndSmallLogsWhereItHasHoles) {
  const std::string another = scratch.path("another");
  make_pool(small(another));
  const Header h = header_of(another);
  EXPECT_EQ(h.version, 4U);
  EXPECT_EQ(feature_words(h), (FeatureWords{.write = info(Feature::small_logs).bit()}));
  EXPECT_EQ(feature_names(h), std::vector<std::string>{"small logs"});
  // On a medium that is allocated as a whole a build need not know the feature.
  medium::RecordingOptions whole;
  whole.log_bytes = 2 * MiB;
  whole.data_bytes = whole.max_data_bytes = 4 * MiB;
  OpenFile how = small("whole");
  how.log_bytes = 0;
  auto pool = OpenPool::open_on(medium::RecordingMedium::make(whole).value(), true, how, tester());
  ASSERT_TRUE(pool.ok()) << pool.status().message();
  EXPECT_EQ((*pool)->header().version, 4U);
  EXPECT_EQ(feature_words((*pool)->header()), FeatureWords());
}

TEST_F(Features, AnUnknownBitForReadingIsRefused) {
  rewrite([](Header& h) { h.features_read = 1ULL << 40; });
  for (const bool read_only : {false, true}) {
    const std::string text = refused(read_only, "a feature without a name (bit 40, for reading)");
    EXPECT_NE(text.find("expected no other features than 'combined records' (bit 0, for reading)"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("open it with a newer Perdure; nothing was written"), std::string::npos)
        << text;
  }
}

TEST_F(Features, AnUnknownBitForWritingIsRefusedWhereThePoolIsWritten) {
  rewrite([](Header& h) { h.features_write = 1ULL << 63; });
  const std::string text = refused(false, "a feature without a name (bit 63, for writing)");
  EXPECT_NE(text.find("or for reading only"), std::string::npos) << text;
  opens(true);
  rewrite([](Header& h) { h.clean = 0; });  // then reading it needs a recovery, which writes
  EXPECT_EQ(refused(false, "bit 63").find("or for reading only"), std::string::npos);
}

TEST_F(Features, AllMissingOnesAreNamed) {
  rewrite([](Header& h) {
    h.features_read = 1ULL << 50;
    h.features_write = info(Feature::replication_words).bit() | 1ULL << 51;
  });
  refused(false,
          "a feature without a name (bit 50, for reading), a feature without a name (bit 51, for "
          "writing), expected");
  refused(true, "a feature without a name (bit 50, for reading), expected");
}

// A number that has a name, in a word in which it has none: it means something that this build
// can't know.
TEST_F(Features, AKnownNumberInAnotherWordIsUnknown) {
  rewrite([](Header& h) { h.features_write = info(Feature::combined_records).bit(); });
  refused(false, "a feature without a name (bit 0, for writing)");
}

TEST_F(Features, ReservedOnesAreRefusedByName) {
  const std::uint64_t data_bytes = header_of(path, header_a).data_bytes;
  for (const FeatureInfo& f : features) {
    rewrite([&](Header& h) {
      h.data_bytes = data_bytes;
      h.features_read = h.features_write = h.features_optional = 0;
      h.raised_max_bytes = h.first_max_bytes = h.checksums_offset = h.checksums_bytes = 0;
      set_feature(h, f.feature);
      // Its numbers belong to its bit.
      if (f.feature == Feature::raised_limit) raise_limit(h, 2 * h.max_data_bytes);
      if (f.feature == Feature::data_checksums) {
        h.max_data_bytes = std::max<std::uint64_t>(h.max_data_bytes, 4 << 20);
        const DataRange place = checksums_of_old_pool(h, h.max_data_bytes);
        h.checksums_offset = place.offset;
        h.checksums_bytes = place.bytes;
        set_data_bytes(h, place.offset + place.bytes);
        std::filesystem::resize_file(path, h.log_bytes + h.data_bytes);
      }
    });
    const std::string name = "'" + std::string(f.name) + "' (bit " +
                             std::to_string(static_cast<unsigned>(f.feature)) + ", for ";
    if (f.implemented || f.word == FeatureWord::optional) {
      opens(true);
      opens(false);
    } else {
      refused(false, name);
      if (f.word == FeatureWord::read)
        refused(true, name);
      else
        opens(true);
    }
  }
}

TEST_F(Features, OptionalBitsAndTheirOwnersBytesAreKept) {
  constexpr std::uint64_t bits = 1ULL << 63 | 1ULL << 20;
  rewrite([](Header& h) {
    h.features_optional = bits;
    h.reserved2 = 11;
    h.reserved3[3] = 12;
  });
  opens(true);
  work_and_close();
  for (const std::uint64_t at : {header_a, header_b}) {
    const Header h = header_of(path, at);
    EXPECT_EQ(h.checkpoint_id, 7U);
    EXPECT_EQ(h.features_optional, bits);
    EXPECT_EQ(h.reserved2, 11U);
    EXPECT_EQ(h.reserved3[3], 12U);
    EXPECT_EQ(feature_names(h), (std::vector<std::string>{"bit 20 (unknown, optional)",
                                                          "bit 63 (unknown, optional)"}));
  }
}

TEST_F(Features, OlderVersionsStayWhatTheyAre) {
  for (const std::uint32_t version : {2U, 3U}) {
    rewrite([&](Header& h) { h.version = version; });
    opens(true);
    work_and_close();
    const Header h = header_of(path);
    EXPECT_EQ(h.version, version);
    EXPECT_EQ(has_feature(h, Feature::combined_records), version == 3);
  }
}

TEST_F(Features, OlderVersionsHaveNoWordsOfFeatures) {
  for (const std::uint32_t version : {2U, 3U}) {
    rewrite([&](Header& h) {
      h.version = version;
      h.features_optional = 1;
    });
    const Status s = open(false);
    EXPECT_EQ(s.code(), Code::corrupt) << s.message();
    EXPECT_NE(s.message().find("features in a header of version " + std::to_string(version)),
              std::string::npos)
        << s.message();
  }
}

TEST_F(Features, AFeatureRaisesTheVersionAndKeepsWhatVersion3Meant) {
  rewrite([](Header& h) { h.version = 3; });
  Header h = header_of(path);
  set_feature(h, Feature::replication_words);
  EXPECT_EQ(h.version, 4U);
  EXPECT_EQ(h.features_read, info(Feature::combined_records).bit());
  EXPECT_EQ(h.features_write, info(Feature::replication_words).bit());
  EXPECT_EQ(feature_names(h), (std::vector<std::string>{"combined records", "replication words"}));
}

TEST_F(Features, RequiringOneUpgradesThePoolOnce) {
  for (const std::uint32_t version : {2U, 3U, 4U}) {
    rewrite([&](Header& h) {
      h.version = version;
      h.features_read = 0;
    });
    auto pool = OpenPool::open(small(path), tester()).value();
    ASSERT_TRUE(pool->start_session(ViewPolicy::shadow).ok());
    const std::uint64_t before = pool->header().sequence;
    ASSERT_TRUE(pool->require_feature(Feature::combined_records).ok());
    EXPECT_TRUE(pool->has_feature(Feature::combined_records));
    const std::uint64_t sequence = pool->header().sequence;
    EXPECT_EQ(sequence, before + (version == 3 ? 0 : 1));  // version 3 has it
    ASSERT_TRUE(pool->require_feature(Feature::combined_records).ok());
    EXPECT_EQ(pool->header().sequence, sequence) << "a second call wrote";
    for (const std::uint64_t at : {header_a, header_b}) {
      const Header h = header_of(path, at);
      EXPECT_EQ(h.version, version == 3 ? 3U : 4U);
      EXPECT_TRUE(has_feature(h, Feature::combined_records));
    }
    ASSERT_TRUE(pool->close_clean(0).ok());
  }
}

TEST_F(Features, NoneIsAddedToAPoolThatIsOpenForReadingOnly) {
  OpenFile how = small(path);
  how.read_only = true;
  auto pool = OpenPool::open(how, tester()).value();
  const Status s = pool->require_feature(Feature::combined_records);
  EXPECT_EQ(s.code(), Code::read_only) << s.message();
  EXPECT_NE(s.message().find("combined records"), std::string::npos) << s.message();
}

/// On a recorded medium: a pool of the version, opened.
struct OnRecorded {
  explicit OnRecorded(std::uint32_t version) {
    medium::RecordingOptions options;
    options.log_bytes = 2 * MiB;
    options.data_bytes = 2 * MiB;
    options.max_data_bytes = 4 * MiB;
    options.keep_bytes = true;
    OpenFile how = small("");
    std::vector<std::byte> image;
    {
      auto made = medium::RecordingMedium::make(options).value();
      auto* const raw = made.get();
      auto fresh = OpenPool::open_on(std::move(made), true, how, tester()).value();
      image = raw->durable_image();
    }
    for (const std::uint64_t at : {header_a, header_b}) {
      Header h;
      std::memcpy(&h, image.data() + at, sizeof h);
      h.version = version;
      h.checksum = header_checksum(h);
      std::memcpy(image.data() + at, &h, sizeof h);
    }
    auto made = medium::RecordingMedium::make(options, image).value();
    medium = made.get();
    pool = OpenPool::open_on(std::move(made), false, how, tester()).value();
  }
  std::unique_ptr<OpenPool> pool;
  medium::RecordingMedium* medium = nullptr;
};

TEST(FeaturesOnMedium, TheBitIsDurableInBothCopiesWhenTheCallReturns) {
  OnRecorded on(2);
  ASSERT_TRUE(on.pool->start_session(ViewPolicy::none).ok());
  ASSERT_TRUE(on.pool->require_feature(Feature::combined_records).ok());
  for (const std::uint64_t at : {header_a, header_b}) {
    EXPECT_TRUE(on.medium->is_durable(at, sizeof(Header)));
    Header h;
    std::memcpy(&h, on.medium->at(at), sizeof h);
    EXPECT_EQ(judge(h), CopyState::valid);
    EXPECT_TRUE(has_feature(h, Feature::combined_records));
  }
}

// At each fence of the upgrade each line that was stored since the previous one may be present or
// not: one whole copy is always found, and it is the pool as it was, or the pool with the feature.
TEST(FeaturesOnMedium, APowerCutInTheUpgradeLeavesAWholeCopy) {
  for (const std::uint32_t version : {2U, 4U}) {
    OnRecorded on(version);
    ASSERT_TRUE(on.pool->start_session(ViewPolicy::none).ok());
    struct Cut {
      std::vector<std::byte> durable, visible;
    };
    std::vector<Cut> cuts;
    on.medium->set_fence_hooks(
        [&] { cuts.push_back({on.medium->durable_image(), on.medium->current_image()}); }, {});
    ASSERT_TRUE(on.pool->require_feature(Feature::combined_records).ok());
    on.medium->set_fence_hooks({}, {});
    ASSERT_EQ(cuts.size(), 2U);
    std::mt19937_64 random(version);
    int old = 0, upgraded = 0, torn = 0;
    for (const Cut& cut : cuts)
      for (int round = 0; round < 2000; ++round) {
        std::vector<std::byte> image = cut.durable;
        for (const std::uint64_t copy : {header_a, header_b})
          for (std::uint64_t at = copy; at < copy + sizeof(Header); at += 64)
            if (round == 0 || (round != 1 && random() % 2 == 0))
              std::memcpy(image.data() + at, cut.visible.data() + at, 64);
        Header a, b;
        std::memcpy(&a, image.data() + header_a, sizeof a);
        std::memcpy(&b, image.data() + header_b, sizeof b);
        const auto chosen = choose_header("pool", &a, &b, image.size());
        ASSERT_TRUE(chosen.ok()) << chosen.status().message();
        torn += chosen->copy_a != CopyState::valid || chosen->copy_b != CopyState::valid ? 1 : 0;
        const Header& h = chosen->header;
        if (has_feature(h, Feature::combined_records)) {
          EXPECT_EQ(h.version, 4U);
          ++upgraded;
        } else {
          EXPECT_EQ(h.version, version);
          EXPECT_EQ(feature_words(h), FeatureWords());
          ++old;
        }
      }
    EXPECT_GT(old, 1000);
    EXPECT_GT(upgraded, 1000);
    EXPECT_GT(torn, 1000);
  }
}

// A header that could not be written: nothing may use the feature, and no later header claims it.
TEST(FeaturesOnMedium, AFailedUpgradeLeavesThePoolWithoutTheFeature) {
  const Scratch scratch;
  make_pool(small(scratch.path()));
  const Header h = header_of(scratch.path());
  medium::OpenMedium m;
  m.path = scratch.path();
  m.kind = "emulated";
  m.log_bytes = h.log_bytes;
  m.data_bytes = h.data_bytes;
  m.max_data_bytes = h.max_data_bytes;
  auto faulty = std::make_unique<medium::FaultyMedium>(medium::open_medium(m).value());
  medium::FaultyMedium* const faults = faulty.get();
  auto pool = OpenPool::open_on(std::move(faulty), false, small(scratch.path()), tester()).value();
  ASSERT_TRUE(pool->start_session(ViewPolicy::shadow).ok());
  faults->fail(medium::FaultyMedium::Call::fence, 1, EIO);
  EXPECT_EQ(pool->require_feature(Feature::combined_records).code(), Code::io);
  EXPECT_FALSE(pool->has_feature(Feature::combined_records));
  EXPECT_FALSE(pool->require_feature(Feature::combined_records).ok()) << "the medium has failed";
}

struct Words {
  std::array<p<std::uint64_t>, 16> word;
};

// DudeTM's combined records, on a pool of version 2: no byte of its log is stored before both
// copies have the bit, durably.
TEST(FeaturesOnMedium, NoCombinedRecordBeforeTheBitIsDurable) {
  using AnyPool = Pool<Words, engines<any_engine>>;
  Options o;
  o.engine = "dudetm";
  o.durability = async;
  o.creation.log_size = 64 * KiB;
  o.creation.max_size = 4 * MiB;
  o.creation.catalog = false;
  medium::RecordingOptions options;
  options.log_bytes = 2 * MiB;
  options.data_bytes = 2 * MiB;
  options.max_data_bytes = 4 * MiB;
  std::vector<std::byte> image;
  {
    auto made = medium::RecordingMedium::make(options).value();
    auto* const raw = made.get();
    auto pool = AnyPool::try_open_on("pool", o, std::move(made), true).value();
    pool.update([](auto& tx, Words& w) { tx(w.word[0]) = 1; });
    pool.close();
    image = raw->durable_image();
  }
  for (const std::uint64_t at : {header_a, header_b}) {
    Header h;
    std::memcpy(&h, image.data() + at, sizeof h);
    ASSERT_EQ(h.version, 4U);
    ASSERT_EQ(feature_words(h), (FeatureWords{.optional = info(Feature::field_names).bit()}));
    h.version = 2;
    h.features_optional = 0;  // and version 2 reserves the bytes of the names
    h.checksum = header_checksum(h);
    std::memcpy(image.data() + at, &h, sizeof h);
  }
  auto made = medium::RecordingMedium::make(options, image).value();
  medium::RecordingMedium* const raw = made.get();
  std::atomic<int> fences_with_a_log{0};
  // Before each fence: if the log has any store that may become durable with it, both copies must
  // have the bit already.
  raw->set_fence_hooks(
      [&] {
        bool stored = false;
        for (const medium::Event& e : raw->events())
          stored =
              stored ||
              ((e.kind == medium::Event::Kind::store || e.kind == medium::Event::Kind::stream) &&
               e.offset >= first_ring && e.offset < options.log_bytes);
        if (!stored) return;
        const std::vector<std::byte> durable = raw->durable_image();
        for (const std::uint64_t at : {header_a, header_b}) {
          Header h;
          std::memcpy(&h, durable.data() + at, sizeof h);
          EXPECT_EQ(judge(h), CopyState::valid);
          EXPECT_TRUE(has_feature(h, Feature::combined_records));
        }
        ++fences_with_a_log;
      },
      {});
  o.engine_options = papers::DudetmOptions{.persist_group = 4};
  auto pool = AnyPool::try_open_on("pool", o, std::move(made), false).value();
  for (std::uint64_t n = 0; n < 20; ++n)
    pool.update([&](auto& tx, Words& w) { tx(w.word[n % 16]) = n; });
  pool.update(durable, [](auto& tx, Words& w) { tx(w.word[0]) = 7; });
  EXPECT_GT(fences_with_a_log.load(), 0);
  EXPECT_GT(pool.stats().log_bytes_combined, 0U);
  pool.close();
}

/// The judgement of builds that know versions 2 and 3 on a copy of the header (their rule, kept
/// here word for word).
CopyState judged_by_an_earlier_build(const Header& copy) {
  constexpr std::uint32_t oldest = 2, newest = 3;
  const auto sum = [](const Header& h) {
    return base::hash_bytes(&h, offsetof(Header, checksum), oldest);
  };
  const bool sound = sum(copy) == copy.checksum;
  if (!sound) {
    Header repaired = copy;
    std::memcpy(repaired.magic, magic, sizeof magic);
    repaired.endian = endian_mark;
    for (repaired.version = oldest; repaired.version <= newest; ++repaired.version)
      if (sum(repaired) == copy.checksum) return CopyState::damaged;
  }
  if (std::memcmp(copy.magic, magic, sizeof magic) != 0) return CopyState::foreign;
  if (copy.endian != endian_mark) return CopyState::other_endian;
  if (copy.version < oldest || copy.version > newest) return CopyState::other_version;
  return sound ? CopyState::valid : CopyState::damaged;
}

TEST_F(Features, AnEarlierBuildSaysTheVersionAndNotDamage) {
  rewrite([](Header& h) { set_feature(h, Feature::combined_records); });
  work_and_close();
  for (const std::uint64_t at : {header_a, header_b}) {
    Header h = header_of(path, at);
    EXPECT_EQ(judge(h), CopyState::valid);
    EXPECT_EQ(judged_by_an_earlier_build(h), CopyState::other_version);
    // A flip in the version of a header of version 4 is damage, in that build and in this one.
    h.version = 3;
    EXPECT_NE(judged_by_an_earlier_build(h), CopyState::valid);
    EXPECT_EQ(judge(h), CopyState::damaged);
  }
  rewrite([](Header& h) {
    h.version = 2;
    h.features_read = 0;
  });
  EXPECT_EQ(judged_by_an_earlier_build(header_of(path)), CopyState::valid);
}

}  // namespace
}  // namespace perdure::pool
