// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/evolve/pointed_structs.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "perdure/api/layout.hpp"
#include "perdure/evolve/type_parts.hpp"
#include "perdure/evolve/type_words.hpp"

namespace perdure::detail {
namespace {

constexpr std::uint64_t everywhere = ~std::uint64_t{0};

/// The number "#1" of "ptr<#1>"; empty for other types.
std::string_view pointed_by(std::string_view type) {
  constexpr std::string_view begin = "ptr<#";
  if (!type.starts_with(begin) || end_of_number(type, begin.size()) + 1 != type.size()) return {};
  return type.substr(begin.size() - 1, type.size() - begin.size());
}

/// Calls f(number) for each struct that a type names: "#1".
template <class F>
void each_number(std::string_view type, F&& f) {
  for (std::size_t at = type.find('#'); at != std::string_view::npos; at = type.find('#', at + 1))
    f(type.substr(at, end_of_number(type, at + 1) - at));
}

bool names_say(const SaidOfBefore& said, const std::string& path) {
  return std::find(said.removed.begin(), said.removed.end(), path) != said.removed.end();
}

}  // namespace

value::MatchedNames match_lines(const std::vector<LayoutLine>& before,
                                const std::vector<LayoutLine>& now, const SaidOfBefore& said,
                                std::string_view prefix) {
  const auto paths = [](const std::vector<LayoutLine>& lines) {
    std::vector<std::string_view> all;
    for (const LayoutLine& line : lines) all.push_back(line.path);
    return all;
  };
  std::vector<renamed> list;
  for (const auto& [from, to] : said.renamed)
    if (from.starts_with(prefix) && to.starts_with(prefix))
      list.push_back({std::string_view(to).substr(prefix.size()),
                      std::string_view(from).substr(prefix.size())});
  return value::match_names(paths(before), paths(now), list);
}

void field_is_gone(Plan& plan, const LayoutLine& line, const std::string& owner, bool said,
                   bool behind) {
  if (line.bytes == 0) return;
  const std::string path = owner + line.path;
  if (line.type.starts_with("retired<")) return plan.change(path + ": gone, it is empty");
  const std::string what = path + ": the pool has " + line.type + ", the program has no such field";
  if (owns_blocks_by_text(line.type))
    plan.refuse(what, behind ? "a struct that pointers lead to keeps its containers; a renamed one "
                               "is listed in perdure_renamed"
                             : "a container that is no longer used is perdure::retired<...> in one "
                               "version; a renamed one is listed in perdure_renamed");
  else if (line.type.find("ptr<") != std::string::npos)
    plan.refuse(what, "what it leads to would be lost; a renamed one is listed in perdure_renamed");
  else if (said)
    plan.change(path + ": removed");
  else
    plan.refuse(what,
                "one whose value may be lost is listed in perdure_removed, a renamed one in "
                "perdure_renamed");
}

PointedStructs::PointedStructs(const LayoutLines& before, const LayoutLines& now,
                               const RootType& program, TypeChanges& types, Plan& plan,
                               std::function<void(const std::vector<value::Change>&)> records,
                               const std::vector<LayoutLines>& earlier)
    : before_(before),
      now_(now),
      program_(program),
      types_(types),
      plan_(plan),
      records_(std::move(records)),
      earlier_(earlier) {}

const std::vector<LayoutLine>& PointedStructs::old_lines(std::string_view number) const {
  return before_.lines_of(number);
}

void PointedStructs::add() {
  for (std::size_t i = 0; i < types_.pairs().size(); ++i) compare(i);
  close();
  if (copied_.empty()) return;
  refuse_what_stays();
  add_copies();
}

std::set<std::string> PointedStructs::compare_records(TypeChanges& types, const LayoutLines& before,
                                                      const LayoutLines& now,
                                                      const SaidOfBefore& said, bool numbered) {
  std::set<std::string> compared;
  for (std::size_t i = 0; i < types.pairs().size(); ++i) {
    const StructPair pair = types.pairs()[i];
    const auto &old = before.lines_of(pair.before), &mine = now.lines_of(pair.now);
    const value::MatchedNames matched = match_lines(old, mine, said, pair.now + ".");
    for (std::size_t k = 0; k < mine.size(); ++k)
      if (matched.from[k]) {
        const std::string path = (numbered ? pair.now : pair.path) + "->" + mine[k].path;
        compared.insert(path);
        (void)types.can_stay_but_pointed(old[*matched.from[k]].type, mine[k].type, path);
      }
  }
  return compared;
}

// What changes in the fields of one struct.
void PointedStructs::compare(std::size_t number) {
  const StructPair pair = types_.pairs()[number];  // a copy: the list grows
  const std::vector<LayoutLine>&old = before_.lines_of(pair.before), &now = now_.lines_of(pair.now);
  const std::string owner = pair.path + "->";
  const value::MatchedNames matched = match_lines(old, now, program_.said, pair.now + ".");
  std::vector<bool> used(old.size(), false);
  Compared made;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const LayoutLine& to = now[i];
    if (!matched.from[i]) {
      if (to.bytes == 0) continue;
      made.differs = made.adds = true;
      plan_.change(owner + to.path + ": new, " + to.type);
      continue;
    }
    const LayoutLine& from = old[*matched.from[i]];
    used[*matched.from[i]] = true;
    if (from.path != to.path) plan_.change(owner + to.path + ": renamed from " + from.path);
    field(pair, from, to, made);
  }
  for (const value::MatchedNames::Both& both : matched.both) {
    used[both.earlier] = true;
    plan_.refuse(owner + old[both.earlier].path + ": " +
                     value::both_text(now[both.one].path, now[both.other].path),
                 "nothing was changed");
  }
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      field_is_gone(plan_, old[i], owner, names_say(program_.said, pair.now + "." + old[i].path),
                    true);
  compared_.push_back(std::move(made));
}

void PointedStructs::field(const StructPair& pair, const LayoutLine& from, const LayoutLine& to,
                           Compared& made) {
  const std::string path = pair.path + "->" + to.path;
  if (from.bytes == to.bytes && types_.can_stay_but_pointed(from.type, to.type, path)) {
    records_(types_.taken());
    made.differs = made.differs || (from.at != to.at && to.bytes != 0);
    made.moves.push_back({from.at, to.at, to.bytes});
    return;
  }
  (void)types_.taken();
  if (widens(from, to)) {
    plan_.change(path + ": " + from.type + " becomes " + to.type);
    made.differs = true;
    made.moves.push_back({from.at, to.at, from.bytes, to.bytes, from.type[0]});
    return;
  }
  plan_.refuse(path + ": the pool has " + from.type + ", the program " + to.type,
               "keep this field, add one of the new type under another name, and copy in an "
               "update");
}

// Finds all structs whose objects are copied: those that differ, and those that lead to them.
void PointedStructs::close() {
  const auto& pairs = types_.pairs();
  std::map<std::string_view, std::set<std::string_view>> leads;  // in the pool
  for (const StructPair& pair : pairs)
    for (const LayoutLine& line : before_.lines_of(pair.before))
      each_type_part(line.type, line.at, line.at + 1, [&](std::string_view type, std::uint64_t) {
        const std::string_view to = pointed_by(type);
        if (!to.empty()) leads[pair.before].insert(to);
      });
  for (std::size_t i = 0; i < pairs.size(); ++i)
    if (compared_[i].differs) copied_.emplace(pairs[i].before, i);
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (copied_.contains(pairs[i].before)) continue;
      const auto& to = leads[pairs[i].before];
      if (std::any_of(to.begin(), to.end(), [&](auto one) { return copied_.contains(one); }))
        more = copied_.emplace(pairs[i].before, i).second;
    }
  }
}

std::string_view PointedStructs::copied_in(std::string_view type) const {
  std::string_view found;
  each_number(type, [&](std::string_view number) {
    if (copied_.contains(number)) found = number;
  });
  return found;
}

const std::string& PointedStructs::name_of(std::string_view number) const {
  return types_.pairs()[copied_.find(number)->second].path;
}

// Whatever leads to an object that is copied must be a pointer that the copying knows.
void PointedStructs::refuse_what_stays() {
  const auto part = [&](const std::string& path, const LayoutLine& line, bool copied, bool walked) {
    each_type_part(line.type, line.at, line.at + 1, [&](std::string_view type, std::uint64_t) {
      refuse_part(path, type, copied, walked);
    });
  };
  for (const LayoutLine& line : before_.root)
    if (!line.type.starts_with("retired<") && !add_container(line))
      part(line.path, line, false, true);
  std::set<std::string> seen;
  for (const StructPair& pair : types_.pairs()) {
    if (seen.insert(pair.before).second)
      for (const LayoutLine& line : before_.lines_of(pair.before))
        part(pair.path + "->" + line.path, line, copied_.contains(pair.before),
             copied_.contains(pair.before));
    const auto first = copied_.find(pair.before);
    if (first != copied_.end() && types_.pairs()[first->second].now != pair.now)
      plan_.refuse(pair.path + ": its objects are of one struct with those of " +
                       types_.pairs()[first->second].path + " in the pool, and not in the program",
                   "change both in the same way, as one struct");
  }
}

// A container of the root whose values are pointers: opening changes them after the switch, where
// they lie.
bool PointedStructs::add_container(const LayoutLine& line) {
  const std::string_view to = pointed_by(pointer_value(line.type));
  if (to.empty() || !copied_.contains(to) || names_opaque(line.type)) return false;
  for (const Move& move : plan_.moves)
    for (const LayoutLine& now : now_.root)
      if (move.from == line.at && move.bytes == line.bytes && now.at == move.to &&
          pointed_by(pointer_value(now.type)) != std::string_view()) {
        plan_.root_containers.push_back({line.at, now.at, copied_.find(to)->second});
        return true;
      }
  return false;
}

void PointedStructs::refuse_part(const std::string& path, std::string_view type, bool copied,
                                 bool walked) {
  const std::string& first = types_.pairs()[copied_.begin()->second].path;
  const auto keep = [](const std::string& name) {
    return "keep the struct of " + name + " as it is, and the new fields in a map of the root";
  };
  // Pointers of the root object and of copied objects are followed, so each is seen.
  if (walked && !pointed_by(type).empty()) return;
  if (const std::string_view number = copied_in(type); !number.empty())
    return plan_.refuse(path + ": " + std::string(type) + " leads to objects of " +
                            name_of(number) + ", which would be copied to new blocks",
                        keep(name_of(number)));
  if (copied && type == "list_hook/1")
    return plan_.refuse(path +
                            ": objects with a list_hook would be copied to new blocks, and a "
                            "hooked_list would still lead to the old ones",
                        keep(path.substr(0, path.rfind("->"))));
  if (type.find("ptr<void>") != std::string_view::npos)
    return plan_.refuse(path + ": " + std::string(type) + " may lead to objects of " + first +
                            ", which would be copied to new blocks",
                        keep(first));
  if (!is_known_type(type) || names_opaque(type))
    return plan_.refuse(path + ": pointers in " + std::string(type) +
                            " can't be seen, and may lead to objects of " + first +
                            ", which would be copied to new blocks",
                        keep(first));
  refuse_hooks(path, type, first);
  // What a pointer leads to is not followed if it is no struct of its own.
  refuse_unseen(path, walked && type.starts_with("ptr<") ? type.substr(4) : type, first);
  refuse_owned(path, type);
}

// The elements of a hooked_list are not followed, and its text says only where their hook lies and
// how large they are. So a struct that pointers lead to must be known to be theirs.
void PointedStructs::refuse_hooks(const std::string& path, std::string_view type,
                                  const std::string& first) {
  constexpr std::string_view word = "hooked_list<";
  for (std::size_t at = type.find(word); at != std::string_view::npos;
       at = type.find(word, at + 1)) {
    const std::string text(type.substr(at + word.size()));
    char* end = nullptr;
    const std::uint64_t hook = std::strtoull(text.c_str(), &end, 10);
    const std::uint64_t bytes = *end == '/' ? std::strtoull(end + 1, nullptr, 10) : 0;
    const bool known =
        std::any_of(types_.pairs().begin(), types_.pairs().end(), [&](const StructPair& pair) {
          bool hooks = false;
          std::uint64_t fields = 0;
          for (const LayoutLine& line : before_.lines_of(pair.before)) {
            hooks = hooks || (line.type == "list_hook/1" && line.at == hook);
            fields = std::max(fields, line.at + line.bytes);
          }
          return hooks && fields <= bytes && bytes - fields < 64;
        });
    // mutant: hooked-objects-are-known
    if (!known)
      return plan_.refuse(
          path + ": the objects in " + std::string(type) +
              " can't be seen, and may lead to objects of " + first +
              ", which would be copied to new blocks",
          "keep the struct of " + first + " as it is, and the new fields in a map of the root");
  }
}

// A pointer that opening does not follow must not lead into an object that is copied. It can't if
// it leads to a struct that is not copied, and no copied struct has structs within it.
void PointedStructs::refuse_unseen(const std::string& path, std::string_view type,
                                   const std::string& first) {
  const bool flat = std::all_of(copied_.begin(), copied_.end(), [&](const auto& one) {
    const auto& lines = old_lines(one.first);
    return std::all_of(lines.begin(), lines.end(), [](const LayoutLine& line) {
      return line.path.find('.') == std::string::npos && line.type.find('{') == std::string::npos;
    });
  });
  constexpr std::string_view word = "ptr<";
  for (std::size_t at = type.find(word); at != std::string_view::npos; at = type.find(word, at + 1))
    if (!flat || !type.substr(at + word.size()).starts_with('#'))
      return plan_.refuse(
          path + ": " + std::string(type) + " may lead into objects of " + first +
              ", which would be copied to new blocks",
          "keep the struct of " + first + " as it is, and the new fields in a map of the root");
}

// A pointer may lead to an object that a container owns. Its text has the struct without a number.
void PointedStructs::refuse_owned(const std::string& path, std::string_view type) {
  constexpr std::string_view word = "own<";
  for (std::size_t at = type.find(word); at != std::string_view::npos;
       at = type.find(word, at + 1)) {
    const std::vector<LayoutLine> fields = fields_of_text(type.substr(at + word.size()));
    for (const auto& [number, pair] : copied_) {
      const auto& lines = old_lines(number);
      if (std::equal(lines.begin(), lines.end(), fields.begin(), fields.end(),
                     [](const LayoutLine& x, const LayoutLine& y) {
                       return x.path == y.path && x.type == y.type && x.at == y.at;
                     }))
        return plan_.refuse(path + ": " + std::string(type) +
                                " owns objects of a struct with the "
                                "fields of " +
                                name_of(number) + ", whose objects would be copied to new blocks",
                            "keep the struct of " + name_of(number) + " as it is");
    }
  }
}

std::vector<PointerPlace> PointedStructs::pointers(const std::vector<LayoutLine>& lines,
                                                   const std::vector<Move>& moves) const {
  std::vector<PointerPlace> all;
  for (const LayoutLine& line : lines) {
    const auto move = std::find_if(moves.begin(), moves.end(), [&](const Move& one) {
      return one.to_bytes == 0 && one.bytes != 0 && line.at >= one.from &&
             line.at - one.from < one.bytes;
    });
    if (move == moves.end()) continue;
    each_type_part(line.type, line.at, everywhere, [&](std::string_view type, std::uint64_t at) {
      if (!type.starts_with("ptr<")) return;
      const auto found = copied_.find(pointed_by(type));
      all.push_back({at, at - move->from + move->to,
                     found == copied_.end() ? PointerPlace::other : found->second});
    });
  }
  return all;
}

// Objects stay in their blocks when fields are removed. Then the fields that are left keep their
// places, and none is added. So the earlier version of a struct has all of its fields.
std::uint64_t PointedStructs::most_bytes(const std::vector<LayoutLine>& lines) const {
  const auto end = [](const std::vector<LayoutLine>& all) {
    std::uint64_t bytes = 0;
    for (const LayoutLine& line : all) bytes = std::max(bytes, line.at + line.bytes);
    return bytes;
  };
  std::uint64_t most = end(lines);
  for (const LayoutLines& layout : earlier_)
    for (const auto& [number, fields] : layout.behind) {
      const auto& all = fields;
      if (std::all_of(lines.begin(), lines.end(), [&](const LayoutLine& line) {
            return std::any_of(all.begin(), all.end(), [&](const LayoutLine& one) {
              return one.at == line.at && one.bytes == line.bytes;
            });
          }))
        most = std::max(most, end(all));
    }
  return most;
}

void PointedStructs::add_copies() {
  std::map<std::size_t, std::size_t> place;  // of a pair in Plan::copied
  for (const auto& [number, pair] : copied_) {
    const StructPair& of = types_.pairs()[pair];
    const auto index = std::strtoull(of.now.c_str() + 1, nullptr, 10);
    CopiedStruct made;
    made.name = of.path;
    made.old_bytes = 0;
    for (const LayoutLine& line : old_lines(number))
      made.old_bytes = std::max(made.old_bytes, line.at + line.bytes);
    made.most_bytes = most_bytes(old_lines(number));
    if (index >= 1 && index <= program_.pointed.size()) made.now = program_.pointed[index - 1];
    made.moves = compared_[pair].moves;
    if (made.now.bytes == 0 || (made.now.initial == nullptr && compared_[pair].adds))
      plan_.refuse(made.name + ": the new fields of its struct have no initial values",
                   "make the struct default constructible");
    plan_.change(made.name + (compared_[pair].differs
                                  ? ": its objects are copied to new blocks"
                                  : ": its objects lead to such, and are copied, too"));
    place[pair] = plan_.copied.size();
    plan_.copied.push_back(std::move(made));
  }
  const auto places = [&](std::vector<PointerPlace> all) {
    for (PointerPlace& one : all)
      if (one.leads_to != PointerPlace::other) one.leads_to = place.at(one.leads_to);
    return all;
  };
  for (const auto& [number, pair] : copied_)
    plan_.copied[place.at(pair)].pointers =
        places(pointers(old_lines(number), compared_[pair].moves));
  for (PointerContainer& one : plan_.root_containers) one.leads_to = place.at(one.leads_to);
  plan_.root_pointers = places(pointers(before_.root, plan_.moves));
  plan_.pending = true;
}

}  // namespace perdure::detail
