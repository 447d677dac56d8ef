// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure stat POOL`: the live counters of a pool that another program has open. They lie in
// shared memory named by the pool's uuid (perdure/engine/stat_page.hpp); of the pool only the
// header is read, without a lock. The counters are read with relaxed loads, as stat_page.hpp
// explains.
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>

#include "perdure/engine/stat_page.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/raw_pool.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

struct Arguments {
  std::string path;
  double watch = 0;
} arguments;

// A counter of a section; 0 if the program's build writes no such section. The load pairs with
// nothing: these are counters.
template <class Section>
std::uint64_t get(const Section* section, engine::StatCounter Section::* counter) {
  return section != nullptr ? (section->*counter).load(std::memory_order_relaxed) : 0;
}

Json describe(const engine::StatReader& reader, const pool::Header& h) {
  const engine::StatHead& head = reader.head();
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto now_ns = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
                      static_cast<std::uint64_t>(now.tv_nsec);
  const std::uint64_t updated = head.updated_ns.load(std::memory_order_relaxed);
  Json j;
  j["pool"] = arguments.path;
  j["uuid"] = uuid_text(h.uuid);
  j["running"] = reader.alive();
  j["pid"] = head.pid;
  j["engine"] = std::string(head.engine);
  j["age_seconds"] =
      updated == 0 || updated > now_ns ? 0.0 : static_cast<double>(now_ns - updated) * 1e-9;
  using Transactions = engine::TransactionCounters;
  const auto* const transactions = reader.section<Transactions>();
  const std::uint64_t last = get(transactions, &Transactions::last_id),
                      safe = get(transactions, &Transactions::durable_id);
  j["commits"] = get(transactions, &Transactions::commits);
  j["aborts"] = get(transactions, &Transactions::aborts);
  j["last_id"] = last;
  j["durable_id"] = safe;
  j["checkpoint_id"] = get(transactions, &Transactions::checkpoint_id);
  j["lag"] = last > safe ? last - safe : 0;
  const auto* const log = reader.section<engine::LogCounters>();
  j["log_used_bytes"] = get(log, &engine::LogCounters::used_bytes);
  j["log_capacity_bytes"] = get(log, &engine::LogCounters::capacity_bytes);
  j["checkpoints"] = get(log, &engine::LogCounters::checkpoints);
  const auto* const heap = reader.section<engine::HeapCounters>();
  j["heap_used"] = get(heap, &engine::HeapCounters::used_bytes);
  j["data_bytes"] = get(heap, &engine::HeapCounters::data_bytes);
  const auto* const medium = reader.section<engine::MediumCounters>();
  j["fences"] = get(medium, &engine::MediumCounters::fences);
  j["syncs"] = get(medium, &engine::MediumCounters::syncs);
  j["written_bytes"] = get(medium, &engine::MediumCounters::written_bytes);
  return j;
}

void print_text(const Json& j) {
  const auto number = [&](const char* name) { return j[name].get<std::uint64_t>(); };
  const std::uint64_t capacity = number("log_capacity_bytes");
  const double fill = capacity == 0 ? 0
                                    : 100.0 * static_cast<double>(number("log_used_bytes")) /
                                          static_cast<double>(capacity);
  fmt::print("program:     {} {}, engine {}, counters {:.3f} s old\n",
             j["running"].get<bool>() ? "process" : "ended without closing: process", number("pid"),
             j["engine"].get<std::string>(), j["age_seconds"].get<double>());
  fmt::print("commits:     {} ({} conflicts)\n", grouped(number("commits")),
             grouped(number("aborts")));
  fmt::print("ids:         last {}, durable {} (lag {}), in the data region {}\n",
             number("last_id"), number("durable_id"), number("lag"), number("checkpoint_id"));
  fmt::print("log:         {} of {} ({:.1f} %), {} checkpoints\n",
             human_bytes(number("log_used_bytes")), human_bytes(capacity), fill,
             grouped(number("checkpoints")));
  fmt::print("heap:        {} used, data region {}\n", human_bytes(number("heap_used")),
             human_bytes(number("data_bytes")));
  fmt::print("medium:      {} fences, {} syncs, {} written\n", grouped(number("fences")),
             grouped(number("syncs")), human_bytes(number("written_bytes")));
}

int run(App& app) {
  const pool::Header h = peek_header(arguments.path);
  for (;;) {
    auto reader = engine::StatReader::open(h.uuid);
    if (!reader.ok() && reader.code() != Code::not_found) reader.status().or_throw();
    if (!reader.ok() || !reader->belongs_to(arguments.path)) {
      if (app.json)
        print_json({{"pool", arguments.path}, {"uuid", uuid_text(h.uuid)}, {"running", false}});
      else
        fmt::print("no program has {} open for writing; `perdure info` tells what lies in it\n",
                   arguments.path);
      return exit_problem;
    }
    const Json j = describe(*reader, h);
    if (app.json && arguments.watch > 0)
      write_all(1, json_text(j) + "\n", "standard output");  // one document per line
    else if (app.json)
      print_json(j);
    else
      print_text(j);
    if (!j["running"].get<bool>()) return exit_problem;
    if (arguments.watch <= 0) return exit_ok;
    if (!app.json) fmt::print("\n");
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.watch));
  }
}

}  // namespace

void add_stat(App& app) {
  auto sub = app.add("stat", "show the live counters of a pool that a program has open",
                     "perdure stat --watch 1 bank.perdure");
  sub.option("POOL", arguments.path, "the pool file").required();
  sub.option("--watch", arguments.watch, "again every so many seconds, until the program ends");
  sub.runs(run);
}

}  // namespace perdure::tool
