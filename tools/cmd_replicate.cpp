// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure replicate status|copy|trim|leave`: how far a replicated pool and its log agree, by the
// pool's header; a further copy of the pool; what the log no longer needs; the end of a copy's
// replication.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "perdure/backup/places.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/replication/copy.hpp"
#include "perdure/replication/logs.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/text.hpp"
#include "tools/unmapped_pool.hpp"

namespace perdure::tool {
namespace {

PoolArguments arguments;
std::string log_name, folder;

int status(App& app) {
  const auto file = open_unmapped_beside(arguments);
  const pool::Header header = file->header();
  const pool::ReplicationWords& words = header.replication;
  Json j;
  j["pool"] = arguments.path;
  j["replicated"] = pool::is_replicated(header);
  j["term"] = words.term;
  j["own_term"] = words.own == 1;
  j["message"] = words.sequence;
  j["last_id"] = words.last;
  j["checkpoint_id"] = header.checkpoint_id;
  std::uint64_t ends = 0;
  if (!log_name.empty()) {
    ends = replication::open_named_log(log_name, false).value()->ends().value().last;
    j["log_message"] = ends;
  }
  if (app.json) {
    print_json(j);
    return exit_ok;
  }
  if (!pool::is_replicated(header)) {
    fmt::print("{} is not replicated\n", arguments.path);
    return exit_ok;
  }
  fmt::print(
      "{}: term {} of the log, which {} began; the pool and the log agree up to message {}, "
      "transaction {}\n",
      arguments.path, words.term, words.own == 1 ? "this copy" : "another copy",
      grouped(words.sequence), grouped(words.last));
  if (!log_name.empty())
    fmt::print("{}: {} messages, {} of them later\n", log_name, grouped(ends),
               grouped(ends - std::min(ends, words.sequence)));
  return exit_ok;
}

int copy(App& app) {
  base::ensure_thread_slot().or_throw();  // the new file's medium counts by thread
  const auto store = backup::open_place(folder, false).value();
  const RestoreReport report =
      replication::make_copy(*store, replication::open_named_log(log_name, false).value(),
                             arguments.path)
          .value();
  if (app.json)
    print_json({{"pool", arguments.path},
                {"id", report.id},
                {"backup_id", report.backup_id},
                {"transactions", report.transactions}});
  else
    fmt::print(
        "made {}: backup {} and {} transactions of the log after it, up to {}; opened with the "
        "log, it becomes the pool's primary\n",
        arguments.path, report.backup_id, grouped(report.transactions), grouped(report.id));
  return exit_ok;
}

int leave(App& app) {
  const auto file = open_unmapped(arguments, false, true);
  const pool::ReplicationWords words = file->header().replication;
  const bool was = pool::is_replicated(file->header());
  if (was) {
    // First: what it recovers then is this pool's alone.
    file->replicate({}).or_throw();
    (void)put_in_order(*file, arguments);
  }
  if (app.json)
    print_json({{"pool", arguments.path}, {"was_replicated", was}, {"term", words.term}});
  else if (was)
    fmt::print(
        "{} is not replicated any more: it opens without a log, and its changes get into no "
        "other copy\n",
        arguments.path);
  else
    fmt::print("{} is not replicated: nothing was changed\n", arguments.path);
  return exit_ok;
}

int trim(App& app) {
  const auto store = backup::open_place(folder, false).value();
  const replication::TrimReport report =
      replication::trim_log(*store, replication::open_named_log(log_name, false).value()).value();
  if (app.json)
    print_json({{"log", log_name},
                {"backup_id", report.backup_id},
                {"first_message", report.first + report.removed},
                {"last_message", report.last},
                {"removed", report.removed}});
  else
    fmt::print("removed {} messages of {}, which backup {} has; {} are left\n",
               grouped(report.removed), log_name, report.backup_id,
               grouped(report.last + 1 - report.first - report.removed));
  return exit_ok;
}

}  // namespace

void add_replicate(App& app) {
  auto sub = app.add(
      "replicate", "see how far a replicated pool and its log agree; copy it; trim the log; end it",
      "perdure replicate status bank.perdure");
  auto one = sub.add("status", "what the pool's header says; the pool may be open",
                     "perdure replicate status bank.perdure --log nats://127.0.0.1/bank");
  arguments.add_to(one);
  one.option("--log", log_name, "also ask this log how far it is (default: don't)");
  one.runs(status);
  auto copied = sub.add("copy",
                        "make a further copy of a replicated pool, of a backup and the log: it can "
                        "take over where the first one is lost",
                        "perdure replicate copy /backups/bank bank.perdure --log "
                        "nats://127.0.0.1/bank");
  copied.option("DIR", folder, "the folder with the pool's backups").required();
  copied.option("POOL", arguments.path, "the pool file to make").required();
  copied.option("--log", log_name, "the log over which the pool is replicated").required();
  copied.runs(copy);
  auto trimmed = sub.add("trim",
                         "remove from the log what the newest backup has: copies are made of that "
                         "one, or of a newer one, from then on",
                         "perdure replicate trim /backups/bank --log nats://127.0.0.1/bank");
  trimmed.option("DIR", folder, "the folder with the pool's backups").required();
  trimmed.option("--log", log_name, "the log over which the pool is replicated").required();
  trimmed.runs(trim);
  auto two =
      sub.add("leave",
              "end the pool's replication: it becomes a pool of its own, which opens without "
              "the log",
              "perdure replicate leave bank.perdure");
  arguments.add_to(two);
  two.runs(leave);
}

}  // namespace perdure::tool
