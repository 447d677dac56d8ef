// SPDX-License-Identifier: BSD-3-Clause
//
// A pool that was made without a catalog gets one (Migration::add_catalog), and can then change its
// layout. On every engine, with a power cut at each fence (CATALOG-2).
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "perdure/perdure.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/features.hpp"
#include "testing/recording_medium.hpp"
#include "tests/api/versions.hpp"
#include "tests/engine/families.hpp"
#include "tests/engine/suite.hpp"

namespace perdure {
namespace {

struct Point {
  std::int32_t x = 0, y = 0;
};
struct Note {
  std::string text;
  Point where;
};
namespace v1 {
struct Root {
  p<std::uint64_t> count;
  map<std::uint64_t, std::string> names;
  hash_map<std::string, Note> notes;
};
}  // namespace v1
namespace v2 {
struct Root {
  p<std::uint32_t> limit{9};
  hash_map<std::string, Note> notes;
  p<std::uint64_t> count;
  map<std::uint64_t, std::string> names;
};
}  // namespace v2

constexpr std::uint64_t rows = 10;

template <class Pool>
void fill(Pool& pool) {
  pool.update([](auto& tx, v1::Root& r) {
    for (std::uint64_t n = 0; n < rows; ++n) {
      tx(r.count) += 1;
      r.names.put(tx, n, std::string(n + 1, 'n'));
      r.notes.put(tx, "key" + std::to_string(n),
                  {std::string(40, 't'), {static_cast<std::int32_t>(n), -1}});
    }
  });
}
/// What is wrong with the pool's contents; empty: nothing.
template <class Root, class PoolType>
std::string problem(PoolType& pool) {
  const CheckReport report = pool.check();
  if (!report.ok()) return report.problems.front();
  return pool.view([](auto& tx, const Root& r) -> std::string {
    if (tx(r.count) != rows) return "count";
    for (std::uint64_t n = 0; n < rows; ++n) {
      if (r.names.find(tx, n) != std::string(n + 1, 'n')) return "names";
      const auto note = r.notes.find(tx, "key" + std::to_string(n));
      if (!note || note->text != std::string(40, 't') ||
          note->where.x != static_cast<std::int32_t>(n))
        return "notes";
    }
    return {};
  });
}
std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Options without() {
  Options options = test::small_pool();
  options.creation.catalog = false;
  return options;
}
Options adding() {
  Options options = test::small_pool();
  options.migrate.add_catalog = true;
  return options;
}

class AddCatalog : public test::Versions {
 protected:
  void make() {
    auto pool = Pool<v1::Root>::open(path, without());
    fill(pool);
    pool.close();
  }
};

TEST_F(AddCatalog, ThenALaterVersionOpensThePool) {
  make();
  for (int opening = 0; opening < 2; ++opening) {
    auto pool = Pool<v1::Root>::open(path, adding());
    EXPECT_TRUE(pool.file().has_feature(pool::Feature::catalog_root));
    const auto catalog = pool::read_catalog(path, pool.header(), pool.file().view()).value();
    EXPECT_EQ(catalog.layouts, Lines{named_layout_of<v1::Root>()});
    EXPECT_EQ(catalog.root_bytes, sizeof(v1::Root));
    EXPECT_EQ(problem<v1::Root>(pool), "");
  }
  EXPECT_EQ(refusals<v2::Root>(), Lines{});
  for (int opening = 0; opening < 2; ++opening) {
    auto pool = Pool<v2::Root>::open(path, test::small_pool());
    EXPECT_EQ(problem<v2::Root>(pool), "");
    EXPECT_EQ(pool.view([](auto& tx, const v2::Root& r) { return tx(r.limit); }), 9U);
  }
  EXPECT_EQ(Pool<v1::Root>::try_open(path, adding()).code(), Code::incompatible);
}

TEST_F(AddCatalog, OnlyWhereTheProgramAsksForIt) {
  make();
  { auto pool = Pool<v1::Root>::open(path, test::small_pool()); }
  const std::string before = bytes_of(path);
  Options reading = adding();
  reading.read_only = true;
  {
    auto pool = Pool<v1::Root>::open(path, reading);
    EXPECT_FALSE(pool.file().has_feature(pool::Feature::catalog_root));
    EXPECT_EQ(problem<v1::Root>(pool), "");
  }
  const Status other = Pool<v2::Root>::try_open(path, adding()).status();
  EXPECT_EQ(other.code(), Code::incompatible);
  EXPECT_NE(other.message().find("Options::migrate.add_catalog"), std::string::npos)
      << other.message();
  EXPECT_EQ(bytes_of(path), before);
}

TEST_F(AddCatalog, ThePlanSaysSo) {
  make();
  const std::string before = bytes_of(path);
  const auto none = migration_plan<v1::Root>(path);
  EXPECT_EQ(none.code(), Code::incompatible);
  EXPECT_NE(none.status().message().find("add_catalog"), std::string::npos);
  Migration migrate;
  migrate.add_catalog = true;
  EXPECT_EQ(migration_plan<v1::Root>(path, migrate).value().changes,
            Lines{"the pool gets a catalog"});
  EXPECT_EQ(migration_plan<v2::Root>(path, migrate).code(), Code::incompatible);
  EXPECT_EQ(bytes_of(path), before);
}

TEST_F(AddCatalog, ANewPoolWithoutOneMayGetItAtOnce) {
  Options options = without();
  options.migrate.add_catalog = true;
  {
    auto pool = Pool<v1::Root>::open(path, options);
    EXPECT_TRUE(pool.file().has_feature(pool::Feature::catalog_root));
    fill(pool);
  }
  auto pool = Pool<v2::Root>::open(path, test::small_pool());
  EXPECT_EQ(problem<v2::Root>(pool), "");
}

/// Options of a pool on a recording medium.
Options options_for(const engine::EngineInfo& entry) {
  Options o;
  o.engine = entry.name;
  o.isolation = entry.isolation;
  o.creation.threads = 1;
  o.creation.uuid_seed = 1;
  return o;
}
medium::RecordingOptions small_medium() {
  medium::RecordingOptions medium;
  medium.log_bytes = 2 << 20;
  medium.data_bytes = 2 << 20;
  medium.max_data_bytes = 4 << 20;
  return medium;
}
template <class Root>
using AnyPool = Pool<Root, engines<any_engine>>;

/// Opens a copy of the image. Returns whether it has a catalog then; `wrong`: what is wrong.
template <class Root>
bool opened(std::vector<std::byte>& image, const Options& options, std::string& wrong) {
  auto made = medium::RecordingMedium::make(small_medium(), image).value();
  auto* const raw = made.get();
  auto pool = AnyPool<Root>::try_open_on("pool", options, std::move(made), false);
  if (!pool) {
    wrong = pool.status().message();
    return false;
  }
  wrong = problem<Root>(*pool);
  const bool has = pool->file().has_feature(pool::Feature::catalog_root);
  pool->close();
  image = raw->durable_image();
  return has;
}

// CATALOG-2, on every engine: each image opens as it is, with no block leaked, and gets its catalog
// at the next opening that asks for it; then the next version of the program opens it.
void cut_at_each_fence(const engine::EngineInfo& entry, Durability durability) {
  Options options = options_for(entry);
  options.creation.catalog = false;
  options.durability = durability;
  std::vector<std::byte> before;
  {
    auto made = medium::RecordingMedium::make(small_medium()).value();
    auto* const raw = made.get();
    auto pool = AnyPool<v1::Root>::try_open_on("pool", options, std::move(made), true).value();
    fill(pool);
    pool.close();
    before = raw->durable_image();
  }
  Options with = options;
  with.migrate.add_catalog = true;
  std::vector<std::vector<std::byte>> images;
  std::deque<std::vector<std::byte>> last;  // the header is written at the end
  {
    auto made = medium::RecordingMedium::make(small_medium(), before).value();
    auto* const raw = made.get();
    std::uint64_t fences = 0, every = 1;
    std::mutex mutex;  // checkpoints may run in a thread of their own
    raw->set_fence_hooks(
        [&] {
          const std::lock_guard lock(mutex);
          last.push_back(raw->durable_image());
          if (last.size() > 4) last.pop_front();
          if (fences++ % every != 0) return;
          images.push_back(last.back());
          // Some engines fence at each store.
          if (images.size() % (test::scale > 1 ? 3 : 16) == 0) every *= 2;
        },
        [] {});
    auto pool = AnyPool<v1::Root>::try_open_on("pool", with, std::move(made), false).value();
    raw->set_fence_hooks({}, {});
    images.push_back(raw->durable_image());
    images.insert(images.end(), last.begin(), last.end());
    EXPECT_EQ(problem<v1::Root>(pool), "");
  }
  std::size_t had = 0, between = 0;
  for (std::vector<std::byte>& image : images) {
    std::string wrong;
    const bool has = opened<v1::Root>(image, options, wrong);
    ASSERT_EQ(wrong, "");
    had += has ? 1 : 0;
    // The word of a catalog to which no header leads.
    std::uint64_t late = 0;
    std::memcpy(&late, image.data() + small_medium().log_bytes + pool::late_catalog, sizeof late);
    between += !has && late != 0 ? 1 : 0;
    EXPECT_TRUE(opened<v1::Root>(image, with, wrong));
    ASSERT_EQ(wrong, "");
    EXPECT_TRUE(opened<v2::Root>(image, options_for(entry), wrong));
    ASSERT_EQ(wrong, "");
  }
  EXPECT_GT(had, 0U);
  EXPECT_LT(had, images.size());
  EXPECT_GT(between, 0U) << "no image is cut between the catalog and the header";
}

TEST(AddCatalogCrash, APowerCutAtEachFenceLeavesThePoolWithOrWithoutOne) {
  unsigned n = 0;
  for (const engine::EngineInfo& entry : engine::registered()) {
    // Variants by isolation run the same transactions here.
    const bool variant = entry.name.find('/') != std::string_view::npos;
    if (variant || !test::is_durable(entry) || !entry.runs_here().ok()) continue;
    if (test::scale > 1 && n++ % 3 != 0) continue;  // a sanitizer looks at every third engine
    SCOPED_TRACE(entry.name);
    cut_at_each_fence(entry, durable);
  }
}
// In a pool of pipelined order a record becomes durable later.
TEST(AddCatalogCrash, AlsoInThePipelinedOrder) {
  cut_at_each_fence(*engine::find_instance("shadow"), group);
}

}  // namespace
}  // namespace perdure
