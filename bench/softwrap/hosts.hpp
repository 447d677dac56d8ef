// SPDX-License-Identifier: BSD-3-Clause
//
// The systems of SoftWrAP's figures by name: the baselines, and pools of the library's instances,
// opened as by a program that names its engine. The paper leaves isolation to the caller, so
// instances are measured without any: "softwrap/none" aliases for all wraps (the paper's default),
// "softwrap-local/none" for one wrap alone (IV-D); "shadow/none" is the library's default engine,
// for comparison.
// Thread safety: as many threads as Setup says may call wrap(), on words of their own.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/softwrap/baselines.hpp"
#include "bench/systems/perdure.hpp"
#include "papers/engines.hpp"
#include "perdure/api/compiled_pool.hpp"

namespace bench::softwrap {

template <class Root, class Instance>
class PoolHost {
 public:
  using Model = PerdureModel;
  using Pool = perdure::Pool<Root, perdure::engines<Instance>>;

  explicit PoolHost(const Setup& setup) : path_(setup.directory + "/pool.perdure") {
    options_.medium = "emulated";
    options_.engine = setup.system;
    options_.isolation = perdure::Isolation::caller;
    options_.creation.threads =
        // The slots: the workers', the opener's, the checkpoint thread's, and the last log, which
        // the remaining threads share.
        setup.threads + 3;
    options_.creation.log_size = setup.log_size * options_.creation.threads;
    options_.engine_options = setup.softwrap();
    options_.creation.initial_size = setup.data_size;
    options_.creation.max_size = std::uint64_t{8} << 30;
    options_.medium_options.delays = setup.delays();
    open();
  }

  template <class F>
  void wrap(F&& f) {
    pool_->update([&f](auto& tx, Root& root) {
      PerdureTx<std::remove_reference_t<decltype(tx)>> handle{tx};
      f(handle, root);
    });
  }
  template <class F>
  void view(F&& f) {
    pool_->view([&f](auto& tx, const Root& root) {
      PerdureTx<std::remove_reference_t<decltype(tx)>> handle{tx};
      f(handle, root);
    });
  }
  /// Checkpoints, so that nothing done up to now remains to be written to the data region.
  void ready() { pool_->checkpoint(); }
  void settle() { pool_->checkpoint(); }
  void reopen() {
    pool_->close();
    pool_.reset();
    open();
  }
  std::vector<std::string> check() { return pool_->check().problems; }
  [[nodiscard]] Counts counts() {
    const auto s = pool_->stats();
    return {s.medium.fences, s.medium.streamed_lines, s.medium.flushed_lines, s.checkpoints};
  }
  [[nodiscard]] std::string describe() { return pool_->file().medium().describe(); }

 private:
  void open() {
    pool_.emplace(Pool::open(path_, options_));
    auto& file = pool_->file();
    touch_pages(file.medium().at(0), file.medium().log_bytes());
    touch_pages(file.medium().data(), file.data_bytes());
    touch_pages(file.view(), file.data_bytes());
  }
  std::string path_;
  perdure::Options options_;
  std::optional<Pool> pool_;
};

using Instances =
    perdure::engines<perdure::softwrap_none, perdure::softwrap_local_none, perdure::shadow_none>;

/// Calls f(host) with the system that the set-up names; the system contains a Root<Model>.
template <template <class> class Root, class F>
void with_host(const Setup& setup, F&& f) {
  const auto run = [&]<class Host>(std::type_identity<Host>) {
    Host host(setup);
    f(host);
  };
  if (setup.system == "non-atomic")
    return run(std::type_identity<BaselineHost<Root<tpcc::NvmModel>, NonAtomicTx>>{});
  if (setup.system == "undo-log")
    return run(std::type_identity<BaselineHost<Root<tpcc::NvmModel>, UndoLogTx>>{});
  bool found = false;
  for_each_instance(Instances{}, [&]<class Instance>(std::type_identity<Instance>) {
    for (const auto& n : Instance::names) {
      if (n.name != setup.system) continue;
      found = true;
      run(std::type_identity<PoolHost<Root<PerdureModel>, Instance>>{});
    }
  });
  if (!found)
    throw std::invalid_argument(
        "found system '" + setup.system +
        "', expected non-atomic, undo-log, softwrap/none, softwrap-local/none or shadow/none");
}

}  // namespace bench::softwrap
