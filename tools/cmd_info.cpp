// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure info POOL`: what a pool's header says and, for a pool that `perdure load` made, what the
// pool holds; also while a program has the pool open. Read-only.
#include <fmt/format.h>
#include <sys/stat.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "perdure/pool/directory.hpp"
#include "perdure/pool/open_pool.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/raw_pool.hpp"
#include "tools/store_pool.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

PoolArguments arguments;

std::string when(std::uint64_t seconds) {
  const auto t = static_cast<std::time_t>(seconds);
  std::tm utc = {};
  ::gmtime_r(&t, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

Json describe(RawPool& pool) {
  const pool::Header& h = pool.header();
  Json j;
  j["pool"] = arguments.path;
  j["format_version"] = h.version;
  j["features"] = pool::feature_names(h);
  j["uuid"] = uuid_text(h.uuid);
  j["created"] = when(h.created_unix);
  j["engine"] = pool.engine();
  j["order"] = h.order == pool::CommitOrder::strict ? "strict" : "pipelined";
  j["medium"] = pool.medium().kind();
  j["medium_detail"] = pool.medium().describe();
  j["in_use"] = pool.in_use();
  j["clean"] = h.clean == 1;
  j["epoch"] = h.epoch;
  j["checkpoint_id"] = h.checkpoint_id;
  j["base"] = fmt::format("{:#x}", h.base);
  j["log_bytes"] = h.log_bytes;
  j["rings"] = h.ring_count;
  j["ring_bytes"] = h.ring_bytes;
  j["append_unit"] = h.append_unit;
  if (struct stat st = {}; ::stat(arguments.path.c_str(), &st) == 0 && S_ISREG(st.st_mode)) {
    j["file_bytes"] = static_cast<std::uint64_t>(st.st_size);
    j["allocated_bytes"] = static_cast<std::uint64_t>(st.st_blocks) * 512;
  }
  j["data_bytes"] = h.data_bytes;
  j["max_data_bytes"] = pool::Directory(h).max_data_bytes();
  if (h.raised_max_bytes != 0) j["first_max_data_bytes"] = h.first_max_bytes;
  j["heap_used"] = h.heap_used;
  j["root_offset"] = h.root_offset;
  j["root_bytes"] = h.root_bytes;
  j["fingerprint"] = fmt::format("{:016x}", h.fingerprint);
  j["layout"] = pool.layout();
  j["field_names"] = std::string(pool::field_names_text(h));
  return j;
}

void print_text(const Json& j) {
  for (const auto& [name, value] : j.items()) {
    if (name == "layout" || name == "store" || (name == "field_names" && value == "")) continue;
    const std::string text =
        value.is_string() ? value.get<std::string>()
        : value.is_array()
            ? fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), ", "))
            : json_text(value);
    const bool size = name.ends_with("_bytes") || name == "heap_used";
    fmt::print("{:<16}{}{}\n", name + ":", text,
               size ? " (" + human_bytes(value.get<std::uint64_t>()) + ")" : "");
  }
  fmt::print("layout:\n");
  const std::string layout = j["layout"];
  for (std::size_t at = 0; at < layout.size();) {
    const std::size_t end = std::min(layout.find('\n', at), layout.size());
    fmt::print("    {}\n", layout.substr(at, end - at));
    at = end + 1;
  }
  if (!j.contains("store")) return;
  fmt::print("rows:\n");
  for (const auto& [name, value] : j["store"].items()) {
    fmt::print("    {:<16}{}\n", name + ":",
               value.is_string() ? escaped(value.get<std::string>()) : json_text(value));
  }
}

int run(App& app) {
  Json j;
  bool store = false;
  {
    RawPool pool(arguments, true);
    j = describe(pool);
    store = is_store(pool.header());
  }
  const bool in_use = j["in_use"];
  if (store && (in_use || j["clean"].get<bool>()))
    j["store"] = StorePool::open(arguments, StorePool::Access::read).describe();
  if (app.json)
    print_json(j);
  else
    print_text(j);
  if (!app.json && in_use) {
    fmt::print("A program has the pool open. Counts of the header are of its last checkpoint.\n");
  } else if (!app.json && !j["clean"].get<bool>()) {
    fmt::print(
        "The pool was not closed in order; the next opening for writing (or `perdure recover`) "
        "replays its log. Counts are of before.\n");
  }
  return exit_ok;
}

}  // namespace

void add_info(App& app) {
  auto sub = app.add("info", "show a pool's header, geometry, engine and layout",
                     "perdure info packages.perdure");
  arguments.add_to(sub);
  sub.runs(run);
}

}  // namespace perdure::tool
