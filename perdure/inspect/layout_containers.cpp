// SPDX-License-Identifier: BSD-3-Clause
//
// TreeReader: the types of containers, and of the maps inside some of them.
#include <algorithm>
#include <iterator>
#include <utility>

#include "perdure/inspect/layout_reader.hpp"

namespace perdure::inspect {

Layout* TreeReader::container(std::string_view word, unsigned depth) {
  static constexpr std::pair<std::string_view, Kind> kinds[] = {
      {"vector", Kind::vector},     {"list", Kind::list},
      {"queue", Kind::queue},       {"map", Kind::map},
      {"box", Kind::box},           {"rb_tree", Kind::rb_tree},
      {"hash_map", Kind::hash_map}, {"set", Kind::set},
      {"hash_set", Kind::hash_set}, {"multimap", Kind::multimap},
      {"deque", Kind::deque},       {"priority_queue", Kind::priority_queue}};
  if (word == "hooked_list") return hooked_list();
  const auto* const found = std::find_if(std::begin(kinds), std::end(kinds),
                                         [&](const auto& kind) { return kind.first == word; });
  if (found == std::end(kinds)) return nullptr;
  Layout& made = make(found->second);
  made.leads = true;
  made.parts.push_back({{}, &type(depth + 1), 0});
  if (made.is_set()) {
    made.parts.push_back({{}, &number_type(1), 0});
  } else if (made.is_map()) {
    if (!take(',')) return nullptr;
    made.parts.push_back({{}, &type(depth + 1), 0});
  }
  if (made.kind == Kind::priority_queue) {
    if (!take(',')) return nullptr;
    const auto end = std::min(left_.find('>'), left_.size());
    priority(made, left_.substr(0, end));
    left_.remove_prefix(end);
  }
  if (made.is_btree() || made.is_hashed() || made.kind == Kind::multimap) {
    const auto n = take(',') ? take_number() : std::nullopt;
    if (!n || *n == 0 || *n > 4096) return nullptr;
    made.count = *n;
  }
  if (!take('>') || !left_.starts_with("/1")) return nullptr;
  left_.remove_prefix(2);
  if (made.kind == Kind::multimap) return multimap(made);
  if (made.kind == Kind::deque) return deque(made);
  return settle(made);
}

Layout& TreeReader::number_type(std::uint64_t bytes, value::Number number) {
  Layout& made = make(Kind::scalar);
  made.size = made.align = bytes;
  made.number = number;
  made.text = (number == signed_ ? "i" : "u") + std::to_string(8 * bytes);
  return made;
}

void TreeReader::priority(Layout& queue, std::string_view order) {
  const Layout& element = queue.element();
  const bool number = element.kind == Kind::scalar && element.number != value::Number::floating;
  queue.ordered = (order == "less" || order == "greater") && (number || element.kind == Kind::text);
  queue.reversed = order == "greater";
}

Layout* TreeReader::multimap(Layout& made) {
  Layout* const inner = map_of(tuple({&made.element()}), made.mapped(), made.count);
  if (inner == nullptr) return nullptr;
  made.parts.push_back({"map", inner, inner_map_at});
  made.size = 2 * inner_map_at, made.align = 64;
  return &made;
}

Layout* TreeReader::deque(Layout& made) {
  Layout* const inner = map_of(&number_type(8, signed_), address(Kind::pointer), 15);
  if (inner == nullptr || !place_nodes(made)) return nullptr;
  made.parts.push_back({"map", inner, inner_map_at});
  made.size = 2 * inner_map_at, made.align = 64;
  return &made;
}

/// hooked_list<hook's offset/element's size>/2: its text does not say what its elements are.
Layout* TreeReader::hooked_list() {
  Layout& made = make(Kind::hooked_list);
  const auto at = take_number();
  const auto bytes = at && take('/') ? take_number() : std::nullopt;
  if (!bytes || *at + 24 > *bytes || !take('>') || !left_.starts_with("/2")) return nullptr;
  left_.remove_prefix(2);
  Layout& element = make(Kind::elsewhere);
  element.size = *bytes, element.align = 8;
  element.text = "an object of " + std::to_string(*bytes) + " bytes";
  made.parts.push_back({{}, &element, 0});
  made.hook_at = *at;
  made.size = 8, made.align = 8;
  made.leads = true;
  return &made;
}

Layout* TreeReader::map_of(const Layout* key, const Layout& value, std::uint64_t entries,
                           Kind kind) {
  if (key == nullptr) return nullptr;
  Layout& made = make(kind);
  made.leads = true;
  made.count = entries;
  made.parts.push_back({"key", key, 0});
  made.parts.push_back({"value", &value, 0});
  return settle(made);
}

Layout* TreeReader::tuple(const std::vector<const Layout*>& types, bool numbered) {
  Layout& made = make(Kind::structure);
  made.named = true;
  Geometry place;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!types[i]->exact || !same_in_image(*types[i])) return nullptr;
    made.leads = made.leads || types[i]->leads;
    made.parts.push_back({std::to_string(i), types[i], place.add(*types[i])});
  }
  if (numbered) {
    const Layout& number = number_type(8);
    made.parts.push_back({std::to_string(types.size()), &number, place.add(number)});
  }
  made.size = place.bytes(), made.align = place.align();
  return place.certain() ? &made : nullptr;
}

bool TreeReader::same_in_image(const Layout& type) {
  if (type.kind != Kind::structure || type.named) return true;
  Geometry place;
  for (const Member& part : type.parts) {
    if (part.type->kind != Kind::scalar || place.add(*part.type) != part.at) return false;
  }
  return place.bytes() == type.size;
}

Layout* TreeReader::settle(Layout& made) {
  made.size = made.is_map() ? 64 : 8;
  made.align = made.is_map() ? 64 : 8;
  if (made.kind == Kind::vector || made.kind == Kind::priority_queue) made.size = 32;
  if (made.kind == Kind::list) made.size = 24;
  if (made.kind == Kind::queue) made.size = 128, made.align = 64;
  if (made.is_btree() && made.count < 4) return nullptr;
  if (made.is_hashed() && (made.count & (made.count - 1)) != 0) return nullptr;
  if (made.kind == Kind::box && made.element().kind == Kind::pointer) {
    // A box owns the object, which its text names as a pointer does.
    Layout& owned = tree_.nodes_.emplace_back(made.element());
    if (owned.parts.empty()) return nullptr;
    owned.kind = Kind::owned;
    made.parts.front().type = &owned;
  }
  return place_nodes(made) ? &made : nullptr;
}

}  // namespace perdure::inspect
