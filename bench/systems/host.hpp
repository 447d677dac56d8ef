// SPDX-License-Identifier: BSD-3-Clause
//
// Makes a Session from a Host (a system with one root of some type) and a workload: fill, run
// cells, audit. open_listed<Host>() opens one of a list of workloads, as a system's entry in the
// list of systems needs it. To add a system, write a Model and a Host (models.md).
// Thread safety: see session.hpp; many threads call a Host's update, view and settle at once.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/harness/device_bytes.hpp"
#include "bench/harness/latency.hpp"
#include "bench/harness/rng.hpp"
#include "bench/harness/session.hpp"
#include "bench/harness/timed.hpp"
#include "bench/workloads/list.hpp"

namespace bench {

template <class Host, class Workload>
class StructureSession final : public Session {
 public:
  template <class... Args>
  explicit StructureSession(const Setting& setting, const Args&... args) : host_(setting, args...) {
    if constexpr (requires { host_.each_structure([] {}); })
      host_.each_structure([&] { Workload::fill(host_, setting); });
    else
      Workload::fill(host_, setting);
    host_.filled();
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
    const double written = device_bytes();
    std::vector<Latencies> latencies(cell.latency ? cell.threads : 0);
    const Tally tally = run_timed(cell, [&](unsigned t) {
      Worker worker{host_, cell, parameter, Rng(cell.seed, t),
                    cell.latency ? &latencies[t] : nullptr};
      if constexpr (requires { Workload::begin(host_, parameter, worker.rng); })
        Workload::begin(host_, parameter, worker.rng);  // the part that takes long
      return worker;
    });
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
    outcome.counters["device_bytes"] = device_bytes() - written;
    outcome.counters["operations"] = static_cast<double>(tally.all_operations);
    for (const auto& [name, value] : Latencies::percentiles(latencies))
      outcome.counters[name] = value;
    return outcome;
  }

  std::vector<std::string> audit() override {
    std::vector<std::string> problems;
    if constexpr (requires { host_.each_structure([] {}); })
      host_.each_structure([&] {
        for (auto& problem : Workload::audit(host_, host_.grown()))
          problems.push_back(std::move(problem));
      });
    else
      problems = Workload::audit(host_, grown_);
    for (auto& problem : host_.check()) problems.push_back(std::move(problem));
    return problems;
  }

  bool reopen() override { return host_.reopen(); }
  [[nodiscard]] std::string describe() override { return host_.describe(); }

 private:
  Host host_;
  std::int64_t grown_ = 0;
};

/// The other members of a Host, for systems to which they mean nothing.
class HostDefaults {
 public:
  void prepare(unsigned /*threads*/) {}
  void settle() {}
  void filled() {}  ///< the structure is filled; from now on as the system's mode says
  [[nodiscard]] std::map<std::string, double> counters() const { return {}; }
  std::vector<std::string> check() { return {}; }
  bool reopen() { return false; }
};

/// A session of the workload that the setting names, on `HostOf<Root>`. Null if the list has no
/// workload of that name.
template <template <class> class HostOf, class... Workloads, class... Args>
std::unique_ptr<Session> open_one_of(WorkloadList<Workloads...>, const Setting& setting,
                                     const Args&... args) {
  std::unique_ptr<Session> session;
  const auto consider = [&]<class Workload>(std::type_identity<Workload>) {
    if (setting.structure == Workload::structure)
      session = std::make_unique<StructureSession<HostOf<typename Workload::Root>, Workload>>(
          setting, args...);
  };
  (consider(std::type_identity<Workloads>{}), ...);
  return session;
}
/// The same, but it throws std::invalid_argument if the list has none.
template <template <class> class HostOf, class... Workloads, class... Args>
std::unique_ptr<Session> open_listed(WorkloadList<Workloads...> list, const Setting& setting,
                                     const Args&... args) {
  if (auto session = open_one_of<HostOf>(list, setting, args...)) return session;
  std::string have;
  for (const auto& name : list.names()) have += " " + name;
  throw std::invalid_argument("found structure '" + setting.structure +
                              "', expected one of:" + have);
}

}  // namespace bench
