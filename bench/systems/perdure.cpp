// SPDX-License-Identifier: BSD-3-Clause
//
// The systems that Perdure's registry makes: every instance and, for those that may acknowledge a
// transaction before it is durable, every mode.
#include "bench/systems/perdure.hpp"

#include <cstdio>

#include "bench/systems/systems.hpp"

namespace bench {

#define SOURCE(name) PerdureStructures perdure_##name();
#include "structures.inc"  // CMakeLists.txt's list
#undef SOURCE

namespace {

const std::vector<PerdureStructures>& sources() {
#define SOURCE(name) perdure_##name(),
  static const std::vector<PerdureStructures> list{
#include "perdure/engine/dynamic_engine.hpp"
#include "structures.inc"
  };
#undef SOURCE
  return list;
}

std::unique_ptr<Session> open(const Setting& setting, const PerdureChoice& choice) {
  for (const auto& source : sources())
    if (source.counts_writes == setting.count_writes &&
        std::find(source.names.begin(), source.names.end(), setting.structure) !=
            source.names.end() &&
        (!source.counts_writes || source.on(choice.engine)))
      return source.open(setting, choice);
  throw std::invalid_argument(
      "found structure '" + setting.structure + "' on engine '" + choice.engine +
      (setting.count_writes ? "', whose writes no source systems/perdure_writes.cpp counts"
                            : "', which no source systems/perdure_*.cpp of this build has"));
}

void add(Systems& systems, const std::string& name, const std::string& about, bool isolates,
         PerdureChoice choice) {
  std::vector<std::string> structures;
  for (const auto& source : sources())
    if (!source.counts_writes && source.on(choice.engine))
      structures.insert(structures.end(), source.names.begin(), source.names.end());
  systems.push_back(
      {name, about, std::move(structures), isolates ? 64U : 1U,
       [choice = std::move(choice)](const Setting& setting) { return open(setting, choice); }});
}

/// An engine that can choose its order (strict or pipelined) can acknowledge before a transaction
/// is durable.
bool decoupled(const perdure::engine::EngineInfo& e) {
  perdure::engine::Config config;
  config.durability = perdure::async;
  return e.identity(config).order == perdure::pool::CommitOrder::pipelined;
}

}  // namespace

void add_perdure(Systems& systems) {
  for (const perdure::engine::EngineInfo& e : perdure::engine::registered()) {
    if (const perdure::Status s = e.runs_here(); !s.ok()) {  // this machine can't run it
      std::fprintf(stderr, "%s is left out: %s\n", std::string(e.name).c_str(),
                   s.message().c_str());
      continue;
    }
    const std::string name(e.name);
    const bool isolates = e.isolation == perdure::Isolation::full;
    if (decoupled(e)) {
      add(systems, name + ":durable", "Perdure, " + name + ": update() returns when durable",
          isolates, {name, perdure::durable});
      add(systems, name + ":group", "Perdure, " + name + ": durable, fences shared", isolates,
          {name, perdure::group});
      add(systems, name + ":async",
          "Perdure, " + name + ": receipts, the wait for the last one counted", isolates,
          {name, perdure::async});
      if (e.has_snapshots) {
        const auto beside = [&](const char* mode, const char* what, Beside other) {
          add(systems, name + ":" + mode, "Perdure, " + name + ": durable, " + what, isolates,
              {name, perdure::durable, other});
        };
        beside("snapshot", "beside an open snapshot", Beside::snapshot);
        beside("archive", "with an archive of the log", Beside::archive);
        beside("backup", "while backups are written", Beside::backup);
        if (e.keeps_checksums)
          beside("checksums", "with checksums of the pages", Beside::checksums);
      }
    } else {
      add(systems, name, "Perdure, " + name, isolates, {name, perdure::durable});
    }
  }
}

}  // namespace bench
