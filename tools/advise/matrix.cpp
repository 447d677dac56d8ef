// SPDX-License-Identifier: BSD-3-Clause
#include "tools/advise/matrix.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <new>

#include "perdure/engine/dynamic_engine.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

using Clock = std::chrono::steady_clock;

bool is_default(const engine::EngineInfo& e) {
  if (e.isolation != Isolation::full || !e.runs_here().ok() || e.name.ends_with("-stand-in"))
    return false;
  if (e.family == "volatile") return e.name == "volatile";
  return !e.name.starts_with("rewind-2l") &&
         !(e.name.starts_with("rewind") && e.name.ends_with("-simple"));
}

/// Whether its update() can return before the transaction is durable.
bool has_async(const engine::EngineInfo& e) {
  engine::Config config;
  config.instance = e.name;
  config.durability = Durability::async;
  return e.identity(config).order == pool::CommitOrder::pipelined;
}

std::vector<engine::EngineInfo> choose(const MatrixOptions& options, const ReplayProgram& program) {
  std::vector<engine::EngineInfo> chosen;
  if (options.engines.empty()) {
    for (const engine::EngineInfo& e : engine::registered())
      if (is_default(e)) chosen.push_back(e);
    return chosen;
  }
  for (const std::string& name : options.engines) {
    const engine::EngineInfo* const e = engine::find_instance(name);
    if (e == nullptr) {
      std::string names;
      for (const auto& r : engine::registered())
        names += (names.empty() ? "" : ", ") + std::string(r.name);
      throw error(failure(Code::invalid, "", "engine '" + name + "'", "one of: " + names));
    }
    e->runs_here().or_throw();
    if (e->isolation != Isolation::full && program.threads.size() > 1)
      throw error(
          failure(Code::invalid, "",
                  fmt::format("engine '{}', which isolates nothing, for a trace of {} threads",
                              name, program.threads.size()),
                  "one that isolates",
                  "leave it out: only the program itself knows how its threads keep out of each "
                  "other's way"));
    chosen.push_back(*e);
  }
  return chosen;
}

template <class F>
double median(const std::vector<std::optional<CellFigures>>& rounds, F&& f) {
  std::vector<double> all;
  for (const auto& r : rounds)
    if (r) all.push_back(static_cast<double>(f(*r)));
  if (all.empty()) return 0;
  std::sort(all.begin(), all.end());
  const std::size_t n = all.size();
  return n % 2 != 0 ? all[n / 2] : (all[n / 2 - 1] + all[n / 2]) / 2;
}

void summarize(Matrix& m) {
  const Cell* base = nullptr;
  for (const Cell& c : m.cells)
    if (c.engine.name == default_engine && c.mode == Durability::durable && c.error.empty())
      base = &c;
  for (Cell& c : m.cells) {
    if (!c.error.empty()) continue;
    const auto of = [&](auto field) {
      return median(c.rounds, [field](const CellFigures& f) { return f.*field; });
    };
    CellFigures& f = c.figures;
    f.per_second = of(&CellFigures::per_second);
    f.seconds = of(&CellFigures::seconds);
    f.p50_us = of(&CellFigures::p50_us);
    f.p99_us = of(&CellFigures::p99_us);
    f.fences = of(&CellFigures::fences);
    f.lines = of(&CellFigures::lines);
    f.log_bytes = of(&CellFigures::log_bytes);
    f.syncs = of(&CellFigures::syncs);
    f.aborts = of(&CellFigures::aborts);
    f.transactions = static_cast<std::uint64_t>(of(&CellFigures::transactions));
    f.samples = static_cast<std::uint64_t>(of(&CellFigures::samples));
    f.whole =
        std::all_of(c.rounds.begin(), c.rounds.end(), [](const auto& r) { return r && r->whole; });
    if (base == nullptr) continue;
    std::vector<std::optional<CellFigures>> ratios;  // per_second is the ratio
    for (std::size_t r = 0; r < c.rounds.size(); ++r)
      if (c.rounds[r] && base->rounds[r]) {
        ratios.push_back(CellFigures{});
        ratios.back()->per_second = c.rounds[r]->per_second / base->rounds[r]->per_second;
      }
    if (!ratios.empty())
      c.ratio = median(ratios, [](const CellFigures& x) { return x.per_second; });
  }
}

/// Prints "cell 12 of 40, about 20 s left": redrawn on a terminal, otherwise one line every five
/// seconds.
class Counter {
 public:
  explicit Counter(std::size_t total) : total_(total), terminal_(::isatty(STDERR_FILENO) != 0) {}
  ~Counter() {
    if (drawn_) fmt::print(stderr, "\r\x1b[K");
  }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  void begin(const Cell& cell) {
    const auto now = Clock::now();
    ++number_;
    if (!terminal_ && now - last_ < std::chrono::seconds(5) && number_ != 1) return;
    last_ = now;
    const double taken = std::chrono::duration<double>(now - begun_).count();
    std::string left;
    if (number_ > 3)
      left = fmt::format(", about {:.0f} s left",
                         std::ceil(taken / static_cast<double>(number_ - 1) *
                                   static_cast<double>(total_ - number_ + 1)));
    const std::string text = fmt::format("cell {} of {}: {} {}{}", number_, total_,
                                         cell.engine.name, mode_name(cell.mode), left);
    fmt::print(stderr, "{}{}{}", terminal_ ? "\r\x1b[K" : "", text, terminal_ ? "" : "\n");
    drawn_ = terminal_;
  }

 private:
  const std::size_t total_;
  const bool terminal_;
  bool drawn_ = false;
  std::size_t number_ = 0;
  Clock::time_point begun_ = Clock::now(), last_;
};

void check_room(const std::string& directory, const ScratchSizes& sizes) {
  struct statvfs st = {};
  if (::statvfs(directory.c_str(), &st) != 0)
    throw error(
        system_failure(directory, "statvfs", errno, "--dir names a directory on your medium"));
  if (!std::filesystem::is_directory(directory))
    throw error(failure(Code::invalid, directory, "no directory",
                        "one on your medium, for scratch pools", "name it with --dir"));
  const std::uint64_t free = static_cast<std::uint64_t>(st.f_bavail) * st.f_frsize;
  if (free < sizes.disk_bytes)
    throw error(failure(Code::full, directory, human_bytes(free) + " free",
                        human_bytes(sizes.disk_bytes) + " for a scratch pool",
                        "free space, or name another directory of the same medium with --dir"));
}

CellOptions options_of(const MatrixOptions& options, const Cell& cell, const ScratchSizes& sizes) {
  CellOptions o;
  o.engine = cell.engine.name;
  o.mode = cell.mode;
  o.medium = options.medium;
  o.directory = options.directory;
  o.seconds = options.seconds;
  o.log_size = sizes.log_size;
  o.max_size = sizes.max_size;
  return o;
}

/// How many transactions a cell runs in its time, estimated with the first cell.
std::uint64_t stretch_of(const ReplayProgram& all, const MatrixOptions& options, const Cell& cell,
                         const ScratchSizes& sizes) {
  constexpr std::uint64_t least = 200;
  try {
    const CellFigures f = run_cell(all, options_of(options, cell, sizes));
    // Half of them, so that slower engines finish the stretch, too.
    const auto fit = static_cast<std::uint64_t>(f.per_second * options.seconds / 2);
    return fit >= all.transactions ? all.transactions
                                   : std::min(all.transactions, std::max(least, fit));
  } catch (const error&) {  // it is reported where the cell itself runs
    return all.transactions;
  }
}

/// The scratch pool's name means nothing to the user: "PATH.pool: found ..." without the path.
std::string without_path(std::string message) {
  const std::size_t end = message.find(".pool: ");
  if (message.find("perdure-advise-") < end && end != std::string::npos) message.erase(0, end + 7);
  return message;
}

}  // namespace

const char* mode_name(Durability mode) {
  return mode == Durability::durable ? "durable" : mode == Durability::group ? "group" : "async";
}

Matrix measure(const engine::WorkloadTrace& trace, const MatrixOptions& options) {
  if (trace.transactions <= options.skip)
    throw error(failure(Code::invalid, "",
                        fmt::format("a trace of {} transactions", trace.transactions),
                        fmt::format("more than the {} that --skip leaves out", options.skip),
                        "record a longer run, or skip fewer"));
  const std::uint64_t total = trace.transactions - options.skip;
  std::vector<ReplayProgram> programs;
  programs.push_back(make_program(trace, options.skip, total));
  Matrix m;
  m.sizes = scratch_sizes(programs[0]);
  check_room(options.directory, m.sizes);
  m.medium = options.medium;
  if (m.medium == "auto")
    m.medium = medium::diagnose(options.directory + "/perdure-advise.pool").value().kind;

  for (const engine::EngineInfo& e : choose(options, programs[0])) {
    const bool can = has_async(e);
    for (const Durability mode : options.modes) {
      if (mode == Durability::durable || can || options.modes.size() == 1) {
        m.cells.push_back({});
        m.cells.back().engine = e;
        m.cells.back().mode = mode;
        m.cells.back().rounds.resize(options.rounds);
      } else if (mode == Durability::async && e.family != "volatile") {
        m.no_async.emplace_back(e.name);
      }
    }
  }

  const auto first = std::find_if(m.cells.begin(), m.cells.end(),
                                  [](const Cell& c) { return c.engine.name == default_engine; });
  const std::uint64_t fit =
      stretch_of(programs[0], options, first != m.cells.end() ? *first : m.cells.front(), m.sizes);
  if (fit < total) {
    programs.clear();
    for (std::uint64_t r = 0; r < options.rounds; ++r)
      programs.push_back(make_program(
          trace,
          options.skip +
              (options.rounds > 1 ? (total - fit) * r / (options.rounds - 1) : (total - fit) / 2),
          fit));
  }
  const auto program_of = [&](unsigned r) -> const ReplayProgram& {
    return programs[std::min<std::size_t>(r, programs.size() - 1)];
  };
  for (unsigned r = 0; r < options.rounds; ++r) {
    const ReplayProgram& p = program_of(r);
    m.stretches.push_back(
        {p.first, p.transactions, p.threads.size(), p.arena_bytes, p.arena_shared, p.folded});
  }

  Counter counter(m.cells.size() * options.rounds);
  for (unsigned r = 0; r < options.rounds; ++r)
    for (Cell& cell : m.cells) {
      counter.begin(cell);
      if (!cell.error.empty()) continue;
      try {
        cell.rounds[r] = run_cell(program_of(r), options_of(options, cell, m.sizes));
        m.medium_described = cell.rounds[r]->medium;
      } catch (const error& e) {
        cell.error = fmt::format("{}: {}", name(e.code()), without_path(e.what()));
      } catch (const std::bad_alloc&) {
        cell.error = "out_of_memory: DRAM ran out";
      }
    }
  summarize(m);
  return m;
}

}  // namespace perdure::tool
