// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure get POOL KEY`: writes the row's bytes, exactly as they were loaded or put, to standard
// output.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/store_pool.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

struct Arguments {
  PoolArguments pool;
  std::string key;
} arguments;

int run(App& app) {
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
  auto sub = app.add("get", "print the row with a key",
                     "perdure get packages.perdure 'bash 5.2.15-2+b2 amd64'");
  arguments.pool.add_to(sub);
  sub.option("KEY", arguments.key, "the key; several key fields are joined by a space").required();
  sub.runs(run);
}

}  // namespace perdure::tool
