// SPDX-License-Identifier: BSD-3-Clause
//
// The catalog: its contents in a new pool, a layout text of any length, a root at a multiple of 64,
// a power cut at each fence of a creation, and a catalog that leads out of the pool.
#include "perdure/pool/catalog.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "perdure/perdure.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/open_pool.hpp"
#include "testing/recording_medium.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure {
namespace {

struct Inner {
  p<std::uint32_t> low, high;
};
struct Node {
  p<std::uint64_t> key;
  ptr<Node> next;
};
struct Root {
  p<std::uint64_t> count{3};
  Inner inner;
  hash_map<std::uint64_t, std::string> names;
  ptr<Node> head;
};
constexpr const char* text_of_root =
    "count: u64 @0 8\n"
    "inner.low: u32 @8 4\n"
    "inner.high: u32 @12 4\n"
    "names: hash_map<u64,string,128>/1 @64 64\n"
    "head: ptr<#1> @128 8\n"
    "#1.key: u64 @0 8\n"
    "#1.next: ptr<#1> @8 8\n";

Options small() {
  Options options;
  options.creation.max_size = 64 << 20;
  options.creation.log_size = 1 << 20;
  return options;
}

pool::CatalogContents catalog_of(pool::OpenPool& file) {
  return pool::read_catalog("", file.header(), file.view()).value();
}

class Catalogs : public ::testing::Test {
 protected:
  medium::testing::Scratch scratch;
  const std::string path = scratch.path("pool");
};

TEST_F(Catalogs, ANewPoolHasOneWithItsNamedLayout) {
  EXPECT_EQ(named_layout_of<Root>(), text_of_root);
  for (int opening = 0; opening < 3; ++opening) {
    auto pool = Pool<Root>::open(path, small());
    EXPECT_TRUE(pool.file().has_feature(pool::Feature::catalog_root));
    const auto catalog = catalog_of(pool.file());
    EXPECT_EQ(catalog.layouts, std::vector<std::string>{text_of_root});
    EXPECT_EQ(catalog.root_bytes, sizeof(Root));
    EXPECT_EQ(catalog.root_offset % 64, 0U);
    EXPECT_TRUE(catalog.blocks.empty()) << "it is all in one block";
    pool.update([&](auto& tx, Root& r) {
      EXPECT_EQ(tx.read(r.count), 3U + static_cast<unsigned>(opening));
      EXPECT_EQ(reinterpret_cast<const std::byte*>(&r), pool.file().view() + catalog.root_offset);
      tx(r.count) += 1;
      r.names.put(tx, static_cast<std::uint64_t>(opening), "name");
    });
    EXPECT_EQ(pool.check().problems, std::vector<std::string>{});
    pool.close();
  }
}

TEST_F(Catalogs, APoolMadeWithoutOneHasNone) {
  Options options = small();
  options.creation.catalog = false;
  for (int opening = 0; opening < 2; ++opening) {
    auto pool = Pool<Root>::open(path, options);
    EXPECT_FALSE(pool.file().has_feature(pool::Feature::catalog_root));
    EXPECT_EQ(pool.file().root_offset(), pool.file().header().root_offset);
    EXPECT_EQ(pool.header().root_bytes, sizeof(Root));
    EXPECT_EQ(pool.check().problems, std::vector<std::string>{});
  }
}

struct Wide {
  struct Part {
    p<std::uint64_t> a_field_with_a_name_of_some_length_1, a_field_with_a_name_of_some_length_2,
        a_field_with_a_name_of_some_length_3, a_field_with_a_name_of_some_length_4,
        a_field_with_a_name_of_some_length_5, a_field_with_a_name_of_some_length_6;
  };
  Part a_part_with_a_name_1, a_part_with_a_name_2, a_part_with_a_name_3, a_part_with_a_name_4,
      a_part_with_a_name_5, a_part_with_a_name_6, a_part_with_a_name_7, a_part_with_a_name_8;
};

TEST_F(Catalogs, ALayoutTextMayBeLongerThanTheHeaderHolds) {
  ASSERT_GT(named_layout_of<Wide>().size(), pool::layout_capacity);
  for (int opening = 0; opening < 2; ++opening) {
    auto pool = Pool<Wide>::open(path, small());
    EXPECT_EQ(catalog_of(pool.file()).layouts, std::vector<std::string>{named_layout_of<Wide>()});
    EXPECT_EQ(pool.check().problems, std::vector<std::string>{});
    pool.close();
  }
}

TEST_F(Catalogs, ADamagedOneIsRefusedAndNamed) {
  {
    auto pool = Pool<Root>::open(path, small());
    pool.close();
  }
  pool::Header header;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  const auto at = static_cast<std::streamoff>(header.log_bytes + header.root_offset);
  for (const std::size_t field : {offsetof(pool::Catalog, root), offsetof(pool::Catalog, layout)}) {
    std::uint64_t good = 0;
    file.seekg(at + static_cast<std::streamoff>(field));
    file.read(reinterpret_cast<char*>(&good), sizeof good);
    for (const std::uint64_t bad : {std::uint64_t{0}, std::uint64_t{8}, good + 1, header.base - 64,
                                    ~std::uint64_t{7}, header.base + header.data_bytes - 8}) {
      if (field == offsetof(pool::Catalog, layout) && bad == 8) continue;
      file.seekp(at + static_cast<std::streamoff>(field));
      file.write(reinterpret_cast<const char*>(&bad), sizeof bad);
      file.flush();
      const Status s = Pool<Root>::try_open(path, small()).status();
      EXPECT_EQ(s.code(), Code::corrupt) << field << ' ' << bad << ' ' << s.message();
      EXPECT_NE(s.message().find("a catalog whose"), std::string::npos) << s.message();
    }
    file.seekp(at + static_cast<std::streamoff>(field));
    file.write(reinterpret_cast<const char*>(&good), sizeof good);
    file.flush();
  }
  EXPECT_TRUE(Pool<Root>::try_open(path, small()).ok());
}

// CATALOG-1: after a power cut at any fence of a creation there is no pool, or one that opens as a
// new one: with its initial values, or with those of its first transaction.
TEST_F(Catalogs, ACreationThatAPowerCutEndsOpensAsANewPool) {
  medium::RecordingOptions options;
  options.log_bytes = 2 << 20;
  options.data_bytes = 2 << 20;
  options.max_data_bytes = 4 << 20;
  std::vector<std::vector<std::byte>> images;
  {
    auto made = medium::RecordingMedium::make(options).value();
    auto* const raw = made.get();
    raw->set_fence_hooks([&] { images.push_back(raw->durable_image()); },
                         [&] { images.push_back(raw->durable_image()); });
    auto pool = Pool<Root>::try_open_on("pool", small(), std::move(made), true).value();
    pool.update([](auto& tx, Root& r) { tx(r.count) = 4; });
    pool.close();
  }
  ASSERT_GT(images.size(), 6U);
  int pools = 0;
  for (const auto& image : images) {
    auto found = medium::RecordingMedium::make(options, image).value();
    auto pool = Pool<Root>::try_open_on("pool", small(), std::move(found), false);
    if (!pool.ok()) {
      EXPECT_EQ(pool.status().code(), Code::incompatible) << pool.status().message();
      EXPECT_EQ(pools, 0) << "a pool was there before: " << pool.status().message();
      continue;
    }
    ++pools;
    EXPECT_EQ(pool->check().problems, std::vector<std::string>{});
    const auto count = pool->view([](auto& tx, const Root& r) { return tx.read(r.count); });
    EXPECT_TRUE(count == 3 || count == 4) << count;
  }
  EXPECT_GT(pools, 3);
}

}  // namespace
}  // namespace perdure
