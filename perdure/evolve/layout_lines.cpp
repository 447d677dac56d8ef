// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/evolve/layout_lines.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace perdure::detail {

LayoutLines::LayoutLines(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto colon = line.find(": "), at = line.rfind(" @"), space = line.rfind(' ');
    if (colon == std::string_view::npos || at == std::string_view::npos || at < colon + 2) continue;
    LayoutLine l{std::string(line.substr(0, colon)),
                 std::string(line.substr(colon + 2, at - colon - 2)),
                 std::strtoull(std::string(line.substr(at + 2)).c_str(), nullptr, 10),
                 std::strtoull(std::string(line.substr(space + 1)).c_str(), nullptr, 10)};
    if (!l.path.starts_with('#')) {
      root.push_back(std::move(l));
    } else {
      const std::string number = l.path.substr(0, l.path.find('.'));
      l.path.erase(0, number.size() + 1);
      behind[number].push_back(std::move(l));
    }
  }
}

const std::vector<LayoutLine>& LayoutLines::lines_of(std::string_view number) const {
  static const std::vector<LayoutLine> none;
  const auto found = behind.find(number);
  return found == behind.end() ? none : found->second;
}

std::vector<LayoutLine> fields_of_text(std::string_view text) {
  std::vector<LayoutLine> all;
  if (!text.starts_with('{')) return all;
  int depth = 0;
  std::size_t from = 1;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const char c = text[i];
    if (depth == 0 && (c == ',' || c == '}')) {
      const std::string_view part = text.substr(from, i - from);
      const auto colon = part.find(':'), offset = part.rfind('@');
      if (colon != std::string_view::npos && offset != std::string_view::npos && colon < offset) {
        LayoutLine line{std::string(part.substr(0, colon)),
                        std::string(part.substr(colon + 1, offset - colon - 1)),
                        std::strtoull(std::string(part.substr(offset + 1)).c_str(), nullptr, 10)};
        if (!line.type.starts_with('{') || line.type.ends_with(']')) {
          all.push_back(std::move(line));
        } else {
          for (LayoutLine& inner : fields_of_text(line.type))
            all.push_back({line.path + "." + inner.path, inner.type, line.at + inner.at});
        }
      }
      from = i + 1;
      if (c == '}') return all;
    }
    depth += c == '{' || c == '<' ? 1 : c == '}' || c == '>' ? -1 : 0;
  }
  return all;
}

std::size_t end_of_number(std::string_view text, std::size_t at) noexcept {
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  return at;
}

bool TableText::take(std::string_view& type) {
  constexpr std::string_view begin = "table<", end = ">/1";
  if (!type.starts_with(begin)) return false;
  std::vector<std::string> found;
  int depth = 0;
  std::size_t from = begin.size();
  for (std::size_t i = from; i < type.size(); ++i) {
    const bool last = depth == 0 && type[i] == '>';
    if (depth == 0 && (last || type[i] == ',')) {
      found.emplace_back(type.substr(from, i - from));
      from = i + 1;
    }
    if (last) {
      if (!type.substr(i).starts_with(end) || found.size() < 2) return false;
      type.remove_prefix(i + end.size());
      row = std::move(found.front());
      parts.assign(std::make_move_iterator(found.begin() + 1),
                   std::make_move_iterator(found.end()));
      return true;
    }
    if (type[i] == '{' || type[i] == '<') ++depth;
    if (type[i] == '}' || type[i] == '>') --depth;
  }
  return false;
}

}  // namespace perdure::detail
