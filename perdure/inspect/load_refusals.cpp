// SPDX-License-Identifier: BSD-3-Clause
//
// refusals_of: finds the types in a layout about which a dump does not say enough, before anything
// is written.
#include <algorithm>
#include <set>

#include "perdure/inspect/dump.hpp"
#include "perdure/inspect/load.hpp"

namespace perdure::inspect {
namespace {

class Refusals {
 public:
  std::vector<std::string> found;

  void look_at(const Layout& type, const std::string& path) {
    if (!seen_.insert(&type).second) return;
    if (const std::string why = reason(type); !why.empty()) found.push_back(path + ": " + why);
    for (std::size_t i = 0; i < type.parts.size(); ++i) {
      const Member& part = type.parts[i];
      std::string inside = path;
      if (type.kind == Kind::structure)
        inside += (path.empty() ? "" : ".") + name_of(part, i);
      else if (type.kind == Kind::table)
        inside += i == 0 ? "" : ", by " + part.name;
      else
        inside += type.is_map() && i == 0 ? "[key]" : "[]";
      look_at(*part.type, inside);
    }
  }

 private:
  static bool has_own_hash(const Layout& type, std::set<const Layout*>& seen) {
    if (type.own_hash) return true;
    if (!seen.insert(&type).second) return false;
    return std::any_of(type.parts.begin(), type.parts.end(),
                       [&](const Member& part) { return has_own_hash(*part.type, seen); });
  }
  static std::string reason(const Layout& type) {
    if (type.kind == Kind::structure)
      for (const Member& part : type.parts)
        if (part.at > type.size || part.type->size > type.size - part.at)
          return "its part '" + part.name + "' lies outside it";
    // A dump has all bytes of a type that leads to nothing.
    if (type.kind == Kind::unknown && (type.leads || type.size == 0))
      return "'" + type.text +
             "' has only a name in the schema, so it is not known what it leads to";
    if (type.kind == Kind::pointer && type.parts.empty() && type.text.starts_with("ptr<"))
      return "a pointer that does not say what it leads to";
    std::set<const Layout*> seen;
    if (type.is_hashed() && has_own_hash(type.element(), seen))
      return "its keys are hashed by a perdure::hash of the program";
    return {};
  }

  std::set<const Layout*> seen_;
};

}  // namespace

std::vector<std::string> refusals_of(const Tree& tree) {
  Refusals refusals;
  refusals.look_at(tree.root(), "");
  for (std::size_t i = 0; i < tree.definitions().size(); ++i)
    refusals.look_at(*tree.definitions()[i], "#" + std::to_string(i + 1));
  return std::move(refusals.found);
}

}  // namespace perdure::inspect
