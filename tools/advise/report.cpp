// SPDX-License-Identifier: BSD-3-Clause
#include "tools/advise/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/advise/words.hpp"
#include "tools/json.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

const char* end_name(engine::TraceEnd end) {
  switch (end) {
    case engine::TraceEnd::open: return "not closed";
    case engine::TraceEnd::closed: return "closed";
    case engine::TraceEnd::limit: return "cut at its bound";
    case engine::TraceEnd::failed: return "cut by a failure";
  }
  return "unknown";
}

Json trace_json(const AdviceInput& in) {
  const engine::WorkloadTrace& t = in.trace;
  Json j;
  if (!in.trace_file.empty()) j["file"] = in.trace_file;
  if (!in.command.empty()) j["program"] = in.command;
  j["engine"] = std::string(t.header.engine);
  j["medium"] = std::string(t.header.medium);
  j["durability"] = mode_name(static_cast<Durability>(t.header.durability));
  j["end"] = end_name(t.header.end);
  j["cut"] = t.cut();
  j["torn"] = t.torn;
  j["transactions"] = t.transactions;
  j["retried"] = t.retried;
  j["rolled_back"] = t.rolled_back;
  j["data_bytes"] = t.data_bytes;
  j["seconds"] = static_cast<double>(t.elapsed_ns) * 1e-9;
  return j;
}

Json workload_json(const Workload& w) {
  const auto n = static_cast<double>(std::max<std::uint64_t>(w.transactions, 1));
  Json j;
  j["threads"] = w.threads;
  j["transactions"] = w.transactions;
  j["updates"] = w.updates;
  j["views"] = w.views;
  j["read_words_each"] = static_cast<double>(w.reads) / n;
  j["written_words_each"] = static_cast<double>(w.writes) / n;
  j["largest_written_words"] = w.largest_writes;
  j["allocs_each"] = static_cast<double>(w.allocs) / n;
  j["alloc_bytes_each"] = static_cast<double>(w.alloc_bytes) / n;
  j["frees_each"] = static_cast<double>(w.frees) / n;
  return j;
}

Json replay_json(const AdviceInput& in) {
  const Matrix& m = in.matrix;
  Json j;
  j["dir"] = in.options.directory;
  j["medium"] = m.medium;
  j["medium_described"] = m.medium_described;
  j["rounds"] = in.options.rounds;
  j["seconds"] = in.options.seconds;
  j["skipped"] = in.options.skip;
  j["log_size"] = m.sizes.log_size;
  j["max_size"] = m.sizes.max_size;
  j["stretches"] = Json::array();
  for (const Stretch& s : m.stretches)
    j["stretches"].push_back({{"first", s.first},
                              {"transactions", s.transactions},
                              {"threads", s.threads},
                              {"arena_bytes", s.arena_bytes},
                              {"shared_blocks", s.shared_blocks},
                              {"folded", s.folded}});
  return j;
}

Json cell_json(const Cell& c) {
  Json j;
  j["engine"] = c.engine.name;
  j["tm"] = c.engine.tm;
  j["mode"] = mode_name(c.mode);
  j["durable"] = c.durable();
  if (!c.error.empty()) {
    j["error"] = c.error;
    return j;
  }
  const CellFigures& f = c.figures;
  j["per_second"] = f.per_second;
  j["ratio"] = c.ratio ? Json(*c.ratio) : Json();
  j["p50_us"] = f.p50_us;
  j["p99_us"] = f.p99_us;
  j["latency_until"] = c.mode == Durability::async || !c.durable() ? "returned" : "durable";
  j["samples"] = f.samples;
  j["fences"] = f.fences;
  j["lines"] = f.lines;
  j["log_bytes"] = f.log_bytes;
  j["syncs"] = f.syncs;
  j["aborts"] = f.aborts;
  j["whole"] = f.whole;
  j["rounds"] = Json::array();
  for (const auto& r : c.rounds) j["rounds"].push_back(r ? Json(r->per_second) : Json());
  return j;
}

std::string number(double x) {
  return x >= 100 ? grouped(static_cast<std::uint64_t>(x + 0.5)) : fmt::format("{:.3g}", x);
}

std::string threads(const Json& n) {
  return fmt::format("{} thread{}", n.get<std::uint64_t>(), n == 1 ? "" : "s");
}

void print_table(const Json& cells, const std::string& mode, bool file) {
  fmt::print("\n{}{}\n", mode, mode == "async" ? " (latency: until update() returns)" : "");
  fmt::print("  {:<26} {:>11} {:>9} {:>9} {:>9} {:>7} {:>8} {:>8} {:>7}\n", "engine", "tx/s",
             "of shadow", "p50 us", "p99 us", file ? "syncs" : "fences", "lines", "log B",
             "aborts");
  for (const Json& c : cells) {
    if (c["mode"] != mode) continue;
    if (c.contains("error")) {
      fmt::print("  {:<26} can't run it: {}\n", c["engine"].get<std::string>(),
                 c["error"].get<std::string>());
      continue;
    }
    const auto n = [&](const char* name) { return c[name].get<double>(); };
    fmt::print("  {:<26} {:>11} {:>9} {:>9} {:>9} {:>7.2f} {:>8.1f} {:>8.0f} {:>7.3f}{}\n",
               c["engine"].get<std::string>() + (c["whole"].get<bool>() ? "" : " *"),
               number(n("per_second")),
               c["ratio"].is_null() ? "-" : fmt::format("{:.2f}", n("ratio")), number(n("p50_us")),
               number(n("p99_us")), n(file ? "syncs" : "fences"), n("lines"), n("log_bytes"),
               n("aborts"),
               c["durable"].get<bool>() ? "" : "  (a bound: nothing of it is durable)");
  }
}

}  // namespace

Json describe(const AdviceInput& in) {
  Json j;
  j["trace"] = trace_json(in);
  j["workload"] = workload_json(describe_workload(in.trace));
  j["replay"] = replay_json(in);
  j["cells"] = Json::array();
  for (const Durability mode : in.options.modes) {
    std::vector<const Cell*> cells;
    for (const Cell& c : in.matrix.cells)
      if (c.mode == mode) cells.push_back(&c);
    std::stable_sort(cells.begin(), cells.end(),
                     [](const Cell* a, const Cell* b) { return a->score() > b->score(); });
    for (const Cell* c : cells) j["cells"].push_back(cell_json(*c));
  }
  j["advice"] = advice_of(in);
  return j;
}

void print_advice(const Json& j) {
  const Json &t = j["trace"], &w = j["workload"], &r = j["replay"], &first = r["stretches"][0],
             &advice = j["advice"];
  const auto n = [](const Json& at, const char* name) { return at[name].get<double>(); };
  const double views = 100 * n(w, "views") / std::max(1.0, n(w, "transactions"));
  fmt::print("workload: {} transactions of {} in {:.2f} s, on {}, medium {}, {}; {:.0f} % views\n",
             grouped(w["transactions"].get<std::uint64_t>()), threads(w["threads"]),
             n(t, "seconds"), t["engine"].get<std::string>(), t["medium"].get<std::string>(),
             t["durability"].get<std::string>(), views);
  fmt::print(
      "          each reads {:.1f} words and writes {:.1f} (at most {}), allocates {:.2g} blocks "
      "and frees {:.2g}; {} restarts, {} rolled "
      "back\n",
      n(w, "read_words_each"), n(w, "written_words_each"),
      grouped(w["largest_written_words"].get<std::uint64_t>()), n(w, "allocs_each"),
      n(w, "frees_each"), grouped(t["retried"].get<std::uint64_t>()),
      grouped(t["rolled_back"].get<std::uint64_t>()));
  fmt::print(
      "replay:   {} transactions on {} in {}, {}; old memory in {}; medians of {} rounds of {} s\n",
      grouped(first["transactions"].get<std::uint64_t>()), threads(first["threads"]),
      r["dir"].get<std::string>(), r["medium_described"].get<std::string>(),
      human_bytes(first["arena_bytes"].get<std::uint64_t>()), r["rounds"].get<unsigned>(),
      n(r, "seconds"));
  const bool file = r["medium"] == "file";
  std::vector<std::string> modes;
  for (const Json& c : j["cells"])
    if (const auto mode = c["mode"].get<std::string>(); modes.empty() || modes.back() != mode)
      modes.push_back(mode);
  for (const std::string& mode : modes) print_table(j["cells"], mode, file);
  fmt::print(
      "\n{}, lines and bytes of log are for each transaction that changed something; of shadow: of "
      "shadow durable, in the same round.\n\n",
      file ? "Device syncs" : "Fences");
  for (const auto& [mode, one] : advice.items()) {
    if (mode == "notes") continue;
    fmt::print("{}: {}\n", mode, one["text"].get<std::string>());
    if (one.contains("code")) fmt::print("    {}\n", one["code"].get<std::string>());
  }
  for (const Json& note : advice["notes"]) fmt::print("note: {}\n", note.get<std::string>());
}

}  // namespace perdure::tool
