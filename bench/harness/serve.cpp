// SPDX-License-Identifier: BSD-3-Clause
//
// The command line that every benchmark executable has:
//   --list                     prints the systems that it contains, as JSON
//   --system S --workload W    one cell: opens, fills, runs, audits, reopens, audits again; prints
//                              the figures
//   --system S --structure T --serve   opens and fills, then answers one JSON object per line, so
//                                      that run.py can let many systems run in turn:
//     {"run": "sps-8", "threads": 1, "seconds": 0.3, "warmup": 0.05, "seed": 7}
//     {"audit": true}
//     ("per_transaction": 8 and "idle": 50 are members of Cell)
//     ({"audit": true, "reopen": true} closes and opens first). End of input ends it.
// Exit status: 0, 1 when something failed or an audit found something, 2 for wrong arguments.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/harness/lz4_alone.hpp"
#include "bench/harness/scratch.hpp"
#include "bench/harness/session.hpp"

namespace bench {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Cell& cell, const Outcome& outcome) {
  Json j{{"workload", cell.workload},         {"threads", cell.threads},
         {"operations", outcome.operations},  {"writes", outcome.writes},
         {"seconds", outcome.seconds},        {"rate", outcome.rate},
         {"cpu_seconds", outcome.cpu_seconds}};
  Json counters = Json::object();
  for (const auto& [name, value] : outcome.counters) counters[name] = value;
  j["counters"] = counters;
  return j;
}

Json listed(const Systems& systems) {
  Json list = Json::array();
  for (const System& s : systems) {
    list.push_back({{"name", s.name},
                    {"about", s.about},
                    {"structures", s.structures},
                    {"max_threads", s.max_threads}});
  }
  return list;
}

Json audited(Session& session, bool reopen) {
  const bool reopened = reopen && session.reopen();
  return {{"problems", session.audit()}, {"reopened", reopened}};
}

/// Waits until the file system has nothing left to write, so that no system is charged for the data
/// of another one.
void sync_file_system(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::syncfs(fd);
  ::close(fd);
}

Outcome measured(Session& session, const Cell& cell) {
  const std::uint64_t before = lz4_alone_bytes();
  Outcome outcome = session.run(cell);
  if (const std::uint64_t bytes = lz4_alone_bytes() - before; bytes != 0)
    outcome.counters["log_lz4_alone"] = static_cast<double>(bytes);
  return outcome;
}

Json answer(Session& session, const std::string& directory, const Json& asked) {
  if (asked.contains("audit")) return audited(session, asked.value("reopen", false));
  if (!asked.contains("run"))
    throw std::invalid_argument("found " + asked.dump() +
                                ", expected {\"run\": ...} or {\"audit\": ...}");
  Cell cell;
  cell.workload = asked.at("run").get<std::string>();
  cell.threads = asked.value("threads", cell.threads);
  cell.seconds = asked.value("seconds", cell.seconds);
  cell.warmup = asked.value("warmup", cell.warmup);
  cell.seed = asked.value("seed", cell.seed);
  cell.per_transaction = asked.value("per_transaction", cell.per_transaction);
  cell.idle_percent = asked.value("idle", cell.idle_percent);
  cell.latency = asked.value("latency", cell.latency);
  if (cell.per_transaction == 0 || cell.idle_percent > 99)
    throw std::invalid_argument(
        "found " + asked.dump() +
        ", expected at least 1 operation a transaction, and 0 to 99 % of idle time");
  sync_file_system(directory);
  return to_json(cell, measured(session, cell));
}

void say(const Json& j) { std::cout << j.dump() << '\n' << std::flush; }

int serve_lines(Session& session, const std::string& directory) {
  say({{"ready", true}, {"describe", session.describe()}});
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.empty()) continue;
    try {
      say(answer(session, directory, Json::parse(line)));
    } catch (const std::exception& e) {
      say({{"error", e.what()}});
    }
  }
  return 0;
}

void print_text(const Json& figures) {
  std::printf("%s: %.0f operations/s (%llu in %.3f s, %llu of them writing) on %u threads\n",
              figures["workload"].get<std::string>().c_str(), figures["rate"].get<double>(),
              static_cast<unsigned long long>(figures["operations"].get<std::uint64_t>()),
              figures["seconds"].get<double>(),
              static_cast<unsigned long long>(figures["writes"].get<std::uint64_t>()),
              figures["threads"].get<unsigned>());
  for (const auto& [name, value] : figures["counters"].items())
    std::printf("  %-24s %.0f\n", name.c_str(), value.get<double>());
}

int one_cell(Session& session, const std::string& directory, const Cell& cell, bool json) {
  sync_file_system(directory);
  Json figures = to_json(cell, measured(session, cell));
  figures["describe"] = session.describe();
  figures["audit"] = audited(session, false)["problems"];
  const Json again = audited(session, true);
  figures["reopened"] = again["reopened"];
  figures["audit_reopened"] = again["problems"];
  if (json)
    say(figures);
  else
    print_text(figures);
  int bad = 0;
  for (const char* which : {"audit", "audit_reopened"}) {
    for (const auto& problem : figures[which]) {
      std::fprintf(stderr, "%s: %s\n", which, problem.get<std::string>().c_str());
      bad = 1;
    }
  }
  return bad;
}

const System& find(const Systems& systems, const std::string& name, const std::string& structure) {
  std::string have;
  for (const System& s : systems) {
    if (s.name == name) {
      for (const auto& can : s.structures) {
        if (can == structure) return s;
      }
      throw std::invalid_argument("system " + name + " has no structure '" + structure +
                                  "'; see --list");
    }
    have += " " + s.name;
  }
  throw std::invalid_argument("found system '" + name + "', expected one of:" + have);
}

}  // namespace

unsigned parameter_of(const std::string& workload, const std::string& structure) {
  const std::string prefix = structure + "-";
  if (workload.starts_with(prefix)) {
    const std::string digits = workload.substr(prefix.size());
    if (digits.size() == 1 && digits[0] >= 'a' && digits[0] <= 'z')
      return static_cast<unsigned char>(digits[0]);
    const bool number = !digits.empty() && digits.size() < 10 &&
                        digits.find_first_not_of("0123456789") == std::string::npos;
    if (number) return static_cast<unsigned>(std::stoul(digits));
  }
  throw std::invalid_argument("found workload '" + workload + "', expected '" + prefix +
                              "<number>', or a letter where the workload has letters");
}

int serve(int argc, char** argv, const Systems& systems) {
  CLI::App app{
      "One cell of a Perdure benchmark: one system, one workload. bench/run.py runs many of them "
      "in turn."};
  Setting setting;
  setting.directory = "/dev/shm";
  Cell cell;
  std::string system;
  bool list = false, json = false, lines = false, lz4_alone = false;
  app.add_flag("--list", list, "print the systems that this executable holds, as JSON");
  app.add_option("--system", system, "the system to measure");
  app.add_option("--structure", setting.structure, "what to fill (default: the workload's)");
  app.add_option("--workload", cell.workload,
                 "what to run: <structure>-<number>, such as sps-8, hash-100, ycsb-a");
  app.add_option("--threads", cell.threads, "threads")->check(CLI::Range(1, 64));
  app.add_option("--seconds", cell.seconds, "measured time")->check(CLI::PositiveNumber);
  app.add_option("--warmup", cell.warmup, "time before that")->check(CLI::NonNegativeNumber);
  app.add_option("--seed", cell.seed, "of the random numbers");
  app.add_option("--per-transaction", cell.per_transaction, "operations in a transaction")
      ->check(CLI::Range(1, 100000));
  app.add_option("--idle", cell.idle_percent, "per cent of a thread's time in which it sleeps")
      ->check(CLI::Range(0, 99));
  app.add_flag("--latency", cell.latency, "take each operation's time until it is durable, too");
  app.add_option("--value-bytes", setting.value_bytes,
                 "a value's size, in structures that let it vary (8)")
      ->check(CLI::Range(8, 65536));
  app.add_option("--max-threads", setting.max_threads, "the most threads that a cell will ask for")
      ->check(CLI::Range(1, 64));
  app.add_option("--dir", setting.directory,
                 "where the files go (a directory of its own is made there, and removed)");
  app.add_option("--log-size", setting.log_size,
                 "bytes of a log, where the system has one (0: its default)");
  app.add_option("--medium", setting.medium, "Perdure's: emulated (the directory on tmpfs) or file")
      ->check(CLI::IsMember({"emulated", "file"}));
  app.add_option(
      "--delays", setting.delays,
      "what Perdure's emulated medium charges: none, or a paper's delays (docs/media.md)");
  app.add_option("--rings", setting.rings,
                 "Perdure's logs, where an engine has one a thread (0: its default)");
  app.add_option("--log-group", setting.log_group,
                 "REWIND's batch logs: records that share a fence (0: its default)");
  app.add_option("--records", setting.records,
                 "how many, in structures that let it vary (0: their default)");
  app.add_option("--persist-group", setting.persist_group,
                 "DudeTM: transactions combined to a log record (0: not)");
  app.add_flag("--compress", setting.compress, "DudeTM: combined records are compressed");
  app.add_flag("--lz4-alone", lz4_alone,
               "DudeTM: count what lz4 makes of combined records without the filter before it");
  app.add_flag("--count-writes", setting.count_writes,
               "dudetm/stm: count the 8-byte words that transactions store, on DudeTM's workloads");
  app.add_option("--volatile-log", setting.volatile_log,
                 "DudeTM: bytes of a thread's volatile log (0: its default)");
  app.add_option("--shadow-size", setting.shadow_size,
                 "shadow, DudeTM: bytes of DRAM that the shadow may take (0: all)");
  app.add_option("--shadow-paging", setting.shadow_paging, "DudeTM: how such a shadow is paged")
      ->check(CLI::IsMember({"automatic", "hardware", "software"}));
  app.add_flag("--standing", setting.standing,
               "DudeTM: Persist and Reproduce have a thread each, and Persist polls");
  app.add_flag("--json", json, "print the figures as JSON");
  app.add_flag("--serve", lines, "answer one JSON request a line");
  CLI11_PARSE(app, argc, argv);
  try {
    if (list) {
      say(listed(systems));
      return 0;
    }
    if (setting.structure.empty())
      setting.structure = cell.workload.substr(0, cell.workload.rfind('-'));
    if (lz4_alone) setting.combined = count_lz4_alone;
    if (setting.max_threads < cell.threads) setting.max_threads = cell.threads;
    const System& found = find(systems, system, setting.structure);
    const Scratch scratch(setting.directory);
    setting.directory = scratch.path();
    const auto session = found.open(setting);
    return lines ? serve_lines(*session, setting.directory)
                 : one_cell(*session, setting.directory, cell, json);
  } catch (const std::invalid_argument& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s: %s\n", argv[0], system.c_str(), e.what());
    return 1;
  }
}

}  // namespace bench
