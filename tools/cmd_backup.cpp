// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure backup POOL DIR`: makes a backup of a pool of any engine and any root type that no
// program has open. A program backs up its open pool itself (Pool::backup).
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "perdure/backup/base.hpp"
#include "perdure/backup/frame.hpp"
#include "perdure/backup/tar_store.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/pool/state_chunks.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/point_text.hpp"
#include "tools/text.hpp"
#include "tools/unmapped_pool.hpp"

namespace perdure::tool {
namespace {

PoolArguments arguments;
std::string folder;

int run(App& app) {
  base::ensure_thread_slot().or_throw();
  const bool stream = folder == "-";
  if (stream && app.json)
    throw UsageError("--json and DIR - would both write to standard output: leave one out");
  const auto file = open_unmapped(arguments, true);
  const pool::PoolState state = pool::state_at_rest(*file).value();
  BackupReport report;
  const auto write = [&](backup::Store& store) {
    report = backup::write_base(store, file->header(), file->file_mode(),
                                backup::unix_nanoseconds(), state, show_bytes("backup"))
                 .value();
  };
  if (stream) {
    const auto tar = backup::TarStore::on(STDOUT_FILENO);
    write(*tar);
    tar->finish().or_throw();
    return exit_ok;
  }
  write(*backup::open_folder(folder, true).value());
  if (app.json) {
    print_json({{"pool", arguments.path},
                {"folder", folder},
                {"id", report.id},
                {"bytes", report.bytes},
                {"chunks", report.chunks},
                {"new_chunks", report.new_chunks},
                {"new_bytes", report.new_bytes}});
  } else {
    fmt::print("{}: the state after transaction {}: {} in {} chunks, {} of them new ({})\n", folder,
               report.id, human_bytes(report.bytes), grouped(report.chunks),
               grouped(report.new_chunks), human_bytes(report.new_bytes));
  }
  return exit_ok;
}

}  // namespace

void add_backup(App& app) {
  auto sub =
      app.add("backup", "back up a pool that no program has open; only what is new is written",
              "perdure backup bank.perdure /backups/bank");
  arguments.add_to(sub);
  sub.option("DIR", folder,
             "a folder with this pool's backups, or a new one; -: a tar stream to standard output")
      .required();
  sub.runs(run);
}

}  // namespace perdure::tool
