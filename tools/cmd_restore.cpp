// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure restore DIR NEW`: makes a pool of the backups and the archived log in a folder.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "perdure/backup/restore.hpp"
#include "perdure/backup/tar_store.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/point_text.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

std::string folder, path, to = "latest";

// What a stream brings, in a folder beside the new pool, until the end.
class Unpacked {
 public:
  Unpacked() : path_(path + ".restoring-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) system_failure(path_, "mkdtemp", errno).or_throw();
    try {
      backup::unpack(STDIN_FILENO, *backup::open_folder(path_, false).value()).or_throw();
    } catch (...) {
      remove();
      throw;
    }
  }
  ~Unpacked() { remove(); }
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;
  [[nodiscard]] const std::string& folder() const { return path_; }

 private:
  void remove() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path_;
};

RestoreReport restore_from(const std::string& from) {
  return restore(from, path, parse_point(to), show_bytes("restore"));
}

int run(App& app) {
  (void)parse_point(to);  // before anything is read
  const RestoreReport report =
      folder == "-" ? restore_from(Unpacked().folder()) : restore_from(folder);
  if (app.json) {
    print_json({{"pool", path},
                {"folder", folder},
                {"id", report.id},
                {"unix_ns", report.unix_ns},
                {"backup_id", report.backup_id},
                {"transactions", report.transactions},
                {"gap", report.gap}});
    return exit_ok;
  }
  fmt::print("{}: the state after transaction {}, archived by {}: backup {} and {} transactions\n",
             path, report.id, time_text(report.unix_ns), report.backup_id,
             grouped(report.transactions));
  if (report.gap) fmt::print("note: the archive goes on behind a gap, with no backup behind it\n");
  return exit_ok;
}

}  // namespace

void add_restore(App& app) {
  auto sub = app.add("restore", "make a pool of a backup and the archived log after it",
                     "perdure restore /backups/bank new.perdure --to '2026-03-01 12:30'");
  sub.option("DIR", folder, "the folder with backups; -: a stream from standard input").required();
  sub.option("NEW", path, "the pool file to make").required();
  sub.option("--to", to, "latest, a transaction's id, or a time (as of when it was archived)")
      .show_default();
  sub.runs(run);
}

}  // namespace perdure::tool
