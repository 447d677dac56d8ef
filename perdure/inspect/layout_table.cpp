// SPDX-License-Identifier: BSD-3-Clause
//
// TreeReader: tables, "table<{...}n,key name,index name,...>/1" (table_parts.hpp).
#include <algorithm>
#include <utility>

#include "perdure/base/checksum.hpp"
#include "perdure/inspect/layout_reader.hpp"

namespace perdure::inspect {

Layout* TreeReader::table(unsigned depth) {
  Layout& made = make(Kind::table);
  made.leads = true;
  const std::string_view text = left_;
  const Layout& row = type(depth + 1);
  if (row.kind != Kind::structure) return nullptr;
  made.shape = base::hash_bytes(text.data(), text.size() - left_.size(), 0);
  tree_.records_.emplace(made.shape, &row);
  made.parts.push_back({"row", &row, 16});  // behind the row's number and shape
  Layout& address = this->address(Kind::pointer);
  address.text = "row";
  while (take(',')) {
    const auto end = std::min(left_.find_first_of(":,>"), left_.size());
    const std::string_view part = left_.substr(0, end);
    left_.remove_prefix(end);
    // The members' types follow if one of them has an order or a hash of its own.
    std::string_view marks;
    if (take(':')) {
      const std::string_view from = left_;
      for (skip(); take('!'); skip()) (void)take_number();
      marks = from.substr(0, from.size() - left_.size());
    }
    constexpr std::string_view dropped = "dropped ";
    const std::string_view was =
        part.starts_with(dropped) ? part.substr(dropped.size()) : part;  // its map stays
    const auto space = was.find(' ');
    if (space == std::string_view::npos) return nullptr;
    const std::string_view word = was.substr(0, space), name = was.substr(space + 1);
    std::vector<const Layout*> found_by;
    if (!members_of(row, name, found_by)) return nullptr;
    if (!marks.empty()) mark(found_by, marks, depth);
    Layout* const by = part_map(word, found_by, address);
    if (by == nullptr) return nullptr;
    made.parts.push_back({std::string(part), by, table_part_bytes * made.parts.size()});
  }
  if (made.parts.size() < 2 || !take('>') || !left_.starts_with("/1")) return nullptr;
  left_.remove_prefix(2);
  made.align = 64;
  made.size = table_part_bytes * (made.parts.size() + 1);
  return &made;
}

bool TreeReader::members_of(const Layout& row, std::string_view names,
                            std::vector<const Layout*>& types) {
  while (true) {
    const auto end = std::min(names.find('+'), names.size());
    const auto member = std::find_if(row.parts.begin(), row.parts.end(), [&](const Member& m) {
      return m.name == names.substr(0, end);
    });
    if (member == row.parts.end()) return false;
    types.push_back(member->type);
    if (end == names.size()) return true;
    names.remove_prefix(end + 1);
  }
}

void TreeReader::mark(std::vector<const Layout*>& members, std::string_view text, unsigned depth) {
  if (members.size() == 1) {
    const std::string_view rest = std::exchange(left_, text);
    members.front() = &type(depth + 1);
    left_ = rest;
    return;
  }
  for (const Layout*& member : members) {
    Layout marked = *member;
    marked.own_order = marked.own_order || text.find("less<") != std::string_view::npos;
    marked.own_hash = marked.own_hash || text.find("hash<") != std::string_view::npos;
    member = &tree_.nodes_.emplace_back(std::move(marked));
  }
}

Layout* TreeReader::part_map(std::string_view word, std::vector<const Layout*> members,
                             const Layout& row) {
  const bool one_each = word == "key" || word == "ordered_key" || word == "unique";
  if (!one_each && word != "index" && word != "descending" && word != "expires") return nullptr;
  if (word == "descending") {
    for (const Layout*& member : members) {
      Layout reversed = *member;
      reversed.reversed = true;
      member = &tree_.nodes_.emplace_back(std::move(reversed));
    }
  }
  const Layout* const by =
      one_each && members.size() == 1 ? members.front() : tuple(members, !one_each);
  const bool hashed = word == "key";
  return map_of(by, row, hashed ? 128 : 15, hashed ? Kind::hash_map : Kind::map);
}

}  // namespace perdure::inspect
