// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/evolve/type_parts.hpp"

#include <cstdlib>
#include <cstring>
#include <string>

#include "perdure/api/plan.hpp"
#include "perdure/evolve/layout_lines.hpp"

namespace perdure::detail {
namespace {

constexpr std::string_view hook_type = "list_hook/1", pointer_word = "ptr<";

std::uint64_t number_at(std::string_view text, std::size_t at) {
  return std::strtoull(std::string(text.substr(at, end_of_number(text, at) - at)).c_str(), nullptr,
                       10);
}

/// The place of the last '[' of a type that ends with ']'; npos for others.
std::size_t array_at(std::string_view type) {
  return type.ends_with(']') ? type.rfind('[') : std::string_view::npos;
}

/// The size of a part, an array or a struct that is held whole; 0 if its text does not say it.
std::uint64_t size_of(std::string_view type) {
  if (const auto array = array_at(type); array != std::string_view::npos)
    return size_of(type.substr(0, array)) * number_at(type, array + 1);
  if (type.starts_with(pointer_word)) return 8;
  if (type == hook_type) return 24;
  const auto end = type.rfind('}');
  return type.starts_with('{') && end != std::string_view::npos ? number_at(type, end + 1) : 0;
}

/// Whether a type may contain more than numbers.
bool may_lead(std::string_view type) { return type.find_first_of("</") != std::string_view::npos; }

}  // namespace

void each_type_part(std::string_view type, std::uint64_t at, std::uint64_t end,
                    const std::function<void(std::string_view, std::uint64_t)>& f) {
  if (const auto array = array_at(type); array != std::string_view::npos) {
    const std::string_view element = type.substr(0, array);
    if (!may_lead(element)) return;
    const std::uint64_t n = number_at(type, array + 1), size = size_of(element);
    for (std::uint64_t i = 0; i < n && (i == 0 || at < end); ++i, at += size) {
      each_type_part(element, at, end, f);
      if (size == 0) return;  // an array of containers: the first one stands for all
    }
    return;
  }
  if (!type.starts_with('{')) return f(type, at);
  if (!may_lead(type)) return;
  // {name:type@offset,...}size
  int depth = 0;
  std::size_t from = 1;
  for (std::size_t i = 1; i < type.size(); ++i) {
    const char c = type[i];
    if (depth == 0 && (c == ',' || c == '}')) {
      std::string_view part = type.substr(from, i - from);
      const auto offset = part.rfind('@');
      if (offset != std::string_view::npos) {
        const std::uint64_t place = at + number_at(part, offset + 1);
        part = part.substr(0, offset);
        const auto colon = part.find(':');
        if (colon != std::string_view::npos && colon < part.find_first_of("<{") &&
            part.substr(0, colon) != "enum")
          part.remove_prefix(colon + 1);
        each_type_part(part, place, end, f);
      }
      from = i + 1;
      if (c == '}') return;
    }
    depth += c == '{' || c == '<' ? 1 : c == '}' || c == '>' ? -1 : 0;
  }
}

bool owns_blocks_by_text(std::string_view type) {
  bool owns = false;
  each_type_part(type, 0, 0, [&](std::string_view part, std::uint64_t) {
    if (part.starts_with(pointer_word) || part.starts_with("retired<")) return;
    const auto slash = part.rfind('/');
    const bool numbered = slash != std::string_view::npos && slash + 1 < part.size() &&
                          end_of_number(part, slash + 1) == part.size();
    owns = owns || numbered || part.starts_with("rebuilt<");
  });
  return owns;
}

void refuse_pointers_into_root(Plan& plan, std::string_view layout, const std::byte* root,
                               std::uint64_t address, std::uint64_t bytes) {
  const auto word = [&](std::uint64_t at) {
    std::uint64_t value = 0;
    if (at <= bytes && bytes - at >= sizeof value) std::memcpy(&value, root + at, sizeof value);
    return value;
  };
  const auto refuse = [&](const std::string& what, const char* advice) {
    if (!plan.refused.empty() && plan.refused.back() == what) return;  // the same array's
    plan.refused.push_back(what);
    plan.said.refusals.push_back(what + " (" + advice + ")");
  };
  for (const LayoutLine& line : LayoutLines(layout).root)
    each_type_part(line.type, line.at, bytes, [&](std::string_view type, std::uint64_t at) {
      if (type.starts_with(pointer_word) && word(at) >= address && word(at) - address < bytes)
        refuse(line.path + ": it points into the root object, which moves",
               "let it lead to a block of its own, by an update of the program that has the pool");
      else if (type == hook_type && word(at + 16) != 0)
        refuse(line.path + ": it lies in the root object, which moves, and is in a hooked_list",
               "take it out of the list, by an update of the program that has the pool, and hold "
               "such objects in a container or a box");
    });
}

}  // namespace perdure::detail
