// SPDX-License-Identifier: BSD-3-Clause
//
// REWIND's transaction managers by themselves, on the emulated medium, for the figures of the
// paper's section 5.1: a table of words in home, transactions that store to it, in any
// interleaving, commits without their clearing, crashes. And the same stores without a log.
// Thread safety: one thread, but checkpoint() beside it; update() and commit() on several logs, or
// on one, from a thread each.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "papers/rewind/manager.hpp"
#include "papers/rewind/nvm.hpp"
#include "perdure/medium/delay.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/open_pool.hpp"

namespace bench::rewind {

using perdure::papers::rewind::Composition;
using perdure::papers::rewind::ManagedLog;
using perdure::papers::rewind::ManagedTransaction;
using perdure::papers::rewind::Manager;

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct RigOptions {
  std::string directory = "/dev/shm", delays = "rewind";
  Composition composition;
  std::uint64_t log_bytes = std::uint64_t{64} << 20;  // all logs together
  std::uint32_t logs = 1;
};

class Rig {
 public:
  static constexpr std::uint64_t table_words = 1 << 16;

  explicit Rig(const RigOptions& options) : options_(options) {
    how_.path = options.directory + "/rewind.perdure";
    how_.max_bytes = std::uint64_t{64} << 20;
    how_.initial_bytes = std::uint64_t{8} << 20;
    how_.log_bytes = options.log_bytes;
    how_.rings = options.logs;
    how_.medium = "emulated";
    how_.delays = perdure::medium::Delays::named(options.delays).value();
    how_.must_create = true;
    open();
    how_.must_create = false;
    for (std::uint64_t at = 0; at < table_words * 8; at += 4096) touch(at);
  }
  /// What a crash leaves, and its recovery: how long it took.
  double crash_and_recover(perdure::engine::Recovery& report) {
    manager_.reset();
    file_.reset();
    file_ = perdure::pool::OpenPool::open(how_, identity()).value();
    const auto start = Clock::now();
    Manager::recover(*file_, report, options_.composition).or_throw();
    file_->recovered(report.last_id);
    return seconds_since(start);
  }

  /// Word number `i` of the table gets `value`.
  void update(ManagedTransaction& tx, std::uint64_t i, std::uint64_t value,
              std::uint64_t number = 0) {
    if (!manager_->update(log(number), tx, place(i), value))
      throw std::runtime_error("the log is too small for this figure; give a larger --log-size");
  }
  void commit(ManagedTransaction& tx, bool clears = true, std::uint64_t number = 0) {
    constexpr std::array<perdure::pool::HeapOp, 0> no_ops{};
    if (!manager_->prepare(log(number), tx, 0))
      throw std::runtime_error("the log is too small for this figure; give a larger --log-size");
    manager_->commit(log(number), tx, ++committed_, no_ops).or_throw();
    if (options_.composition.force && clears) manager_->clear(log(number), tx).or_throw();
    tx.reset();
  }
  void rollback(ManagedTransaction& tx) {
    manager_->rollback(log(), tx).or_throw();
    if (options_.composition.force) manager_->clear(log(), tx).or_throw();
    tx.reset();
  }
  void checkpoint() { manager_->checkpoint(committed_.load()).or_throw(); }
  /// A store to NVM without a log: the paper's non-temporal one.
  void plain(std::uint64_t i, std::uint64_t value) {
    nvm_->synchronous(file_->medium().log_bytes() + place(i), value);
  }

  [[nodiscard]] std::uint64_t records() const { return manager_->records(); }
  [[nodiscard]] perdure::medium::Counters counters() const { return file_->medium().counters(); }

 private:
  [[nodiscard]] ManagedLog& log(std::uint64_t number = 0) { return manager_->log_of(number); }
  // The table lies in home behind the directory: nothing else is allocated.
  [[nodiscard]] std::uint64_t place(std::uint64_t i) const { return table_ + i % table_words * 8; }
  static perdure::pool::Identity identity() {
    perdure::pool::Identity who;
    who.engine = "rewind-1l-nfp-optimized";  // of no consequence: the manager is told
    who.engine_any = true;
    who.layout_any = true;
    who.root_bytes = 64;
    who.min_ring = 65536;
    return who;
  }
  void open() {
    file_ = perdure::pool::OpenPool::open(how_, identity()).value();
    file_->start_session(perdure::pool::ViewPolicy::shared).or_throw();
    table_ = (perdure::pool::first_chunk(file_->header()) + 16) * perdure::pool::chunk_bytes;
    manager_ = std::make_unique<Manager>(*file_, options_.composition);
    manager_->format().or_throw();
    nvm_ = std::make_unique<perdure::papers::rewind::NvmStore>(file_->medium());
  }
  void touch(std::uint64_t at) {
    const std::uint64_t zero = 0;
    file_->medium().store(file_->medium().log_bytes() + table_ + at, &zero, 8);
  }

  RigOptions options_;
  perdure::pool::OpenFile how_;
  std::unique_ptr<perdure::pool::OpenPool> file_;
  std::unique_ptr<Manager> manager_;
  std::unique_ptr<perdure::papers::rewind::NvmStore> nvm_;
  std::uint64_t table_ = 0;
  std::atomic<std::uint64_t> committed_{0};
};

/// Computes for so long.
inline void compute(double ns) {
  if (ns <= 0) return;
  const auto until =
      static_cast<std::uint64_t>(ns * perdure::medium::ticks_per_ns()) + __builtin_ia32_rdtsc();
  while (__builtin_ia32_rdtsc() < until) {}
}

}  // namespace bench::rewind
