// SPDX-License-Identifier: BSD-3-Clause
//
// TableEntries: builds the rows of a table (table_row.hpp) and the maps by which they are found
// (table_parts.hpp). The map of the key is built together with the rows, and an index when all rows
// exist.
#include <unordered_map>

#include "perdure/inspect/load_entries.hpp"

namespace perdure::inspect {
namespace {

/// The word of a part's name: "key", "index", "dropped".
std::string_view word_of(const Member& part) {
  return std::string_view(part.name).substr(0, part.name.find(' '));
}

}  // namespace

TableEntries::TableEntries(Loader& loader, const Layout& table)
    : LoadEntries(loader), table_(table) {
  for (std::size_t i = 0; i < table.parts.size(); ++i) members_.push_back(found_by(i));
  const Layout& by = *table.parts[1].type;
  if (by.is_hashed())
    first_ = std::make_unique<HashEntries>(loader, by);
  else
    first_ = std::make_unique<TreeEntries>(loader, by);
}
TableEntries::~TableEntries() = default;

std::vector<const Member*> TableEntries::found_by(std::size_t part) const {
  std::vector<const Member*> members;
  if (part == 0) return members;
  const std::string& name = table_.parts[part].name;
  std::string_view left = std::string_view(name).substr(name.rfind(' ') + 1);
  while (true) {
    const auto end = std::min(left.find('+'), left.size());
    for (const Member& member : table_.element().parts)
      if (member.name == left.substr(0, end)) members.push_back(&member);
    if (end == left.size()) return members;
    left.remove_prefix(end + 1);
  }
}

std::byte* TableEntries::value() {
  const Member& row = table_.parts.front();
  row_.assign(row.at + row.type->size, '\0');
  number_ = no_number;
  return reinterpret_cast<std::byte*>(row_.data()) + row.at;
}

bool TableEntries::key_of(std::size_t part, const std::byte* row, std::uint64_t number,
                          std::byte* key) const {
  const std::string_view word = word_of(table_.parts[part]);
  const Layout& by = table_.parts[part].type->element();
  const bool skips = word == "unique" || word == "expires";
  const bool numbered = word == "index" || word == "descending" || word == "expires";
  const std::vector<const Member*>& members = members_[part];
  const bool tuple = numbered || members.size() > 1;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::byte* const from = row + members[i]->at;
    if (skips && members[i]->type->kind == Kind::optional && *from == std::byte{0}) return false;
    std::memcpy(key + (tuple ? by.parts[i].at : 0), from, members[i]->type->size);
  }
  if (numbered) put(key + by.parts.back().at, number);
  return true;
}

void TableEntries::add() {
  if (rows_.empty()) numbered_ = number_ != no_number;
  if (numbered_ != (number_ != no_number))
    loader_.wrong(numbered_ ? "a row without \"$row\"" : "a row with \"$row\"",
                  "a number for each row, or for none");
  const std::uint64_t number = numbered_ ? number_ : next_;
  next_ = std::max(next_, number + 1);
  auto* const bytes = reinterpret_cast<std::byte*>(row_.data());
  put(bytes, number);
  put(bytes + 8, table_.shape);
  const Address at = store().add(bytes, row_.size());
  rows_.push_back({number, at});
  (void)key_of(1, bytes + table_.parts.front().at, number, first_->key());
  loader_.own_blocks(table_.parts[1].type->element(), first_->key());
  put(first_->value(), at);
  first_->add();
}

void TableEntries::order(const std::string& part, std::vector<std::uint64_t> numbers) {
  orders_.emplace_back(part, std::move(numbers));
}

std::vector<TableEntries::Row> TableEntries::sorted(std::size_t part) {
  const Layout& by = table_.parts[part].type->element();
  std::vector<Row> rows;
  if (sorts(by)) {
    std::vector<std::pair<std::string, Row>> keys;
    std::vector<std::byte> key(stride(by)), row(table_.element().size);
    store().view([&](value::Reader& reader) {
      keys.clear();
      for (const Row& one : rows_) {
        reader.read_bytes(row.data(),
                          reinterpret_cast<const void*>(one.at + table_.parts.front().at),
                          row.size());
        if (key_of(part, row.data(), one.number, key.data()))
          keys.emplace_back(sort_key(by, key.data(), reader), one);
      }
    });
    std::sort(keys.begin(), keys.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [unused, one] : keys) rows.push_back(one);
    return rows;
  }
  const std::string& name = table_.parts[part].name;
  const auto order = std::find_if(orders_.begin(), orders_.end(),
                                  [&](const auto& one) { return one.first == name; });
  if (order == orders_.end() && rows_.size() > 1)
    loader_.wrong("no order of the rows by '" + name +
                      "', whose class is ordered by an operator< of the program",
                  "the indexes in the dump: make it with `perdure dump --indexes`");
  if (order == orders_.end()) return rows_;
  std::unordered_map<std::uint64_t, Address> by_number;
  for (const Row& one : rows_) by_number.emplace(one.number, one.at);
  for (const std::uint64_t number : order->second) {
    const auto found = by_number.find(number);
    if (found == by_number.end())
      loader_.wrong("row " + std::to_string(number) + " in '" + name + "'",
                    "the number of a row, once");
    rows.push_back({number, found->second});
    by_number.erase(found);
  }
  return rows;
}

void TableEntries::index(std::size_t part, std::byte* image) {
  if (word_of(table_.parts[part]) == "dropped") return;
  const Layout& by = *table_.parts[part].type;
  TreeEntries tree(loader_, by);
  std::vector<std::byte> row(table_.element().size);
  for (const Row& one : sorted(part)) {
    store().read(row.data(), one.at + table_.parts.front().at, row.size());
    if (!key_of(part, row.data(), one.number, tree.key())) continue;
    loader_.own_blocks(by.element(), tree.key());
    put(tree.value(), one.at);
    tree.add();
  }
  tree.finish(image);
}

void TableEntries::finish(std::byte* image) {
  put(image, next_);
  first_->finish(image + table_.parts[1].at);
  for (std::size_t i = 2; i < table_.parts.size(); ++i) index(i, image + table_.parts[i].at);
}

}  // namespace perdure::inspect
