// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure load POOL FILE`: the command line, the summary and the errors around Loader. With
// --schema the file is a dump (load_dump.hpp).
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/load_dump.hpp"
#include "tools/loader.hpp"
#include "tools/progress.hpp"
#include "tools/store_pool.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

struct Arguments {
  PoolArguments pool;
  LoadOptions load;
  DumpToLoad dump;
  std::string key, delimiter, quote, comment, durability = "async", progress = "auto";
  bool header = false, no_header = false;
} arguments;

Durability durability_of(const std::string& name) {
  return name == "durable" ? Durability::durable
         : name == "group" ? Durability::group
                           : Durability::async;
}

Json describe(const LoadResult& result, const engine::Stats& stats, double open_seconds) {
  Json j;
  j["pool"] = arguments.pool.path;
  j["file"] = arguments.load.file;
  j["format"] = name(result.spec.format);
  j["cut"] = result.spec.describe();
  j["complete"] = !result.repeated;
  j["rows"] = result.rows;
  j["rows_before"] = result.rows_before;
  j["rows_loaded"] = result.rows - result.rows_before;
  j["position"] = result.position;
  j["bytes_loaded"] = result.bytes;
  if (!result.backups.empty()) j["backups"] = Json::array();
  for (const MadeBackup& one : result.backups)
    j["backups"].push_back({{"path", one.path}, {"rows", one.rows}, {"position", one.position}});
  j["seconds"] = result.seconds;
  j["open_seconds"] = open_seconds;
  j["engine"] = stats.engine;
  j["commits"] = stats.commits;
  j["checkpoints"] = stats.checkpoints;
  j["log_bytes"] = stats.log_bytes;
  j["fences"] = stats.medium.fences;
  j["syncs"] = stats.medium.syncs;
  j["written_bytes"] = stats.medium.written_bytes;
  j["replayed_records"] = stats.recovery.records;
  return j;
}

int stopped(App& app, Json j, const LoadResult& result) {
  const RepeatedKey& r = *result.repeated;
  const std::string first =
      r.other_line == 0 ? "a row that was put by hand" : fmt::format("line {}", r.other_line);
  const std::string message = fmt::format(
      "{}:{}: found the key '{}' again, it is that of {}; expected each key once; nothing from "
      "line {} on was loaded, the {} rows "
      "before it are; mend the file and load it into a new pool, or choose other key fields with "
      "--key",
      arguments.load.file, r.line, escaped(r.key), first, r.line, grouped(result.rows));
  fmt::print(stderr, "perdure: {}\n", message);
  if (app.json) {
    Json error = {
        {"code", "exists"}, {"message", message}, {"line", r.line}, {"other_line", r.other_line}};
    set_bytes(error, "key", r.key);
    j["error"] = std::move(error);
    print_json(j);
  }
  return exit_error;
}

void print_text(const LoadResult& result, const Json& j) {
  if (result.was_complete) {
    fmt::print("{} is loaded already: {} rows; nothing to do\n", arguments.load.file,
               grouped(result.rows));
    return;
  }
  const std::uint64_t loaded = result.rows - result.rows_before;
  fmt::print("loaded {} rows, {} ({}) in {:.2f} s: {} rows/s, {} commits, {} device syncs\n",
             grouped(loaded), human_bytes(result.bytes), result.spec.describe(), result.seconds,
             grouped(static_cast<std::uint64_t>(static_cast<double>(loaded) /
                                                (result.seconds > 0 ? result.seconds : 1))),
             grouped(j["commits"].get<std::uint64_t>()), grouped(j["syncs"].get<std::uint64_t>()));
  for (const MadeBackup& one : result.backups)
    fmt::print("backup {}: the first {} rows\n", one.path, grouped(one.rows));
  if (result.rows_before != 0)
    fmt::print("an earlier load had brought {} rows; the pool holds {} now\n",
               grouped(result.rows_before), grouped(result.rows));
}

int run(App& app) {
  LoadOptions& load = arguments.load;
  if (!arguments.dump.schema.empty())
    return load_dump(app, arguments.pool, arguments.dump, load.file, arguments.progress);
  if (arguments.dump.lines)
    throw UsageError("--jsonl says how a dump was written: it needs --schema SCHEMA");
  const auto given = [](const std::string& text) {
    return text.empty() ? std::optional<std::string>() : std::optional(text);
  };
  load.spec.key = given(arguments.key);
  load.spec.delimiter = given(arguments.delimiter);
  load.spec.quote = given(arguments.quote);
  load.spec.comment = given(arguments.comment);
  if (arguments.header || arguments.no_header) load.spec.header = arguments.header;

  constexpr std::uint64_t most_backups = 100;
  if (load.backups > most_backups)
    throw UsageError(
        fmt::format("found --backups {}, expected at most {}", load.backups, most_backups));
  load.backup_name = arguments.pool.path;
  load.archive = arguments.pool.archive;
  Loader loader(load);
  // A wrong option must not leave an empty pool behind.
  if (!std::filesystem::exists(arguments.pool.path)) loader.rehearse();
  const auto begun = std::chrono::steady_clock::now();
  std::optional<Progress> progress(std::in_place, arguments.progress, loader.file_bytes());
  // For a program that reads standard error, if it asked for events.
  std::function<void(const RecoveryProgress&)> told;
  if (arguments.progress == "none") told = [](const RecoveryProgress&) {};
  if (arguments.progress == "json")
    told = [&](const RecoveryProgress& p) {
      if (std::chrono::steady_clock::now() - begun < std::chrono::seconds(1)) return;
      progress->event("recovery",
                      {{"stage", p.stage == RecoveryProgress::Stage::read ? "read" : "apply"},
                       {"done", p.done},
                       {"total", p.total}});
    };
  auto pool = StorePool::open(arguments.pool, StorePool::Access::create,
                              durability_of(arguments.durability), std::move(told));
  const double open_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();

  const SourceState state = pool.source();
  const engine::Recovery recovery = pool.stats().recovery;
  progress->event("open", {{"seconds", open_seconds},
                           {"rows", state.rows},
                           {"position", state.position},
                           {"created", pool.created()},
                           {"clean", recovery.was_clean},
                           {"replayed_records", recovery.records},
                           {"replayed_bytes", recovery.bytes},
                           {"recovery_seconds", recovery.seconds}});
  const LoadResult result = loader.run(pool, *progress);
  progress.reset();  // before anything else is printed
  const Json summary = describe(result, pool.stats(), open_seconds);
  pool.close();
  if (result.repeated) return stopped(app, summary, result);
  if (app.json)
    print_json(summary);
  else
    print_text(result, summary);
  return exit_ok;
}

}  // namespace

void add_load(App& app) {
  auto sub = app.add(
      "load",
      "load a TSV, CSV or Debian control file; goes on where an earlier load was cut. Or, with "
      "--schema, make a new pool of any program from a dump",
      "perdure load --key id people.perdure people.csv");
  arguments.pool.add_to(sub);
  arguments.pool.add_creation_to(sub);
  arguments.pool.add_log_to(sub);
  sub.option("FILE", arguments.load.file,
             "the text file; with --schema what `perdure dump` wrote, - for standard input")
      .required();
  Option schema = sub.option("--schema", arguments.dump.schema,
                             "FILE is a dump; this file, of `perdure schema --text`, says which "
                             "fields and containers the new pool has");
  sub.flag("--jsonl", arguments.dump.lines, "with --schema: the dump is one of --jsonl");
  const Option format =
      sub.option("--format", arguments.load.spec.format, "auto, tsv, csv or control")
          .one_of({"auto", "tsv", "csv", "control"})
          .show_default();
  schema.excludes(format);
  const Option key = sub.option(
      "--key", arguments.key,
      "the key's column (name, or number from 1) or control field; several: separated by commas "
      "(default: 1, or Package,Version,Architecture)");
  schema.excludes(key);
  sub.option(
      "--delimiter", arguments.delimiter,
      "what separates columns: one character, or tab (default: by the format and the first line)");
  sub.option("--quote", arguments.quote,
             "the quote character, or none (default: \" for csv, none for tsv)");
  sub.option("--comment", arguments.comment,
             "lines that begin with this character are no rows (they are kept all the same)");
  const Option header = sub.flag("--header", arguments.header,
                                 "the first row names the columns (default if --key is a name)");
  sub.flag("--no-header", arguments.no_header, "the first row is data").excludes(header);
  sub.option("--batch", arguments.load.batch_rows, "rows a transaction, at most")
      .positive()
      .show_default();
  sub.option("--backups", arguments.load.backups,
             "write so many backups while the load goes on, each after an equal part of the file: "
             "pool files POOL.backup-1, POOL.backup-2, ..., or in the archive (default: none)");
  sub.option("--archive", arguments.pool.archive,
             "keep an archive of the log in this folder, so that each state can be restored "
             "(perdure restore)");
  sub.option("--durability", arguments.durability,
             "async: many batches under way; durable: wait for each")
      .one_of({"async", "group", "durable"})
      .show_default();
  sub.option("--progress", arguments.progress,
             "auto (a bar on a terminal), bar, plain, json (one object a line) or none")
      .one_of({"auto", "bar", "plain", "json", "none"})
      .show_default();
  sub.runs(run);
}

}  // namespace perdure::tool
