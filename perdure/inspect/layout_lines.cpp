// SPDX-License-Identifier: BSD-3-Clause
//
// TreeReader: the lines of a layout text, "path: type @offset size", and the structs that they
// describe.
#include <algorithm>
#include <charconv>
#include <utility>

#include "perdure/base/status.hpp"
#include "perdure/inspect/layout_reader.hpp"

namespace perdure::inspect {

void wrong_layout(std::string_view found, std::string_view expected) {
  throw error(failure(Code::corrupt, "", "a layout text with '" + std::string(found) + "'",
                      std::string(expected),
                      "the pool's header is damaged, or a newer build wrote it"));
}

std::uint64_t layout_number(std::string_view text) {
  std::uint64_t n = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (problem != std::errc{} || end != text.data() + text.size() || n >> 48 != 0)
    wrong_layout(text, "a number below 2^48");
  return n;
}

namespace {

LayoutLine read_line(std::string_view text) {
  LayoutLine line;
  const auto colon = text.find(": "), at = text.rfind(" @");
  if (colon == std::string_view::npos || at == std::string_view::npos || at < colon + 2)
    wrong_layout(text, "lines of the form 'path: type @offset size'");
  line.type = text.substr(colon + 2, at - colon - 2);
  const std::string_view place = text.substr(at + 2);
  const auto space = place.find(' ');
  if (space == std::string_view::npos)
    wrong_layout(text, "an offset and a size at the end of each line");
  line.at = layout_number(place.substr(0, space));
  line.size = layout_number(place.substr(space + 1));
  std::string_view path = text.substr(0, colon);
  while (!path.empty()) {
    const auto end = std::min(path.find('.'), path.size());
    std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (line.path.empty() && line.definition == 0 && part.starts_with('#'))
      line.definition = layout_number(part.substr(1));
    else
      line.path.push_back(part);
    if (part.empty()) wrong_layout(text, "a path without empty parts");
  }
  if (line.path.empty() || line.path.size() > 32) wrong_layout(text, "a path of 1 to 32 parts");
  return line;
}

}  // namespace

Tree TreeReader::read(std::string_view text) {
  std::vector<LayoutLine> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (end != 0) lines.push_back(read_line(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto root_end = std::find_if(lines.begin(), lines.end(),
                                     [](const LayoutLine& line) { return line.definition != 0; });
  Layout& root = make(Kind::structure);
  tree_.root_ = &root;
  fill(root, {lines.begin(), root_end}, 0, 0);
  for (auto from = root_end; from != lines.end();) {
    const std::uint64_t which = from->definition;
    const auto to = std::find_if(from, lines.end(),
                                 [&](const LayoutLine& line) { return line.definition != which; });
    if (which > lines.size())
      wrong_layout("#" + std::to_string(which), "a definition that is used");
    (void)names_.next();
    names_.open();
    Layout& target = definition(which);
    target.parts.clear();
    fill(target, {from, to}, 0, 0);
    names_.close();
    from = to;
  }
  // A text that is cut may lack the lines of a struct. What pointers to it lead to is then unknown.
  for (Layout* target : tree_.definitions_)
    if (target->parts.empty()) target->kind = Kind::unknown, target->leads = true;
  return std::move(tree_);
}

Layout& TreeReader::definition(std::uint64_t which) {
  if (which == 0 || which > 10'000)
    wrong_layout("#" + std::to_string(which), "a number up to 10000");
  while (tree_.definitions_.size() < which) {
    Layout& made = make(Kind::structure);
    tree_.definitions_.push_back(&made);
    made.text = "#" + std::to_string(tree_.definitions_.size());
    made.leads = true;
  }
  return *tree_.definitions_[which - 1];
}

void TreeReader::fill(Layout& structure, std::vector<LayoutLine> lines, std::size_t depth,
                      std::uint64_t base) {
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < lines.size();) {
    if (lines[i].path.size() <= depth)
      wrong_layout(lines[i].type, "a path that is no other path's beginning");
    const std::string_view name = lines[i].path[depth];
    std::size_t end = i + 1;
    while (end < lines.size() && lines[end].path.size() > depth && lines[end].path[depth] == name)
      ++end;
    Member member;
    if (name.find_first_not_of("0123456789") == std::string_view::npos) {
      const std::uint64_t index = layout_number(name);
      for (; next <= index && next < lines.size() + index; ++next) {
        if (next + 64 < index) next = index;  // a damaged index
        member.name = names_.next();
      }
    } else {
      member.name = name;
    }
    const LayoutLine& first = lines[i];
    member.at = first.at - std::min(first.at, base);
    if (first.path.size() == depth + 1) {
      member.type = &field(first);
    } else {
      Layout& inner = make(Kind::structure);
      names_.open();
      fill(inner,
           {lines.begin() + static_cast<std::ptrdiff_t>(i),
            lines.begin() + static_cast<std::ptrdiff_t>(end)},
           depth + 1, first.at);
      names_.close();
      member.type = &inner;
    }
    for (std::size_t k = i; k < end; ++k)
      structure.size = std::max(structure.size, lines[k].at + lines[k].size - base);
    structure.align = std::max(structure.align, member.type->align);
    structure.leads = structure.leads || member.type->leads;
    structure.parts.push_back(std::move(member));
    i = end;
  }
}

Layout& TreeReader::field(const LayoutLine& line) {
  Layout& type = whole(line.type);
  if (type.size == line.size) return type;
  if (type.size != 0) {  // another version of a type that this build knows
    Layout& other = unknown(line.type);
    other.size = line.size;
    return other;
  }
  type.size = line.size;
  return type;
}

}  // namespace perdure::inspect
