// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/api/plan.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "perdure/api/element_steps.hpp"
#include "perdure/api/layout.hpp"
#include "perdure/api/row_steps.hpp"
#include "perdure/api/switch.hpp"
#include "perdure/evolve/layout_history.hpp"
#include "perdure/evolve/layout_lines.hpp"
#include "perdure/evolve/pointed_structs.hpp"
#include "perdure/evolve/type_changes.hpp"
#include "perdure/evolve/type_parts.hpp"
#include "perdure/evolve/type_words.hpp"
#include "perdure/value/convert.hpp"
#include "perdure/value/match_names.hpp"
#include "perdure/value/parse.hpp"

namespace perdure::detail {
namespace {

constexpr std::string_view dropped_word = "dropped ";
constexpr std::uint64_t part_bytes = 64, unknown_size = ~std::uint64_t{0};
constexpr const char* rebuilt_since =
    "use the newer program; if this one is the newest, its root struct must differ from that of "
    "the earlier version";
constexpr const char* rebuilt_advice =
    "to make it from the pool's, declare it as perdure::rebuilt<the program's, the pool's> in one "
    "version";

using TypePairs = std::set<std::pair<const value::Type*, const value::Type*>>;

/// Whether two types with the same text have the same perdure_renamed and perdure_removed, in all
/// their parts. `seen`: the pairs that have been compared or are being compared.
bool says_the_same(const value::Type& a, const value::Type& b, TypePairs& seen) {
  if (&a == &b || !seen.emplace(&a, &b).second) return true;
  return std::equal(a.renamed.begin(), a.renamed.end(), b.renamed.begin(), b.renamed.end(),
                    [](const renamed& x, const renamed& y) {
                      return x.now == y.now && x.before == y.before;
                    }) &&
         a.removed == b.removed &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [&](const value::Part& x, const value::Part& y) {
                      return says_the_same(*x.type, *y.type, seen);
                    });
}

class Planner {
 public:
  Planner(const pool::CatalogContents& catalog, std::size_t newest, const RootType& program,
          const Migration& migrate)
      : old_(catalog.layouts[newest]),
        now_(program.text()),
        program_(program),
        rebuilds_(program.rebuilds),
        migrate_(migrate),
        types_(old_, now_, program.records),
        history_(catalog, newest),
        is_older_(std::find(catalog.layouts.begin() + static_cast<std::ptrdiff_t>(newest) + 1,
                            catalog.layouts.end(), program.text()) != catalog.layouts.end()) {
    if (newest == 0) all_inside(catalog.root_bytes);
    if (catalog.layouts.size() - newest > 1 || catalog.layouts[newest] != program.text())
      one_list_each(program.records);
  }

  Plan make() {
    if (!plan_.said.refusals.empty()) return std::move(plan_);
    std::vector<bool> used(old_.root.size(), false);
    const value::MatchedNames matched = match_lines(old_.root, now_.root, program_.said, "");
    for (std::size_t i = 0; i < now_.root.size(); ++i) {
      const LayoutLine& to = now_.root[i];
      if (!matched.from[i]) {
        if (to.bytes != 0) change(to.path + ": new, " + to.type);
        continue;
      }
      const LayoutLine& from = old_.root[*matched.from[i]];
      used[*matched.from[i]] = true;
      if (from.path != to.path) {
        change(to.path + ": renamed from " + from.path);
        note_renamed(plan_.notes, to.path, from.path);
      }
      field(from, to);
    }
    for (const value::MatchedNames::Both& both : matched.both) {
      used[both.earlier] = true;
      refuse(old_.root[both.earlier].path + ": " +
                 value::both_text(now_.root[both.one].path, now_.root[both.other].path),
             "nothing was changed");
    }
    for (std::size_t i = 0; i < used.size(); ++i)
      if (!used[i]) gone(old_.root[i]);
    PointedStructs(
        old_, now_, program_, types_, plan_, [this](const auto& found) { records(found); },
        history_.layouts())
        .add();
    for (const auto& [from, to] : behind_) returned_behind(from, to);
    for (const MigrationStep& step : migrate_.steps)
      if (!std::any_of(now_.root.begin(), now_.root.end(), [&](const LayoutLine& line) {
            return line.path == step.table &&
                   (!record_in(line.type).empty() || !rebuilt_type(line.type).empty());
          }))
        refuse(step.table + ": there is a step for it, and the program has no such field",
               "a step names a field of the root that is a table, is rebuilt, or has structs with "
               "text in them as its values");
    if (plan_.same()) moved();
    return std::move(plan_);
  }

 private:
  void change(std::string text) { plan_.change(std::move(text)); }
  void refuse(const std::string& what, const std::string& advice) { plan_.refuse(what, advice); }
  void copy(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
    plan_.moves.push_back({from, to, bytes});
  }

  // Refuses fields outside the root object. `bytes`: its size with the newest layout.
  void all_inside(std::uint64_t bytes) {
    for (const LayoutLine& line : old_.root)
      if (line.at > bytes || line.bytes > bytes - line.at)
        refuse(line.path + ": by the pool's layout text it lies outside the root object",
               "the pool's data is damaged: restore it from a copy");
  }

  // Adds the changes in the records of a field.
  void records(const std::vector<value::Change>& found) {
    for (const value::Change& one : found)
      if (one.need == value::Need::nothing)
        change(one.path + ": " + one.text);
      else
        needs(one, "");
  }
  void needs(const value::Change& one, const std::string& where) {
    const auto advice = std::min(one.text.find(": "), one.text.size());
    const std::string what = one.path + ": " + one.text.substr(0, advice) + where;
    if (std::find(plan_.refused.begin(), plan_.refused.end(), what) == plan_.refused.end())
      refuse(what, one.text.substr(std::min(advice + 2, one.text.size())));
  }

  // Two structs with the same text can't be told apart in a pool, so their lists must be the same.
  void one_list_each(const std::vector<const value::Type*>& records) {
    TypePairs seen;
    for (std::size_t i = 0; i < records.size(); ++i)
      for (std::size_t k = 0; k < i; ++k)
        if (records[i]->shape == records[k]->shape &&
            !says_the_same(*records[i], *records[k], seen))
          return refuse("two structs of the program have the fields " +
                            value::text_of(*records[i]) +
                            ", but different perdure_renamed or perdure_removed",
                        "give both the same lists: an entry has no effect where no record has such "
                        "a field");
  }
  // Whether the program's steps make its rows or values from some that may be in the pool, of the
  // newest layout or of an earlier one. The others are converted without a step.
  bool by_steps(const LayoutLine& from, const LayoutLine& to) {
    const RowSteps steps(migrate_.steps, to.path);
    const std::string_view after = record_in(to.type);
    const value::Type* const type = types_.of_program(after);
    // For a container that is rebuilt, steps make new elements; they don't rewrite the old ones.
    if (steps.empty() || type == nullptr || !rebuilt_type(to.type).empty()) return false;
    std::vector<std::string> earlier = history_.records(from.path), lost;
    earlier.insert(earlier.begin(), std::string(record_in(from.type)));
    bool lead = false, newest_leads = false;
    for (const std::string& text : earlier) {
      if (text == after) continue;
      const auto old = value::parse(text);
      if (!old.ok()) continue;
      if (steps.lead(old->type(), *type, lost)) {
        lead = true;
        newest_leads = newest_leads || text == earlier.front();
      } else if (newest_leads && !is_older_ && steps.passes_over(old->type(), *type)) {
        // The program of the newest layout took these rows for its own.
        refuse(to.path + ": rows of an earlier version, " + text + ", would go through no step",
               "give a step that reads them, too");
      }
    }
    if (!is_older_) refuse_unfit(to, steps, earlier, *type);
    if (!lead) return false;
    change(to.path + ": the program's steps make its " + (is_table(to.type) ? "rows" : "values") +
           " from those in the pool");
    plan_.pending = true;
    note_settled(plan_.notes, to.path);
    refuse_lost(to.path, lost);
    return true;
  }
  // Adds what the program's steps do to the fields of a struct: what they don't decide is as
  // without them.
  void stepped(const std::vector<value::Change>& found) {
    for (const value::Change& one : found)
      change(one.path + ": " + one.text.substr(0, one.text.find(": ")) +
             (one.need == value::Need::nothing ? "" : "; the steps decide what becomes of it"));
  }
  // A step that was meant for records of the pool must fit them. `layouts`: theirs, the newest
  // first.
  void refuse_unfit(const LayoutLine& to, const RowSteps& steps,
                    const std::vector<std::string>& layouts, const value::Type& now) {
    for (const auto& [from, made] : steps.unfit(layouts, now))
      refuse(to.path + ": its step from " + from + " to " + made +
                 " does not fit this pool, whose newest is " + layouts.front(),
             "a step reads a struct as the pool has it, and makes the program's or the next "
             "step's; rows that need no step get one that does nothing");
  }
  // A field that a step reads must not be in perdure_removed.
  void refuse_lost(const std::string& path, std::vector<std::string>& lost) {
    std::sort(lost.begin(), lost.end());
    lost.erase(std::unique(lost.begin(), lost.end()), lost.end());
    for (const std::string& field : lost)
      refuse(path + "." + field + ": a step's struct has it, but perdure_removed lists it",
             "take it out of perdure_removed: the step decides what becomes of it");
  }

  // The pool may have records of earlier layouts, too: the program must be able to read them. `to`:
  // the field, with the type of its container in the program. `newest`: the changes in records of
  // the newest layout.
  void older_records(const LayoutLine& from, const LayoutLine& to,
                     const std::vector<value::Change>& newest, const RowSteps& steps) {
    const std::string_view after = record_in(to.type);
    const value::Type* const type = types_.of_program(after);
    history_.each(from.path, [&](const LayoutLines& lines, const LayoutLine& line) {
      TypeChanges types(lines, now_, types_.records());
      const std::string_view before = record_in(line.type);
      std::vector<std::string> lost;
      const auto old = value::parse(before);
      if (type != nullptr && old.ok() && !steps.empty() && steps.lead(old->type(), *type, lost))
        return;
      if (!is_table(made_of(to.type)))
        (void)types.can_stay_but_pointed(made_of(line.type), made_of(to.type), to.path);
      else if (is_table(made_of(line.type)))
        (void)types.rows_can_stay(before, after, to.path);
      else
        return;
      PointedStructs::compare_records(types, lines, now_, program_.said);
      const std::vector<value::Change> found = types.taken();
      for (const value::Change& one : found)
        if (one.need != value::Need::nothing) needs(one, ", in records of an earlier version");
      // A field that an earlier layout had, the newest does not have, and the program has again:
      // the old values would come back. If the program itself is that earlier version, the field is
      // not new: the program is refused for the fields that it lacks.
      for (const value::Change& one : newest)
        if (!is_older_ && one.is_new && !is_new(found, one.path)) refuse_returned(one.path);
    });
  }
  // Whether a field of a record, or the record itself, is new.
  static bool is_new(const std::vector<value::Change>& changes, const std::string& path) {
    const std::string parent = path.substr(0, path.rfind('.'));
    return std::any_of(changes.begin(), changes.end(), [&](const value::Change& one) {
      return one.is_new && (one.path == path || one.path == parent);
    });
  }
  void refuse_returned(const std::string& path) {
    const std::string what = path +
                             ": an earlier version had a field of this name, removed since, and "
                             "its records may still be there";
    if (std::find(plan_.refused.begin(), plan_.refused.end(), what) == plan_.refused.end())
      refuse(what, "take a name that no version had");
  }
  // The same test for records of containers in structs that pointers lead to. A path that leads to
  // a struct may differ between versions, so the fields are compared by the program's numbers.
  void returned_behind(const LayoutLine& from, const LayoutLine& to) {
    if (is_older_) return;
    struct Compared {
      std::set<std::string> fields;
      std::vector<value::Change> changes;
    };
    const auto compare = [&](const LayoutLines& lines, const LayoutLine& line) {
      TypeChanges types(lines, now_, types_.records());
      Compared made;
      if (!types.can_stay_but_pointed(line.type, to.type, to.path)) return made;
      (void)types.taken();  // of the root's own records
      made.fields = PointedStructs::compare_records(types, lines, now_, program_.said, true);
      made.changes = types.taken();
      return made;
    };
    const Compared newest = compare(old_, from);
    history_.each(from.path, [&](const LayoutLines& lines, const LayoutLine& line) {
      const Compared older = compare(lines, line);
      for (const value::Change& one : newest.changes)
        if (one.is_new && !is_new(older.changes, one.path) &&
            std::any_of(older.fields.begin(), older.fields.end(), [&](const std::string& field) {
              return one.path.starts_with(field + ".");
            }))
          refuse_returned(readable(one.path));
    });
  }
  // "#1->recent.day" with a path that leads to the struct: "head->recent.day".
  std::string readable(const std::string& path) const {
    const auto end = path.find("->");
    for (const StructPair& pair : types_.pairs())
      if (pair.now == path.substr(0, end)) return pair.path + path.substr(end);
    return path;
  }

  void field(const LayoutLine& from, const LayoutLine& to) {
    TableText before, after;
    std::string_view old_type = from.type, new_type = to.type;
    if (before.take(old_type) && after.take(new_type) && old_type.empty() && new_type.empty() &&
        from.bytes >= part_bytes * (before.parts.size() + 1))
      return table(from, before, to, after);
    // The size is unknown for a container that was rebuilt; types that can stay have equal sizes.
    if ((from.bytes == to.bytes || from.bytes == unknown_size) &&
        types_.can_stay_but_pointed(from.type, to.type, to.path)) {
      const std::vector<value::Change> found = types_.taken();
      by_steps(from, to) ? stepped(found) : records(found);
      // For a container that is rebuilt, steps make new elements; they don't rewrite the old ones.
      const bool made = !rebuilt_type(to.type).empty();
      older_records(from, to, found, made ? RowSteps({}, {}) : RowSteps(migrate_.steps, to.path));
      if (from.type.find('#') != std::string::npos) behind_.emplace_back(from, to);
      return copy(from.at, to.at, to.bytes);
    }
    (void)types_.taken();
    if (const std::string_view made = rebuilt_type(from.type); !made.empty()) {
      if (is_older_) return refuse(to.path + ": a later version has rebuilt it", rebuilt_since);
      change(to.path + ": rebuilding is finished, the old container is gone");
      return field({from.path, std::string(made), from.at, unknown_size}, to);
    }
    for (const Rebuild& one : rebuilds_)
      if (one.text == to.type && rebuild(from, to, one)) return;
    if (const std::string_view was = retired_type(to.type); !was.empty()) {
      const bool same = (from.bytes == to.bytes || from.bytes == unknown_size) &&
                        types_.can_stay(from.type, was, to.path);
      (void)types_.taken();  // records are freed by their own layouts
      if (same) {
        change(to.path + ": retired, its elements are freed");
        plan_.pending = true;
        return copy(from.at, to.at, to.bytes);
      }
      if (without_numbers(from.type) == without_numbers(was))
        return refuse(to.path + ": it is retired, and a struct that it owns has another layout",
                      "retire it with that struct as it was, under another name");
    }
    if (widens(from, to)) {
      change(to.path + ": " + from.type + " becomes " + to.type);
      plan_.moves.push_back({from.at, to.at, from.bytes, to.bytes, from.type[0]});
      return;
    }
    const bool sizes = from.type == to.type;
    refuse(to.path + ": the pool has " + from.type +
               (sizes ? " of " + std::to_string(from.bytes) + " bytes" : "") + ", the program " +
               to.type + (sizes ? " of " + std::to_string(to.bytes) + " bytes" : ""),
           can_be_rebuilt(from.type) && can_be_rebuilt(to.type)
               ? rebuilt_advice
               : "keep this field, add one of the new type under another name, and copy in an "
                 "update");
  }

  // Plans to rebuild a container from the pool's. Returns false if the pool has another container.
  bool rebuild(const LayoutLine& from, const LayoutLine& to, const Rebuild& one) {
    const bool same_size = from.bytes == one.before_bytes || from.bytes == unknown_size;
    const bool stays = same_size && types_.can_stay(from.type, one.before, to.path);
    const std::vector<value::Change> found = types_.taken();
    if (!stays) {
      if (without_numbers(from.type) == without_numbers(one.before)) return false;
      refuse(to.path + ": the pool has " + from.type + ", and the program rebuilds it from " +
                 one.before,
             "declare the pool's as the second of perdure::rebuilt");
      return true;
    }
    if (is_older_) {
      refuse(to.path + ": a later version has rebuilt it", rebuilt_since);
      return true;
    }
    records(found);
    older_records(from, {to.path, one.before}, found, RowSteps({}, {}));
    const ElementSteps steps(migrate_.steps, to.path, *one.from, *one.to);
    std::vector<std::string> lost;
    if (steps.fit_nothing()) {
      refuse(to.path + ": its steps do not lead from " + value::text_of(*one.from) + " to " +
                 value::text_of(*one.to),
             "a step reads an element of the old container, and makes one of the new: a table's "
             "row, std::pair<key, value> of a map, or another one's element");
      return true;
    }
    if (!steps.lead(lost)) {
      for (const value::Change& need : steps.changes().changes()) {
        if (need.need == value::Need::nothing) continue;
        const std::string path = need.path.empty() ? to.path : to.path + "." + need.path;
        refuse(path + ": " + need.text.substr(0, need.text.find(": ")),
               "give Options::migrate.steps a step for '" + to.path + "'");
      }
      return true;
    }
    change(to.path + ": rebuilt, of " + from.type);
    refuse_lost(to.path, lost);
    copy(from.at, to.at + one.before_at, one.before_bytes);
    plan_.rebuilt.push_back({from.at, to.at, to.path});
    plan_.pending = true;
    note_settled(plan_.notes, to.path);  // its elements are the program's when the work is done
    if (steps.lead_by_steps()) note_stepped(plan_.notes, to.path);
    return true;
  }

  void table(const LayoutLine& from, const TableText& before, const LayoutLine& to,
             const TableText& after) {
    if (!types_.rows_can_stay(before.row, after.row, to.path))
      refuse(to.path + ": the pool has rows " + before.row + ", the program " + after.row,
             rebuilt_advice);
    const std::vector<value::Change> found = types_.taken();
    const bool by_step = by_steps(from, to);
    by_step ? stepped(found) : records(found);
    older_records(from, to, found, RowSteps(migrate_.steps, to.path));
    const std::string& key = after.parts.front();
    if (before.parts.front() != types_.part_in_pool(before, after, key))
      return refuse(
          to.path + ": the pool has '" + before.parts.front() + "', the program '" + key + "'",
          rebuilt_advice);
    if (!types_.same_members(before, before.parts.front(), after, key))
      refuse(to.path + ": the members of '" + key + "' have other types", rebuilt_advice);
    copy(from.at, to.at, part_bytes);  // the next row's number
    // A part that is new or dropped has work of its own before the pool is open.
    bool other_parts = false;
    for (const std::string& one : after.parts)
      other_parts =
          other_parts || std::find(before.parts.begin(), before.parts.end(),
                                   types_.part_in_pool(before, after, one)) == before.parts.end();
    // When a row is read, its struct says which step it needs: one table of each can wait.
    const bool late = by_step && migrate_.lazy && !other_parts &&
                      late_rows_.insert(std::string(after.row)).second;
    if (late) plan_.lazy.push_back(to.path);
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
               rebuilt_advice);
      const std::uint64_t place = to.at + part_bytes * (i + 1);
      // "unique a+b", which ":" and the types of the members may follow.
      const std::string& mine = after.parts[i];
      const std::string members = mine.substr(0, mine.find(':')).substr(mine.find(' ') + 1);
      const bool is_unique = i == 0 || part.starts_with("unique ");
      if (at == before.parts.end() ? was == part : by_step && is_unique && !late)
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
      // It is empty: the program that dropped it has freed its entries.
      if (part.starts_with(dropped_word))
        change(to.path + ": " + part + " is gone");
      else
        refuse(to.path + ": the pool has '" + part + "', the program has not",
               "an index that is no longer used is perdure::dropped<...> in one version");
    }
  }

  void gone(const LayoutLine& from) {
    const auto& removed = program_.said.removed;
    field_is_gone(plan_, from, "",
                  std::find(removed.begin(), removed.end(), from.path) != removed.end(), false);
  }

  // No field is new, gone or of another type, but fields may have other offsets.
  void moved() {
    for (const Move& move : plan_.moves)
      if (move.from != move.to) return change("fields are in another order");
  }

  const LayoutLines old_, now_;
  const RootType& program_;
  const std::vector<Rebuild>& rebuilds_;
  const Migration& migrate_;
  TypeChanges types_;
  const LayoutHistory history_;
  const bool is_older_;  ///< the pool had the program's layout before
  Plan plan_;
  std::vector<std::pair<LayoutLine, LayoutLine>> behind_;  ///< the root's fields with pointers
  std::set<std::string> late_rows_;                        ///< the row structs of plan_.lazy
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

std::optional<std::uint64_t> Plan::old_place(std::uint64_t at, std::uint64_t bytes) const {
  std::optional<std::uint64_t> place;
  for (std::uint64_t next = at; next != at + bytes;) {
    const auto move = std::find_if(moves.begin(), moves.end(), [&](const Move& one) {
      return one.to_bytes == 0 && next >= one.to && next - one.to < one.bytes;
    });
    if (move == moves.end()) return {};
    const std::uint64_t from = next - move->to + move->from - (next - at);
    if (place.value_or(from) != from) return {};
    place = from;
    next = std::min(move->to + move->bytes, at + bytes);
  }
  return place;
}

std::string path_at(const RootType& root, std::uint64_t at) {
  for (const LayoutLine& line : LayoutLines(root.text()).root)
    if (line.at == at && line.bytes != 0) return line.path;
  return {};
}

Plan make_plan(const pool::CatalogContents& catalog, const RootType& program,
               const Migration& migrate, std::size_t newest) {
  const std::string &text = program.text(), &pool = catalog.layouts[newest];
  // The usual opening: the layout is the program's, and there are no records of earlier versions.
  const bool is_first = newest + 1 == catalog.layouts.size() && migrate.steps.empty();
  if (pool == text && (is_first || program.field_names.empty())) return {};
  if (migrate.renamed_fields || program.field_names.empty()) {
    if (pool != text && without_names(pool) == without_names(text)) {
      Plan plan;
      // A program whose compiler gives no names leaves those of the pool as they are.
      if (program.field_names.empty()) return plan;
      plan.said.changes.emplace_back("fields have other names");
      for (const LayoutLine& line : LayoutLines(text).root)
        plan.moves.push_back({line.at, line.at, line.bytes});
      return plan;
    }
  }
  Plan plan = Planner(catalog, newest, program, migrate).make();
  if (!plan.copied.empty()) {
    std::string sizes = text;  // the text does not say how large an object is
    for (const CopiedStruct& one : plan.copied) sizes += std::to_string(one.now.bytes) + ",";
    plan.copies_for = std::max<std::uint64_t>(layout_fingerprint(sizes), 1);
  }
  // No field of the root differs, so only structs behind pointers that no field has do.
  if (plan.same() && pool != text)
    plan.said.changes.emplace_back("the layout text differs only in structs that no field uses");
  return plan;
}

void widen(const Move& move, const std::byte* from, std::byte* to) noexcept {
  const value::Number kind = move.number == 'f'   ? value::Number::floating
                             : move.number == 'i' ? value::Number::signed_integer
                                                  : value::Number::unsigned_integer;
  value::widen(kind, from, move.bytes, to, move.to_bytes);
}

std::string refusals_text(const std::vector<std::string>& refusals) {
  std::string text = std::to_string(refusals.size()) +
                     (refusals.size() == 1 ? " change is refused: " : " changes are refused: ");
  for (std::size_t i = 0; i < refusals.size(); ++i)
    text += (i == 0 ? "[" : "; [") + std::to_string(i + 1) + "] " + refusals[i];
  return text;
}

}  // namespace perdure::detail
