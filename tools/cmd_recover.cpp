// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure recover POOL`: does what the next opening for writing would do, for a pool of any engine
// and any root type, and closes the pool in order.
//
// Recovery is a function of the medium alone (LAW-5: a crash during it ends in the same state), so
// nothing is mapped and no program's types are needed. The header says which engine's recovery
// runs.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/pool/open_pool.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/progress.hpp"
#include "tools/raw_pool.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

PoolArguments arguments;

int run(App& app) {
  pool::OpenFile how;
  how.path = arguments.path;
  how.create = false;
  how.medium = arguments.medium;
  how.direct = !arguments.no_direct;
  pool::Identity who;
  who.engine_any = true;
  who.layout_any = true;
  const auto begun = std::chrono::steady_clock::now();
  auto file = pool::OpenPool::open(how, who).value();
  const std::string engine = engine_of(file->header());
  const engine::EngineInfo* const entry = engine::find_family(engine);
  if (entry == nullptr) {
    failure(Code::incompatible, arguments.path, "a pool of engine '" + engine + "'",
            "one that this build knows", "use the perdure command of the program's own build")
        .or_throw();
  }
  engine::Recovery report;
  report.was_clean = file->header().clean == 1;
  if (!report.was_clean) {
    engine::recover(*entry, *file, report, {0, show_recovery(arguments.path)}).or_throw();
    file->start_session(pool::ViewPolicy::none).or_throw();
    file->close_clean(report.last_id).or_throw();
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (app.json) {
    Json j;
    j["pool"] = arguments.path;
    j["engine"] = engine;
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
