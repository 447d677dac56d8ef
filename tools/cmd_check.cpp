// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure check POOL`: walks header, logs, heap and, in pools of its own root type, containers; names every problem. Read-only.
//
// A pool that was not closed in order is checked only as far as its bytes mean something before recovery: header and logs.
#include <fmt/format.h>

#include "tools/command.hpp"
#include "tools/raw_pool.hpp"
#include "tools/store_pool.hpp"

namespace perdure::tool {
namespace {

PoolArguments arguments;

struct Findings {
  std::vector<std::string> problems, notes;
  Json summary = Json::object();
};

const char* words(pool::CopyState state) {
  switch (state) {
    case pool::CopyState::valid: return "whole";
    case pool::CopyState::missing: return "cut off";
    case pool::CopyState::foreign: return "not a pool's header";
    case pool::CopyState::other_endian: return "of a machine of the other byte order";
    case pool::CopyState::other_version: return "of another format version";
    case pool::CopyState::damaged: return "damaged (its checksum fails)";
    case pool::CopyState::impossible: return "impossible (its numbers contradict each other)";
  }
  return "unknown";
}

void check_header(RawPool& pool, Findings& found) {
  for (const auto& [state, copy] : {std::pair(pool.copies().copy_a, "A"), std::pair(pool.copies().copy_b, "B")}) {
    if (state == pool::CopyState::valid) continue;
    const std::string text = fmt::format("header: copy {} is {}; the other copy is used, and the next opening for writing mends it", copy, words(state));
    // a crash while the header is written leaves one copy torn: that is what there are two for
    (pool.header().clean != 0 ? found.problems : found.notes).push_back(text);
  }
}

void check_log(RawPool& pool, Findings& found) {
  std::uint64_t records = 0;
  if (pool.header().clean == 0) {  // closed in order: the rings hold nothing
    for (const RingReport& ring : pool.scan_rings()) {
      records += ring.scan.records;
      if (!ring.scan.damage.ok()) found.problems.push_back("log: " + ring.scan.damage.message());
    }
  }
  found.summary["log_records"] = records;
}

void check_heap(RawPool& pool, Findings& found) {
  const pool::HeapAudit audit = pool::audit_heap(pool.medium().home(), pool.header());
  for (const auto& problem : audit.problems) found.problems.push_back("heap: " + problem);
  found.summary["heap_blocks"] = audit.blocks;
  found.summary["heap_bytes"] = audit.bytes;
}

// What the containers own against what the heap has, when the heap itself is sound.
void check_containers(Findings& found) {
  bool problems = false;
  const Json report = StorePool::open(arguments, StorePool::Access::read).check(problems);
  for (const auto& [name, value] : report.items()) {
    if (name != "problems") found.summary[name] = value;
  }
  for (const auto& problem : report["problems"]) found.problems.push_back("containers: " + problem.get<std::string>());
}

void check(Findings& found) {
  bool store = false;
  {
    RawPool pool(arguments);
    const bool clean = pool.header().clean != 0;
    store = clean && is_store(pool.header());
    found.summary["engine"] = pool.engine();
    found.summary["clean"] = clean;
    check_header(pool, found);
    check_log(pool, found);
    if (clean) check_heap(pool, found);
    else found.problems.push_back("not closed in order: heap and containers were not checked; run `perdure recover` (or the program) first");
    if (clean && !store) found.notes.push_back("the root type is not this command's: everything but the containers was checked (the program's own Pool::check() walks them)");
  }
  if (store && found.problems.empty()) check_containers(found);
  found.summary["containers_walked"] = store && found.problems.empty();
}

int run(App& app) {
  Findings found;
  try {
    check(found);
  } catch (const error& e) {
    if (e.code() != Code::corrupt) throw;  // it could not be looked at: no finding, an error
    found.problems.emplace_back(e.what());
  }
  if (app.json) {
    App::print({{"pool", arguments.path}, {"ok", found.problems.empty()}, {"problems", found.problems}, {"notes", found.notes}, {"summary", found.summary}});
  } else {
    for (const auto& note : found.notes) fmt::print("note: {}\n", note);
    for (const auto& [name, value] : found.summary.items()) fmt::print("{:<20}{}\n", name + ":", value.is_string() ? value.get<std::string>() : value.dump());
  }
  for (const auto& problem : found.problems) fmt::print(stderr, "perdure: {}: {}\n", arguments.path, problem);
  if (!app.json) fmt::print("{}\n", found.problems.empty() ? "no problem found" : fmt::format("{} problems found", found.problems.size()));
  return found.problems.empty() ? exit_ok : exit_problem;
}

}  // namespace

void add_check(App& app) {
  auto* sub = app.add("check", "look for damage, leaks and double use; writes nothing", "perdure check packages.perdure");
  arguments.add_to(sub);
  sub->callback([&app] { app.go = run; });
}

}  // namespace perdure::tool
