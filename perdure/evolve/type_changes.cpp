// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/evolve/type_changes.hpp"

#include <algorithm>
#include <utility>

#include "perdure/api/plan.hpp"
#include "perdure/value/parse.hpp"
#include "perdure/value/shapes.hpp"

namespace perdure::detail {
namespace {

constexpr std::string_view record_word = "rec<", table_word = "table<";

// The position of a word in a text, not as a part of another word.
bool begins_word(std::string_view text, std::size_t at) {
  if (at == 0) return true;
  const char c = text[at - 1];
  return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_');
}

// "unique a+b:less<...>" is "unique ", {"a", "b"} and ":less<...>".
struct PartText {
  std::string word, rest;
  std::vector<std::string> members;

  explicit PartText(std::string_view text) {
    const auto colon = std::min(text.find(':'), text.size());
    rest = text.substr(colon);
    text = text.substr(0, colon);
    const auto space = text.rfind(' ');
    word = text.substr(0, space + 1);
    text.remove_prefix(space + 1);
    while (!text.empty()) {
      const auto plus = std::min(text.find('+'), text.size());
      members.emplace_back(text.substr(0, plus));
      text.remove_prefix(std::min(plus + 1, text.size()));
    }
  }
};

const value::Part* part_of(const value::Type& row, std::string_view name) {
  for (const value::Part& part : row.parts)
    if (part.name == name) return &part;
  return nullptr;
}

}  // namespace

const value::Type* TypeChanges::of_program(std::string_view text) const {
  for (const value::Type* type : records_)
    if (value::text_of(*type) == text) return type;
  return nullptr;
}

bool TypeChanges::can_stay(std::string_view x, std::string_view y, const std::string& path) {
  return compare(x, y, path, false);
}

bool TypeChanges::can_stay_but_pointed(std::string_view x, std::string_view y,
                                       const std::string& path) {
  const std::size_t before = pairs_.size();
  if (compare(x, y, path, true)) return true;
  pairs_.resize(before);
  return false;
}

void TypeChanges::note(std::string_view x, std::string_view y, const std::string& path) {
  if (std::none_of(pairs_.begin(), pairs_.end(),
                   [&](const StructPair& one) { return one.before == x && one.now == y; }))
    pairs_.push_back({std::string(x), std::string(y), path});
}

bool TypeChanges::compare(std::string_view x, std::string_view y, const std::string& path,
                          bool noted) {
  char last = '<';
  while (!x.empty() && !y.empty()) {
    if (begins_word({&last, 1}, 1)) {
      if (x.starts_with(record_word) && y.starts_with(record_word) && record(x, y, path)) {
        last = '>';
        continue;
      }
      if (x.starts_with(table_word) && y.starts_with(table_word) && x != y) {
        if (!table(x, y, path)) return false;
        last = '1';
        continue;
      }
    }
    if (x.front() != y.front()) return false;
    last = x.front();
    if (last == '#') {
      const auto x_end = end_of_number(x, 1), y_end = end_of_number(y, 1);
      if (noted)
        note(x.substr(0, x_end), y.substr(0, y_end), path);
      else if (!same_struct(x.substr(0, x_end), y.substr(0, y_end)))
        return false;
      x.remove_prefix(x_end);
      y.remove_prefix(y_end);
    } else {
      x.remove_prefix(1);
      y.remove_prefix(1);
    }
  }
  return x.empty() && y.empty();
}

bool TypeChanges::same_struct(std::string_view x, std::string_view y) {
  // Taken as true while the structs are compared, since a struct may lead to itself.
  const auto [found, added] = known_.try_emplace({std::string(x), std::string(y)}, true);
  if (!added) return found->second;
  const auto a = before_.behind.find(x), b = now_.behind.find(y);
  bool same =
      a != before_.behind.end() && b != now_.behind.end() && a->second.size() == b->second.size();
  for (std::size_t i = 0; same && i < a->second.size(); ++i) {
    const LayoutLine &left = a->second[i], &right = b->second[i];
    same = left.path == right.path && left.at == right.at && left.bytes == right.bytes &&
           can_stay(left.type, right.type, std::string(y) + "." + right.path);
  }
  known_[{std::string(x), std::string(y)}] = same;
  return same;
}

// Whether records of one struct correspond to those of the other, whatever steps that needs.
bool TypeChanges::struct_changes(std::string_view before, std::string_view now,
                                 const std::string& path) {
  if (before == now) return true;
  const auto old = value::parse(before);
  const value::Type* const type = of_program(now);
  if (!old || type == nullptr) return false;
  const value::Comparison compared = value::compare(old->type(), *type, path);
  changes_.insert(changes_.end(), compared.changes().begin(), compared.changes().end());
  return true;
}

bool TypeChanges::record(std::string_view& x, std::string_view& y, const std::string& path) {
  std::string_view a = x.substr(record_word.size()), b = y.substr(record_word.size());
  const std::string_view old = a, now = b;
  if (!value::parse_front(a) || !value::parse_front(b)) return false;
  if (!a.starts_with('>') || !b.starts_with('>')) return false;
  if (!struct_changes(old.substr(0, old.size() - a.size()), now.substr(0, now.size() - b.size()),
                      path))
    return false;
  x = a.substr(1);
  y = b.substr(1);
  return true;
}

bool TypeChanges::table(std::string_view& x, std::string_view& y, const std::string& path) {
  TableText before, now;
  if (!before.take(x) || !now.take(y) || before.parts.size() != now.parts.size()) return false;
  if (!struct_changes(before.row, now.row, path)) return false;
  for (std::size_t i = 0; i < now.parts.size(); ++i) {
    if (part_in_pool(before, now, now.parts[i]) != before.parts[i]) return false;
    if (!same_members(before, before.parts[i], now, now.parts[i])) return false;
  }
  return true;
}

bool TypeChanges::rows_can_stay(std::string_view x, std::string_view y, const std::string& path) {
  return struct_changes(x, y, path);
}

std::string TypeChanges::part_in_pool(const TableText& before, const TableText& now,
                                      const std::string& part) {
  const auto old = value::parse(before.row);
  const value::Type* const type = of_program(now.row);
  if (!old || type == nullptr) return part;
  const PartText text(part);
  std::string out = text.word;
  for (const std::string& member : text.members) {
    std::string name = member;
    if (part_of(old->type(), member) == nullptr)
      for (const renamed& one : type->renamed)
        if (one.now == member && part_of(old->type(), one.before) != nullptr) name = one.before;
    if (out.size() > text.word.size()) out += '+';
    out += name;
  }
  return out + text.rest;
}

bool TypeChanges::same_members(const TableText& before, const std::string& part,
                               const TableText& now, const std::string& now_part) {
  if (before.row == now.row) return true;
  const auto old = value::parse(before.row), mine = value::parse(now.row);
  if (!old || !mine) return false;
  const PartText left(part), right(now_part);
  for (std::size_t i = 0; i < left.members.size() && i < right.members.size(); ++i) {
    const value::Part* const a = part_of(old->type(), left.members[i]);
    const value::Part* const b = part_of(mine->type(), right.members[i]);
    if (a == nullptr || b == nullptr || value::text_of(*a->type) != value::text_of(*b->type))
      return false;
  }
  return true;
}

Status add_shapes(std::string_view layout) {
  for (const std::string_view word : {record_word, table_word}) {
    for (std::size_t at = layout.find(word); at != std::string_view::npos;
         at = layout.find(word, at + 1)) {
      if (!begins_word(layout, at)) continue;
      std::string_view rest = layout.substr(at + word.size());
      const std::string_view all = rest;
      const auto parsed = value::parse_front(rest);
      if (!parsed || parsed->type().kind != value::Kind::structure) continue;
      const Status added = value::shapes::add(all.substr(0, all.size() - rest.size()));
      if (added.code() == Code::incompatible) return added;
    }
  }
  return {};
}

}  // namespace perdure::detail
