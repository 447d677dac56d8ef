// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_dudetm: the workloads of DudeTM's figures on the systems of perdure_dude.hpp (`./dev figures dudetm`).
#include <array>
#include <cstdio>
#include <string_view>

#include "bench/systems/perdure_dude.hpp"

namespace {

using bench::PerdureChoice;
using bench::Session;
using bench::Setting;

const std::vector<std::string> structures{"ht", "bpt", "tpcch", "tpccb", "tatph", "tatpb", "session", "store"};

std::unique_ptr<Session> open(const Setting& setting, const PerdureChoice& choice) {
  const std::string& s = setting.structure;
  if (s == "ht" || s == "bpt") return bench::open_dude_inserts(setting, choice);
  if (s == "tpcch" || s == "tpccb") return bench::open_dude_new_orders(setting, choice);
  if (s == "tatph" || s == "tatpb" || s == "session" || s == "store") return bench::open_dude_rows(setting, choice);
  throw std::invalid_argument("found structure '" + s + "', expected ht, bpt, tpcch, tpccb, tatph, tatpb, session or store");
}

}  // namespace

int main(int argc, char** argv) {
  bench::Systems systems;
  constexpr std::array<std::pair<const char*, perdure::Durability>, 2> modes{{{":durable", perdure::durable}, {":async", perdure::async}}};
  bench::for_each_instance(bench::dude_engines{}, [&]<class Instance>(std::type_identity<Instance>) {
    for (const auto& n : Instance::names) {
      if (const perdure::Status s = perdure::engine::find_instance(n.name)->runs_here(); !s.ok()) {
        std::fprintf(stderr, "%s is left out: %s\n", std::string(n.name).c_str(), s.message().c_str());
        continue;
      }
      for (const auto& [suffix, durability] : modes) {
        const PerdureChoice choice{std::string(n.name), durability};
        systems.push_back({choice.engine + suffix, "Perdure, " + choice.engine, structures, 64U,
                           [choice](const Setting& setting) { return open(setting, choice); }});
      }
    }
  });
  return bench::serve(argc, argv, systems);
}
