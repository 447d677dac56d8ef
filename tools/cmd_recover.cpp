// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure recover POOL`: does what the next opening for writing would do, for a pool of any engine
// and any root type, and closes the pool in order.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/raw_pool.hpp"
#include "tools/text.hpp"
#include "tools/unmapped_pool.hpp"

namespace perdure::tool {
namespace {

PoolArguments arguments;

int run(App& app) {
  const auto begun = std::chrono::steady_clock::now();
  const auto file = open_unmapped(arguments, false);
  const engine::Recovery report = put_in_order(*file, arguments);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (app.json) {
    Json j;
    j["pool"] = arguments.path;
    j["engine"] = engine_of(file->header());
    j["was_clean"] = report.was_clean;
    j["records"] = report.records;
    j["transactions"] = report.transactions;
    j["bytes"] = report.bytes;
    j["rolled_back"] = report.rolled_back;
    j["last_id"] = report.was_clean ? file->header().checkpoint_id : report.last_id;
    j["recovery_seconds"] = report.seconds;
    j["seconds"] = seconds;
    print_json(j);
  } else if (report.was_clean) {
    fmt::print("{} was closed in order: nothing to recover\n", arguments.path);
  } else {
    fmt::print(
        "{}: replayed {} records of {} transactions ({}), rolled back {}, in {:.1f} ms; {:.1f} ms "
        "with opening and closing\n",
        arguments.path, grouped(report.records), grouped(report.transactions),
        human_bytes(report.bytes), grouped(report.rolled_back), report.seconds * 1e3,
        seconds * 1e3);
  }
  return exit_ok;
}

}  // namespace

void add_recover(App& app) {
  auto sub =
      app.add("recover", "replay the log of a pool that was not closed in order, and close it",
              "perdure recover bank.perdure");
  arguments.add_to(sub);
  sub.runs(run);
}

}  // namespace perdure::tool
