// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure check POOL`: walks the header, the logs, the heap and the containers, which it knows
// by the pool's layout text (perdure/inspect), and names every problem. Read-only.
//
// Of a pool that was not closed in order, and whose engine serves no readers, it checks only what
// has a meaning before recovery: header and logs. Of others it checks heap and containers as the
// recovery will leave them; and of a pool that a program has open, in one state, beside the
// program.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "perdure/api/erased.hpp"
#include "perdure/api/open.hpp"
#include "perdure/base/descriptor.hpp"
#include "perdure/inspect/blocks.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/open_pool.hpp"
#include "perdure/pool/scrub.hpp"
#include "tools/command.hpp"
#include "tools/inspected_pool.hpp"
#include "tools/json.hpp"
#include "tools/pool_check.hpp"
#include "tools/raw_pool.hpp"
#include "tools/store_pool.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

PoolArguments arguments;

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
  for (const auto& [state, copy] :
       {std::pair(pool.copies().copy_a, "A"), std::pair(pool.copies().copy_b, "B")}) {
    if (state == pool::CopyState::valid) continue;
    const std::string text = fmt::format(
        "header: copy {} is {}; the other copy is used, and the next opening for writing mends it",
        copy, words(state));
    // A crash during a write of the header leaves one copy torn: there are two copies for this
    // reason.
    (pool.header().clean == 1 ? found.problems : found.notes).push_back(text);
  }
}

void check_log(RawPool& pool, Findings& found) {
  std::uint64_t records = 0;
  if (pool.header().clean != 1) {  // after an orderly close the rings hold nothing
    if (!pool.has_records())
      found.notes.push_back(
          "log: engine '" + pool.engine() +
          "' has a log of its own kind; 'perdure recover' reads it, this did not");
    for (const RingReport& ring : pool.scan_rings()) {
      records += ring.scan.records;
      if (!ring.scan.damage.ok()) found.problems.push_back("log: " + ring.scan.damage.message());
    }
  }
  (*found.summary)["log_records"] = records;
}

void check_heap(RawPool& pool, Findings& found) {
  const pool::HeapAudit audit =
      pool::audit_heap(pool.medium().data(), pool.header(), {}, &pool.medium());
  for (const auto& problem : audit.problems) found.problems.push_back("heap: " + problem);
  (*found.summary)["heap_blocks"] = audit.blocks;
  (*found.summary)["heap_bytes"] = audit.bytes;
}

// The walk over a pool of any program, by its layout text.
Json check_any() {
  Json report;
  InspectedPool opened(arguments);
  inspect::Blocks blocks;
  bool unfinished = false;
  opened.view([&](inspect::Walker& walker, const inspect::Source& source) {
    blocks = inspect::find_blocks(walker, source.tree.root(), source.root);
    unfinished = source.unfinished;
  });
  pool::OpenPool& file = opened.pool().file();
  if (opened.state() != nullptr) report["state_id"] = opened.state()->id();
  const std::uint64_t owned = blocks.offsets.size();
  const std::vector<std::uint64_t> of_catalog =
      pool::read_catalog(file.path(), file.header(), file.view()).value().blocks;
  blocks.offsets.insert(blocks.offsets.end(), of_catalog.begin(), of_catalog.end());
  if (!blocks.unknown.empty()) {
    // A block that nothing else leads to may be that of an unknown type.
    std::sort(blocks.offsets.begin(), blocks.offsets.end());
    std::vector<std::uint64_t> others;
    (void)pool::audit_heap(
        file.view(), file.header(),
        [&](std::uint64_t offset, std::uint64_t) {
          if (offset != file.header().root_offset &&
              !std::binary_search(blocks.offsets.begin(), blocks.offsets.end(), offset))
            others.push_back(offset);
        },
        file.known_holes());
    blocks.offsets.insert(blocks.offsets.end(), others.begin(), others.end());
  }
  const CheckReport heap =
      detail::compare_heap(file, file.view(), std::move(blocks.offsets), blocks.problems.empty());
  const ScrubReport pages = pool::scrub(file, {}).value();
  if (pages.has_checksums) report["pages_compared"] = pages.pages;
  // What was read beside a writer counts only if it has not overtaken this process.
  if (opened.state() != nullptr) opened.state()->must_be_sound();
  std::vector<std::string> problems = std::move(blocks.problems), notes;
  if (unfinished) {
    // Entries of an index that is new are made after the switch (SWITCH-2).
    notes.emplace_back(
        "a change to another version of the program is not finished: open the pool with that "
        "version, which finishes it, then check again");
    const auto lacks = [](const std::string& problem) {
      return problem.find("entries, expected one for each of") != std::string::npos;
    };
    for (const std::string& problem : problems)
      if (lacks(problem)) notes.push_back("not made yet: " + problem);
    std::erase_if(problems, lacks);
  }
  problems.insert(problems.end(), heap.problems.begin(), heap.problems.end());
  for (const DamagedPage& page : pages.damaged)
    problems.push_back(pool::text_of(page) + " (`perdure scrub` says what it holds)");
  for (const std::string& unknown : blocks.unknown)
    notes.push_back("field " + unknown +
                    ": a type that is not known here; its blocks were not looked for, so leaks "
                    "can't be told (the program's own Pool::check() can)");
  report["owned_blocks"] = owned + 1;  // with the root's
  if (blocks.unknown.empty()) report["leaked_blocks"] = heap.leaked;
  report["blocks_used_twice"] = heap.used_twice;
  report["problems"] = problems;
  report["notes"] = notes;
  return report;
}

// Compares what the containers own with what the heap has, when the heap itself is sound. It runs
// in a child process: nothing guards the pointers inside data (docs/format.md), so a walk over
// damaged ones may fault or never end, and that is a finding, not the end of this command.
void check_containers(bool store, std::uint64_t heap_bytes, Findings& found) {
  int ends[2];
  if (base::open_pipe(ends) != 0) throw error(system_failure("", "pipe2", errno));
  const pid_t child = ::fork();
  if (child < 0) throw error(system_failure("", "fork", errno));
  if (child == 0) {
    const rlim_t seconds = 60 + heap_bytes / 1'000'000;  // a sound pool takes a hundredth of that
    const rlimit limit = {seconds, seconds}, no_core = {0, 0};
    ::setrlimit(RLIMIT_CPU, &limit);
    ::setrlimit(RLIMIT_CORE, &no_core);
    Json report;
    try {
      bool problems = false;
      if (store) {
        StorePool pool = StorePool::open(arguments, StorePool::Access::read);
        report = pool.check(problems);
        if (const auto id = pool.state()) report["state_id"] = *id;
      } else {
        report = check_any();
      }
    } catch (const error& e) {
      // The layout text is not all there: nothing is wrong with the pool.
      report = {{e.code() == Code::unsupported ? "notes" : "problems", {e.what()}}};
      if (e.code() == Code::unsupported) report["walked"] = false;
    } catch (const std::exception& e) {
      report = {{"problems", {e.what()}}};
    }
    try {
      write_all(ends[1], json_text(report), "pipe");
    } catch (...) {
      ::_exit(exit_error);
    }
    ::_exit(exit_ok);
  }
  ::close(ends[1]);
  const std::string text = read_all(ends[0], "pipe");
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  const Json report = Json::parse(text, nullptr, false);
  if (WIFSIGNALED(status)) {
    found.problems.push_back(
        fmt::format("containers: the walk ended with signal {} ({}): a damaged pointer",
                    WTERMSIG(status), ::strsignal(WTERMSIG(status))));
    return;
  }
  if (!report.is_object()) {
    found.problems.emplace_back("containers: the walk ended without a result");
    return;
  }
  for (const auto& [name, value] : report.items()) {
    if (name != "problems" && name != "notes" && name != "walked") (*found.summary)[name] = value;
  }
  for (const auto& problem : report.value("problems", Json::array()))
    found.problems.push_back("containers: " + problem.get<std::string>());
  for (const auto& note : report.value("notes", Json::array()))
    found.notes.push_back("containers: " + note.get<std::string>());
  (*found.summary)["containers_walked"] = report.value("walked", true);
}

void check_raw(RawPool& pool, Findings& found) {
  pool.require_readable();
  const bool clean = pool.header().clean == 1;
  (*found.summary)["engine"] = pool.engine();
  (*found.summary)["clean"] = clean;
  (*found.summary)["in_use"] = pool.in_use();
  if (pool.in_use()) return;
  check_header(pool, found);
  check_log(pool, found);
  if (clean)
    check_heap(pool, found);
  else if (pool.serves_readers())
    found.notes.push_back(
        "not closed in order: heap and containers are checked as the next recovery will leave "
        "them");
  else
    found.problems.push_back(
        "not closed in order: heap and containers were not checked; run `perdure recover` (or "
        "the program) first");
}

void check(Findings& found) {
  bool store = false, clean = false, beside = false;
  std::uint64_t heap_bytes = 0;
  {
    auto pool = std::make_unique<RawPool>(arguments, true);
    if (!pool->in_use()) {
      pool = nullptr;  // one opening a process
      pool = std::make_unique<RawPool>(arguments);
    }
    check_raw(*pool, found);
    clean = pool->header().clean == 1;
    store = is_store(pool->header());
    beside = pool->in_use() || (!clean && pool->serves_readers());
    heap_bytes = beside ? pool->header().data_bytes : 0;
  }
  // Over a broken heap the walk would find nothing new
  (*found.summary)["containers_walked"] = false;
  if (clean) heap_bytes = (*found.summary)["heap_bytes"].get<std::uint64_t>();
  if ((clean || beside) && found.problems.empty()) check_containers(store, heap_bytes, found);
}

int run(App& app) {
  const Findings found = check_pool(arguments);
  if (app.json) {
    print_json({{"pool", arguments.path},
                {"ok", found.problems.empty()},
                {"problems", found.problems},
                {"notes", found.notes},
                {"summary", *found.summary}});
  } else {
    for (const auto& note : found.notes) fmt::print("note: {}\n", note);
    for (const auto& [name, value] : found.summary->items())
      fmt::print("{:<20}{}\n", name + ":",
                 value.is_string() ? value.get<std::string>() : json_text(value));
  }
  for (const auto& problem : found.problems)
    fmt::print(stderr, "perdure: {}: {}\n", arguments.path, problem);
  if (!app.json)
    fmt::print("{}\n", found.problems.empty() ? "no problem found"
                       : found.problems.size() == 1
                           ? "1 problem found"
                           : fmt::format("{} problems found", found.problems.size()));
  return found.problems.empty() ? exit_ok : exit_problem;
}

}  // namespace

Findings check_pool(const PoolArguments& which) {
  arguments = which;
  Findings found;
  found.summary = std::make_shared<Json>(Json::object());
  try {
    check(found);
  } catch (const error& e) {
    // The containers could not be examined: an error, not a finding
    if (e.code() != Code::corrupt) throw;
    found.problems.emplace_back(e.what());
  }
  return found;
}

void add_check(App& app) {
  auto sub = app.add("check", "look for damage, leaks and double use; writes nothing",
                     "perdure check packages.perdure");
  arguments.add_to(sub);
  sub.runs(run);
}

}  // namespace perdure::tool
