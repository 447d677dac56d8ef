// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure put POOL KEY VALUE`: sets a row's bytes; the row of a new key is appended to the order.
// Makes the pool if it does not exist.
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
  std::string key, value;
} arguments;

int run(App& app) {
  const std::string value =
      arguments.value == "-" ? read_all(STDIN_FILENO, "standard input") : arguments.value;
  auto pool = StorePool::open(arguments.pool, StorePool::Access::create);
  const bool fresh = pool.put(arguments.key, value);
  pool.close();
  if (app.json) {
    Json j;
    set_bytes(j, "key", arguments.key);
    j["bytes"] = value.size();
    j["new"] = fresh;
    print_json(j);
  }
  return exit_ok;
}

}  // namespace

void add_put(App& app) {
  auto sub = app.add(
      "put", "set the row with a key; VALUE is all of the row, - reads it from standard input",
      "perdure put notes.perdure greeting 'hello, world'");
  arguments.pool.add_to(sub);
  arguments.pool.add_creation_to(sub);
  arguments.pool.add_log_to(sub);
  sub.option("KEY", arguments.key, "the key").required();
  sub.option("VALUE", arguments.value, "the row's bytes, or -").required();
  sub.runs(run);
}

}  // namespace perdure::tool
