// SPDX-License-Identifier: BSD-3-Clause
//
// Stanzas of Debian control files (deb-control(5), deb822(5)): fields `Name: value` with
// continuation lines that begin with a space or tab, ended by a line that is empty or white space
// only; lines that begin with # are comments. Names are compared without case.
#include <algorithm>
#include <cctype>

#include "tools/records.hpp"

namespace perdure::tool {
namespace {

constexpr std::string_view white = " \t\r";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(white);
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(white) - first + 1);
}

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

}  // namespace

// Takes one line of a stanza. `field`: index in spec_.key of the field that a continuation line
// would continue; npos - 1: a field that is not part of the key; npos: none yet.
Status RecordReader::take_line(std::string_view text, std::uint64_t line, std::size_t& field) {
  constexpr auto npos = static_cast<std::size_t>(-1);
  if (text.front() == '#') return {};
  if (text.front() == ' ' || text.front() == '\t') {
    if (field == npos)
      return bad(line, "a line that begins with white space", "a field `Name: value` first");
    if (field < fields_.size()) fields_[field].append("\n").append(trimmed(text));
    return {};
  }
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    return bad(line, "'" + std::string(text.substr(0, 40)) + "'",
               "a field `Name: value`, an empty line or a comment",
               "say --format csv or --format tsv if this is no Debian control file");
  }
  field = npos - 1;
  for (std::size_t i = 0; i < spec_.key.size(); ++i) {
    if (present_[i] || !same_name(text.substr(0, colon), spec_.key[i])) continue;
    present_[i] = true;
    fields_[i] = trimmed(text.substr(colon + 1));
    field = i;
  }
  return {};
}

// Reads the stanza at window index `at`; `end` is after the empty lines that follow it.
Status RecordReader::read_stanza(std::size_t at, std::size_t& end, std::uint64_t& line) {
  fields_.assign(spec_.key.size(), {});
  present_.assign(spec_.key.size(), false);
  auto field = static_cast<std::size_t>(-1);
  bool over = false;
  for (std::size_t next = at; end_of_line(at, next); at = next, ++line) {
    const auto text = line_text(at, next);
    const bool blank = text.find_first_not_of(" \t") == std::string_view::npos;
    if (over && !blank) break;
    over = over || blank;
    if (blank) continue;
    if (auto s = take_line(text, line, field); !s.ok()) return s;
  }
  end = at;
  return {};
}

Status RecordReader::key_of_stanza(Record& record) const {
  for (std::size_t i = 0; i < present_.size(); ++i) {
    if (present_[i]) continue;
    return bad(record.line, "a stanza without the field " + spec_.key[i],
               "one in every stanza: it is part of the key",
               "choose other fields with --key FIELD,FIELD,...");
  }
  record.key = join_key(fields_);
  return {};
}

}  // namespace perdure::tool
