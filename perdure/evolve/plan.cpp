// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/api/plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "perdure/api/layout.hpp"
#include "perdure/api/row_steps.hpp"
#include "perdure/api/switch.hpp"
#include "perdure/evolve/layout_lines.hpp"
#include "perdure/evolve/type_changes.hpp"
#include "perdure/evolve/type_parts.hpp"
#include "perdure/value/parse.hpp"

namespace perdure::detail {
namespace {

/// Whether a number of type `from` may become one of type `to` by itself.
bool widens(std::string_view from, std::string_view to) {
  const auto bits = [](std::string_view type) {
    const auto end = end_of_number(type, 1);
    return type.size() > 1 && end == type.size() && type.find_first_of("uif") == 0
               ? std::atoi(std::string(type.substr(1)).c_str())
               : 0;
  };
  const int a = bits(from), b = bits(to);
  if (a == 0 || b <= a || b > 64) return false;
  return from[0] == to[0] || (from[0] == 'u' && to[0] == 'i');
}

/// A type without the numbers of structs.
std::string without_numbers(std::string_view type) {
  std::string out;
  for (std::size_t i = 0; i < type.size(); ++i) {
    out += type[i];
    if (type[i] == '#') i = end_of_number(type, i + 1) - 1;
  }
  return out;
}

/// The container that is retired; empty for other types.
std::string_view retired_type(std::string_view type) {
  constexpr std::string_view word = "retired<";
  if (!type.starts_with(word) || !type.ends_with('>')) return {};
  return type.substr(word.size(), type.size() - word.size() - 1);
}

constexpr std::string_view dropped_word = "dropped ";
constexpr std::uint64_t part_bytes = 64;

class Planner {
 public:
  Planner(std::string_view pool, const RootType& program, const Migration& migrate)
      : old_(pool),
        now_(program.text()),
        said_(program.said),
        migrate_(migrate),
        types_(old_, now_, program.records) {}

  Plan make() {
    std::vector<bool> used(old_.root.size(), false);
    for (const LayoutLine& to : now_.root) {
      const std::size_t from = before(to.path);
      if (from == old_.root.size()) {
        if (to.bytes != 0) change(to.path + ": new, " + to.type);
        continue;
      }
      used[from] = true;
      if (old_.root[from].path != to.path)
        change(to.path + ": renamed from " + old_.root[from].path);
      field(old_.root[from], to);
    }
    for (std::size_t i = 0; i < used.size(); ++i)
      if (!used[i]) gone(old_.root[i]);
    for (const MigrationStep& step : migrate_.steps)
      if (!std::any_of(now_.root.begin(), now_.root.end(), [&](const LayoutLine& line) {
            return line.path == step.table && line.type.starts_with("table<");
          }))
        refuse(step.table + ": there is a step for it, and the program has no such table",
               "a step names a field of the root that is a table");
    if (plan_.same()) moved();
    return std::move(plan_);
  }

 private:
  void change(std::string text) { plan_.said.changes.push_back(std::move(text)); }
  void refuse(const std::string& what, const std::string& advice) {
    plan_.refused.push_back(what);
    plan_.said.refusals.push_back(what + " (" + advice + ")");
  }
  void copy(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
    plan_.moves.push_back({from, to, bytes});
  }

  // What the records of a field have changed.
  void records() {
    for (const value::Change& one : types_.taken()) {
      if (one.need == value::Need::nothing) {
        change(one.path + ": " + one.text);
        continue;
      }
      const auto advice = std::min(one.text.find(": "), one.text.size());
      refuse(one.path + ": " + one.text.substr(0, advice),
             one.text.substr(std::min(advice + 2, one.text.size())));
    }
  }

  // Whether the rows become the program's by its steps. Takes what was found of them then.
  bool by_steps(const TableText& before, const LayoutLine& to, const TableText& after) {
    const RowSteps steps(migrate_.steps, to.path);
    const auto old = value::parse(before.row);
    const value::Type* const row = types_.of_program(after.row);
    if (steps.empty() || before.row == after.row || !old || row == nullptr) return false;
    std::vector<std::string> lost;
    if (!steps.lead(old->type(), *row, lost)) return false;
    (void)types_.taken();
    change(to.path + ": the program's steps make its rows of those in the pool");
    plan_.pending = true;
    for (const std::string& field : lost)
      refuse(to.path + "." + field + ": a step reads it, and perdure_removed gives it up",
             "take it out of perdure_removed");
    return true;
  }

  std::size_t index_of(std::string_view path) const {
    return static_cast<std::size_t>(
        std::find_if(old_.root.begin(), old_.root.end(),
                     [&](const LayoutLine& line) { return line.path == path; }) -
        old_.root.begin());
  }
  /// The pool's field of this name or of the name that it had; old_.root.size() if there is none.
  std::size_t before(std::string_view path) const {
    const std::size_t none = old_.root.size();
    const std::size_t found = index_of(path);
    for (const auto& [from, to] : said_.renamed) {
      // The pool's field of this name is the one that is called otherwise now.
      if (found != none && from == path && index_of(to) == none && in_program(to)) return none;
      if (found == none && to == path && index_of(from) != none) return index_of(from);
    }
    return found;
  }
  bool in_program(std::string_view path) const {
    return std::any_of(now_.root.begin(), now_.root.end(),
                       [&](const LayoutLine& line) { return line.path == path; });
  }

  void field(const LayoutLine& from, const LayoutLine& to) {
    if (from.type != to.type) {
      TableText before, after;
      std::string_view old_type = from.type, new_type = to.type;
      if (before.take(old_type) && after.take(new_type) && old_type.empty() && new_type.empty())
        return table(from, before, to, after);
    }
    if (from.bytes == to.bytes && types_.can_stay(from.type, to.type, to.path)) {
      records();
      return copy(from.at, to.at, to.bytes);
    }
    (void)types_.taken();
    if (const std::string_view was = retired_type(to.type); !was.empty()) {
      const bool same = from.bytes == to.bytes && types_.can_stay(from.type, was, to.path);
      (void)types_.taken();  // records are freed as they lie
      if (same) {
        change(to.path + ": retired, its elements are freed");
        plan_.pending = true;
        return copy(from.at, to.at, to.bytes);
      }
      if (without_numbers(from.type) == without_numbers(was))
        return refuse(to.path + ": it is retired, and a struct that it owns has another layout",
                      "retire it with that struct as it was, under another name");
    }
    if (widens(from.type, to.type)) {
      change(to.path + ": " + from.type + " becomes " + to.type);
      plan_.moves.push_back({from.at, to.at, from.bytes, to.bytes, from.type[0]});
      return;
    }
    if (from.type.find('#') != std::string::npos &&
        without_numbers(from.type) == without_numbers(to.type))
      return refuse(to.path + ": a struct that its pointers lead to has another layout",
                    "keep that struct as it is");
    refuse(to.path + ": the pool has " + from.type + ", the program " + to.type,
           "keep this field, add one of the new type under another name, and copy in an update");
  }

  void table(const LayoutLine& from, const TableText& before, const LayoutLine& to,
             const TableText& after) {
    if (!types_.rows_can_stay(before.row, after.row, to.path))
      refuse(to.path + ": the pool has rows " + before.row + ", the program " + after.row,
             "keep this table, add one of the new row under another name, and copy in updates");
    const bool stepped = by_steps(before, to, after);
    if (!stepped) records();
    const std::string& key = after.parts.front();
    if (before.parts.front() != types_.part_in_pool(before, after, key))
      return refuse(
          to.path + ": the pool has '" + before.parts.front() + "', the program '" + key + "'",
          "keep this table, add one with the new key under another name, and copy in "
          "updates");
    if (!types_.same_members(before, before.parts.front(), after, key))
      refuse(to.path + ": the members of '" + key + "' have other types",
             "keep these members, add others under other names, and copy in updates");
    copy(from.at, to.at, part_bytes);  // the next row's number
    for (std::size_t i = 0; i < after.parts.size(); ++i) {
      const std::string part = types_.part_in_pool(before, after, after.parts[i]);
      const std::string was =
          part.starts_with(dropped_word) ? part.substr(dropped_word.size()) : part;
      auto at = std::find(before.parts.begin(), before.parts.end(), part);
      if (at == before.parts.end() && was != part) {
        at = std::find(before.parts.begin(), before.parts.end(), was);
        change(to.path + ": " + was + " is dropped");
        plan_.pending = true;
      }
      if (i != 0 && at != before.parts.end() &&
          !types_.same_members(before, *at, after, after.parts[i]))
        refuse(to.path + ": the members of '" + after.parts[i] + "' have other types",
               "keep these members and add others, with another index");
      const std::uint64_t place = to.at + part_bytes * (i + 1);
      // "unique a+b", and maybe ":" and their types.
      const std::string& mine = after.parts[i];
      const std::string members = mine.substr(0, mine.find(':')).substr(mine.find(' ') + 1);
      const bool is_unique = i == 0 || part.starts_with("unique ");
      if (at == before.parts.end() ? was == part : stepped && is_unique)
        plan_.parts.push_back({from.at, to.at, to.path + "." + members, is_unique});
      if (at != before.parts.end()) {
        copy(from.at + part_bytes * static_cast<std::uint64_t>(at - before.parts.begin() + 1),
             place, part_bytes);
      } else if (was == part) {
        change(to.path + ": " + after.parts[i] + " is new, its entries are made");
        plan_.pending = true;
      }
    }
    for (const std::string& part : before.parts) {
      const auto there = [&](const std::string& name) {
        return std::any_of(after.parts.begin(), after.parts.end(), [&](const std::string& one) {
          return types_.part_in_pool(before, after, one) == name;
        });
      };
      if (there(part) || there(std::string(dropped_word) + part)) continue;
      // Nothing is in it: the program that dropped it has freed its entries.
      if (part.starts_with(dropped_word))
        change(to.path + ": " + part + " is gone");
      else
        refuse(to.path + ": the pool has '" + part + "', the program has not",
               "an index that is no longer used is perdure::dropped<...> in one version");
    }
  }

  void gone(const LayoutLine& from) {
    if (from.bytes == 0) return;
    if (from.type.starts_with("retired<")) return change(from.path + ": gone, it is empty");
    const bool said =
        std::find(said_.removed.begin(), said_.removed.end(), from.path) != said_.removed.end();
    const std::string what =
        from.path + ": the pool has " + from.type + ", the program has no such field";
    if (owns_blocks_by_text(from.type))
      refuse(what,
             "a container that is no longer used is perdure::retired<...> in one version; a "
             "renamed one is listed in perdure_renamed");
    else if (from.type.find("ptr<") != std::string::npos)
      refuse(what, "what it leads to would be lost; a renamed one is listed in perdure_renamed");
    else if (said)
      change(from.path + ": removed");
    else
      refuse(what,
             "one whose value may be lost is listed in perdure_removed, a renamed one in "
             "perdure_renamed");
  }

  // Nothing is new, gone or of another type: but fields may lie elsewhere.
  void moved() {
    for (const Move& move : plan_.moves)
      if (move.from != move.to) return change("fields are in another order");
  }

  const LayoutLines old_, now_;
  const SaidOfBefore& said_;
  const Migration& migrate_;
  TypeChanges types_;
  Plan plan_;
};

/// A layout text without names: each path is the number of its line.
std::string without_names(std::string_view text) {
  std::string out;
  for (std::size_t n = 0; !text.empty(); ++n) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    out += (line.starts_with('#') ? "#" : "") + std::to_string(n);
    out += line.substr(std::min(line.find(": "), line.size()));
    out += '\n';
  }
  return out;
}

}  // namespace

std::string path_at(const RootType& root, std::uint64_t at) {
  for (const LayoutLine& line : LayoutLines(root.text()).root)
    if (line.at == at && line.bytes != 0) return line.path;
  return {};
}

Plan make_plan(std::string_view pool, const RootType& program, const Migration& migrate) {
  const std::string& text = program.text();
  if (pool == text) return {};
  if (migrate.renamed_fields || program.field_names.empty()) {
    if (without_names(pool) == without_names(text)) {
      Plan plan;
      // A program whose compiler gives no names leaves those of the pool as they are.
      if (program.field_names.empty()) return plan;
      plan.said.changes.emplace_back("fields have other names");
      for (const LayoutLine& line : LayoutLines(text).root)
        plan.moves.push_back({line.at, line.at, line.bytes});
      return plan;
    }
  }
  Plan plan = Planner(pool, program, migrate).make();
  // What differs is no root field: the texts of structs behind pointers that nothing leads to.
  if (plan.same()) plan.said.changes.emplace_back("the layout is written in another way");
  return plan;
}

void widen(const Move& move, const std::byte* from, std::byte* to) noexcept {
  if (move.number == 'f') {
    float narrow = 0;
    std::memcpy(&narrow, from, sizeof narrow);
    const double wide = narrow;
    std::memcpy(to, &wide, sizeof wide);
    return;
  }
  std::uint64_t number = 0;
  std::memcpy(&number, from, move.bytes);
  const auto bits = static_cast<unsigned>(move.bytes * 8);
  if (move.number == 'i' && (number >> (bits - 1) & 1) != 0) number |= ~std::uint64_t{0} << bits;
  std::memcpy(to, &number, move.to_bytes);
}

std::string refusals_text(const std::vector<std::string>& refusals) {
  std::string text = std::to_string(refusals.size()) +
                     (refusals.size() == 1 ? " change is refused: " : " changes are refused: ");
  for (std::size_t i = 0; i < refusals.size(); ++i)
    text += (i == 0 ? "[" : "; [") + std::to_string(i + 1) + "] " + refusals[i];
  return text;
}

}  // namespace perdure::detail
