// SPDX-License-Identifier: BSD-3-Clause
//
// What a dump writes of values of each kind, and what find() finds.
#include "perdure/inspect/dump.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "perdure/container/hash_map.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/rb_tree.hpp"
#include "perdure/container/string.hpp"
#include "perdure/container/table.hpp"
#include "perdure/container/vector.hpp"
#include "perdure/inspect/find.hpp"
#include "tests/inspect/dram_walk.hpp"

namespace perdure::test {
namespace {

using inspect::Address;

struct Mail {
  std::string to;
};
struct Job {
  std::uint64_t id = 0;
  std::variant<std::uint32_t, Mail> work;
  std::chrono::sys_time<std::chrono::milliseconds> due{};
  std::optional<std::string> note{};
  std::vector<double> marks{};
  bool done = false;
};
struct Root {
  p<std::uint64_t> last;
  p<std::int8_t> small;
  string title;
  table<Job, key<&Job::id>, indexed<&Job::due>> jobs;
  map<std::string, std::int64_t> totals;
  hash_map<std::int32_t, std::string> words;
  rb_tree<float, std::uint8_t> shares;
  vector<std::string> lines;
};

template <class F>
std::string dumped(DramPool<Root>& pool, F f) {
  std::string text, first;
  in_layout(pool, [&](inspect::Walker& walker, const inspect::Tree& tree, Address root) {
    inspect::JsonWriter out([&](std::string_view piece) { text += piece; });
    inspect::Dump dump(walker, out);
    f(dump, tree, root);
    out.flush();
    EXPECT_TRUE(dump.damage().empty());
    if (first.empty())
      first = std::exchange(text, {});
    else
      EXPECT_EQ(first, text) << "both layout texts say the same";
  });
  return text;
}

void fill(DramPool<Root>& pool) {
  pool.update([](DramTx& tx, Root& root) {
    tx.write(root.last, ~std::uint64_t{0});
    tx.write(root.small, std::int8_t{-128});
    root.title.assign(tx, "caf\xc3\xa9 \"x\"\n\x01");
    using Due = std::chrono::sys_time<std::chrono::milliseconds>;
    root.jobs.put(tx, Job{1,
                          Mail{"a@b"},
                          Due(std::chrono::milliseconds(1'700'000'000'123)),
                          "n",
                          {0.1, std::nan(""), -std::numeric_limits<double>::infinity(), -0.0},
                          true});
    root.totals.put(tx, "$x", -5);
    root.totals.put(tx, "\xff", 1);
    root.totals.put(tx, "b", std::numeric_limits<std::int64_t>::min());
    root.words.put(tx, -7, "seven");
    root.shares.put(tx, 0.1F, 255);
    root.lines.push_back(tx, "\xc0\x80");
    root.lines.push_back(tx, "");
  });
}

TEST(InspectDump, EveryKindOfValue) {
  DramPool<Root> pool;
  fill(pool);
  EXPECT_EQ(dumped(pool, [](inspect::Dump& dump, const inspect::Tree& tree,
                            Address root) { dump.document(tree.root().parts, root); }),
            R"({"last": 18446744073709551615, "small": -128, "title": "café \"x\"\n\u0001", )"
            R"("jobs": [{"id": 1, "work": {"$index": 1, "value": {"to": "a@b"}}, )"
            R"("due": "2023-11-14T22:13:20.123Z", "note": "n", )"
            R"("marks": [0.1, "NaN", "-Infinity", -0], "done": true}], )"
            R"("totals": {"$$x": -5, "b": -9223372036854775808, "$hex:ff": 1}, )"
            R"("words": [[-7, "seven"]], "shares": [[0.1, 255]], "lines": [{"$hex": "c080"}, ""]})"
            "\n");
}

TEST(InspectDump, Lines) {
  DramPool<Root> pool;
  fill(pool);
  EXPECT_EQ(dumped(pool,
                   [](inspect::Dump& dump, const inspect::Tree& tree, Address root) {
                     dump.lines({tree.field("totals"), tree.field("lines"), tree.field("small")},
                                root);
                   }),
            R"({"field": "totals", "key": "$x", "value": -5})"
            "\n"
            R"({"field": "totals", "key": "b", "value": -9223372036854775808})"
            "\n"
            R"({"field": "totals", "key": {"$hex": "ff"}, "value": 1})"
            "\n"
            R"({"field": "lines", "index": 0, "value": {"$hex": "c080"}})"
            "\n"
            R"({"field": "lines", "index": 1, "value": ""})"
            "\n"
            R"({"field": "small", "value": -128})"
            "\n");
}

TEST(InspectFind, KeysOfEachContainer) {
  DramPool<Root> pool;
  pool.update([](DramTx& tx, Root& root) {
    for (std::int32_t i = 0; i < 500; ++i) {
      root.totals.put(tx, "k" + std::to_string(i), i);
      root.words.put(tx, i - 250, std::to_string(i));
      root.shares.put(tx, static_cast<float>(i) / 4, static_cast<std::uint8_t>(i));
    }
  });
  in_layout(pool, [&](inspect::Walker& walker, const inspect::Tree& tree, Address root) {
    const auto find = [&](const char* field, const std::string& key) {
      const inspect::Member member = tree.field(field);
      return inspect::find(walker, *member.type, root + member.at, key);
    };
    for (std::int32_t i = 0; i < 500; ++i) {
      const auto total = find("totals", "k" + std::to_string(i));
      ASSERT_TRUE(total);
      EXPECT_EQ(walker.read<std::int64_t>(total->value), i);
      const auto text = find("words", std::to_string(i - 250));
      ASSERT_TRUE(text);
      EXPECT_EQ(walker.text(walker.read<Address>(text->value)), std::to_string(i));
    }
    EXPECT_TRUE(find("shares", "1.25"));
    EXPECT_FALSE(find("shares", "1.26"));
    EXPECT_FALSE(find("totals", "k500"));
    EXPECT_FALSE(find("words", "250"));
    EXPECT_THROW((void)find("words", "x"), error);
    EXPECT_THROW((void)find("words", "4294967296"), error);
    EXPECT_FALSE(find("lines", "0"));
  });
}

}  // namespace
}  // namespace perdure::test
