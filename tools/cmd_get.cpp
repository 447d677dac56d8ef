// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure get POOL KEY`: writes the row's bytes, exactly as they were loaded or put, to standard
// output. `perdure get POOL FIELD KEY`: writes what a container of any pool has for a key, as JSON.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "perdure/inspect/dump.hpp"
#include "perdure/inspect/find.hpp"
#include "tools/command.hpp"
#include "tools/inspected_pool.hpp"
#include "tools/json.hpp"
#include "tools/store_pool.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

struct Arguments {
  PoolArguments pool;
  std::string key;  ///< or the field, if there is an element
  std::string element;
} arguments;

/// What f(dump) writes.
template <class F>
std::string json_of(inspect::Walker& walker, F&& f) {
  std::string text;
  inspect::JsonWriter out([&](std::string_view piece) { text += piece; });
  inspect::Dump dump(walker, out);
  f(dump);
  out.flush();
  return text;
}

/// The value of a key as JSON; nothing where there is none.
std::optional<std::string> look_up(inspect::Walker& walker, const inspect::Source& source) {
  const inspect::Member field = source.tree.field(arguments.key);
  const inspect::Layout& type = *field.type;
  if (!type.is_container() || type.kind == inspect::Kind::string || type.kind == inspect::Kind::box)
    throw error(failure(Code::invalid, arguments.pool.path,
                        "field '" + arguments.key + "', which has no elements",
                        "a map, set, table or sequence of elements",
                        "`perdure dump` shows the field; `perdure schema` lists all"));
  inspect::Address at = source.root + field.at;
  const bool table = type.kind == inspect::Kind::table;
  const inspect::Layout map = table ? walker.first_part(type, at) : type;
  if (table) at += inspect::table_part_bytes;
  std::optional<inspect::Entry> found;
  if (!map.is_map() || inspect::is_typed_plainly(map.element())) {
    found = inspect::find(walker, map, at, arguments.element);
  } else {
    const Json wanted = Json::parse(arguments.element, nullptr, false);
    if (wanted.is_discarded())
      throw error(failure(Code::invalid, arguments.pool.path, "the key '" + arguments.element + "'",
                          "a key of several parts as JSON, as `perdure dump` writes it"));
    found = inspect::find_if(walker, map, at, [&](const inspect::Entry& entry) {
      return Json::parse(json_of(walker, [&](inspect::Dump& dump) {
               dump.value(map.element(), entry.key);
             })) == wanted;
    });
  }
  if (!found) return std::nullopt;
  return json_of(walker, [&](inspect::Dump& dump) {
    if (table)
      dump.row(type, walker.read<inspect::Address>(found->value));
    else if (map.is_set())
      dump.value(map.element(), found->key);
    else
      dump.value(map.is_map() ? map.mapped() : map.element(), found->value);
  });
}

int run_in_any(App& app) {
  InspectedPool pool(arguments.pool);
  std::optional<std::string> value;
  pool.view([&](inspect::Walker& walker, const inspect::Source& source) {
    value = look_up(walker, source);
  });
  if (app.json) {
    Json j;
    j["field"] = arguments.key;
    set_bytes(j, "key", arguments.element);
    j["found"] = value.has_value();
    if (value) j["value"] = Json::parse(*value);
    print_json(j);
  } else if (value) {
    write_all(STDOUT_FILENO, *value + "\n", "standard output");
  } else {
    fmt::print(stderr,
               "perdure: {}: field '{}' has no key '{}'; `perdure dump` shows what it has\n",
               arguments.pool.path, escaped(arguments.key), escaped(arguments.element));
  }
  return value ? exit_ok : exit_problem;
}

int run(App& app) {
  if (!arguments.element.empty()) return run_in_any(app);
  const auto row = StorePool::open(arguments.pool, StorePool::Access::read).get(arguments.key);
  if (app.json) {
    Json j;
    set_bytes(j, "key", arguments.key);
    j["found"] = row.has_value();
    if (row) {
      set_bytes(j, "value", row->bytes);
      if (!row->by_hand()) j["line"] = row->line;
    }
    print_json(j);
  } else if (row) {
    write_all(STDOUT_FILENO, row->bytes, "standard output");
  } else {
    fmt::print(stderr, "perdure: {}: no row with key '{}'; `perdure scan --keys` lists the keys\n",
               arguments.pool.path, escaped(arguments.key));
  }
  return row ? exit_ok : exit_problem;
}

}  // namespace

void add_get(App& app) {
  auto sub = app.add("get", "print the row with a key, or an element of any pool's container",
                     "perdure get packages.perdure 'bash 5.2.15-2+b2 amd64'");
  arguments.pool.add_to(sub);
  sub.option("KEY", arguments.key,
             "the key; several key fields are joined by a space. With ELEMENT: a field of the root "
             "object, as `perdure schema` names it")
      .required();
  sub.option("ELEMENT", arguments.element,
             "the key in that field's map or table, or the number of an element; a key of several "
             "parts is typed as JSON. The value is printed as JSON");
  sub.runs(run);
}

}  // namespace perdure::tool
