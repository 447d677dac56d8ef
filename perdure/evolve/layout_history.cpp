// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/evolve/layout_history.hpp"

#include <algorithm>
#include <optional>

#include "perdure/api/plan.hpp"
#include "perdure/evolve/type_words.hpp"

namespace perdure::detail {
namespace {

constexpr std::string_view settled_word = "settled ", renamed_word = "renamed ",
                           stepped_word = "stepped ";

// The rest of the line of the notes that begins with "WORD PATH", such as " OLD"; none if there is
// no such line.
std::optional<std::string_view> said_of(std::string_view notes, std::string_view word,
                                        std::string_view path) {
  while (!notes.empty()) {
    std::string_view line = notes.substr(0, notes.find('\n'));
    notes.remove_prefix(std::min(line.size() + 1, notes.size()));
    if (!line.starts_with(word)) continue;
    line.remove_prefix(word.size());
    if (!line.starts_with(path)) continue;
    line.remove_prefix(path.size());
    if (line.empty() || line.front() == ' ') return line;
  }
  return {};
}

}  // namespace

void note_renamed(std::string& notes, std::string_view path, std::string_view before) {
  notes.append(renamed_word).append(path).append(" ").append(before).append("\n");
}
void note_settled(std::string& notes, std::string_view path) {
  notes.append(settled_word).append(path).append("\n");
}

void note_stepped(std::string& notes, std::string_view path) {
  notes.append(stepped_word).append(path).append("\n");
}

std::vector<std::string> missing_steps(std::string_view began, std::string_view now) {
  std::vector<std::string> all;
  const auto only_in = [&](std::string_view notes, std::string_view others, std::string_view word) {
    while (!notes.empty()) {
      const std::string_view line = notes.substr(0, notes.find('\n'));
      notes.remove_prefix(std::min(line.size() + 1, notes.size()));
      if (line.starts_with(word) && !said_of(others, word, line.substr(word.size())))
        all.emplace_back(line.substr(word.size()));
    }
  };
  only_in(began, now, settled_word);
  only_in(began, now, stepped_word);
  only_in(now, began, stepped_word);
  return all;
}

LayoutHistory::LayoutHistory(const pool::CatalogContents& catalog, std::size_t newest) {
  for (std::size_t i = newest + 1; i < catalog.layouts.size(); ++i) {
    before_.emplace_back(catalog.layouts[i]);
    notes_.push_back(catalog.notes[i - 1]);
  }
}

void LayoutHistory::each(
    std::string path, const std::function<void(const LayoutLines&, const LayoutLine&)>& f) const {
  for (std::size_t i = 0; i < before_.size(); ++i) {
    if (said_of(notes_[i], settled_word, path)) return;
    const auto renamed = said_of(notes_[i], renamed_word, path);
    if (renamed && !renamed->empty()) path = renamed->substr(1);
    const auto& lines = before_[i].root;
    const auto line = std::find_if(lines.begin(), lines.end(),
                                   [&](const LayoutLine& one) { return one.path == path; });
    if (line == lines.end()) return;
    f(before_[i], *line);
  }
}

std::vector<std::string> LayoutHistory::records(const std::string& path) const {
  std::vector<std::string> all;
  each(path,
       [&](const LayoutLines&, const LayoutLine& line) { all.emplace_back(record_in(line.type)); });
  return all;
}

}  // namespace perdure::detail
