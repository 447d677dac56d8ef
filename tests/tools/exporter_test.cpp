// SPDX-License-Identifier: BSD-3-Clause
//
// Exporter: a source's own bytes are exported as they were loaded; rows by hand are completed; a
// key/value pool is exported as CSV.
#include "tools/exporter.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace perdure::tool {
namespace {

struct Row {
  std::string bytes;
  bool by_hand = false;
};

std::string exported(const std::string& format, const std::string& prologue,
                     const std::vector<Row>& rows, const std::string& epilogue = "") {
  SourceState source;
  source.begun = true;
  source.spec = resolve({.format = format}, "x", "a").value().to_json();
  source.prologue = prologue;
  source.epilogue = epilogue;
  std::string out;
  Exporter exporter(source, [&](std::string_view bytes) { out += bytes; });
  std::uint64_t n = 0;
  for (const Row& row : rows) {
    ++n;
    exporter.row({n, row.by_hand ? 0 : n, "k" + std::to_string(n), row.bytes});
  }
  exporter.end();
  return out;
}

TEST(Exporter, SourceBytesAreUntouched) {
  EXPECT_EQ(exported("tsv", "id\n", {{"a\t1\n"}, {"\nb\t2"}}), "id\na\t1\n\nb\t2");
  EXPECT_EQ(exported("csv", "", {}, "# only\n"), "# only\n");
  EXPECT_EQ(exported("csv", "id", {}), "id");
  EXPECT_EQ(exported("control", "", {{"A: 1\n\n"}, {"A: 2\r\n \r\n"}, {"A: 3"}}),
            "A: 1\n\nA: 2\r\n \r\nA: 3");
}

TEST(Exporter, RowsByHandAreCompleted) {
  EXPECT_EQ(exported("tsv", "", {{"a"}, {"b", true}}), "a\nb\n");
  EXPECT_EQ(exported("tsv", "", {{"a\r\n"}, {"b", true}, {"c", true}}), "a\r\nb\r\nc\r\n");
  EXPECT_EQ(exported("tsv", "", {{"b\n", true}, {"a"}}), "b\na");
  EXPECT_EQ(exported("csv", "id", {{"1", true}}), "id\n1\n");
  EXPECT_EQ(exported("csv", "\xef\xbb\xbf", {{"1", true}}),
            "\xef\xbb\xbf"
            "1\n");
  EXPECT_EQ(exported("control", "", {{"A: 1\n\n"}, {"A: 9", true}, {"A: 2\n"}}),
            "A: 1\n\nA: 9\n\nA: 2\n");
  EXPECT_EQ(exported("control", "", {{"A: 1\n"}, {"A: 2\n", true}}), "A: 1\n\nA: 2\n\n");
  EXPECT_EQ(exported("tsv", "", {{"", true}, {"b\n"}}), "\nb\n");
}

TEST(Exporter, KeyValuePoolsBecomeCsv) {
  std::string out;
  Exporter exporter(SourceState{}, [&](std::string_view bytes) { out += bytes; });
  exporter.row({0, 0, "a", "1"});
  exporter.row({1, 0, "b,c", "say \"hi\"\n"});
  exporter.row({2, 0, "", ""});
  exporter.end();
  EXPECT_EQ(out, "a,1\n\"b,c\",\"say \"\"hi\"\"\n\"\n\"\",\"\"\n");
}

}  // namespace
}  // namespace perdure::tool
