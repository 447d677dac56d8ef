// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure compact POOL`: gives free chunks of a pool's file back to the file system, for a pool of
// any engine and any root type. It recovers the pool first where that is needed. No object moves:
// a pool holds plain addresses.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/text.hpp"
#include "tools/unmapped_pool.hpp"

namespace perdure::tool {
namespace {

PoolArguments arguments;
bool dry_run = false;

struct Size {
  std::uint64_t file = 0, allocated = 0;
};
Size size_of(const std::string& path) {
  struct stat st = {};
  if (::stat(path.c_str(), &st) != 0) system_failure(path, "stat", errno).or_throw();
  return {static_cast<std::uint64_t>(st.st_size), static_cast<std::uint64_t>(st.st_blocks) * 512};
}

int run(App& app) {
  const Size before = size_of(arguments.path);
  bool was_clean = true;
  pool::TrimReport report;
  {
    const auto file = open_unmapped(arguments, dry_run);
    was_clean = file->header().clean == 1;
    if (!was_clean) (void)put_in_order(*file, arguments);
    report = file->trim(dry_run).value();
  }
  const Size after = size_of(arguments.path);
  const std::uint64_t gives = dry_run ? report.allocated : report.given_back;
  if (app.json) {
    Json j;
    j["pool"] = arguments.path;
    j["dry_run"] = dry_run;
    j["was_clean"] = was_clean;
    j["file_bytes_before"] = before.file;
    j["file_bytes_after"] = after.file;
    j["allocated_bytes_before"] = before.allocated;
    j["allocated_bytes_after"] = after.allocated;
    j["data_bytes_before"] = report.data_bytes_before;
    j["data_bytes_after"] = report.data_bytes_after;
    j["free_bytes"] = report.free_bytes;
    j["given_back_bytes"] = gives;
    j["empty_spans_bytes"] = report.kept_empty;
    j["refused"] = report.refusal.ok() ? "" : report.refusal.message();
    print_json(j);
    return exit_ok;
  }
  if (!report.refusal.ok()) fmt::print("no holes were made: {}\n", report.refusal.message());
  fmt::print("{}: {} {} of {} in free chunks\n", arguments.path,
             dry_run ? "would give back" : "gave back", human_bytes(gives),
             human_bytes(report.free_bytes));
  fmt::print("file:      {} -> {}\nallocated: {} -> {}\n", human_bytes(before.file),
             human_bytes(after.file), human_bytes(before.allocated), human_bytes(after.allocated));
  return exit_ok;
}

}  // namespace

void add_compact(App& app) {
  auto sub = app.add("compact", "give free chunks of a pool's file back to the file system",
                     "perdure compact bank.perdure --dry-run");
  arguments.add_to(sub);
  sub.flag("--dry-run", dry_run, "change nothing; say what would be given back");
  sub.runs(run);
}

}  // namespace perdure::tool
