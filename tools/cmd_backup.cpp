// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure backup POOL DIR`: makes a backup of a pool of any engine and any root type. A pool that
// a program has open for writing is read beside it, if its engine serves readers; the state is that
// of one moment.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "perdure/api/erased.hpp"
#include "perdure/api/snapshot.hpp"
#include "perdure/backup/base.hpp"
#include "perdure/backup/frame.hpp"
#include "perdure/backup/places.hpp"
#include "perdure/backup/tar_store.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/pool/state_chunks.hpp"
#include "tools/command.hpp"
#include "tools/inspected_pool.hpp"
#include "tools/json.hpp"
#include "tools/point_text.hpp"
#include "tools/raw_pool.hpp"
#include "tools/text.hpp"
#include "tools/unmapped_pool.hpp"

namespace perdure::tool {
namespace {

PoolArguments arguments;
std::string folder;

// The pool, opened: by itself, or beside its writer.
class Source {
 public:
  Source() {
    try {
      file_ = open_unmapped(arguments, true);
    } catch (const error& e) {
      // A program has it open, or it was not closed in order.
      if ((e.code() != Code::busy && e.code() != Code::read_only) ||
          !RawPool(arguments, true).serves_readers())
        throw;
      beside_ = std::make_unique<InspectedPool>(arguments);
    }
  }
  BackupReport back_up(backup::Store& store) {
    if (beside_ == nullptr)
      return backup::write_base(store, file_->header(), file_->file_mode(),
                                backup::unix_nanoseconds(), pool::state_at_rest(*file_).value(),
                                show_bytes("backup"))
          .value();
    std::shared_ptr<engine::OpenSnapshot> own;
    engine::OpenSnapshot* state = beside_->state();
    if (state == nullptr) {  // the program has ended meanwhile
      own = beside_->pool().snapshot(Durability::async).value();
      state = own.get();
    }
    const detail::SnapshotReader inside(*state);
    return beside_->pool().back_up(*state, store, show_bytes("backup"));
  }

 private:
  std::unique_ptr<pool::OpenPool> file_;
  std::unique_ptr<InspectedPool> beside_;
};

int run(App& app) {
  base::ensure_thread_slot().or_throw();
  const bool stream = folder == "-";
  if (stream && app.json)
    throw UsageError("--json and DIR - would both write to standard output: leave one out");
  Source source;  // before a folder is made
  BackupReport report;
  const auto write = [&](backup::Store& store) { report = source.back_up(store); };
  if (stream) {
    const auto tar = backup::TarStore::on(STDOUT_FILENO);
    write(*tar);
    tar->finish().or_throw();
    return exit_ok;
  }
  write(*backup::open_place(folder, true).value());
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
  auto sub = app.add("backup", "back up a pool, also one in use; only what is new is written",
                     "perdure backup bank.perdure /backups/bank");
  arguments.add_to(sub);
  sub.option("DIR", folder,
             "a folder with this pool's backups, or a new one; -: a tar stream to standard output")
      .required();
  sub.runs(run);
}

}  // namespace perdure::tool
