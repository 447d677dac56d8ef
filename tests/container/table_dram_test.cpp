// SPDX-License-Identifier: BSD-3-Clause
//
// The table's suite on the DRAM stand-in; what a change of a row costs; what audit() finds.
#include "tests/container/table_suite.hpp"

namespace perdure::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Dram, TableSuite, DramPolicy);

namespace {

TEST(Table, AChangeOfAnUnindexedMemberTouchesNoIndex) {
  DramPool<TableRoot<Sessions>> pool;
  pool.update([](auto& tx, auto& root) {
    for (int i = 0; i < 100; ++i)
      root.x.insert(tx, {.token = std::to_string(i), .mail = std::to_string(i)});
  });
  pool.heap().reset_counts();
  pool.update(
      [](auto& tx, auto& root) { root.x.update(tx, "50", [](Session& s) { s.unindexed = 4; }); });
  EXPECT_EQ(pool.heap().bytes, 8U);
  EXPECT_EQ(pool.heap().writes, 1U);
}

TEST(Table, TheLayoutNamesItsParts) {
  EXPECT_EQ(Orders::layout_text(),
            "table<{id:{first:i16@0,second:string@8}16@0,owner:string@16}24,ordered_key id,index "
            "owner>/1");
}

/// audit() finds a row that an index does not have, and one whose member was changed behind its
/// back.
TEST(Table, AuditFindsWhatDisagrees) {
  DramPool<TableRoot<Orders>> pool;
  const auto audit = [&] {
    return pool.view([](auto& tx, const auto& root) { return root.x.audit(tx); });
  };
  pool.update([](auto& tx, auto& root) {
    for (std::int16_t i = 0; i < 5; ++i) root.x.insert(tx, {{i, "x"}, "ann"});
  });
  EXPECT_TRUE(audit().empty());
  const auto row_bytes = [&] {
    return pool.view([](auto& tx, const auto& root) {
      const detail::row* found = nullptr;
      root.x.each_block(tx, [&](const void* block) {
        std::uint64_t words[2];
        std::memcpy(words, block, sizeof words);
        if (words[0] == 3 && words[1] == value::type_of<Order>().shape)
          found = static_cast<const detail::row*>(block);
      });
      return const_cast<detail::row*>(found);
    });
  };
  detail::row* const row = row_bytes();
  ASSERT_NE(row, nullptr);
  pool.update([&](auto& tx, auto&) {
    const std::uint64_t number = 2;  // another row's
    tx.write_bytes(&row->number, &number, sizeof number);
  });
  ASSERT_FALSE(audit().empty());
  EXPECT_NE(audit().front().find("a row has number 2"), std::string::npos) << audit().front();
  pool.update([&](auto& tx, auto&) {
    const std::uint64_t number = 3;
    tx.write_bytes(&row->number, &number, sizeof number);
    const std::int16_t other = 77;
    tx.write_bytes(row->record.image(), &other, sizeof other);
  });
  ASSERT_FALSE(audit().empty());
  EXPECT_NE(audit().front().find("has another key than the row"), std::string::npos)
      << audit().front();
}

}  // namespace
}  // namespace perdure::test
