// SPDX-License-Identifier: BSD-3-Clause
//
// Perdure under the workloads of bench/workloads: p<T> and ptr<T>, Pool::update and Pool::view, on
// the emulated medium. There is one Host for every engine of the registry: a pool is opened with a
// list of one instance, so that the measured code is what a program that names its engine gets.
// Thread safety: as Pool's; a `none` instance does not isolate and is measured on one thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>
#include <type_traits>

#include "bench/systems/host.hpp"
#include "papers/dudetm/options.hpp"
#include "papers/engines.hpp"
#include "papers/rewind/options.hpp"
#include "perdure/api/compiled_pool.hpp"
#include "perdure/engine/shadow/instances.hpp"
#include "perdure/perdure.hpp"

namespace bench {

struct PerdureModel {
  template <class T>
  using Field = perdure::p<T>;
  template <class T>
  using Link = perdure::ptr<T>;
  template <class T>
  using Ref = T*;
};

/// A workload's transaction handle over Perdure's own: it only maps the names.
template <class Tx>
struct PerdureTx {
  Tx& tx;

  template <class T>
  T get(const perdure::p<T>& field) const {
    return tx.read(field);
  }
  template <class T>
  T* get(const perdure::ptr<T>& link) const {
    return tx.read(link);
  }
  template <class T>
  void set(perdure::p<T>& field, std::type_identity_t<T> value) const {
    tx.write(field, value);
  }
  template <class T>
  void set(perdure::ptr<T>& link, std::type_identity_t<T>* target) const {
    tx.write(link, target);
  }
  template <class T, class... Args>
  T* make(Args... args) const {
    return tx.template make<T>(args...);
  }
  template <class T>
  void destroy(T* t) const {
    tx.destroy(t);
  }
  template <class T>
  T* allocate(std::size_t n) const {
    return reinterpret_cast<T*>(tx.alloc(n * sizeof(T)));
  }
};

inline std::map<std::string, double> counters_of(const perdure::engine::Stats& s) {
  const auto n = [](std::uint64_t x) { return static_cast<double>(x); };
  return {{"commits", n(s.commits)},
          {"views", n(s.reads)},
          {"aborts", n(s.aborts)},
          {"fences", n(s.medium.fences)},
          {"log_bytes", n(s.log_bytes)},
          {"checkpoints", n(s.checkpoints)},
          {"checkpoint_lines", n(s.checkpoint_lines)},
          {"helped_checkpoints", n(s.helped_checkpoints)},
          {"flushed_lines", n(s.medium.flushed_lines)},
          {"streamed_lines", n(s.medium.streamed_lines)},
          {"syncs", n(s.medium.syncs)},
          {"evictions", n(s.evictions)},
          {"log_came", n(s.log_bytes_in)},
          {"log_combined", n(s.log_bytes_combined)},
          {"log_written", n(s.log_bytes_out)},
          {"snapshots_expired", n(s.snapshots_expired)},
          {"bias_grants", n(s.bias_grants)},
          {"bias_revocations", n(s.bias_revocations)}};
}

/// What goes on beside the operations of each cell.
enum class Beside {
  nothing,
  snapshot,   ///< a snapshot is open
  archive,    ///< the log is archived
  checksums,  ///< the pages have checksums
  backup      ///< one backup after the other is written, each into an empty folder
};
/// What the list of systems says about an instance in a mode, and with what a Host is opened.
struct PerdureChoice {
  std::string engine;
  perdure::Durability durability = perdure::durable;
  Beside beside = Beside::nothing;
};

/// Writes backups of a pool until it is destroyed.
template <class Pool>
class Backups {
 public:
  Backups(Pool& pool, std::string folder) : folder_(std::move(folder)) {
    thread_ = std::thread([this, &pool] { run(pool); });
  }
  ~Backups() {
    stop_ = true;
    thread_.join();
    std::filesystem::remove_all(folder_);
  }
  Backups(const Backups&) = delete;
  Backups& operator=(const Backups&) = delete;

 private:
  struct Stopped {};
  void run(Pool& pool) {
    while (!stop_) {
      std::filesystem::remove_all(folder_);
      try {
        (void)pool.backup(folder_, [this](std::uint64_t, std::uint64_t) {
          if (stop_) throw Stopped();
        });
      } catch (const Stopped&) {}
    }
  }
  const std::string folder_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// The number of rings in the log of a pool with these options: one per thread, or one in total.
inline std::uint64_t rings_of(const perdure::Options& options,
                              perdure::pool::Identity (*identity)(const perdure::engine::Config&)) {
  perdure::engine::Config config;
  config.instance = options.engine;
  config.durability = options.durability;
  config.threads = options.creation.threads;
  return std::max<std::uint64_t>(1, identity(config).rings);
}

/// With what a setting's pool is opened. `identity`: the instance's.
inline perdure::Options perdure_options(
    const Setting& setting, const PerdureChoice& choice, perdure::Isolation isolation,
    perdure::pool::Identity (*identity)(const perdure::engine::Config&)) {
  perdure::Options options;
  options.medium = setting.medium;
  if (setting.rings != 0) options.creation.threads = setting.rings;
  options.engine = choice.engine;
  options.durability = choice.durability;
  options.isolation = isolation;
  options.creation.log_size = setting.log_size * rings_of(options, identity);
  options.engine_options = perdure::papers::RewindOptions{.log_group = setting.log_group};
  using perdure::ShadowPaging;
  options.engine_options.set(perdure::papers::DudetmOptions{
      .persist_group = setting.persist_group,
      .compress = setting.compress,
      .combined = setting.combined,
      .volatile_log = setting.volatile_log,
      .shadow_size = setting.shadow_size,
      .shadow_paging = setting.shadow_paging == "hardware"   ? ShadowPaging::hardware
                       : setting.shadow_paging == "software" ? ShadowPaging::software
                                                             : ShadowPaging::automatic,
      .standing_threads = setting.standing});
  if (choice.engine.starts_with("shadow")) options.max_resident = setting.shadow_size;
  options.creation.max_size = std::uint64_t{8} << 30;
  options.medium_options.delays = perdure::medium::Delays::named(setting.delays).value();
  return options;
}
/// What describes a pool beside the figures.
inline std::string description_of(const perdure::Options& options, std::uint64_t rings,
                                  std::uint64_t log_capacity) {
  return options.medium + " medium, " + std::to_string(rings) + " rings of " +
         std::to_string(log_capacity / rings >> 20) + " MiB";
}

template <class Root, class Instance>
class PerdureHost : public HostDefaults {
 public:
  using Pool = perdure::Pool<Root, perdure::engines<Instance>>;

  PerdureHost(const Setting& setting, const PerdureChoice& choice)
      : path_(setting.directory + "/pool.perdure"),
        durability_(choice.durability),
        beside_(choice.beside) {
    options_ = perdure_options(setting, choice, Instance::isolation, Instance::type::identity);
    options_.checksums = beside_ == Beside::checksums;
    if (beside_ == Beside::archive) options_.archive.folder = setting.directory + "/archive";
    pool_.emplace(Pool::open(path_, options_));
  }

  /// The last cell's snapshot is closed before the next one is opened.
  void prepare(unsigned /*threads*/) {
    nothing_beside();
    if (beside_ == Beside::snapshot) snapshot_.emplace(pool_->snapshot());
    if (beside_ == Beside::backup) backups_.emplace(*pool_, path_ + "-backups");
  }
  template <class F>
  auto update(F&& f) {
    const auto receipt = pool_->update([&f](auto& tx, Root& root) {
      PerdureTx<std::remove_reference_t<decltype(tx)>> handle{tx};
      return f(handle, root);
    });
    newest_ = receipt.id();
    return receipt.value();
  }
  /// The calling thread's newest transaction, and the id up to which its own are known to be
  /// durable. In mode async that is the pool's durable id. In the other modes update() returns when
  /// it is durable: then the pool's durable id is less while another thread, perhaps one that is
  /// off the processor, is in a commit with a smaller id, which is no part of this one's latency.
  [[nodiscard]] std::uint64_t newest() const noexcept { return newest_; }
  [[nodiscard]] std::uint64_t durable() {
    return durability_ == perdure::async ? pool_->durable_id() : newest_;
  }
  template <class F>
  auto view(F&& f) {
    return pool_->view([&f](auto& tx, const Root& root) {
      PerdureTx<std::remove_reference_t<decltype(tx)>> handle{tx};
      return f(handle, root);
    });
  }
  /// A durable view covers everything that this thread committed before it.
  void settle() {
    if (durability_ == perdure::async)
      pool_->view(perdure::durable, [](auto&, const Root&) { return 0; });
  }

  [[nodiscard]] std::map<std::string, double> counters() { return counters_of(pool_->stats()); }
  std::vector<std::string> check() {
    std::vector<std::string> problems;
    for (const auto& problem : pool_->check().problems) problems.push_back("check: " + problem);
    return problems;
  }
  bool reopen() {
    nothing_beside();
    if (Instance::names[0].family == "volatile") return false;
    pool_->close();
    pool_.reset();
    pool_.emplace(Pool::open(path_, options_));
    return true;
  }
  /// The number of transactions that opening found in the log.
  [[nodiscard]] std::uint64_t recovered() { return pool_->stats().recovery.transactions; }
  [[nodiscard]] perdure::engine::Stats stats() { return pool_->stats(); }
  [[nodiscard]] std::string describe() {
    return description_of(options_, rings_of(options_, Instance::type::identity),
                          pool_->stats().log_capacity);
  }

 private:
  static inline thread_local constinit std::uint64_t newest_ = 0;
  std::string path_;
  perdure::Durability durability_;
  void nothing_beside() {
    snapshot_.reset();
    backups_.reset();
  }
  const Beside beside_;
  perdure::Options options_;
  std::optional<Pool> pool_;
  std::optional<perdure::Snapshot<Root>> snapshot_;
  std::optional<Backups<Pool>> backups_;
};

/// Calls f(std::type_identity<Instance>) for every instance of a list.
template <class... Instances, class F>
void for_each_instance(perdure::engines<Instances...>, F f) {
  (f(std::type_identity<Instances>{}), ...);
}

template <class Instance>
struct PerdureOn {
  template <class Root>
  using Host = PerdureHost<Root, Instance>;
};

/// Opens a session of one of the workloads on the instance that `choice` names.
template <class Engines, class... Workloads>
std::unique_ptr<Session> open_perdure(WorkloadList<Workloads...> list, const Setting& setting,
                                      const PerdureChoice& choice) {
  std::unique_ptr<Session> session;
  for_each_instance(Engines{}, [&]<class Instance>(std::type_identity<Instance>) {
    for (const auto& n : Instance::names)
      if (n.name == choice.engine)
        session = open_one_of<PerdureOn<Instance>::template Host>(list, setting, choice);
  });
  if (!session)
    throw std::invalid_argument("found engine '" + choice.engine +
                                "', expected one that has the structure '" + setting.structure +
                                "'");
  return session;
}

/// The engines on which workloads of more than one structure are measured: every engine that
/// isolates, over its own TM and over the STM (or HTM) of the papers.
using isolating_engines =
    perdure::engines<perdure::shadow, perdure::shadow_stm, perdure::dudetm, perdure::dudetm_stm,
                     perdure::dudetm_htm, perdure::undo, perdure::undo_stm, perdure::rewind,
                     perdure::bppm, perdure::redo, perdure::softwrap, perdure::softwrap_local,
                     perdure::volatile_, perdure::volatile_stm, perdure::volatile_htm>;
/// The systems of Blurred Persistence's figures. NP, the bound without any persistence, is
/// `volatile`; the default engine is included for comparison.
using blurred_engines =
    perdure::engines<perdure::bppm, perdure::bppm_none, perdure::redo, perdure::redo_none,
                     perdure::volatile_stm, perdure::volatile_none, perdure::shadow>;
/// Whether a list has an instance of that name.
template <class... Instances>
bool has_engine(perdure::engines<Instances...>, std::string_view name) {
  const auto named = [name](const auto& names) {
    return std::any_of(names.begin(), names.end(),
                       [name](const auto& n) { return n.name == name; });
  };
  return (named(Instances::names) || ...);
}

/// What one source instantiates for all of its engines; the sources are compiled in parallel. A
/// source NAME of the list in CMakeLists.txt is perdure_NAME.cpp and has PerdureStructures
/// perdure_NAME().
struct PerdureStructures {
  std::vector<std::string> names;
  bool (*on)(std::string_view engine);  ///< whether the engine has the structures
  std::unique_ptr<Session> (*open)(const Setting& setting, const PerdureChoice& choice);
  /// Whether it is for settings that count writes (perdure_writes.cpp), and for no other.
  bool counts_writes = false;
};
template <class Workloads, class Engines>
PerdureStructures perdure_structures() {
  return {Workloads::names(), [](std::string_view engine) { return has_engine(Engines{}, engine); },
          [](const Setting& setting, const PerdureChoice& choice) {
            return open_perdure<Engines>(Workloads{}, setting, choice);
          },
          false};
}

}  // namespace bench
