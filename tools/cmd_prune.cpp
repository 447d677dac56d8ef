// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure prune DIR --from POINT`: removes backups and log files that are too old to be wanted.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "perdure/backup/restore.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/point_text.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

std::string folder, from;
bool dry_run = false;

int run(App& app) {
  const PruneReport report = prune_backups(folder, parse_point(from), dry_run);
  if (app.json) {
    print_json({{"folder", folder},
                {"dry_run", dry_run},
                {"oldest_id", report.oldest_id},
                {"backups", report.backups},
                {"files", report.files},
                {"chunks", report.chunks},
                {"held_by", report.held_by}});
    return exit_ok;
  }
  fmt::print("{}: {} {} backups, {} files of the log, {} chunks; the oldest backup is {}\n", folder,
             dry_run ? "would remove" : "removed", grouped(report.backups), grouped(report.files),
             grouped(report.chunks), report.oldest_id);
  if (!report.held_by.empty())
    fmt::print("kept for the consumer '{}': the files of the log that it has not had yet\n",
               report.held_by);
  return exit_ok;
}

}  // namespace

void add_prune(App& app) {
  auto sub = app.add("prune", "remove the backups and log files that are older than a point",
                     "perdure prune /backups/bank --from '2026-03-01 00:00' --dry-run");
  sub.option("DIR", folder, "the folder with backups; its pool may be open").required();
  sub.option("--from", from,
             "what stays restorable: from an id or a time on, or latest: the newest backup on")
      .required();
  sub.flag("--dry-run", dry_run, "remove nothing; say what would be removed");
  sub.runs(run);
}

}  // namespace perdure::tool
