// SPDX-License-Identifier: BSD-3-Clause
//
// Loads dumps of tables: the new pool gives the same dump, passes check(), and its program finds
// its data and can change it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perdure/api/pool.hpp"
#include "perdure/container/table.hpp"
#include "tests/inspect/compare_blocks.hpp"
#include "tests/inspect/load_folder.hpp"
#include "tests/inspect/round_trip.hpp"

namespace perdure::test {
namespace {

struct Row {
  std::uint64_t id = 0;
  std::string owner;
  std::optional<std::string> mail;
  std::int32_t rank = 0;
  std::optional<std::chrono::sys_seconds> until;
  Small place{};
};
struct Tables {
  table<Row, key<&Row::id>, indexed<&Row::owner>, unique<&Row::mail>, expires<&Row::until>,
        indexed_descending<&Row::rank, &Row::owner>>
      rows;
  table<Row, ordered_key<&Row::owner, &Row::id>, indexed<&Row::place>> ordered;
};

TEST(Load, Tables) {
  LoadFolder folder;
  const std::string from = folder.path("tables"), to = folder.path("loaded");
  {
    auto pool = Pool<Tables>::open(from);
    for (std::uint64_t k = 0; k < 300; ++k)
      pool.update(async, [&](auto& tx, Tables& root) {
        Row row{k * 7919 % 300, word(k % 11), {}, -static_cast<std::int32_t>(k % 5), {}, {}};
        if (k % 3 == 0) row.mail = "m" + std::to_string(k);
        if (k % 4 == 0) row.until = of<std::chrono::sys_seconds>(k);
        row.place = of<Small>(k % 17);
        root.rows.insert(tx, row);
        root.ordered.insert(tx, row);
        if (k % 10 == 9) root.rows.erase(tx, (k - 5) * 7919 % 300);
      });
  }
  std::vector<std::uint64_t> before, after;
  const auto list = [&](const std::string& path, std::vector<std::uint64_t>& ids) {
    auto pool = Pool<Tables>::open(path);
    EXPECT_TRUE(pool.check().ok()) << pool.check().problems.front();
    pool.view([&](auto& tx, const Tables& root) {
      for (auto row : root.rows.template ordered<&Row::owner>(tx)) ids.push_back(row[&Row::id]);
      for (auto row : root.rows.template ordered<&Row::rank>(tx)) ids.push_back(row[&Row::id]);
      for (auto row : root.ordered.template by<&Row::place>(tx, of<Small>(3)))
        ids.push_back(row[&Row::id]);
    });
  };
  list(from, before);
  // Small has an operator<, so only a dump with the indexes says how it orders the rows.
  std::string schema, plain, indexes;
  {
    DumpedPool pool(from);
    schema = pool.schema();
    plain = pool.dump();
    indexes = pool.dump(false, true);
  }
  try {
    (void)load(to, schema, plain);
    FAIL() << "an order that nothing says";
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("'index place'"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("--indexes"), std::string::npos) << e.what();
  }
  (void)load(to, schema, indexes);
  EXPECT_EQ(DumpedPool(to).dump(false, true), indexes);
  list(to, after);
  EXPECT_EQ(before, after) << "rows of one value are in the order in which they were added";
  auto pool = Pool<Tables>::open(to);
  pool.update([&](auto& tx, Tables& root) {
    for (std::uint64_t k = 1; k < 300; k += 2) root.rows.erase(tx, k);
    for (std::uint64_t k = 1000; k < 1100; ++k)
      root.rows.put(tx, {k, word(3), "n" + std::to_string(k), 1, {}, {}});
    EXPECT_GT(root.rows.expire(tx, of<std::chrono::sys_seconds>(150)), 0U);
  });
  EXPECT_TRUE(pool.check().ok()) << pool.check().problems.front();
}

}  // namespace
}  // namespace perdure::test
