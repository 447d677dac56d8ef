// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure del POOL KEY`: removes a row, also from the order, so that export leaves it out.
#include <fmt/format.h>

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
  auto pool = StorePool::open(arguments.pool, StorePool::Access::write);
  const bool found = pool.del(arguments.key);
  pool.close();
  if (app.json) {
    Json j;
    set_bytes(j, "key", arguments.key);
    j["found"] = found;
    print_json(j);
  } else if (!found) {
    fmt::print(stderr, "perdure: {}: no row with key '{}'; nothing was changed\n",
               arguments.pool.path, escaped(arguments.key));
  }
  return found ? exit_ok : exit_problem;
}

}  // namespace

void add_del(App& app) {
  auto sub = app.add("del", "remove the row with a key", "perdure del notes.perdure greeting");
  arguments.pool.add_to(sub);
  arguments.pool.add_log_to(sub);
  sub.option("KEY", arguments.key, "the key").required();
  sub.runs(run);
}

}  // namespace perdure::tool
