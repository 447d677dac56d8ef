// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure verify DIR`: reads every file of a folder with backups, and says what can be restored
// and what is damaged; on request it restores the newest state and checks the pool.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "perdure/backup/frame.hpp"
#include "perdure/backup/restore.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/metrics.hpp"
#include "tools/point_text.hpp"
#include "tools/pool_check.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

std::string folder, scratch, prometheus;
bool with_restore = false;

// Restores the newest state into the scratch folder, checks the pool, and removes it.
Json restore_and_check(std::vector<std::string>& problems) {
  std::string where =
      (scratch.empty() ? std::filesystem::temp_directory_path().string() : scratch) +
      "/perdure-verify-XXXXXX";
  if (::mkdtemp(where.data()) == nullptr) system_failure(where, "mkdtemp", errno).or_throw();
  Json result;
  try {
    PoolArguments made;
    made.path = where + "/pool";
    const RestoreReport report = restore(folder, made.path, {}, show_bytes("restore"));
    result = {
        {"id", report.id}, {"backup_id", report.backup_id}, {"transactions", report.transactions}};
    const Findings found = check_pool(made);
    for (const std::string& p : found.problems) problems.push_back("the restored pool: " + p);
    result["summary"] = *found.summary;
  } catch (const error& e) {
    problems.push_back(std::string("the newest state can't be restored: ") + e.what());
  }
  std::error_code ignored;
  std::filesystem::remove_all(where, ignored);
  return result;
}

// Of a verification that has found nothing wrong: a file that is not renewed tells of one that has.
void write_metrics(const VerifyReport& report) {
  Metrics m("backups", folder);
  std::uint64_t newest_ns = 0, restores_to = 0;
  for (const auto& b : report.backups) {
    newest_ns = std::max(newest_ns, b.unix_ns);
    restores_to = std::max(restores_to, b.restores_to);
  }
  const auto seconds = [](std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; };
  m.gauge("perdure_verified_timestamp_seconds",
          "When the backups were last verified and found whole.",
          seconds(backup::unix_nanoseconds()));
  m.gauge("perdure_verified_restore", "Whether the newest state was restored and checked then.",
          with_restore ? 1 : 0);
  m.gauge("perdure_verified_backup_timestamp_seconds", "When the newest backup was made.",
          seconds(newest_ns));
  m.gauge("perdure_verified_id", "The newest transaction that they restore.",
          static_cast<double>(restores_to));
  m.write_to(prometheus);
}

int run(App& app) {
  VerifyReport report = verify_backups(folder, show_bytes("verify"));
  Json restored;
  if (with_restore) restored = restore_and_check(report.problems);
  if (app.json) {
    Json runs = Json::array(), backups = Json::array();
    for (const auto& r : report.runs)
      runs.push_back({{"first", r.first},
                      {"last", r.last},
                      {"files", r.files},
                      {"transactions", r.transactions},
                      {"first_unix_ns", r.first_ns},
                      {"last_unix_ns", r.last_ns}});
    for (const auto& b : report.backups)
      backups.push_back({{"id", b.id},
                         {"unix_ns", b.unix_ns},
                         {"chunks", b.chunks},
                         {"bytes", b.bytes},
                         {"whole", b.whole},
                         {"restores_to", b.restores_to}});
    print_json({{"folder", folder},
                {"ok", report.ok()},
                {"problems", report.problems},
                {"backups", backups},
                {"runs", runs},
                {"restored", restored}});
  } else {
    for (const auto& b : report.backups)
      fmt::print("backup {:>12}  of {}  {:>10}  {}\n", b.id, time_text(b.unix_ns),
                 human_bytes(b.bytes),
                 b.whole ? fmt::format("restores to {}", b.restores_to) : "damaged");
    for (const auto& r : report.runs)
      fmt::print("log {} to {}, archived {} to {}, in {} files\n", r.first, r.last,
                 time_text(r.first_ns), time_text(r.last_ns), grouped(r.files));
    if (!restored.is_null())
      fmt::print("restored transaction {} and checked it\n", restored["id"].get<std::uint64_t>());
  }
  if (!prometheus.empty() && report.ok()) write_metrics(report);
  for (const std::string& p : report.problems) fmt::print(stderr, "perdure: {}\n", p);
  if (!app.json)
    fmt::print("{}\n", report.ok() ? "no problem found"
                                   : fmt::format("problems found: {}", report.problems.size()));
  return report.ok() ? exit_ok : exit_problem;
}

}  // namespace

void add_verify(App& app) {
  auto sub =
      app.add("verify", "say what a folder's backups and archive can restore; look for damage",
              "perdure verify /backups/bank --restore");
  sub.option("DIR", folder, "the folder with backups").required();
  sub.flag("--restore", with_restore, "restore the newest state to a temporary file and check it");
  sub.option("--scratch", scratch, "where that file is made (the folder for temporary files)");
  sub.option("--prometheus", prometheus,
             "write to this file when that was done, as Prometheus reads it, if nothing is wrong");
  sub.runs(run);
}

}  // namespace perdure::tool
