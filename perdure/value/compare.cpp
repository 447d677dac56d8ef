// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <utility>

#include "perdure/value/convert.hpp"
#include "perdure/value/match_names.hpp"

namespace perdure::value {
namespace {

using How = Conversion::How;

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

/// Splits the word of a scalar into its unit and the number that holds it: "time<1/1," and "i64".
std::pair<std::string_view, std::string_view> halves(std::string_view word) {
  if (word.starts_with("enum:")) return {word.substr(0, 5), word.substr(5)};
  const std::size_t comma = word.find(',');
  if (comma == std::string_view::npos) return {"", word};
  return {word.substr(0, comma), word.substr(comma + 1, word.size() - comma - 2)};
}
bool is_counted(std::string_view number) {
  return number.size() > 1 && (number[0] == 'u' || number[0] == 'i' || number[0] == 'f') &&
         number[1] >= '0' && number[1] <= '9';
}

/// Whether each value of one number type is a value of the other.
bool widens(const Type& before, const Type& now) {
  if (before.number == Number::opaque || now.number == Number::opaque) return false;
  const auto [unit, held] = halves(before.word);
  const auto [unit_now, held_now] = halves(now.word);
  // An enumerator may become a number, but a number may not become an enumerator.
  if (unit != unit_now && !(unit == "enum:" && unit_now.empty())) return false;
  if (!is_counted(held) || !is_counted(held_now)) return held == held_now;
  if (before.number == now.number) return now.size >= before.size;
  return before.number == Number::unsigned_integer && now.number == Number::signed_integer &&
         now.size > before.size;
}

}  // namespace

Need Comparison::need() const noexcept {
  Need most = Need::nothing;
  for (const Change& change : changes_) most = std::max(most, change.need);
  return most;
}

std::string Comparison::lines(Need least) const {
  std::string out;
  for (const Change& change : changes_) {
    if (change.need < least) continue;
    if (!out.empty()) out += '\n';
    out += (change.path.empty() ? "the value" : change.path) + ": " + change.text;
  }
  return out;
}

class Comparer {
 public:
  explicit Comparer(Comparison& out) : out_(out) {}

  const Conversion* run(const Type& before, const Type& now, const std::string& path) {
    const bool structs = before.kind == Kind::structure && now.kind == Kind::structure;
    if (structs) {
      // The conversion may be unfinished, for a struct within itself. Its changes were reported
      // where the struct was first seen.
      const auto found = structs_.find({&before, &now});
      if (found != structs_.end()) return found->second;
    }
    Conversion& to = out_.made_.emplace_back(Conversion{&before, &now});
    if (structs) structs_.emplace(std::pair(&before, &now), &to);
    if (before.reversed != now.reversed) {
      different(path, before, now, "one of them is in descending order");
    } else if (before.kind == now.kind) {
      like(to, before, now, path);
    } else if (now.kind == Kind::optional) {
      to.how = How::into_optional;
      report(path, Need::nothing, "is optional now; each old value is there");
      to.parts.push_back({0, 0, run(before, now.element(), path)});
    } else {
      different(path, before, now, "");
    }
    return &to;
  }

 private:
  void report(const std::string& path, Need need, std::string text) {
    out_.changes_.push_back({path, need, std::move(text)});
  }
  void different(const std::string& path, const Type& before, const Type& now,
                 const std::string& why) {
    report(path, Need::step,
           "found " + quoted(text_of(before)) + " in the pool, expected " + quoted(text_of(now)) +
               (why.empty() ? "" : " (" + why + ")") +
               ": give a step that makes one of the other, or a new name for the new field");
  }

  void like(Conversion& to, const Type& before, const Type& now, const std::string& path) {
    switch (now.kind) {
      case Kind::text: to.how = How::same; return;
      case Kind::scalar: return scalar(to, before, now, path);
      case Kind::sequence:
        to.how = How::sequence;
        to.parts.push_back({0, 0, run(before.element(), now.element(), path + "[]")});
        return;
      case Kind::optional:
        to.how = How::optional;
        to.parts.push_back(
            {before.parts.front().at, 0, run(before.element(), now.element(), path)});
        return;
      case Kind::array:
        if (now.count < before.count) return different(path, before, now, "elements would be lost");
        if (now.count > before.count)
          report(path, Need::nothing,
                 "has " + std::to_string(now.count) + " elements, before " +
                     std::to_string(before.count) +
                     "; the new ones have their initialiser's value");
        to.how = How::array;
        to.parts.push_back({0, 0, run(before.element(), now.element(), path + "[]")});
        return;
      case Kind::variant: return variant(to, before, now, path);
      case Kind::structure: return structure(to, before, now, path);
    }
  }

  void scalar(Conversion& to, const Type& before, const Type& now, const std::string& path) {
    if (before.word == now.word && before.size == now.size && before.align == now.align) {
      to.how = How::same;
    } else if (widens(before, now)) {
      to.how = before.size == now.size ? How::same : How::number;
      report(path, Need::nothing, "widened from " + before.word + " to " + now.word);
    } else {
      different(path, before, now, "a value could be lost or mean something else");
    }
  }

  /// Old alternatives keep their numbers, so new ones may only follow them.
  void variant(Conversion& to, const Type& before, const Type& now, const std::string& path) {
    if (now.parts.size() < before.parts.size())
      return different(path, before, now, "alternatives are missing");
    for (std::size_t i = 0; i < before.parts.size(); ++i) {
      if (before.parts[i].type->kind != now.parts[i].type->kind)
        return different(path, before, now, "alternatives may be added at the end only");
    }
    to.how = How::variant;
    for (std::size_t i = 0; i < before.parts.size(); ++i)
      to.parts.push_back(
          {before.parts[i].at, 0,
           run(*before.parts[i].type, *now.parts[i].type, path + "<" + std::to_string(i) + ">")});
    if (now.parts.size() > before.parts.size())
      report(path, Need::nothing,
             std::to_string(now.parts.size() - before.parts.size()) + " alternatives added");
  }

  void structure(Conversion& to, const Type& before, const Type& now, const std::string& path) {
    to.how = How::structure;
    const std::string dot = path.empty() ? "" : path + ".";
    const MatchedNames matched = match_names(names_of(before), names_of(now), now.renamed);
    std::vector<bool> taken(before.parts.size());
    for (std::size_t i = 0; i < now.parts.size(); ++i) {
      const auto from = matched.from[i];
      if (!from) continue;
      taken[*from] = true;
      if (before.parts[*from].name != now.parts[i].name)
        report(dot + std::string(now.parts[i].name), Need::nothing,
               "renamed from " + std::string(before.parts[*from].name));
    }
    for (const MatchedNames::Both& both : matched.both)
      report(dot + std::string(before.parts[both.earlier].name), Need::refusal,
             both_text(now.parts[both.one].name, now.parts[both.other].name));
    for (std::size_t i = 0; i < now.parts.size(); ++i) {
      const Part& part = now.parts[i];
      const std::string name = dot + std::string(part.name);
      if (!matched.from[i]) {
        report(name, Need::nothing, "new; its initialiser's value is in old ones");
        out_.changes_.back().is_new = true;
        continue;
      }
      const Part& from = before.parts[*matched.from[i]];
      to.parts.push_back({from.at, part.in_object, run(*from.type, *part.type, name)});
    }
    for (std::size_t i = 0; i < before.parts.size(); ++i) {
      if (taken[i]) continue;
      const std::string name(before.parts[i].name);
      if (std::find(now.removed.begin(), now.removed.end(), name) != now.removed.end())
        report(dot + name, Need::nothing,
               "removed; what it holds is freed when its value is rewritten or erased");
      else
        report(
            dot + name, Need::refusal,
            "found in the pool, not in the program: name it in perdure_renamed if it has "
            "another name now, give a step that reads it if other fields are made of it, or name "
            "it in perdure_removed if it may be lost; if none of these is so, the program is "
            "older than the pool: use the newer one");
    }
  }
  static std::vector<std::string_view> names_of(const Type& type) {
    std::vector<std::string_view> names;
    for (const Part& part : type.parts) names.push_back(part.name);
    return names;
  }

  Comparison& out_;
  std::map<std::pair<const Type*, const Type*>, const Conversion*> structs_;
};

Comparison compare(const Type& before, const Type& now, const std::string& path) {
  Comparison out;
  out.root_ = Comparer(out).run(before, now, path);
  return out;
}

}  // namespace perdure::value
