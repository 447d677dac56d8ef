// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure dump POOL [FIELD...]`: writes the content of any pool as JSON, or as JSON lines.
// Read-only.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "perdure/inspect/dump.hpp"
#include "tools/command.hpp"
#include "tools/inspected_pool.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

struct Arguments {
  PoolArguments pool;
  std::vector<std::string> fields;
  bool lines = false, indexes = false;
} arguments;

int run(App&) {
  InspectedPool pool(arguments.pool);
  std::vector<std::string> damage;
  pool.view([&](inspect::Walker& walker, const inspect::Source& source) {
    if (source.unfinished)
      fmt::print(stderr,
                 "perdure: {}: a change to another version of its program is not finished, so the "
                 "dump has only a part of the change: open the pool with its program first\n",
                 escaped(arguments.pool.path));
    std::vector<inspect::Member> fields = source.tree.root().parts;
    if (!arguments.fields.empty()) {
      fields.clear();
      for (const std::string& path : arguments.fields) {
        fields.push_back(source.tree.field(path));
        fields.back().name = path;
      }
    }
    inspect::JsonWriter out(
        [](std::string_view text) { write_all(STDOUT_FILENO, text, "standard output"); },
        arguments.lines ? 0 : 2);
    inspect::Dump dump(walker, out, arguments.indexes);
    if (arguments.lines)
      dump.lines(fields, source.root);
    else
      dump.document(fields, source.root);
    out.flush();
    damage = dump.damage();
  });
  for (const std::string& problem : damage)
    fmt::print(stderr, "perdure: {}: {}\n", arguments.pool.path, escaped(problem));
  return damage.empty() ? exit_ok : exit_problem;
}

}  // namespace

void add_dump(App& app) {
  auto sub = app.add("dump", "write the content of any pool as JSON",
                     "perdure dump --jsonl sessions.perdure sessions");
  arguments.pool.add_to(sub);
  sub.option("FIELD", arguments.fields,
             "fields of the root object, as `perdure schema` names them; default: all");
  sub.flag("--jsonl", arguments.lines, "one line of JSON for each row, entry and element");
  sub.flag("--indexes", arguments.indexes, "of tables, show the rows' numbers and the indexes");
  sub.runs(run);
}

}  // namespace perdure::tool
