// SPDX-License-Identifier: BSD-3-Clause
//
// The systems that Perdure's registry makes: every instance, and for those that may acknowledge later than they commit, every mode.
#include "bench/systems/perdure.hpp"

#include <cstdio>

#include "bench/systems/systems.hpp"

namespace bench {
namespace {

std::unique_ptr<Session> open(const Setting& setting, const PerdureChoice& choice) {
  if (setting.structure == "sps") return open_perdure_sps(setting, choice);
  if (setting.structure == "hash") return open_perdure_hash(setting, choice);
  if (setting.structure == "rb") return open_perdure_rb(setting, choice);
  if (setting.structure == "bt") return open_perdure_bt(setting, choice);
  if (setting.structure == "hashv") return open_perdure_hashv(setting, choice);
  if (setting.structure == "bp") return open_perdure_bp(setting, choice);
  if (setting.structure == "kvstore") return open_perdure_kvstore(setting, choice);
  throw std::invalid_argument("found structure '" + setting.structure + "', expected sps, hash, rb, bt, hashv, bp or kvstore");
}

void add(Systems& systems, const std::string& name, const std::string& about, bool isolates, PerdureChoice choice) {
  auto structures = micro_structures();
  if (has_engine(blurred_engines{}, choice.engine)) structures.insert(structures.end(), {"hashv", "bp", "kvstore"});
  systems.push_back({name, about, std::move(structures), isolates ? 64U : 1U,
                     [choice = std::move(choice)](const Setting& setting) { return open(setting, choice); }});
}

/// An engine that has an order to choose (`held` or `prefix`) can acknowledge before it is durable.
bool decoupled(const perdure::engine::Entry& e) {
  perdure::engine::Config config;
  config.durability = perdure::async;
  return e.identity(config).order == perdure::pool::Order::prefix;
}

}  // namespace

void add_perdure(Systems& systems) {
  for (const perdure::engine::Entry& e : perdure::engine::registered()) {
    if (const perdure::Status s = e.runs_here(); !s.ok()) {  // not a system of this machine
      std::fprintf(stderr, "%s is left out: %s\n", std::string(e.name).c_str(), s.message().c_str());
      continue;
    }
    const std::string name(e.name);
    const bool isolates = e.isolation == perdure::Isolation::full;
    if (decoupled(e)) {
      add(systems, name + ":durable", "Perdure, " + name + ": update() returns when durable", isolates, {name, perdure::durable});
      add(systems, name + ":group", "Perdure, " + name + ": durable, fences shared", isolates, {name, perdure::group});
      add(systems, name + ":async", "Perdure, " + name + ": receipts, the wait for the last one counted", isolates, {name, perdure::async});
    } else {
      add(systems, name, "Perdure, " + name, isolates, {name, perdure::durable});
    }
  }
}

}  // namespace bench
