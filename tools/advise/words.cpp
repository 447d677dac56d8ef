// SPDX-License-Identifier: BSD-3-Clause
#include "tools/advise/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/json.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

// The default engine is recommended if it is within 5 % of the best
constexpr double near_the_best = 0.95;
// Fastest round by slowest, from which the report mentions it
constexpr double unsteady = 1.5;
constexpr double hardly_meet = 0.01;  // attempts that ran again, per transaction

/// The best of the cells of one mode whose engines keep what they acknowledge.
template <class Keep>
const Cell* best(const Matrix& m, Durability mode, Keep keep) {
  const Cell* found = nullptr;
  for (const Cell& c : m.cells)
    if (c.mode == mode && c.ran() && c.durable() && keep(c) &&
        (found == nullptr || c.score() > found->score()))
      found = &c;
  return found;
}
const Cell* best(const Matrix& m, Durability mode) {
  return best(m, mode, [](const Cell&) { return true; });
}
const Cell* find(const Matrix& m, std::string_view engine, Durability mode) {
  return best(m, mode, [engine](const Cell& c) { return c.engine.name == engine; });
}

/// How many times b's rate a has; computed by rounds where both have a ratio to the same cell.
double times(const Cell& a, const Cell& b) {
  if (a.ratio && b.ratio && *b.ratio > 0) return *a.ratio / *b.ratio;
  return a.figures.per_second / b.figures.per_second;
}

std::string costs(const Cell& c, bool file) {
  const CellFigures& f = c.figures;
  return file ? fmt::format(
                    "{}: {:.2f} device syncs, {:.1f} lines and {:.0f} bytes of log for each update",
                    c.engine.name, f.syncs, f.lines, f.log_bytes)
              : fmt::format(
                    "{}: {:.2f} fences, {:.1f} lines and {:.0f} bytes of log for each update",
                    c.engine.name, f.fences, f.lines, f.log_bytes);
}

std::string rate(const Cell& c) {
  return fmt::format("{} transactions/s",
                     grouped(static_cast<std::uint64_t>(c.figures.per_second)));
}

struct Choice {
  const Cell *taken, *usual;  // usual: the engine to stay with, if it was measured
  bool near;
};
/// The slowest and the fastest round.
std::pair<double, double> spread(const Cell& c) {
  double low = 0, high = 0;
  for (const auto& r : c.rounds)
    if (r)
      low = low > 0 ? std::min(low, r->per_second) : r->per_second,
      high = std::max(high, r->per_second);
  return {low, high};
}
/// False for a difference that one round does not show: for one stretch, a's slowest round must be
/// faster than b's fastest; for several, a must be faster in each.
bool surely_faster(const Matrix& m, const Cell& a, const Cell& b) {
  const bool one_stretch =
      std::all_of(m.stretches.begin(), m.stretches.end(),
                  [&](const Stretch& s) { return s.first == m.stretches.front().first; });
  if (one_stretch) return spread(a).first > spread(b).second;
  for (std::size_t r = 0; r < a.rounds.size(); ++r)
    if (a.rounds[r] && b.rounds[r] && a.rounds[r]->per_second <= b.rounds[r]->per_second)
      return false;
  return true;
}
/// Returns `stay` if it is near the best, or if the best is not surely faster.
Choice choose(const Matrix& m, Durability mode, const Cell& top,
              std::string_view stay = default_engine) {
  const Cell* const usual = find(m, stay, mode);
  if (usual == nullptr) return {&top, usual, false};
  const bool near = times(*usual, top) >= near_the_best;
  return {near || !surely_faster(m, top, *usual) ? usual : &top, usual, near};
}

Json durable_advice(const Matrix& m, Durability mode) {
  Json j;
  const Cell* const top = best(m, mode);
  if (top == nullptr) return j;
  const auto [taken, usual, near] = choose(m, mode, *top);
  const bool file = m.medium == "file";
  const Cell& take = *taken;
  std::string text;
  if (taken == usual && usual == top)
    text = fmt::format(
        "take the default, {}: no other is faster here ({}, half of the updates within {:.3g} us).",
        take.engine.name, rate(take), take.figures.p50_us);
  else if (taken == usual)
    text = fmt::format("take the default, {}: {}, {} the best, {}, which has {:.2f} times as many.",
                       take.engine.name, rate(take),
                       near ? "within 5 % of" : "in its best rounds as fast as", top->engine.name,
                       times(*top, *usual));
  else if (usual != nullptr)
    text = fmt::format("take {}: {}, {:.2f} times as many as the default ({}).", take.engine.name,
                       rate(take), times(take, *usual), costs(*usual, file));
  else
    text = fmt::format("of these take {}: {}.", take.engine.name, rate(take));
  const Cell* const next =
      best(m, mode, [&](const Cell& c) { return c.engine.family != take.engine.family; });
  text += " " + costs(take, file) + ".";
  if (next != nullptr)
    text += fmt::format(" The next kind, {}, has {:.2f} of its rate; {}.", next->engine.name,
                        times(*next, take), costs(*next, file));
  if (const auto bound =
          std::find_if(m.cells.begin(), m.cells.end(),
                       [&](const Cell& c) { return !c.durable() && c.mode == mode && c.ran(); });
      bound != m.cells.end())
    text += times(*bound, take) > 1
                ? fmt::format(" Without any durability ({}) it would be {:.2f} times as many.",
                              bound->engine.name, times(*bound, take))
                : fmt::format(" Without any durability ({}, {}) it would not be more.",
                              bound->engine.name, bound->engine.tm);
  j["engine"] = take.engine.name;
  j["tm"] = take.engine.tm;
  j["is_default"] = take.engine.name == default_engine;
  j["per_second"] = take.figures.per_second;
  j["code"] = in_code(take.engine, mode);
  j["text"] = text;
  return j;
}

Json async_advice(const Matrix& m) {
  Json j;
  const Cell* const top = best(m, Durability::async);
  const Cell* waits = best(m, Durability::durable);
  if (top == nullptr) return j;
  if (waits != nullptr) waits = choose(m, Durability::durable, *waits).taken;
  // One engine for both modes, if it is the choice for both.
  const bool both = waits != nullptr && find(m, waits->engine.name, Durability::async) != nullptr;
  const Choice choice =
      choose(m, Durability::async, *top, both ? waits->engine.name : default_engine);
  const Cell& take = *choice.taken;
  std::string text = fmt::format("{} has {}", take.engine.name, rate(take));
  if (&take != top)
    text += fmt::format(" ({} has {:.2f} times as many{})", top->engine.name, times(*top, take),
                        choice.near ? "" : ", not in all rounds");
  if (waits != nullptr) {
    const double ratio = times(take, *waits);
    j["times_durable"] = ratio;
    text += fmt::format(", {:.2f} times as many as durable ({})", ratio, waits->engine.name);
    text += ratio < 1.1 ? ": not worth it here." : ".";
  } else {
    text += ".";
  }
  text +=
      " What it gives up: update() returns before its change is durable; a crash may take back the "
      "newest transactions, in order, those of "
      "some 10 ms. Whoever "
      "must know waits for the receipt.";
  j["engine"] = take.engine.name;
  j["tm"] = take.engine.tm;
  j["per_second"] = take.figures.per_second;
  j["code"] = in_code(take.engine, Durability::async);
  j["text"] = text;
  return j;
}

Json thread_advice(const Matrix& m, Durability mode) {
  std::uint64_t threads = 0;
  for (const Stretch& s : m.stretches) threads = std::max(threads, s.threads);
  Json j;
  j["threads"] = threads;
  if (threads < 2) {
    j["text"] =
        "one thread at a time: concurrency control is not put to the test; any TM will do, and the "
        "default's costs one thread next to "
        "nothing.";
    return j;
  }
  // The STM's restarts are the best measure of conflicts: a lock or a biased TM waits and hardly
  // restarts.
  double aborts = -1;
  for (const Cell& c : m.cells)
    if (c.ran() && c.mode == mode && c.engine.tm == "stm")
      aborts = std::max(aborts, c.figures.aborts);
  if (aborts >= 0) j["conflicts"] = aborts;
  std::string text;
  if (aborts < 0)
    text = fmt::format(
        "{} threads; no STM is among the cells, so how often they meet is not known.", threads);
  else if (aborts < hardly_meet)
    text = fmt::format("{} threads that hardly meet: {:.2g} restarts for each update, at most.",
                       threads, aborts);
  else
    text = fmt::format(
        "{} threads that meet: up to {:.2g} restarts for each update with an STM; transactions "
        "that write less of what others write, or "
        "are shorter, would gain.",
        threads, aborts);
  const Cell* const top =
      best(m, mode, [](const Cell& c) { return c.engine.family == default_engine; });
  if (top != nullptr) {
    text += fmt::format(" Of {}'s concurrency controls {} ({}) is fastest", default_engine,
                        top->engine.tm, top->engine.name);
    std::string others;
    for (const Cell& c : m.cells)
      if (&c != top && c.ran() && c.mode == mode && c.engine.family == default_engine)
        others += fmt::format("{}{} has {:.2f} of its rate", others.empty() ? "; " : ", ",
                              c.engine.tm, times(c, *top));
    text += others + ".";
    j["tm"] = top->engine.tm;
  }
  j["text"] = text;
  return j;
}

Json notes_of(const AdviceInput& in) {
  Json notes = Json::array();
  const Matrix& m = in.matrix;
  if (in.trace.cut())
    notes.push_back(in.trace.header.end == engine::TraceEnd::limit
                        ? fmt::format("the trace was cut at {} of ops (PERDURE_TRACE_MAX): what "
                                      "came later is not in it",
                                      human_bytes(in.trace.header.limit_bytes))
                        : std::string("the trace was cut: it could not be written further"));
  if (in.trace.header.end == engine::TraceEnd::open)
    notes.push_back(
        "the program did not close its pool: its last transactions may be missing in the trace");
  if (std::any_of(m.stretches.begin(), m.stretches.end(),
                  [](const Stretch& s) { return s.folded; }))
    notes.push_back(fmt::format(
        "more than {} of the data region is touched: pages were folded onto each other, caches do "
        "better than they would",
        human_bytes(max_arena_bytes)));
  if (m.stretches.front().transactions + in.options.skip < in.trace.transactions)
    notes.push_back(
        fmt::format("a round replays {} of the trace's {} transactions, another stretch each",
                    grouped(m.stretches.front().transactions), grouped(in.trace.transactions)));
  if (std::any_of(m.cells.begin(), m.cells.end(),
                  [](const Cell& c) { return c.ran() && !c.figures.whole; }))
    notes.push_back(
        "cells marked * did not get through their stretch in four times their time: give them more "
        "--seconds");
  if (m.medium == "emulated")
    notes.push_back(
        "medium emulated: a crash of the machine is not survived; its rates say what persistent "
        "memory as fast as DRAM would give");
  if (const Cell* const usual =
          best(m, in.options.modes.front(), [](const Cell& c) { return c.rounds.size() > 1; });
      usual != nullptr)
    if (const auto [low, high] = spread(find(m, default_engine, usual->mode) != nullptr
                                            ? *find(m, default_engine, usual->mode)
                                            : *usual);
        high > low * unsteady)
      notes.push_back(fmt::format(
          "unsteady: the rounds of one cell go from {} to {} transactions/s; on a quiet machine, "
          "or with more --rounds and "
          "--seconds, the answer is firmer",
          grouped(static_cast<std::uint64_t>(low)), grouped(static_cast<std::uint64_t>(high))));
  if (!m.no_async.empty())
    notes.push_back(fmt::format("no mode async: {}; update() returns durable whatever is asked",
                                fmt::join(m.no_async, ", ")));
  return notes;
}

}  // namespace

std::string in_code(const engine::EngineInfo& e, Durability mode) {
  // The tag of an instance (registry.hpp) is its name with _ for / and -; if several variants are
  // one type, it is the type's tag.
  const std::string name(e.name);
  const std::size_t slash = name.find('/');
  std::string tag = name.substr(0, slash);
  bool forms = false;
  for (const char* type : {"dudetm", "rewind", "bppm", "redo"})
    if (tag.starts_with(type)) forms = true, tag = type;
  if (tag == "volatile" && slash == std::string::npos) tag = "volatile_";
  if (slash != std::string::npos) tag += "_" + name.substr(slash + 1);
  std::replace(tag.begin(), tag.end(), '-', '_');
  const std::string pool = e.name == default_engine
                               ? "Pool<Root>"
                               : fmt::format("Pool<Root, perdure::engines<perdure::{}>>", tag);
  std::string options;
  if (mode != Durability::durable)
    options += fmt::format(".durability = perdure::{}", mode_name(mode));
  if (forms && e.name != tag)
    options = fmt::format(".engine = \"{}\"{}{}", name, options.empty() ? "" : ", ", options);
  // Designated initialisers have the order of the members: durability, then engine.
  if (forms && e.name != tag && mode != Durability::durable)
    options = fmt::format(".durability = perdure::{}, .engine = \"{}\"", mode_name(mode), name);
  return options.empty()
             ? fmt::format("perdure::{}::open(path)", pool)
             : fmt::format("perdure::{}::open(path, perdure::Options{{{}}})", pool, options);
}

Json advice_of(const AdviceInput& in) {
  Json j;
  const auto& modes = in.options.modes;
  for (const Durability mode : modes)
    if (Json one =
            mode == Durability::async ? async_advice(in.matrix) : durable_advice(in.matrix, mode);
        !one.is_null())
      j[mode_name(mode)] = std::move(one);
  j["threads"] = thread_advice(in.matrix, modes.front());
  j["notes"] = notes_of(in);
  return j;
}

}  // namespace perdure::tool
