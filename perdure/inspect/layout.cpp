// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/inspect/layout.hpp"

#include <algorithm>
#include <utility>

#include "perdure/base/status.hpp"
#include "perdure/inspect/layout_reader.hpp"

namespace perdure::inspect {

Tree read_layout(std::string_view text, std::string_view names) {
  return TreeReader(names).read(text);
}

const Layout* Tree::record(std::uint64_t shape) const {
  const auto found = records_.find(shape);
  return found == records_.end() ? nullptr : found->second;
}

void Tree::add_records(std::string_view text) {
  try {
    Tree other = read_layout(text, "");
    // Moving a deque does not move its nodes.
    records_.merge(other.records_);
    others_.push_back(std::move(other.nodes_));
  } catch (const error& e) {
    if (e.code() != Code::corrupt) throw;
  }
}

bool is_bytes_alone(const Layout& value) noexcept {
  if (value.kind == Kind::scalar) return true;
  if (value.kind == Kind::array) return is_bytes_alone(value.element());
  return value.kind == Kind::structure && !value.parts.empty() && value.parts.front().name != "0" &&
         std::all_of(value.parts.begin(), value.parts.end(),
                     [](const Member& part) { return is_bytes_alone(*part.type); });
}

Member Tree::field(std::string_view path) const {
  Member found{"", root_, 0};
  std::string_view left = path;
  while (!left.empty()) {
    const auto end = std::min(left.find('.'), left.size());
    const std::string_view name = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    const auto& parts = found.type->parts;
    const bool inside = found.type->kind == Kind::structure;
    std::string all;
    const Member* next = nullptr;
    for (std::size_t i = 0; inside && i < parts.size(); ++i) {
      const std::string number = std::to_string(i);
      all += (all.empty() ? "" : ", ") + (parts[i].name.empty() ? number : parts[i].name);
      if (parts[i].name == name || (next == nullptr && number == name)) next = &parts[i];
    }
    if (next == nullptr)
      throw error(failure(Code::not_found, "", "no field '" + std::string(path) + "'",
                          inside ? "one of " + all : "a field of the root's structs",
                          "`perdure schema` lists the fields"));
    found = {next->name.empty() ? std::string(name) : next->name, next->type, found.at + next->at};
  }
  return found;
}

bool is_tuple(const Layout& key) noexcept {
  return key.kind == Kind::structure && key.named && !key.parts.empty() &&
         key.parts.front().name == "0";
}

bool has_known_order(const Layout& key) noexcept {
  if (key.own_order) return false;
  switch (key.kind) {
    case Kind::scalar: return key.size <= 8 || key.number != value::Number::floating;
    case Kind::text: return true;
    case Kind::structure:
      // Any other struct may have an operator<.
      return is_tuple(key) &&
             std::all_of(key.parts.begin(), key.parts.end(),
                         [](const Member& part) { return has_known_order(*part.type); });
    case Kind::optional:
    case Kind::variant:
    case Kind::array:
      return std::all_of(key.parts.begin(), key.parts.end(),
                         [](const Member& part) { return has_known_order(*part.type); });
    default: return false;  // a sequence may hold its own struct
  }
}

}  // namespace perdure::inspect
