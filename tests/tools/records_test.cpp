// SPDX-License-Identifier: BSD-3-Clause
//
// RecordReader: golden cases of each format, and its basic property: prologue + records + epilogue
// == the file, for any file, from the start and from every record's end.
#include "tools/records.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace perdure::tool {
namespace {

class Scratch {  // a file that is removed with the test
 public:
  explicit Scratch(const std::string& bytes)
      : path_(testing::TempDir() + "perdure-records-" + std::to_string(::getpid())) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~Scratch() { std::remove(path_.c_str()); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Row {
  std::string raw, key;
  std::uint64_t line, end, end_line;
};
struct Cut {
  std::string prologue, epilogue, error;
  std::vector<Row> rows;
  Spec spec;
  [[nodiscard]] std::string whole() const {
    std::string all = prologue;
    for (const auto& row : rows) all += row.raw;
    return all + epilogue;
  }
  [[nodiscard]] std::vector<std::string> keys() const {
    std::vector<std::string> all;
    for (const auto& row : rows) all.push_back(row.key);
    return all;
  }
};

void read_rows(RecordReader& reader, Cut& cut) {
  Record record;
  for (;;) {
    auto more = reader.next(record);
    if (!more) {
      cut.error = more.status().message();
      return;
    }
    if (!*more) break;
    cut.rows.push_back(
        {std::string(record.raw), record.key, record.line, reader.position(), reader.line()});
  }
  EXPECT_FALSE(reader.next(record).value());  // a second call says the same
  cut.epilogue = reader.epilogue();
}

Cut cut_file(const std::string& bytes, const SpecOptions& options, const std::string& name = "x") {
  const Scratch scratch(bytes);
  Cut cut;
  auto file = SourceFile::open(scratch.path());
  EXPECT_TRUE(file.ok());
  auto spec = resolve(options, name, file->first_bytes(65536).value());
  if (!spec) {
    cut.error = spec.status().message();
    return cut;
  }
  RecordReader reader(*file, *spec);
  if (auto s = reader.begin(); !s.ok()) {
    cut.error = s.message();
    return cut;
  }
  cut.prologue = reader.prologue();
  read_rows(reader, cut);
  cut.spec = reader.spec();
  return cut;
}

using Keys = std::vector<std::string>;

TEST(Records, Tsv) {
  const std::string bytes = "a\t1\nb\t\"2\n\nc\t3";
  const Cut cut = cut_file(bytes, {});
  EXPECT_EQ(cut.error, "");
  EXPECT_EQ(cut.spec.format, Format::tsv);
  EXPECT_EQ(cut.keys(), (Keys{"a", "b", "c"}));
  EXPECT_EQ(cut.rows[2].raw, "\nc\t3");
  EXPECT_EQ(cut.rows[2].line, 4U);
  EXPECT_EQ(cut.whole(), bytes);
}

TEST(Records, CsvQuotesHeaderAndCrlf) {
  const std::string bytes =
      "\xef\xbb\xbfid,text\r\n1,\"two\r\nlines, \"\"quoted\"\"\"\r\n\"x,y\",plain\r\n";
  const Cut cut = cut_file(bytes, {.key = "id"}, "f.csv");
  EXPECT_EQ(cut.error, "");
  EXPECT_EQ(cut.prologue, "\xef\xbb\xbfid,text\r\n");
  EXPECT_EQ(cut.keys(), (Keys{"1", "x,y"}));
  EXPECT_EQ(cut.rows[1].line, 4U);
  EXPECT_EQ(cut.whole(), bytes);
  EXPECT_EQ(cut_file(bytes, {.key = "text"}, "f.csv").keys(),
            (Keys{"two\r\nlines, \"quoted\"", "plain"}));
  EXPECT_EQ(cut_file(bytes, {.key = "2,1", .header = true}, "f.csv").keys(),
            (Keys{"\"two\r\nlines, \"\"quoted\"\"\" 1", "plain x,y"}));
}

TEST(Records, DelimiterIsGuessed) {
  const Cut cut = cut_file("0041;LATIN CAPITAL LETTER A;Lu\n0042;B;Lu\n", {});
  EXPECT_EQ(cut.spec.delimiter, ';');
  EXPECT_EQ(cut.keys(), (Keys{"0041", "0042"}));
}

TEST(Records, CommentsAreKeptWithTheNextRow) {
  const std::string bytes = "# head\n\na;1\n# about b\nb;2\n# end\n";
  const Cut cut = cut_file(bytes, {.format = "csv", .delimiter = ";", .comment = "#"});
  EXPECT_EQ(cut.keys(), (Keys{"a", "b"}));
  EXPECT_EQ(cut.rows[1].raw, "# about b\nb;2\n");
  EXPECT_EQ(cut.epilogue, "# end\n");
  EXPECT_EQ(cut.whole(), bytes);
}

TEST(Records, Control) {
  const std::string bytes =
      "\n# a comment\nPackage: bash\nVersion: 5.2\narchitecture: amd64\nDescription: a shell\n "
      "more: text\n .\n\n \nPackage:zsh\n"
      "Version:\t5.9 \nArchitecture: all\n\n\n# the end\n";
  const Cut cut = cut_file(bytes, {});
  EXPECT_EQ(cut.error, "");
  EXPECT_EQ(cut.spec.format, Format::control);
  EXPECT_EQ(cut.keys(), (Keys{"bash 5.2 amd64", "zsh 5.9 all"}));
  EXPECT_EQ(cut.rows[0].line, 3U);
  EXPECT_EQ(cut.rows[1].line, 11U);
  EXPECT_TRUE(cut.rows[1].raw.ends_with("all\n\n\n"));
  EXPECT_EQ(cut.epilogue, "# the end\n");
  EXPECT_EQ(cut.whole(), bytes);
  EXPECT_EQ(cut_file(bytes, {.key = "PACKAGE"}).keys(), (Keys{"bash", "zsh"}));
}

TEST(Records, KeysJoinWithoutCollisions) {
  EXPECT_EQ(join_key({"a b"}), "a b");
  EXPECT_EQ(join_key({"a b", "c"}), "\"a b\" c");
  EXPECT_EQ(join_key({"a", "b c"}), "a \"b c\"");
  EXPECT_EQ(join_key({"", "\"x"}), "\"\" \"\"\"x\"");
}

TEST(Records, ErrorsNameLineFoundAndExpected) {
  {
    const std::string e = cut_file("a,b\nc\n", {.key = "2"}).error;
    EXPECT_NE(e.find(":2: a row of 1 columns, expected at least 2"), std::string::npos) << e;
  }
  {
    const std::string e = cut_file("a,1\n\"b,2\nc,3\n", {}).error;
    EXPECT_NE(e.find(":2: a quote that is never closed"), std::string::npos) << e;
  }
  {
    const std::string e = cut_file("\"a\"x,1\n", {}, "f.csv").error;
    EXPECT_NE(e.find(":1: 'x' behind a closing quote, expected ','"), std::string::npos) << e;
  }
  {
    const std::string e = cut_file("id,v\n1,2\n", {.key = "name"}).error;
    EXPECT_NE(e.find("no column 'name' in the header row, expected one of: id, v"),
              std::string::npos)
        << e;
  }
  {
    const std::string e = cut_file("Package: a\nVersion: 1\n\n", {}).error;
    EXPECT_NE(e.find(":1: a stanza without the field Architecture"), std::string::npos) << e;
  }
  {
    const std::string e = cut_file("Package: a\nnonsense\n", {.key = "Package"}).error;
    EXPECT_NE(e.find(":2: 'nonsense', expected a field"), std::string::npos) << e;
  }
  EXPECT_NE(cut_file("\x1f\x8b\x08", {}).error.find("gzip"), std::string::npos);
  EXPECT_NE(cut_file("a\n", {.format = "xml"}).error.find("auto, tsv, csv or control"),
            std::string::npos);
  EXPECT_NE(cut_file("a\n", {.key = "id", .header = false}).error.find("--no-header"),
            std::string::npos);
}

TEST(Records, SpecSurvivesJson) {
  for (const auto& options :
       {SpecOptions{},
        SpecOptions{.format = "csv", .delimiter = "\\t", .quote = "'", .comment = "#"},
        SpecOptions{.format = "control"}}) {
    const Spec spec = resolve(options, "x", "a,b\n").value();
    const Spec again = Spec::from_json(spec.to_json()).value();
    EXPECT_EQ(again, spec);
    EXPECT_EQ(again.to_json(), spec.to_json());
    EXPECT_EQ(difference(spec, options), "");
  }
  const Spec csv = resolve({.format = "csv"}, "x", "a,b\n").value();
  EXPECT_EQ(difference(csv, {.key = "2"}), "--key 2, expected 1");
  EXPECT_EQ(difference(csv, {.delimiter = ";"}), "--delimiter ;, expected ','");
  EXPECT_EQ(difference(csv, {.format = "tsv"}), "--format tsv, expected csv");
}

// Random files over an alphabet of the characters that matter. A file may be refused; one that is
// accepted must be read back whole, and from every cut.
void check_property(const SpecOptions& options, const std::string& alphabet, unsigned seed,
                    std::size_t longest) {
  std::mt19937 random(seed);
  int taken = 0;
  for (int i = 0; i < 400; ++i) {
    std::string bytes;
    for (std::size_t n = random() % longest; bytes.size() < n;)
      bytes += alphabet[random() % alphabet.size()];
    const Cut cut = cut_file(bytes, options);
    if (!cut.error.empty()) continue;
    ++taken;
    ASSERT_EQ(cut.whole(), bytes) << "seed " << seed << ", file " << i;
    const Scratch scratch(bytes);
    for (std::size_t at = 0; at < cut.rows.size(); at += 1 + cut.rows.size() / 5) {
      auto file = SourceFile::open(scratch.path());
      RecordReader reader(*file, cut.spec);
      reader.resume(cut.rows[at].end, cut.rows[at].end_line);
      Cut rest;
      read_rows(reader, rest);
      ASSERT_EQ(rest.error, "");
      ASSERT_EQ(rest.rows.size(), cut.rows.size() - at - 1) << "seed " << seed << ", file " << i;
      for (std::size_t k = 0; k < rest.rows.size(); ++k) {
        ASSERT_EQ(rest.rows[k].raw, cut.rows[at + 1 + k].raw);
        ASSERT_EQ(rest.rows[k].key, cut.rows[at + 1 + k].key);
        ASSERT_EQ(rest.rows[k].line, cut.rows[at + 1 + k].line);
      }
      ASSERT_EQ(rest.epilogue, cut.epilogue);
    }
  }
  EXPECT_GT(taken, 20);
}

TEST(RecordsProperty, Tsv) { check_property({.format = "tsv"}, "ab\t\"\n\r #", 1, 200); }
TEST(RecordsProperty, TsvWithComments) {
  check_property({.format = "tsv", .comment = "#"}, "ab\t\n\r#", 2, 200);
}
TEST(RecordsProperty, Csv) {
  check_property({.format = "csv", .delimiter = ","}, "abcde,\"\n\r", 3, 60);
}
TEST(RecordsProperty, CsvHeader) {
  check_property({.format = "csv", .delimiter = ",", .comment = "#", .header = true},
                 "abcdefgh,,\n\n\r#", 4, 100);
}
TEST(RecordsProperty, Control) { check_property({.format = "control", .key = "a"}, "a:\n", 5, 12); }

TEST(RecordsProperty, ControlStanzas) {
  std::mt19937 random(6);
  static const std::string lines[] = {"a: 1\n", "b: x\r\n", " more\n", "\n",
                                      "\n",     " \n",      "# c\n",   "A: 2\n"};
  int taken = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes;
    for (auto n = random() % 12; n > 0; --n) bytes += lines[random() % std::size(lines)];
    if (random() % 4 == 0 && !bytes.empty()) bytes.pop_back();
    const Cut cut = cut_file(bytes, {.format = "control", .key = "a"});
    if (!cut.error.empty()) continue;
    ++taken;
    ASSERT_EQ(cut.whole(), bytes);
  }
  EXPECT_GT(taken, 200);
}

TEST(Records, RowsLargerThanTheWindow) {
  const std::string big(3 << 20, 'x');
  const std::string bytes = "k1\t" + big + "\nk2\t" + big + big + "\nk3\ty";
  const Cut cut = cut_file(bytes, {});
  EXPECT_EQ(cut.keys(), (Keys{"k1", "k2", "k3"}));
  EXPECT_TRUE(cut.whole() == bytes);
  const std::string quoted = "k1,\"" + big + "\n" + big + "\"\nk2,\n";
  const Cut csv = cut_file(quoted, {});
  EXPECT_EQ(csv.keys(), (Keys{"k1", "k2"}));
  EXPECT_TRUE(csv.whole() == quoted);
}

TEST(SourceFile, RefusesWhatCannotBeReadAgain) {
  EXPECT_EQ(SourceFile::open("/nonexistent/x").code(), Code::not_found);
  EXPECT_EQ(SourceFile::open("/tmp").code(), Code::invalid);
  EXPECT_EQ(SourceFile::open("/dev/null").code(), Code::invalid);
}

TEST(SourceFile, IdentityIsOfAllBytes) {
  std::string bytes(2500000, 'a');
  const auto id = [&] {
    const Scratch scratch(bytes);
    return SourceFile::open(scratch.path())->identity().value();
  };
  const Identity first = id();
  EXPECT_EQ(first.size, bytes.size());
  for (const std::size_t at : {std::size_t{0}, std::size_t{1} << 20, bytes.size() - 1}) {
    bytes[at] = 'b';
    EXPECT_NE(id(), first);
    bytes[at] = 'a';
  }
  EXPECT_EQ(id(), first);
}

}  // namespace
}  // namespace perdure::tool
