// SPDX-License-Identifier: BSD-3-Clause
//
// From a Host (a system holding one root of some type) and a workload to a Session: fill, run cells, audit. A System type names a
// Model and a Host template; sessions_of<System>() is what a system's entry in the list needs. Adding a system is one such type.
// Thread safety: see session.hpp; a Host's update, view and settle are called by many threads at once.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/latency.hpp"
#include "bench/harness/rng.hpp"
#include "bench/harness/session.hpp"
#include "bench/harness/timed.hpp"
#include "bench/workloads/bplus_tree.hpp"
#include "bench/workloads/hash.hpp"
#include "bench/workloads/rb_tree.hpp"
#include "bench/workloads/sps.hpp"

namespace bench {

template <class Host, class Workload>
class StructureSession final : public Session {
 public:
  template <class... Args>
  explicit StructureSession(const Setting& setting, const Args&... args) : host_(setting, args...) {
    Workload::fill(host_, setting);
  }

  Outcome run(const Cell& cell) override {
    const unsigned parameter = parameter_of(cell.workload, Workload::structure);
    Workload::check_parameter(parameter);
    host_.prepare(cell.threads);

    struct Worker {
      Host& host;
      const Cell& cell;
      unsigned parameter;
      Rng rng;
      Latencies* latencies;
      Step operator()() {
        if (latencies == nullptr) return Workload::step(host, cell, parameter, rng);
        const auto began = Latencies::Clock::now();
        const Step step = Workload::step(host, cell, parameter, rng);
        if constexpr (requires { host.newest(); }) {
          const std::uint64_t durable = host.durable();
          latencies->performed(began, host.newest(), durable);
        } else {
          latencies->performed(began, 0, 0);
        }
        return step;
      }
      void settle() {
        host.settle();
        if (latencies != nullptr) latencies->acknowledge(~std::uint64_t{0});
      }
    };
    const auto before = host_.counters();
    std::vector<Latencies> latencies(cell.latency ? cell.threads : 0);
    const Tally tally = run_timed(
        cell, [&](unsigned t) { return Worker{host_, cell, parameter, Rng(cell.seed, t), cell.latency ? &latencies[t] : nullptr}; });
    grown_ += tally.grown;

    Outcome outcome{.operations = tally.operations,
                    .writes = tally.writes,
                    .seconds = tally.seconds,
                    .rate = tally.rate,
                    .cpu_seconds = tally.cpu_seconds,
                    .counters = {}};
    for (const auto& [name, value] : host_.counters()) {
      const auto old = before.find(name);
      outcome.counters[name] = value - (old == before.end() ? 0.0 : old->second);
    }
    outcome.counters["operations"] = static_cast<double>(tally.all_operations);
    for (const auto& [name, value] : Latencies::percentiles(latencies)) outcome.counters[name] = value;
    return outcome;
  }

  std::vector<std::string> audit() override {
    std::vector<std::string> problems = Workload::audit(host_, grown_);
    for (auto& problem : host_.check()) problems.push_back(std::move(problem));
    return problems;
  }

  bool reopen() override { return host_.reopen(); }
  [[nodiscard]] std::string describe() override { return host_.describe(); }

 private:
  Host host_;
  std::int64_t grown_ = 0;
};

template <class Model>
using HashSet = KeySet<HashTable<Model>>;
template <class Model>
using RbSet = KeySet<RbTree<Model>>;
template <class Model>
using BtSet = KeySet<BplusTree<Model>>;

/// What a Host has besides update and view, for systems where it means nothing.
class HostDefaults {
 public:
  void prepare(unsigned /*threads*/) {}
  void settle() {}
  [[nodiscard]] std::map<std::string, double> counters() const { return {}; }
  std::vector<std::string> check() { return {}; }
  bool reopen() { return false; }
};

inline const std::vector<std::string>& micro_structures() {
  static const std::vector<std::string> names{"sps", "hash", "rb", "bt"};
  return names;
}

template <class System>
std::unique_ptr<Session> open_micro(const Setting& setting) {
  using Model = typename System::Model;
  const auto with = [&]<class Workload>(std::type_identity<Workload>) -> std::unique_ptr<Session> {
    return std::make_unique<StructureSession<typename System::template Host<typename Workload::Root>, Workload>>(setting);
  };
  if (setting.structure == Sps<Model>::structure) return with(std::type_identity<Sps<Model>>{});
  if (setting.structure == HashSet<Model>::structure) return with(std::type_identity<HashSet<Model>>{});
  if (setting.structure == RbSet<Model>::structure) return with(std::type_identity<RbSet<Model>>{});
  if (setting.structure == BtSet<Model>::structure) return with(std::type_identity<BtSet<Model>>{});
  throw std::invalid_argument("found structure '" + setting.structure + "', expected sps, hash, rb or bt");
}

}  // namespace bench
