// SPDX-License-Identifier: BSD-3-Clause
//
// The names of a root type's fields: if two fields of one type change places, opening is refused
// with both lists, and the file does not change; a renamed field opens when the program says so; a
// pool without names opens by its layout and gets them at the next clean close. In pools with a
// catalog fields are found by their names: evolve_test.cpp.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "perdure/perdure.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/open_pool.hpp"
#include "tests/medium/scratch.hpp"

namespace {

using perdure::Code;
using perdure::hash_map;
using perdure::p;
using perdure::ptr;

struct Price {
  std::int64_t bid, ask;
};
struct Node {
  p<std::uint64_t> key, value;
  ptr<Node> next;
};

namespace first {
struct Limits {
  p<std::uint32_t> low, high;
};
struct Root {
  p<std::uint64_t> credits, debits;
  Limits limits;
  hash_map<std::uint64_t, Price> prices;
  ptr<Node> head;
};
}  // namespace first

namespace swapped {
struct Root {
  p<std::uint64_t> debits, credits;
  first::Limits limits;
  hash_map<std::uint64_t, Price> prices;
  ptr<Node> head;
};
}  // namespace swapped

namespace swapped_inside {
struct Limits {
  p<std::uint32_t> high, low;
};
struct Root {
  p<std::uint64_t> credits, debits;
  Limits limits;
  hash_map<std::uint64_t, Price> prices;
  ptr<Node> head;
};
}  // namespace swapped_inside

namespace swapped_in_a_value {
struct Price {
  std::int64_t ask, bid;
};
struct Root {
  p<std::uint64_t> credits, debits;
  first::Limits limits;
  hash_map<std::uint64_t, Price> prices;
  ptr<Node> head;
};
}  // namespace swapped_in_a_value

namespace swapped_behind_a_pointer {
struct Node {
  p<std::uint64_t> value, key;
  ptr<Node> next;
};
struct Root {
  p<std::uint64_t> credits, debits;
  first::Limits limits;
  hash_map<std::uint64_t, Price> prices;
  ptr<Node> head;
};
}  // namespace swapped_behind_a_pointer

namespace long_names {  // more than the header holds
#define PERDURE_TEST_LONG \
  a_name_of_a_field_that_takes_as_much_of_the_line_as_it_can_and_then_more_until_there_is_no_space_
#define PERDURE_TEST_JOIN(a, b) a##b
#define PERDURE_TEST_NAME(a, b) PERDURE_TEST_JOIN(a, b)
struct Root {
  p<std::uint64_t> PERDURE_TEST_NAME(PERDURE_TEST_LONG, 0), PERDURE_TEST_NAME(PERDURE_TEST_LONG, 1),
      PERDURE_TEST_NAME(PERDURE_TEST_LONG, 2), PERDURE_TEST_NAME(PERDURE_TEST_LONG, 3),
      PERDURE_TEST_NAME(PERDURE_TEST_LONG, 4), PERDURE_TEST_NAME(PERDURE_TEST_LONG, 5),
      PERDURE_TEST_NAME(PERDURE_TEST_LONG, 6), x, y;
};
struct Swapped {
  p<std::uint64_t> PERDURE_TEST_NAME(PERDURE_TEST_LONG, 0), PERDURE_TEST_NAME(PERDURE_TEST_LONG, 1),
      PERDURE_TEST_NAME(PERDURE_TEST_LONG, 2), PERDURE_TEST_NAME(PERDURE_TEST_LONG, 3),
      PERDURE_TEST_NAME(PERDURE_TEST_LONG, 4), PERDURE_TEST_NAME(PERDURE_TEST_LONG, 5),
      PERDURE_TEST_NAME(PERDURE_TEST_LONG, 6), y, x;
};
}  // namespace long_names

/// A type that states its layout: it has no field that could be named.
struct Stated {
  static constexpr std::string_view layout_id = "stated/1";
  p<std::uint64_t> one;
};

constexpr const char* names_of_first =
    "credits,debits,limits{low,high},prices{bid,ask},head,#1{key,value,next}";

perdure::Options small() {
  perdure::Options options;
  options.creation.max_size = 64 << 20;
  options.creation.log_size = 1 << 20;
  options.creation.catalog = false;
  return options;
}

class FieldNames : public ::testing::Test {
 protected:
  /// Opens, adds 1 to the first field, closes. Returns the field's previous value.
  template <class Root>
  std::uint64_t use() {
    auto pool = perdure::Pool<Root>::open(path, options);
    std::uint64_t before = 0;
    pool.update([&](auto& tx, Root& r) {
      auto& [first, second, limits, prices, head] = r;
      before = tx(first);
      tx(first) = before + 1;
    });
    pool.close();
    return before;
  }
  template <class Root>
  perdure::Status opens() {
    return perdure::Pool<Root>::try_open(path, options).status();
  }
  std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  template <class Root>
  void refused(const std::string& theirs, const std::string& mine) {
    const std::string before = bytes();
    for (const bool read_only : {false, true}) {
      options.read_only = read_only;
      const perdure::Status s = opens<Root>();
      EXPECT_EQ(s.code(), Code::incompatible) << s.message();
      EXPECT_NE(s.message().find("a pool whose fields have other names: " + theirs),
                std::string::npos)
          << s.message();
      EXPECT_NE(s.message().find("expected " + mine), std::string::npos) << s.message();
      EXPECT_NE(s.message().find("Options::migrate.renamed_fields"), std::string::npos)
          << s.message();
    }
    options.read_only = false;
    EXPECT_TRUE(bytes() == before) << "the refusal wrote to the pool";
  }
  perdure::pool::Header header(std::uint64_t at = perdure::pool::header_a) const {
    perdure::pool::Header h;
    std::ifstream in(path, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(at));
    in.read(reinterpret_cast<char*>(&h), sizeof h);
    return h;
  }
  /// Makes the header the one that a build of that version without the feature would have left.
  void forget_names(std::uint32_t version) {
    for (const std::uint64_t at : {perdure::pool::header_a, perdure::pool::header_b}) {
      perdure::pool::Header h = header(at);
      h.version = version;
      h.features_optional = 0;
      if (version < 4) h.features_write = 0;
      h.field_names_bytes = 0;
      h.field_names_hash = 0;
      std::fill(std::begin(h.field_names), std::end(h.field_names), '\0');
      h.checksum = perdure::pool::header_checksum(h);
      std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
      out.seekp(static_cast<std::streamoff>(at));
      out.write(reinterpret_cast<const char*>(&h), sizeof h);
    }
  }

  perdure::medium::testing::Scratch scratch;
  const std::string path = scratch.path("pool");
  perdure::Options options = small();
};

TEST_F(FieldNames, AreListedInTheLayoutsOrder) {
  EXPECT_EQ(perdure::field_names_of<first::Root>(), names_of_first);
  EXPECT_EQ((perdure::field_names_of<hash_map<std::uint64_t, std::uint64_t>>()), "");
  EXPECT_EQ(perdure::field_names_of<Stated>(), "");
  struct Local {
    p<int> of_a_function;
  };
  EXPECT_EQ(perdure::field_names_of<Local>(), "of_a_function");
}

TEST_F(FieldNames, ANewPoolHasThem) {
  EXPECT_EQ(use<first::Root>(), 0U);
  EXPECT_EQ(use<first::Root>(), 1U);
  for (const std::uint64_t at : {perdure::pool::header_a, perdure::pool::header_b}) {
    EXPECT_EQ(perdure::pool::field_names_text(header(at)), names_of_first);
    EXPECT_TRUE(perdure::pool::has_feature(header(at), perdure::pool::Feature::field_names));
  }
}

TEST_F(FieldNames, FieldsThatChangedPlacesAreRefused) {
  use<first::Root>();
  refused<swapped::Root>(names_of_first, "debits,credits,limits{low,high}");
  refused<swapped_inside::Root>(names_of_first, "credits,debits,limits{high,low}");
  refused<swapped_in_a_value::Root>(names_of_first,
                                    "credits,debits,limits{low,high},prices{ask,bid}");
  refused<swapped_behind_a_pointer::Root>(
      names_of_first, "credits,debits,limits{low,high},prices{bid,ask},head,#1{value,key,next}");
  EXPECT_EQ(use<first::Root>(), 1U);
}

TEST_F(FieldNames, ThoseOfAKilledPoolCountToo) {
  {
    auto pool = perdure::Pool<first::Root>::open(path, options);
    pool.update([](auto& tx, first::Root& r) { tx(r.credits) = 7; });
    std::filesystem::copy_file(path, path + ".copy");
  }
  std::filesystem::rename(path + ".copy", path);
  ASSERT_EQ(header().clean, 0U);
  const std::string before = bytes();
  EXPECT_EQ(opens<swapped::Root>().code(), Code::incompatible);
  EXPECT_TRUE(bytes() == before) << "recovered although it was refused";
  EXPECT_EQ(use<first::Root>(), 7U);
}

TEST_F(FieldNames, RenamedFieldsOpenWhereTheProgramSaysSo) {
  use<first::Root>();
  options.migrate.renamed_fields = true;
  EXPECT_EQ(use<swapped::Root>(), 1U);
  options.migrate.renamed_fields = false;
  EXPECT_TRUE(opens<swapped::Root>().ok());
  refused<first::Root>("debits,credits,limits{low,high}", names_of_first);
}

TEST_F(FieldNames, APoolWithoutNamesGetsThemAtTheNextCleanClose) {
  for (const std::uint32_t version : {2U, 3U, 4U}) {
    std::filesystem::remove(path);
    use<first::Root>();
    forget_names(version);
    options.read_only = true;
    EXPECT_TRUE(opens<swapped::Root>().ok()) << "nothing says that its fields have changed places";
    options.read_only = false;
    ASSERT_EQ(header().version, version) << "reading wrote";
    EXPECT_EQ(use<first::Root>(), 1U);
    EXPECT_EQ(header().version, 4U);
    EXPECT_EQ(perdure::pool::field_names_text(header()), names_of_first);
    EXPECT_EQ(perdure::pool::has_feature(header(), perdure::pool::Feature::combined_records),
              version == 3);
    refused<swapped::Root>(names_of_first, "debits,credits");
  }
}

TEST_F(FieldNames, MoreThanTheHeaderHoldsAreComparedByTheirHash) {
  ASSERT_GT(perdure::field_names_of<long_names::Root>().size(),
            perdure::pool::field_names_capacity);
  ASSERT_TRUE(opens<long_names::Root>().ok());
  EXPECT_EQ(header().field_names_bytes, perdure::pool::field_names_capacity);
  EXPECT_TRUE(opens<long_names::Root>().ok());
  refused<long_names::Swapped>(
      perdure::field_names_of<long_names::Root>().substr(0, perdure::pool::field_names_capacity) +
          "... (the first",
      perdure::field_names_of<long_names::Swapped>());
}

TEST_F(FieldNames, ARootTypeThatStatesItsLayoutHasNone) {
  ASSERT_TRUE(opens<Stated>().ok());
  EXPECT_EQ(header().field_names_bytes, 0U);
  EXPECT_FALSE(perdure::pool::has_feature(header(), perdure::pool::Feature::field_names));
}

}  // namespace
