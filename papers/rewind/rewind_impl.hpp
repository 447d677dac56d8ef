// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of REWIND that are not inlined into users' transactions; compiled once per instance
// (instances.cpp).
#pragma once

#include <chrono>
#include <thread>

#include "papers/names.hpp"
#include "papers/rewind/options.hpp"
#include "papers/rewind/rewind.hpp"

namespace perdure::papers::rewind {

template <class Tm>
Status Rewind<Tm>::recover(pool::OpenPool& file, Recovery& report) {
  return Manager::recover(file, report, composition_of(file.header()));
}

template <class Tm>
Rewind<Tm>::Rewind(pool::OpenPool& file, const Config& config, const Recovery& recovery)
    : Base(file, config, recovery),
      composition_(
          composition_of(file.header(), config.options.get<papers::RewindOptions>().log_group)),
      manager_(file, composition_) {
  if (file.read_only()) return;
  if (Status s = manager_.format(); !s.ok()) core_.poison(s);
}

template <class Tm>
Rewind<Tm>::Transaction::Transaction(Rewind& engine, int slot)
    : Base(engine.tm_, engine.core_, slot),
      engine_(engine),
      log_(engine.manager_.log_of(static_cast<std::uint64_t>(slot))),
      force_(engine.composition_.force),
      waits_(engine.composition_.layers == 1 && engine.composition_.version == LogVersion::batch),
      data_writer_(core_.medium, directory_) {}

template <class Tm>
void Rewind<Tm>::Transaction::log_full(std::uint64_t bytes) {
  needed_ = bytes;
  this->throw_log_full({bytes});
}

template <class Tm>
void Rewind<Tm>::Transaction::log_and_store(std::uint64_t offset, std::uint64_t value) {
  // After a failed append nothing may be stored to the data region.
  if (core_.state() != 0) core_.refuse();
  if (!engine_.manager_.update(log_, tx_, offset, value))
    log_full((2 * tx_.updates + 1) * AriesRecord::bytes);
  look_for_failure();
}

template <class Tm>
void Rewind<Tm>::Transaction::look_for_failure() {
  if (__builtin_expect(!log_.log.nvm().failed(), 1)) return;
  core_.poison(log_.log.nvm().status());
  core_.refuse();
}

template <class Tm>
bool Rewind<Tm>::Transaction::log(std::uint64_t* a, std::uint64_t v) {
  if (core_.state() != 0) core_.refuse();
  const bool done = engine_.manager_.update(log_, tx_, offset_of(a), v);
  look_for_failure();
  return done;
}

template <class Tm>
void Rewind<Tm>::Transaction::end_group() {
  engine_.manager_.end_group(log_, tx_);
  look_for_failure();
}

template <class Tm>
void Rewind<Tm>::Transaction::end() noexcept {
  ThreadCounters::add(row_.log_bytes, tx_.records * AriesRecord::bytes);
  tx_.reset();
  needed_ = 0;
  ops_.clear();
  inside_ = false;
}

template <class Tm>
std::uint64_t Rewind<Tm>::Transaction::commit(Durability) {
  if (needed_ != 0) log_full(needed_);
  if (tx_.id == 0 && ops_.empty()) return this->end_read_only();
  const auto prepare = [&] {
    const auto heap_records = static_cast<std::uint64_t>(std::distance(ops_.begin(), ops_.end()));
    if (!engine_.manager_.prepare(log_, tx_, heap_records))
      log_full((2 * tx_.updates + heap_records) * AriesRecord::bytes);
  };
  const auto persist = [&](std::uint64_t drawn) {
    Status s = engine_.manager_.commit(log_, tx_, drawn, ops_);
    if (s.ok() && !ops_.empty()) {
      const std::lock_guard lock(engine_.heap_bits_);
      this->apply_heap_ops(data_writer_);
      if (force_) {
        data_writer_.flush();
        // The heap's bits are durable before a record of them is removed.
        // mutant: rewind-heap-bits-before-removal, call rewind-heap-bits-fence
        s = core_.medium.fence();
      } else {
        // flush_all covers them, before that (REWIND-4).
        data_writer_.hand_over([](std::uint64_t) {});
      }
    }
    if (s.ok() && force_) s = engine_.manager_.clear(log_, tx_);
    return s;
  };
  return this->commit_durably(engine_, prepare, persist, [&] {
    const std::uint64_t records = tx_.records;
    end();
    // For the next transaction, which may be larger, and its rollback.
    engine_.manager_.prepare_ahead(log_, 4 * records + 4);
  });
}

template <class Tm>
void Rewind<Tm>::Transaction::rollback() noexcept {
  if (!inside_) return;
  if (core_.forked()) {
    inside_ = false;
    return;
  }
  if (tx_.id != 0 && !core_.poisoned()) {
    Status s = engine_.manager_.rollback(log_, tx_);
    if (s.ok() && force_) s = engine_.manager_.clear(log_, tx_);
    if (!s.ok()) core_.poison(s);
  }
  // This comes after the data region has the old values and the log says so: other transactions may
  // then have the blocks.
  this->abandon();
  end();
}

template <class Tm>
void Rewind<Tm>::wait_for_log_space(Transaction& transaction, LogSpace needed) {
  if (core_.state() != 0) core_.refuse();
  // Manager::update() needs this many.
  const std::uint64_t records = needed.bytes / AriesRecord::bytes + 4;
  auto there = manager_.extend(transaction.log_, records);
  if (there.ok() && *there) return;
  if (!there.ok() && there.code() != Code::full) there.status().or_throw();
  if (Status s = checkpoint(); !s.ok()) core_.poison(s);
  // `full` means that the disk is full, and the allocated part of the log has no space. The
  // transaction was rolled back, and does not run again.
  if (there = manager_.extend(transaction.log_, records); !there.ok()) there.status().or_throw();
  std::this_thread::yield();  // the transaction of another thread may have to end first
}

template <class Tm>
Status Rewind<Tm>::checkpoint() {
  const std::lock_guard lock(checkpointing_);
  if ((core_.state() & ~EngineBase::read_only_bit) != 0) return core_.why();
  if (composition_.force) {  // each commit makes the data durable and clears the log
    manager_.compact();
    return {};
  }
  const std::uint64_t x = tm_.domain.low_watermark();
  if (Status s = manager_.checkpoint(x); !s.ok()) {
    core_.poison(s);
    return s;
  }
  checkpoint_id_.store(x, std::memory_order_relaxed);
  checkpoints_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

template <class Tm>
Status Rewind<Tm>::close() {
  Status s;
  if (!core_.file.read_only()) {
    // The clean mark ends the logs' session: no record has to be removed.
    s = core_.state() != 0 ? core_.why() : Status();
    // mutant: rewind-close-flushes
    if (s.ok() && !composition_.force) s = core_.medium.flush_all();  // REWIND-4
    if (s.ok()) s = core_.file.close_clean(tm_.domain.clock.load(std::memory_order_acquire));
  }
  core_.closed();
  return s;
}

template <class Tm>
Stats Rewind<Tm>::stats() {
  Stats s;
  core_.fill(s);
  s.last_id = tm_.domain.clock.load(std::memory_order_relaxed);
  s.durable_id = this->durable_id();
  s.checkpoint_id =
      composition_.force ? s.durable_id : checkpoint_id_.load(std::memory_order_relaxed);
  if (!core_.file.read_only()) s.log_used = manager_.records() * AriesRecord::bytes;
  s.checkpoints = checkpoints_.load(std::memory_order_relaxed);
  return s;
}

}  // namespace perdure::papers::rewind
