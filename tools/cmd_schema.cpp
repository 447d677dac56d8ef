// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure schema POOL`: which fields, containers and structs a pool has, from its layout text.
// Read-only.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>

#include "perdure/api/erased.hpp"
#include "perdure/inspect/blocks.hpp"
#include "perdure/inspect/dump.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/open_pool.hpp"
#include "tools/command.hpp"
#include "tools/inspected_pool.hpp"
#include "tools/json.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

using inspect::Address;
using inspect::Kind;
using inspect::Layout;
using inspect::Member;

struct Arguments {
  PoolArguments pool;
  bool count = false, text = false, versions = false;
} arguments;

const char* word(Kind kind) {
  switch (kind) {
    case Kind::unknown: return "?";
    case Kind::scalar: return "number";
    case Kind::text: return "text";
    case Kind::sequence: return "std::vector";
    case Kind::optional: return "std::optional";
    case Kind::variant: return "std::variant";
    case Kind::array: return "array";
    case Kind::structure: return "struct";
    case Kind::record: return "record";
    case Kind::owned: return "object";
    case Kind::pointer: return "ptr";
    case Kind::string: return "string";
    case Kind::box: return "box";
    case Kind::vector: return "vector";
    case Kind::list: return "list";
    case Kind::queue: return "queue";
    case Kind::map: return "map";
    case Kind::rb_tree: return "rb_tree";
    case Kind::hash_map: return "hash_map";
    case Kind::set: return "set";
    case Kind::hash_set: return "hash_set";
    case Kind::multimap: return "multimap";
    case Kind::deque: return "deque";
    case Kind::priority_queue: return "priority_queue";
    case Kind::hook: return "list_hook";
    case Kind::elsewhere: return "object";
    case Kind::hooked_list: return "hooked_list";
    case Kind::table: return "table";
  }
  return "?";
}

const char* meaning(const Layout& type) {
  switch (type.meaning) {
    case inspect::Meaning::number: return "number";
    case inspect::Meaning::boolean: return "bool";
    case inspect::Meaning::character: return "char";
    case inspect::Meaning::enumerator: return "enum";
    case inspect::Meaning::time: return "time";
    case inspect::Meaning::local: return "local time";
    case inspect::Meaning::span: return "duration";
  }
  return "number";
}

/// Describes types; a struct within itself only once.
class Describe {
 public:
  explicit Describe(inspect::Walker* walker) : walker_(walker) {}

  /// `at`: where it lies in the root, or 0.
  Json type(const Layout& layout, Address at) {
    Json j;
    j["kind"] = layout.kind == Kind::scalar ? meaning(layout) : word(layout.kind);
    if (!layout.text.empty() && layout.text.size() <= 80) j["type"] = layout.text;
    j["bytes"] = layout.size;
    if (layout.reversed) j["descending"] = true;
    if (layout.kind == Kind::array) j["elements"] = layout.count;
    if (layout.is_btree() || layout.kind == Kind::multimap) j["node_entries"] = layout.count;
    if (layout.is_hashed()) j["buckets"] = layout.count;
    if (walker_ != nullptr && at != 0 && layout.is_container()) {
      try {
        j["count"] = walker_->count(layout, at);
      } catch (const error& e) {
        if (e.code() != Code::corrupt) throw;
        j["damaged"] = e.what();
      }
    }
    if (!inside_.insert(&layout).second) return j;
    parts(layout, at, j);
    inside_.erase(&layout);
    return j;
  }

 private:
  void parts(const Layout& layout, Address at, Json& j) {
    if (layout.kind == Kind::structure || layout.kind == Kind::variant) {
      Json fields = Json::array();
      for (std::size_t i = 0; i < layout.parts.size(); ++i) {
        const Member& part = layout.parts[i];
        Json field;
        if (layout.kind == Kind::structure) {
          field["name"] = inspect::name_of(part, i);
          field["offset"] = part.at;
        }
        field.update(type(*part.type, at == 0 ? 0 : at + part.at));
        fields.push_back(field);
      }
      j[layout.kind == Kind::structure ? "fields" : "alternatives"] = fields;
    } else if (layout.is_map()) {
      j["key"] = type(layout.element(), 0);
      if (!layout.is_set()) j["value"] = type(layout.mapped(), 0);
    } else if (layout.kind == Kind::table) {
      j["row"] = type(layout.element(), 0);
      Json found = Json::array();
      for (std::size_t i = 1; i < layout.parts.size(); ++i) found.push_back(layout.parts[i].name);
      j["found_by"] = found;
    } else if (layout.kind == Kind::pointer) {
      if (!layout.parts.empty()) j["to"] = layout.element().text;
    } else if (!layout.parts.empty()) {
      j["element"] = type(layout.element(), 0);
    }
  }

  inspect::Walker* walker_;
  std::set<const Layout*> inside_;
};

/// How many records of each field have which layout.
Json versions(const inspect::Blocks& found) {
  Json fields = Json::object();
  for (const auto& [path, one] : found.versions) {
    Json earlier = Json::array();
    for (const auto& [layout, n] : one.earlier) {
      Json version;
      version["layout"] = layout->text;
      version["count"] = n;
      earlier.push_back(version);
    }
    fields[path]["now"] = one.now;
    fields[path]["earlier"] = earlier;
  }
  return fields;
}

/// One line for each part: "name: kind type, bytes".
void print(const Json& j, const std::string& name, unsigned indent) {
  std::string line =
      fmt::format("{:{}}{}: {}", "", 2 * indent, escaped(name), j["kind"].get<std::string>());
  const bool leaf = !j.contains("fields") && !j.contains("key") && !j.contains("row") &&
                    !j.contains("element") && !j.contains("alternatives");
  if (leaf && j.contains("type") && j["type"] != j["kind"])
    line += " " + escaped(j["type"].get<std::string>());
  if (j.contains("offset"))
    line +=
        fmt::format(" @{} {}", j["offset"].get<std::uint64_t>(), j["bytes"].get<std::uint64_t>());
  if (j.contains("elements")) line += fmt::format(" of {}", j["elements"].get<std::uint64_t>());
  if (j.contains("found_by")) {
    line += " by ";
    for (std::size_t i = 0; i < j["found_by"].size(); ++i)
      line += (i == 0 ? "" : ", ") + escaped(j["found_by"][i].get<std::string>());
  }
  if (j.contains("to")) line += " to " + escaped(j["to"].get<std::string>());
  if (j.contains("count")) line += fmt::format(" ({})", grouped(j["count"].get<std::uint64_t>()));
  if (j.contains("damaged")) line += " (damaged)";
  fmt::print("{}\n", line);
  if (j.contains("fields"))
    for (const Json& field : j["fields"]) print(field, field["name"], indent + 1);
  for (const char* part : {"key", "value", "row", "element"})
    if (j.contains(part)) print(j[part], part, indent + 1);
  if (j.contains("alternatives"))
    for (std::size_t i = 0; i < j["alternatives"].size(); ++i)
      print(j["alternatives"][i], std::to_string(i), indent + 1);
}

/// The layout text, as `perdure load --schema` reads it.
int write_text(App& app) {
  InspectedPool opened(arguments.pool);
  const pool::OpenPool& file = opened.pool().file();
  const std::vector<std::string> texts =
      pool::read_catalog(file.path(), file.header(), file.view()).value().layouts;
  if (texts.empty())
    throw error(failure(Code::unsupported, arguments.pool.path,
                        "a pool without a catalog, whose layout text has no names of fields",
                        "a pool with a catalog",
                        "`perdure schema` without --text shows its fields"));
  if (app.json)
    print_json({{"pool", arguments.pool.path}, {"text", texts.front()}});
  else
    write_all(STDOUT_FILENO, texts.front(), "standard output");
  return exit_ok;
}

int run(App& app) {
  if (arguments.text) return write_text(app);
  InspectedPool pool(arguments.pool);
  Json answer;
  pool.view([&](inspect::Walker& walker, const inspect::Source& source) {
    Describe describe(arguments.count ? &walker : nullptr);
    answer["pool"] = arguments.pool.path;
    answer["root"] = describe.type(source.tree.root(), source.root);
    Json structs = Json::object();
    for (const Layout* definition : source.tree.definitions())
      structs[definition->text.empty() ? "?" : definition->text] = describe.type(*definition, 0);
    answer["structs"] = structs;
    if (!arguments.versions) return;
    const inspect::Blocks found = inspect::find_blocks(walker, source.tree.root(), source.root);
    answer["versions"] = versions(found);
    answer["problems"] = found.problems;
  });
  if (app.json) {
    print_json(answer);
    return exit_ok;
  }
  if (answer["root"].contains("fields"))
    for (const Json& field : answer["root"]["fields"]) print(field, field["name"], 0);
  for (const auto& [name, type] : answer["structs"].items()) print(type, name, 0);
  if (!arguments.versions) return exit_ok;
  for (const auto& [name, found] : answer["versions"].items()) {
    fmt::print("{}: {} of this version\n", escaped(name),
               grouped(found["now"].get<std::uint64_t>()));
    for (const Json& one : found["earlier"])
      fmt::print("{}: {} of {}\n", escaped(name), grouped(one["count"].get<std::uint64_t>()),
                 escaped(one["layout"].get<std::string>()));
  }
  for (const Json& problem : answer["problems"])
    fmt::print("{}\n", escaped(problem.get<std::string>()));
  return exit_ok;
}

}  // namespace

void add_schema(App& app) {
  auto sub = app.add("schema", "show the fields, containers and structs of any pool",
                     "perdure schema --count sessions.perdure");
  arguments.pool.add_to(sub);
  const Option count =
      sub.flag("--count", arguments.count, "show how many elements the containers have");
  const Option versions =
      sub.flag("--versions", arguments.versions,
               "show how many records and rows are of which version of the program; reads all");
  sub.flag("--text", arguments.text, "write the layout text, which `perdure load --schema` reads")
      .excludes(count)
      .excludes(versions);
  sub.runs(run);
}

}  // namespace perdure::tool
