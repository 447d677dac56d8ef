// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure doctor FILE`: which medium a pool at this path would lie on, and why. It reads and
// probes, and never changes the file itself.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "perdure/medium/medium.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"

namespace perdure::tool {

namespace {

std::string path;

int run(App& app) {
  const medium::Diagnosis d = medium::diagnose(path).value();
  if (app.json) {
    Json j;
    j["file"] = path;
    j["medium"] = d.kind;
    j["reason"] = d.reason;
    j["file_system"] = d.file_system;
    j["direct"] = d.direct;
    j["map_sync"] = d.map_sync;
    j["flush_instruction"] = d.flush_instruction;
    j["eadr"] = d.eadr;
    print_json(j);
    return exit_ok;
  }
  fmt::print(
      "file:              {}\nmedium:            {}\nreason:            {}\nfile system:       "
      "{}\n",
      path, d.kind, d.reason, d.file_system);
  fmt::print(
      "O_DIRECT|O_DSYNC:  {}\nMAP_SYNC:          {}\nflush instruction: {}\neADR:              "
      "{}\n",
      d.direct ? "yes" : "no", d.map_sync ? "yes" : "no", d.flush_instruction,
      d.eadr ? "yes (no flush is needed)" : "no");
  return exit_ok;
}

}  // namespace

void add_doctor(App& app) {
  auto sub = app.add("doctor", "say which medium would be chosen for a pool at FILE, and why",
                     "perdure doctor /mnt/pmem/bank.perdure");
  sub.option("FILE", path, "a path; the file need not exist").required();
  sub.runs(run);
}

}  // namespace perdure::tool
