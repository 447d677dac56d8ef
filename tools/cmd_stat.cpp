// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure stat POOL`: the live counters of a pool that another program has open, as text, JSON or
// for Prometheus. `perdure lag POOL`: how far a copy of a replicated pool is behind, for people and
// for checks.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "perdure/replication/logs.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/live_counters.hpp"
#include "tools/raw_pool.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

struct Arguments {
  std::string path, prometheus, log;
  double watch = 0, at_most = 0;
} arguments;

std::uint64_t number(const Json& j, const char* name) { return j[name].get<std::uint64_t>(); }

std::string milliseconds(const Json& j, const char* name) {
  return fmt::format("{:.1f} ms", j[name].get<double>() * 1e3);
}

// What a copy does, and how far it is.
std::string replication_text(const Json& r) {
  const std::string role = r["role"].get<std::string>();
  std::string text = fmt::format("{} in term {}, message {}; ", role, number(r, "term"),
                                 grouped(number(r, "message")));
  if (role == "standby" || role == "ended")
    return text + fmt::format("has transaction {}; had all that the log has {} ago",
                              grouped(number(r, "id")), milliseconds(r, "lag_seconds"));
  text += fmt::format("the log has transaction {}", grouped(number(r, "id")));
  if (const std::uint64_t lag = number(r, "lag"); lag != 0 || number(r, "lag_bytes") != 0)
    text += fmt::format(", and lacks {} ({}), the oldest for {}", grouped(lag),
                        human_bytes(number(r, "lag_bytes")), milliseconds(r, "lag_seconds"));
  return text;
}

void print_text(const Json& j) {
  const std::uint64_t capacity = number(j, "log_capacity_bytes");
  const double fill = capacity == 0 ? 0
                                    : 100.0 * static_cast<double>(number(j, "log_used_bytes")) /
                                          static_cast<double>(capacity);
  fmt::print("program:     {} {}, engine {}, counters {:.3f} s old\n",
             j["running"].get<bool>() ? "process" : "ended without closing: process",
             number(j, "pid"), j["engine"].get<std::string>(), j["age_seconds"].get<double>());
  fmt::print("commits:     {} ({} conflicts)\n", grouped(number(j, "commits")),
             grouped(number(j, "aborts")));
  fmt::print("ids:         last {}, durable {} (lag {}), in the data region {}\n",
             number(j, "last_id"), number(j, "durable_id"), number(j, "lag"),
             number(j, "checkpoint_id"));
  fmt::print("log:         {} of {} ({:.1f} %), {} checkpoints\n",
             human_bytes(number(j, "log_used_bytes")), human_bytes(capacity), fill,
             grouped(number(j, "checkpoints")));
  fmt::print("heap:        {} used, data region {}\n", human_bytes(number(j, "heap_used")),
             human_bytes(number(j, "data_bytes")));
  fmt::print("medium:      {} fences, {} syncs, {} written\n", grouped(number(j, "fences")),
             grouped(number(j, "syncs")), human_bytes(number(j, "written_bytes")));
  if (!j.contains("replication")) return;
  const Json& r = j["replication"];
  fmt::print("replication: {}\n", replication_text(r));
  if (r.contains("waits"))
    fmt::print(
        "             {} messages with {} appended, the last in {}; {} unanswered; {} "
        "commits waited\n",
        grouped(number(r, "messages")), human_bytes(number(r, "bytes")),
        milliseconds(r, "last_append_seconds"), grouped(number(r, "unanswered")),
        grouped(number(r, "waits")));
}

// What is known of the pool's counters now; null: no program has it open.
Json look(const pool::Header& h) {
  const auto reader = open_counters(arguments.path, h);
  return reader ? describe(*reader, arguments.path, h) : Json();
}

int no_program(const App& app, const pool::Header& h) {
  if (app.json)
    print_json({{"pool", arguments.path}, {"uuid", uuid_text(h.uuid)}, {"running", false}});
  else
    fmt::print("no program has {} open for writing; `perdure info` tells what lies in it\n",
               arguments.path);
  return exit_problem;
}

// One look. Returns the exit code.
int show(const App& app, const pool::Header& h) {
  const Json j = look(h);
  if (!arguments.prometheus.empty())
    metrics_of(j, arguments.path).write_to(arguments.prometheus);
  else if (j.is_null())
    return no_program(app, h);
  else if (app.json && arguments.watch > 0)
    write_all(1, json_text(j) + "\n", "standard output");  // one document per line
  else if (app.json)
    print_json(j);
  else
    print_text(j);
  return !j.is_null() && j["running"].get<bool>() ? exit_ok : exit_problem;
}

int stat(App& app) {
  const pool::Header h = peek_header(arguments.path);
  for (;;) {
    const int code = show(app, h);
    if (code != exit_ok || arguments.watch <= 0) return code;
    if (!app.json && arguments.prometheus.empty()) fmt::print("\n");
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.watch));
  }
}

int lag(App& app) {
  const pool::Header h = peek_header(arguments.path);
  const Json j = look(h);
  if (j.is_null() || !j["running"].get<bool>()) return no_program(app, h);
  if (!j.contains("replication"))
    throw error(failure(Code::invalid, arguments.path, "a pool that its program does not replicate",
                        "a replicated pool", "docs/replication.md tells how to replicate it"));
  Json r = j["replication"];
  if (!arguments.log.empty()) {
    const std::uint64_t ends =
        replication::open_named_log(arguments.log, false).value()->ends().value().last;
    r["log_message"] = ends;
    r["lag_messages"] = ends - std::min(ends, number(r, "message"));
  }
  const std::string role = r["role"].get<std::string>();
  const bool late = arguments.at_most > 0 && r["lag_seconds"].get<double>() > arguments.at_most;
  r["ok"] = !late && (role == "primary" || role == "standby");
  if (app.json) {
    print_json(r);
  } else {
    fmt::print("{}: {}\n", arguments.path, replication_text(r));
    if (r.contains("log_message"))
      fmt::print("{}: {} messages, {} of them later\n", arguments.log,
                 grouped(number(r, "log_message")), grouped(number(r, "lag_messages")));
    if (late) fmt::print("that is more than {} s\n", arguments.at_most);
  }
  return r["ok"].get<bool>() ? exit_ok : exit_problem;
}

}  // namespace

void add_stat(App& app) {
  auto sub = app.add("stat", "show the live counters of a pool that a program has open",
                     "perdure stat --watch 1 bank.perdure");
  sub.option("POOL", arguments.path, "the pool file").required();
  sub.option("--watch", arguments.watch, "again every so many seconds, until the program ends");
  sub.option("--prometheus", arguments.prometheus,
             "write them to this file (-: standard output) as Prometheus reads them; the file is "
             "whole at any time");
  sub.runs(stat);
}

void add_lag(App& app) {
  auto sub = app.add("lag",
                     "say how far a copy of a replicated pool is behind, which a program has open; "
                     "exits with 1 if that is too much, or it is no primary or standby any more",
                     "perdure lag bank.perdure --at-most 5");
  sub.option("POOL", arguments.path, "the pool file, of the primary or of a standby").required();
  sub.option("--at-most", arguments.at_most,
             "exit with 1 if it is behind by more than so many seconds (default: any)");
  sub.option("--log", arguments.log, "also ask this log how many messages it has");
  sub.runs(lag);
}

}  // namespace perdure::tool
