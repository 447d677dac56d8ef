// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure scan POOL`: rows in key order (by bytes), one per line: the key, a tab, the row, with
// \t, \n, \r and \\ escaped.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/store_pool.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

struct Arguments {
  PoolArguments pool;
  std::string from, to, prefix;
  std::uint64_t limit = 0;
  bool keys = false;
} arguments;

int run(App& app) {
  auto pool = StorePool::open(arguments.pool, StorePool::Access::read);
  std::string out = app.json ? "{\"rows\": [" : "";
  std::uint64_t count = 0;
  pool.scan(std::max(arguments.from, arguments.prefix), [&](const StoredRow& row) {
    if (!arguments.to.empty() && row.key >= arguments.to) return false;
    if (!row.key.starts_with(arguments.prefix)) return false;
    if (arguments.limit != 0 && count >= arguments.limit) return false;
    ++count;
    if (app.json) {
      Json j;
      set_bytes(j, "key", row.key);
      if (!arguments.keys) set_bytes(j, "value", row.bytes);
      out += (count > 1 ? ",\n  " : "\n  ") + json_text(j);
    } else {
      out += escaped(row.key);
      if (!arguments.keys) out += '\t' + escaped(row.bytes);
      out += '\n';
    }
    if (out.size() > 65536) {
      write_all(STDOUT_FILENO, out, "standard output");
      out.clear();
    }
    return true;
  });
  if (app.json) out += fmt::format("\n], \"count\": {}}}\n", count);
  write_all(STDOUT_FILENO, out, "standard output");
  return exit_ok;
}

}  // namespace

void add_scan(App& app) {
  auto sub = app.add("scan", "print rows in key order",
                     "perdure scan packages.perdure --prefix 'bash' --keys");
  arguments.pool.add_to(sub);
  sub.option("--from", arguments.from, "the first key, or the one behind it");
  sub.option("--to", arguments.to, "stop before this key");
  sub.option("--prefix", arguments.prefix, "only keys that begin with this");
  sub.option("--limit", arguments.limit, "at most so many rows (0: all)").show_default();
  sub.flag("--keys", arguments.keys, "print keys alone");
  sub.runs(run);
}

}  // namespace perdure::tool
