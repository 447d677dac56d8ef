// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of Undo that are not inlined into users' transactions; compiled once per instance
// (instances.cpp).
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "perdure/engine/undo/undo.hpp"
#include "perdure/pool/allocation.hpp"

namespace perdure::engine::undo {

template <class Tm>
Status Undo<Tm>::recover(pool::OpenPool& file, Recovery& report) {
  const pool::Header& header = file.header();
  medium::Medium& medium = file.medium();
  std::vector<log::RecordView> commits, in_flight;
  std::uint64_t last = header.checkpoint_id;
  for (std::uint32_t i = 0; i < header.ring_count; ++i) {
    const std::uint64_t offset = pool::ring_offset(header, i);
    auto map = medium.map_ring(offset, header.ring_bytes);
    if (!map) return map.status();
    std::vector<log::RecordView> open;  // undo records since the ring's last commit record
    const log::Scan scan = log::scan_ring(
        *map, header.ring_head[i], log::ring_seed(header.uuid, header.epoch, i), header.append_unit,
        log::ring_name(medium, i), [&](const log::RecordView& r) {
          if (r.kind() == log::RecordKind::undo) return open.push_back(r);
          open.clear();
          last = std::max(last, r.id());
          // mutant: undo-above-checkpoint-id
          if (r.id() > header.checkpoint_id && r.transactions() != 0) commits.push_back(r);
        });
    if (!scan.damage.ok()) return scan.damage;
    // A transaction's undo records have the id that follows; those of the last generation may have
    // it too.
    if (Status s = log::later_than_header(*map, header.ring_head[i], scan.end,
                                          log::ring_seed(header.uuid, header.epoch, i),
                                          header.append_unit, last + 1, log::ring_name(medium, i));
        !s.ok())
      return s;
    log::flush_scanned(medium, offset, header.ring_bytes, header.ring_head[i], scan.end);
    report.bytes += scan.bytes;
    report.rolled_back += open.empty() ? 0 : 1;
    // Newest first within a ring; different rings change different lines.
    in_flight.insert(in_flight.end(), open.rbegin(), open.rend());
  }
  log::DataWriter data(medium, header, log::DataWriter::Use::recovery);
  std::sort(commits.begin(), commits.end(),
            [](const auto& a, const auto& b) { return a.id() < b.id(); });
  // All records are checked before the data region is changed (LAW-10).
  const auto each = [](const log::RecordView& r, auto&& f) {
    return log::each_entry(r.words + log::header_words, r.payload_words(), f);
  };
  const auto whole = [&](const log::RecordView& r) {
    bool good = true;
    const bool walked = each(r, [&](const log::Entry& e) {
      good = good && (r.kind() == log::RecordKind::undo
                          ? e.kind == log::EntryKind::before &&
                                pool::possible_words(e.offset, e.count, medium.data_bytes(), header)
                          : (e.kind == log::EntryKind::alloc || e.kind == log::EntryKind::free) &&
                                pool::possible(e.heap_op(), medium.data_bytes(), header));
    });
    return walked && good;
  };
  for (const auto* records : {&commits, &in_flight})
    for (const auto& r : *records)
      // mutant: undo-validates-first
      if (!whole(r))
        return failure(Code::corrupt, medium.path(),
                       "the record of transaction " + std::to_string(r.id()) +
                           " names bytes or blocks that the pool does not have",
                       "entries inside the data region", "restore a copy");
  // ALLOC-1: the data region's blocks are allocated before it is changed; `full` changes nothing.
  pool::Targets targets(medium, header);
  if (targets.wanted())
    for (const auto* records : {&commits, &in_flight})
      for (const auto& r : *records)
        each(r, [&](const log::Entry& e) {
          if (e.kind == log::EntryKind::before) return targets.words(e.offset, e.count);
          targets.block(e.heap_op());
        });
  if (Status s = targets.allocate(); !s.ok()) return s;
  // REDO-4 (log/redo.hpp): the records are durable before the data region has anything of what they
  // say.
  if (!commits.empty() || !in_flight.empty())
    // mutant: undo-records-fence, call undo-records-fence
    if (Status s = medium.fence(); !s.ok()) return s;
  // Old values are stored first: they may lie over bitmaps, where a block was reserved in a chunk
  // whose span had become empty.
  // mutant: undo-old-values-first
  for (const auto& r : in_flight)
    each(r, [&](const log::Entry& e) { data.words(e.offset, e.values, e.count); });
  pool::StagedTarget heap(data, header);
  for (const auto& r : commits)
    each(r, [&](const log::Entry& e) { pool::apply_op(heap, e.heap_op(), header); });
  heap.write();
  // mutant: undo-recovery-flush, undo-old-values-first-late
  data.flush();
  // The old values are durable before start_session's header empties the rings: otherwise a crash
  // would leave a half-done transaction without its undo records.
  if (Status s = medium.fence(); !s.ok()) return s;
  report.records = commits.size() + in_flight.size();
  report.transactions = commits.size();
  report.last_id = last;
  return {};
}

template <class Tm>
Undo<Tm>::Undo(pool::OpenPool& file, const Config& config, const Recovery& recovery)
    : Base(file, config, recovery), heads_(file.header().ring_count) {
  const pool::Header& header = file.header();
  for (std::uint32_t i = 0; i < header.ring_count; ++i) {
    log::Ring& ring = logs_.add().ring;
    if (file.read_only()) continue;
    auto map = core_.medium.map_ring(pool::ring_offset(header, i), header.ring_bytes);
    ring.configure(core_.medium, map.value(), log::ring_seed(header.uuid, header.epoch, i));
  }
}

template <class Tm>
Undo<Tm>::Transaction::Transaction(Undo& engine, int slot)
    : Base(engine.tm_, engine.core_, slot),
      data_(core_.medium.log_bytes()),
      engine_(engine),
      use_(engine.logs_, slot),
      ring_(&engine.logs_[0].ring),
      data_writer_(core_.medium, directory_) {
  record_.configure(ring_->seed(), ring_->max_record(), core_.medium.append_unit());
}

template <class Tm>
void Undo<Tm>::Transaction::take_log() {
  if (!use_.begin()) return;
  ring_ = &use_.log().ring;
  record_.bind(ring_->seed());
}

template <class Tm>
Status Undo<Tm>::Transaction::append(log::RecordKind kind, std::uint64_t id,
                                     std::uint32_t transactions) {
  log_bytes_ += record_.bytes();
  Status s = ring_->append_fence(record_, kind, id, transactions);
  record_.reset();
  if (!s.ok()) core_.poison(s);
  return s;
}

template <class Tm>
void Undo<Tm>::Transaction::log_full(std::uint64_t bytes) {
  needed_ = bytes;
  this->throw_log_full({bytes});
}

// UNDO-1: the old value of n words of a line is durable when this returns.
template <class Tm>
void Undo<Tm>::Transaction::snapshot(std::uint64_t* a, std::uint64_t n) {
  // After a failed append nothing may be stored to the data region.
  if (core_.state() != 0) core_.refuse();
  const std::uint64_t line = offset_of(a) / 64, first = offset_of(a) / 8 % 8;
  // A line that is owned is logged whole. Otherwise it may hold words of another transaction:
  // rolled back with this one's, they would be lost.
  const auto wanted = static_cast<std::uint8_t>(Tm::isolates ? 0xff : ((1U << n) - 1) << first);
  const std::uint8_t missing = logged_.missing(line, wanted);
  if (missing == 0) return;
  take_log();
  const std::uint64_t unit = core_.medium.append_unit();
  const std::uint64_t bytes = (128 + unit - 1) / unit * unit;
  // Log space for the record that ends the transaction is reserved. A transaction may fill half a
  // ring.
  const std::uint64_t kept = bytes + ring_->bytes() / 8;
  if (log_bytes_ + bytes > ring_->max_record() || log_bytes_ + bytes + kept > ring_->bytes())
    throw error(failure(Code::too_big, core_.file.path(),
                        "a transaction that changes more lines than its undo log holds",
                        "at most " + std::to_string(ring_->max_record() / bytes) + " lines",
                        "split it, or make the pool with a larger log_size"));
  // Both must be allocated (ALLOC-1) before either can be needed: this record, and the one that
  // ends a rollback.
  if (!ring_->fits(bytes + kept) || !ring_->ready(bytes + unit))
    log_full(log_bytes_ + bytes + unit);
  for (std::uint64_t from = 0; from < 8; ++from) {
    std::uint64_t to = from;
    while (to < 8 && (missing >> to & 1) != 0) ++to;
    const std::uint64_t offset = line * 64 + from * 8;
    if (to != from)
      record_.words(offset, reinterpret_cast<const std::uint64_t*>(view_ + offset), to - from,
                    log::EntryKind::before);
    from = to;
  }
  logged_.insert(line, missing);
  if (!append(log::RecordKind::undo, engine_.tm_.domain.clock.load(std::memory_order_relaxed) + 1,
              0)
           .ok())
    core_.refuse();
}

template <class Tm>
Status Undo<Tm>::Transaction::flush_lines() {
  for (const std::uint64_t line : logged_.lines()) core_.medium.flush(data_ + line * 64, 64);
  return core_.medium.fence();  // UNDO-2: data is durable before the record that ends its undo
}

template <class Tm>
void Undo<Tm>::Transaction::end() noexcept {
  // Release: pairs with the acquire in truncate_logs(): no record below belongs to a live
  // transaction. Only the ring's holder can say so, because other threads share it.
  if (use_.ours()) use_.log().ended.store(ring_->tail(), std::memory_order_release);
  ThreadCounters::add(row_.log_bytes, log_bytes_);
  log_bytes_ = needed_ = 0;
  logged_.clear();
  ops_.clear();
  record_.reset();
  use_.end();
  inside_ = false;
}

template <class Tm>
std::uint64_t Undo<Tm>::Transaction::commit(Durability) {
  if (needed_ != 0) log_full(needed_);
  if (logged_.lines().empty() && ops_.empty()) return this->end_read_only();
  const auto prepare = [&] {
    take_log();
    for (const auto& op : ops_) record_.heap_op(op);
    if (!ring_->fits(record_.bytes()) || !ring_->ready(record_.bytes())) log_full(record_.bytes());
  };
  const auto persist = [&](std::uint64_t drawn) {
    // UNDO-2: what the transaction stored is durable before the record that ends its undo.
    // mutant: undo-commit-lines-first
    Status s = flush_lines();
    if (s.ok()) s = append(log::RecordKind::commit, drawn, 1);
    if (s.ok() && !ops_.empty()) {
      const std::lock_guard lock(engine_.heap_bits_);
      this->apply_heap_ops(data_writer_);
      // mutant: undo-heap-bits-flush
      data_writer_.flush();
      s = core_.medium.fence();  // UNDO-3: before the checkpoint id may pass this id
    }
    return s;
  };
  const std::uint64_t id = this->commit_durably(engine_, prepare, persist, [&] {
    ring_->prepare_ahead();
    end();
  });
  if (!ring_->fits(ring_->bytes() / 2))  // more than half is used
    if (Status s = engine_.truncate_logs(); !s.ok()) core_.poison(s);
  return id;
}

template <class Tm>
void Undo<Tm>::Transaction::rollback() noexcept {
  if (!inside_) return;
  if (core_.forked()) {
    inside_ = false;
    return;
  }
  record_.reset();
  tm_.undo().take_back([this](std::uint64_t* a, std::uint64_t old) {
    core_.medium.store(data_ + offset_of(a), &old, 8);
  });
  if (log_bytes_ != 0 && !(core_.state() & EngineBase::poisoned_bit)) {
    // The old values are durable before the record that says there is nothing to undo.
    // mutant: undo-rollback-lines-first
    Status s = flush_lines();
    if (s.ok())
      s = append(log::RecordKind::commit,
                 engine_.tm_.domain.clock.load(std::memory_order_relaxed) + 1, 0);
    if (!s.ok()) core_.poison(s);
  }
  // This comes after the data region has the old values and the log says so: other transactions may
  // then have the blocks.
  this->abandon();
  end();
}

template <class Tm>
void Undo<Tm>::wait_for_log_space(Transaction& transaction, LogSpace needed) {
  if (core_.state() != 0) core_.refuse();
  log::Ring& ring = *transaction.ring_;
  const bool lacks_blocks = !ring.ready(needed.bytes);
  // `full` means that the disk is full. The transaction was rolled back, and does not run again.
  ring.prepare(needed.bytes).or_throw();
  // The test includes the space that is reserved for a rollback. If blocks were all that it lacked,
  // the log need not be truncated.
  if (lacks_blocks && ring.fits(needed.bytes + ring.bytes() / 8)) return;
  if (Status s = truncate_logs(); !s.ok()) core_.poison(s);
  std::this_thread::yield();  // the commit of another thread may have to end first
}

template <class Tm>
Status Undo<Tm>::truncate_logs() {
  const std::lock_guard lock(truncating_);
  if ((core_.state() & ~EngineBase::read_only_bit) != 0) return core_.why();
  // mutant: undo-checkpoint-id-finished
  // The data region holds all up to it: data and heap bits were fenced before they ended.
  const std::uint64_t x = tm_.domain.low_watermark();
  std::vector<std::uint64_t>& heads = heads_;
  for (std::size_t i = 0; i < logs_.size(); ++i) {
    // The log is truncated up to the first commit that the checkpoint id does not cover. What was
    // rolled back has its old values in the data region, whatever id its records were given: were
    // its records kept until a commit has that id, a transaction that ran out of log space could
    // never run again.
    const log::Ring& ring = logs_[i].ring;
    // Acquire: pairs with the release in end().
    const std::uint64_t ended = logs_[i].ended.load(std::memory_order_acquire);
    heads[i] = ring.head();
    // mutant: undo-truncates-to-ended
    while (heads[i] < ended) {
      const log::RecordView r = ring.at(heads[i]);
      // mutant: undo-truncates-to-id
      if (r.kind() == log::RecordKind::commit && r.transactions() != 0 && r.id() > x) break;
      heads[i] += r.bytes(core_.medium.append_unit());
    }
  }
  // A transaction that has failed since has ended too, and its records would be passed: in that
  // case nothing is published.
  if (core_.poisoned()) return core_.why();
  // UNDO-3: the checkpoint id and the heads are durable before a byte is reused; otherwise recovery
  // would take what lies there for the oldest records.
  // mutant: undo-truncates-before-header
  Status s = core_.publish([&](pool::Header& h) {
    h.checkpoint_id = x;
    for (std::size_t i = 0; i < logs_.size(); ++i) h.ring_head[i] = heads[i];
  });
  if (!s.ok()) return s;
  // mutant: undo-truncates-before-header-late
  for (std::size_t i = 0; i < logs_.size(); ++i) logs_[i].ring.release(heads[i]);
  checkpoints_.fetch_add(1, std::memory_order_relaxed);
  checkpoint_id_.store(x, std::memory_order_relaxed);
  return {};
}

template <class Tm>
Status Undo<Tm>::close() {
  Status s;
  if (!core_.file.read_only()) {
    if (core_.state() != 0) s = core_.why();
    // The data region is durable at every commit.
    if (s.ok()) s = core_.file.close_clean(tm_.domain.clock.load(std::memory_order_acquire));
  }
  core_.closed();
  return s;
}

template <class Tm>
Stats Undo<Tm>::stats() {
  Stats s;
  core_.fill(s);
  s.last_id = tm_.domain.clock.load(std::memory_order_relaxed);
  s.durable_id = this->durable_id();
  s.checkpoint_id = checkpoint_id_.load(std::memory_order_relaxed);
  if (!core_.file.read_only())
    for (std::size_t i = 0; i < logs_.size(); ++i) s.log_used += logs_[i].ring.used();
  s.checkpoints = checkpoints_.load(std::memory_order_relaxed);
  return s;
}

}  // namespace perdure::engine::undo
