// SPDX-License-Identifier: BSD-3-Clause
//
// Perdure's pools under TPC-C: one instance of the registry, on the emulated medium, with one log
// for all threads or one log per thread (REWIND's shared and distributed log: rings of the pool).
// Thread safety: as Pool's; the caller's locks isolate a `none` instance.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/systems/perdure.hpp"
#include "bench/tpcc/run.hpp"
#include "papers/engines.hpp"
#include "perdure/api/compiled_pool.hpp"

namespace bench::tpcc {

template <class Root, class Instance>
class PoolHost : public HostDefaults {
 public:
  static constexpr bool rolls_back = true;
  using Pool = perdure::Pool<Root, perdure::engines<Instance>>;

  PoolHost(const std::string& path, const Setup& setup) : path_(path) {
    options_.medium = "emulated";
    options_.engine = setup.system;
    options_.isolation = Instance::isolation;
    options_.creation.log_size = setup.log_size;
    // Thread slots: the loader's, and one for the measuring thread.
    options_.creation.threads = setup.distributed ? setup.threads + 2 : 1;
    options_.creation.max_size = std::uint64_t{16} << 30;
    options_.medium_options.delays = perdure::medium::Delays::named(setup.delays).value();
    pool_.emplace(Pool::open(path_, options_));
  }
  template <class F>
  auto update(F&& f) {
    return pool_
        ->update([&f](auto& tx, Root& root) {
          PerdureTx<std::remove_reference_t<decltype(tx)>> handle{tx};
          return f(handle, root);
        })
        .value();
  }
  template <class F>
  auto view(F&& f) {
    return pool_->view([&f](auto& tx, const Root& root) {
      PerdureTx<std::remove_reference_t<decltype(tx)>> handle{tx};
      return f(handle, root);
    });
  }
  void loaded() { pool_->checkpoint(); }
  [[nodiscard]] std::map<std::string, double> counters() { return counters_of(pool_->stats()); }
  std::vector<std::string> check() {
    std::vector<std::string> problems;
    for (const auto& problem : pool_->check().problems) problems.push_back("check: " + problem);
    return problems;
  }
  bool reopen() {
    if (Instance::names[0].family == "volatile") return false;
    pool_->close();
    pool_.reset();
    pool_.emplace(Pool::open(path_, options_));
    return true;
  }
  [[nodiscard]] std::string describe() {
    const auto s = pool_->stats();
    return "log of " + std::to_string(s.log_capacity >> 20) + " MiB; " +
           pool_->file().medium().describe();
  }

 private:
  std::string path_;
  perdure::Options options_;
  std::optional<Pool> pool_;
};

/// The registry's instances that are measured: REWIND's with each isolation, and those of DudeTM's
/// figures. It is a list of its own because the workload is compiled once for each instance.
using Measured = perdure::engines<perdure::rewind_none, perdure::rewind, perdure::rewind_stm,
                                  perdure::shadow, perdure::dudetm_stm, perdure::volatile_stm>;

/// Calls f(std::type_identity<Instance>) for the instance of that registry name. Returns false if
/// there is none.
template <class F>
bool with_instance(const std::string& name, F f) {
  bool found = false;
  for_each_instance(Measured{}, [&]<class Instance>(std::type_identity<Instance>) {
    for (const auto& n : Instance::names) {
      if (n.name != name) continue;
      found = true;
      f(std::type_identity<Instance>{});
    }
  });
  return found;
}

}  // namespace bench::tpcc
