// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/match_names.hpp"

#include <algorithm>

namespace perdure::value {
namespace {

bool has(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The names that a field had: element n has those to which n renamings lead, so element 0 has its
/// own name. A chain ends at a name that the earlier version has.
std::vector<std::vector<std::string_view>> earlier_names(
    std::string_view name, const std::vector<std::string_view>& before,
    const std::vector<perdure::renamed>& renamed) {
  std::vector<std::vector<std::string_view>> steps{{name}};
  std::vector<std::string_view> seen{name};
  while (!steps.back().empty()) {
    std::vector<std::string_view> next;
    for (const std::string_view one : steps.back()) {
      if (steps.size() > 1 && has(before, one)) continue;
      for (const perdure::renamed& entry : renamed) {
        if (entry.now != one || has(seen, entry.before)) continue;
        seen.push_back(entry.before);
        next.push_back(entry.before);
      }
    }
    steps.push_back(std::move(next));
  }
  return steps;
}

}  // namespace

MatchedNames match_names(const std::vector<std::string_view>& before,
                         const std::vector<std::string_view>& now,
                         const std::vector<perdure::renamed>& renamed) {
  MatchedNames out;
  out.from.resize(now.size());
  std::vector<std::optional<std::size_t>> taken(before.size());
  std::vector<std::vector<std::vector<std::string_view>>> names;
  names.reserve(now.size());
  std::size_t most = 0;
  for (const std::string_view name : now) {
    names.push_back(earlier_names(name, before, renamed));
    most = std::max(most, names.back().size());
  }
  // Whether the earlier field with this name has been renamed to a name that no earlier field had.
  const auto renamed_away = [&](std::string_view name) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (has(before, now[i])) continue;
      for (std::size_t steps = 1; steps < names[i].size(); ++steps)
        if (has(names[i][steps], name)) return true;
    }
    return false;
  };
  for (std::size_t steps = 0; steps < most; ++steps)
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (out.from[i] || steps >= names[i].size()) continue;
      for (const std::string_view name : names[i][steps]) {
        if (steps == 0 && renamed_away(name)) continue;
        for (std::size_t k = 0; k < before.size() && !out.from[i]; ++k) {
          if (before[k] != name || taken[k]) continue;
          taken[k] = i;
          out.from[i] = k;
        }
      }
    }
  // A field without a match whose chain leads to an earlier field that another field has matched by
  // its own chain: which of the two the earlier field was can't be known.
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (out.from[i]) continue;
    for (std::size_t steps = 1; steps < names[i].size(); ++steps)
      for (const std::string_view name : names[i][steps])
        for (std::size_t k = 0; k < before.size(); ++k)
          if (before[k] == name && taken[k] && now[*taken[k]] != name)
            out.both.push_back({k, *taken[k], i});
  }
  return out;
}

std::string both_text(std::string_view one, std::string_view other) {
  return "by perdure_renamed both " + std::string(one) + " and " + std::string(other) +
         " were it: leave it out of one field's names; a field that is new has no earlier name";
}

}  // namespace perdure::value
