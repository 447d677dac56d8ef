// SPDX-License-Identifier: BSD-3-Clause
//
// Rows of delimited text: TSV, and CSV as RFC 4180 defines it: a field that begins with a quote
// ends at the next single quote; a doubled quote stands for itself; newlines inside are data.
#include <algorithm>
#include <charconv>

#include "tools/records.hpp"

namespace perdure::tool {

// Reads the field at window index `at` and leaves `at` at the delimiter or line end after it.
Status RecordReader::read_field(std::size_t& at, std::string& field, std::uint64_t& line) {
  field.clear();
  const std::uint64_t opened = line;
  // Indices stay valid: nothing is consumed meanwhile.
  const auto have = [&] { return at < file_.window().size() || file_.more(); };
  const bool quoted = spec_.quote != '\0' && have() && file_.window()[at] == spec_.quote;
  if (quoted) {
    ++at;
    for (;;) {
      if (!have()) {
        if (!file_.status().ok()) return file_.status();
        return bad(opened, "a quote that is never closed", "a closing quote",
                   "say --quote none if quotes are plain text here");
      }
      const char c = file_.window()[at++];
      if (c == spec_.quote) {
        if (!have() || file_.window()[at] != spec_.quote) break;
        ++at;
      }
      if (c == '\n') ++line;
      field += c;
    }
  }
  while (have()) {
    const char c = file_.window()[at];
    if (c == '\n' || c == spec_.delimiter) break;
    if (quoted && c != '\r') {
      return bad(line, std::string("'") + c + "' behind a closing quote",
                 std::string("'") + spec_.delimiter + "' or the end of the line",
                 "say --quote none if quotes are plain text here");
    }
    if (!quoted) field += c;
    ++at;
  }
  const bool ends_line = at < file_.window().size() && file_.window()[at] == '\n';
  // In CRLF, the CR belongs to the line end.
  if (!quoted && ends_line && field.ends_with('\r')) field.pop_back();
  return {};
}

// Reads the row at window index `at` into fields_ (at most `wanted` of them); `end` is after its
// newline.
Status RecordReader::read_row(std::size_t at, std::size_t& end, std::uint64_t& line,
                              std::size_t wanted) {
  std::size_t n = 0;
  for (;;) {
    if (spec_.quote == '\0' && n >= wanted) {
      // No more fields are wanted: jump to the end of the line.
      if (!end_of_line(at, end)) end = file_.window().size();
      break;
    }
    if (n >= fields_.size()) fields_.emplace_back();
    if (auto s = read_field(at, fields_[n], line); !s.ok()) return s;
    ++n;
    const auto window = file_.window();
    end = at;
    if (at >= window.size()) break;
    end = ++at;
    if (window[at - 1] == '\n') break;
  }
  fields_.resize(std::min(n, fields_.size()));
  if (end > 0 && file_.window()[end - 1] == '\n') ++line;
  return {};
}

Status RecordReader::key_of_row(Record& record) const {
  std::vector<std::string> parts;
  for (const std::size_t column : spec_.columns) {
    if (column >= fields_.size()) {
      return bad(record.line, "a row of " + std::to_string(fields_.size()) + " columns",
                 "at least " + std::to_string(column + 1) + ": the key is there",
                 std::string("check --key and --delimiter (it is '") + spec_.delimiter + "')");
    }
    parts.push_back(fields_[column]);
  }
  record.key = join_key(parts);
  return {};
}

// The header row is in fields_: converts the key's names (or numbers) to columns.
Status RecordReader::find_columns() {
  spec_.columns.clear();
  for (const auto& key : spec_.key) {
    const auto at = std::find(fields_.begin(), fields_.end(), key);
    std::size_t number = 0;
    const auto [end, ec] = std::from_chars(key.data(), key.data() + key.size(), number);
    if (at != fields_.end()) {
      spec_.columns.push_back(static_cast<std::size_t>(at - fields_.begin()));
    } else if (ec == std::errc() && end == key.data() + key.size() && number > 0) {
      spec_.columns.push_back(number - 1);
    } else {
      std::string names;
      for (const auto& field : fields_) names += (names.empty() ? "" : ", ") + field;
      return bad(1, "no column '" + key + "' in the header row", "one of: " + names,
                 "give --key one of these, or a column number");
    }
  }
  return {};
}

}  // namespace perdure::tool
