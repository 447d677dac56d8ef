// SPDX-License-Identifier: BSD-3-Clause
//
// What both kinds of records share: lines, what is not a record, keys.
#include "tools/records.hpp"

#include <algorithm>
#include <cstring>

namespace perdure::tool {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

bool is_blank(std::string_view line, Format format) {
  if (format != Format::control) return line.empty();
  return std::all_of(line.begin(), line.end(), [](char c) { return c == ' ' || c == '\t'; });
}

}  // namespace

std::string join_key(const std::vector<std::string>& parts) {
  if (parts.size() == 1) return parts.front();
  std::string key;
  for (const auto& part : parts) {
    if (&part != &parts.front()) key += ' ';
    if (!part.empty() && part.front() != '"' && part.find(' ') == std::string::npos) {
      key += part;
      continue;
    }
    key += '"';
    for (const char c : part) key.append(c == '"' ? 2 : 1, c);
    key += '"';
  }
  return key;
}

Status RecordReader::bad(std::uint64_t line, std::string_view found, std::string_view expected,
                         std::string_view advice) const {
  return failure(Code::invalid, file_.path() + ":" + std::to_string(line), found, expected, advice);
}

// The end of the line that begins at window index `from`, after its newline. Returns false if there
// is no further byte.
bool RecordReader::end_of_line(std::size_t from, std::size_t& end) {
  std::size_t seen = from;
  for (;;) {
    const auto window = file_.window();
    if (const void* newline = window.size() > seen
                                  ? std::memchr(window.data() + seen, '\n', window.size() - seen)
                                  : nullptr) {
      end = static_cast<std::size_t>(static_cast<const char*>(newline) - window.data()) + 1;
      return true;
    }
    seen = std::max(seen, window.size());
    if (!file_.more()) {
      end = file_.window().size();
      return end > from;
    }
  }
}

// The line without its line end (\n or \r\n).
std::string_view RecordReader::line_text(std::size_t from, std::size_t end) const {
  auto text = file_.window().substr(from, end - from);
  if (!text.empty() && text.back() == '\n') {
    text.remove_suffix(1);
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  }
  return text;
}

// Moves `at` over blank lines and comment lines. Returns false if nothing else remains in the file.
bool RecordReader::skip_junk(std::size_t& at, std::uint64_t& line) {
  const char comment = spec_.format == Format::control ? '#' : spec_.comment;
  for (std::size_t end = 0; end_of_line(at, end); at = end, ++line) {
    const auto text = line_text(at, end);
    if (!is_blank(text, spec_.format) && (comment == '\0' || text.front() != comment)) return true;
  }
  return false;
}

Status RecordReader::begin() {
  file_.seek(0);
  yielded_ = 0;
  line_ = 1;
  prologue_.clear();
  ended_ = false;
  while (file_.window().size() < byte_order_mark.size() && file_.more()) {}
  std::size_t at = file_.window().starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  if (auto s = check_line_ends(at); !s.ok()) return s;
  if (spec_.format != Format::control && spec_.header) {
    if (!skip_junk(at, line_)) {
      if (!file_.status().ok()) return file_.status();
      return bad(line_, "no header row", "one that names the columns",
                 "say --no-header and --key NUMBER if there is none");
    }
    if (auto s = read_row(at, at, line_, static_cast<std::size_t>(-1)); !s.ok()) return s;
    if (auto s = find_columns(); !s.ok()) return s;
  }
  prologue_ = file_.window().substr(0, at);
  yielded_ = at;
  return file_.status();
}

// A file whose lines end in a CR alone would be one line: a header without rows, or one row that
// contains the whole file.
Status RecordReader::check_line_ends(std::size_t at) {
  std::size_t end = at;
  if (!end_of_line(at, end) || file_.window()[end - 1] == '\n') return file_.status();
  bool quoted = false;
  for (const char c : file_.window().substr(at, end - at)) {
    if (spec_.format != Format::control && spec_.quote != '\0' && c == spec_.quote)
      quoted = !quoted;
    if (c != '\r' || quoted) continue;
    return bad(1, "line ends of CR alone", "LF or CRLF",
               "convert the file: tr '\\r' '\\n' < FILE > NEW; if it is one row with a CR in it, "
               "end the row with LF");
  }
  return {};
}

void RecordReader::resume(std::uint64_t position, std::uint64_t line) {
  file_.seek(position);
  yielded_ = 0;
  line_ = line;
  ended_ = false;
}

Result<bool> RecordReader::next(Record& record) {
  if (ended_) return false;
  file_.consume(yielded_);
  yielded_ = 0;
  std::size_t at = 0;
  if (!skip_junk(at, line_)) {
    if (!file_.status().ok()) return file_.status();
    ended_ = true;
    epilogue_ = file_.window();
    yielded_ = epilogue_.size();
    return false;
  }
  record.line = line_;
  const bool control = spec_.format == Format::control;
  if (auto s = control
                   ? read_stanza(at, at, line_)
                   : read_row(at, at, line_,
                              *std::max_element(spec_.columns.begin(), spec_.columns.end()) + 1);
      !s.ok()) {
    return s;
  }
  // The file's end was seen only because reading failed.
  if (!file_.status().ok()) return file_.status();
  if (auto s = control ? key_of_stanza(record) : key_of_row(record); !s.ok()) return s;
  record.raw = file_.window().substr(0, at);
  yielded_ = at;
  return true;
}

}  // namespace perdure::tool
