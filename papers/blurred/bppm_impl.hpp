// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of BPPM that are not inlined into users' transactions; compiled once per instance
// (instances.cpp).
#pragma once

#include <string>
#include <type_traits>

#include "papers/blurred/bppm.hpp"
#include "papers/names.hpp"

namespace perdure::papers::blurred {

template <class Tm, class Writes>
Bppm<Tm, Writes>::Bppm(pool::OpenPool& file, const Config& config, const Recovery& recovery)
    : Base(file, config, recovery),
      mode_(mode_of(file.header())),
      bulk_(core_, file.header().checkpoint_id) {
  for (std::uint32_t i = 0; i < file.header().ring_count; ++i) {
    TornLog& log = logs_.add(core_.medium, place_of(file.header(), i), mode_.log);
    if (file.read_only()) continue;
    if (Status s = log.format(recovery.was_clean); !s.ok()) {
      core_.poison(s);
      return;
    }
  }
  if (mode_.truncation == Truncation::async && !file.read_only())
    truncator_ = std::make_unique<Truncator>(
        core_.medium, file.header().checkpoint_id, [this] { return tm_.domain.low_watermark(); },
        [this](std::uint64_t x) { return logs_[0].note_checkpoint_id(x); });
}

template <class Tm, class Writes>
Bppm<Tm, Writes>::~Bppm() {
  truncator_.reset();  // while what it calls exists
}

template <class Tm, class Writes>
Bppm<Tm, Writes>::Transaction::Transaction(Bppm& engine, int slot)
    : Base(engine.tm_, engine.core_, slot),
      engine_(engine),
      use_(engine.logs_, slot),
      log_(&engine.logs_[0]),
      written_([]([[maybe_unused]] TornLog* log) {
        if constexpr (in_log)
          return LogWrites{log};
        else
          return tm::PrivateWrites{};
      }(log_)),
      data_writer_(core_.medium, directory_) {}

template <class Tm, class Writes>
void Bppm<Tm, Writes>::Transaction::no_log_space(std::uint64_t n) {
  if (core_.state() != 0) core_.refuse();
  const auto [first, last] = log_->run();
  if (last - first + n > log_->capacity())
    throw error(failure(Code::too_big, core_.file.path(),
                        "a transaction that stores, allocates and frees more than its log holds",
                        "at most " + std::to_string(log_->capacity()) + " words and blocks",
                        "split it, or make the pool with a larger log_size"));
  needed_ = (last - first + n) * TornRecord::bytes;
  this->throw_log_full({needed_});
}

// Does all that may fail, before the commit draws its id.
template <class Tm, class Writes>
void Bppm<Tm, Writes>::Transaction::prepare() {
  take_log();  // before the generation's sense is read
  const auto ops = static_cast<std::uint64_t>(std::distance(ops_.begin(), ops_.end()));
  const bool sense = log_->sense();
  records_.clear();
  if constexpr (!in_log) {
    records_.reserve(written_.writes().entries.size() + ops);
    for (const auto& e : written_.writes().entries)
      records_.push_back(TornRecord::make(TornKind::word, e.address, e.value, sense));
  }
  for (const pool::HeapOp& op : ops_) records_.push_back(TornRecord::heap(op, sense));
  if (!log_->fits(records_.size())) no_log_space(records_.size());
  if (engine_.truncator_) {
    node_.clear();
    std::size_t heap = 0;
    // Counts lines at most: a span's bitmap and directory words, or an object's.
    for (const pool::HeapOp& op : ops_) heap += 16 + op.chunks;
    huge_ = heap > log::DataWriter::batch;
    node_.emplace_back().reserve((in_log ? log_->run().second - log_->run().first : 0) +
                                 records_.size() + heap);
  }
}

// Makes the transaction durable: TORN-1, the one fence.
template <class Tm, class Writes>
Status Bppm<Tm, Writes>::Transaction::persist(std::uint64_t id) {
  if (!records_.empty()) log_->append_all(records_);
  return log_->commit(id);
}

// The checkpointing phase: stores to the data region what the log has.
template <class Tm, class Writes>
Status Bppm<Tm, Writes>::Transaction::check_point(std::uint64_t id) {
  const Truncation how = engine_.mode_.truncation;
  medium::Medium& medium = core_.medium;
  const auto store = [&](std::uint64_t offset, std::uint64_t value) {
    if (how == Truncation::sync || how == Truncation::late)
      return data_writer_.words(offset, &value, 1);
    // Volatile: flush_all or the truncator's thread writes it back.
    medium.store(medium.log_bytes() + offset, &value, 8);
    if (how == Truncation::async &&
        (node_.front().empty() || node_.front().back() != offset / 64 * 64))
      node_.front().push_back(offset / 64 * 64);
  };
  if constexpr (in_log) {
    const auto [first, last] = log_->committed();
    for (std::uint64_t n = first; n < last; ++n)
      if (const TornRecord& r = log_->record(n); r.kind() == TornKind::word)
        store(r.address(), r.value());
  } else {
    for (const auto& e : written_.writes().entries) store(e.address, e.value);
  }
  if (!ops_.empty()) {
    const std::lock_guard lock(engine_.heap_bits_);
    this->apply_heap_ops(data_writer_);
  }
  switch (how) {
    case Truncation::sync:
    case Truncation::late:
      // mutant: bppm-sync-flush
      data_writer_.flush();
      if (Status s = medium.fence(); !s.ok()) return s;  // BPPM-2: the data, before the log says so
      if (how == Truncation::sync) return log_->note_data(id);
      break;
    case Truncation::async:
      data_writer_.hand_over([&](std::uint64_t line) { node_.front().push_back(line); });
      // The writer had to flush lines by itself: no other thread's fence covers them.
      if (huge_) return medium.fence();
      break;
    case Truncation::bulk: data_writer_.hand_over([](std::uint64_t) {}); break;
  }
  return {};
}

template <class Tm, class Writes>
std::uint64_t Bppm<Tm, Writes>::Transaction::commit(Durability) {
  if (needed_ != 0) this->throw_log_full({needed_});
  if (written_.empty() && ops_.empty()) return this->end_read_only();
  const auto persist_all = [&](std::uint64_t drawn) {
    Status s = persist(drawn);
    ThreadCounters::add(row_.log_bytes, (log_->committed().second - log_->committed().first + 1) *
                                            TornRecord::bytes);
    if (s.ok()) s = check_point(drawn);  // BPPM-1
    if (s.ok() && engine_.truncator_) engine_.truncator_->push(node_);
    return s;
  };
  return this->commit_durably(
      engine_, [&] { prepare(); }, persist_all,
      [&] {
        log_->prepare_ahead();
        end();
      });
}

template <class Tm, class Writes>
void Bppm<Tm, Writes>::Transaction::rollback() noexcept {
  if (!inside_) return;
  if (core_.forked()) {
    inside_ = false;
    return;
  }
  if constexpr (in_log)
    if (!core_.poisoned() && use_.ours()) log_->abort();
  this->abandon();
  end();
}

template <class Tm, class Writes>
void Bppm<Tm, Writes>::Transaction::end() noexcept {
  written_.clear();
  if constexpr (!in_log) written_.writes().entries.clear();
  records_.clear();
  needed_ = 0;
  ops_.clear();
  inside_ = false;
  use_.end();
}

template <class Tm, class Writes>
void Bppm<Tm, Writes>::wait_for_log_space(Transaction& transaction, LogSpace needed) {
  if (core_.state() != 0) core_.refuse();
  TornLog& log = *transaction.log_;
  const auto turn = transaction.use_.hold();
  const std::uint64_t records = needed.bytes / TornRecord::bytes;
  if (log.fits(records)) return;  // another thread has made space in a shared log
  // `full` means that the disk is full. The transaction was rolled back, and does not run again.
  if (log.lacks_blocks(records)) return log.prepare(records).or_throw();
  log.prepare_all().or_throw();
  Status s = checkpoint_up_to(log.last_id());
  if (s.ok()) s = log.truncate();
  if (!s.ok()) core_.poison(s);
  generations_.fetch_add(1, std::memory_order_relaxed);
}

// BPPM-2: afterwards the caller may truncate its log.
template <class Tm, class Writes>
Status Bppm<Tm, Writes>::checkpoint_up_to(std::uint64_t id) {
  if (truncator_) return truncator_->wait(id);
  if (mode_.truncation == Truncation::sync) return {};
  const auto note = [this](std::uint64_t x) { return logs_[0].note_checkpoint_id(x); };
  return bulk_.checkpoint_up_to(id, tm_.domain, note, mode_.truncation == Truncation::bulk);
}

template <class Tm, class Writes>
Status Bppm<Tm, Writes>::checkpoint() {
  return Base::checkpoint([this](std::uint64_t id) { return checkpoint_up_to(id); });
}

template <class Tm, class Writes>
Status Bppm<Tm, Writes>::close() {
  Status s;
  if (!core_.file.read_only()) {
    s = core_.state() != 0 ? core_.why() : checkpoint();
    if (truncator_) truncator_->stop();
    // The header has the last ids before the logs that hold them are wiped.
    if (s.ok())
      s = core_.publish([this](pool::Header& h) {
        h.checkpoint_id = tm_.domain.clock.load(std::memory_order_acquire);
      });
    for (std::size_t i = 0; i < logs_.size(); ++i)
      if (s.ok()) s = logs_[i].wipe();
    if (s.ok()) s = core_.file.close_clean(tm_.domain.clock.load(std::memory_order_acquire));
  }
  core_.closed();
  return s;
}

template <class Tm, class Writes>
Stats Bppm<Tm, Writes>::stats() {
  Stats s;
  core_.fill(s);
  s.last_id = tm_.domain.clock.load(std::memory_order_relaxed);
  s.durable_id = this->durable_id();
  const bool in_bulk = mode_.truncation == Truncation::bulk || mode_.truncation == Truncation::late;
  s.checkpoint_id = truncator_ ? truncator_->checkpoint_id()
                    : in_bulk  ? bulk_.checkpoint_id()
                               : s.durable_id;
  for (std::size_t i = 0; i < logs_.size(); ++i) s.log_used += logs_[i].used() * TornRecord::bytes;
  s.checkpoints = in_bulk ? bulk_.times() : generations_.load(std::memory_order_relaxed);
  return s;
}

}  // namespace perdure::papers::blurred
