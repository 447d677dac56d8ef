// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/shadow/persister.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "perdure/log/packed.hpp"

namespace perdure::log {

void Persister::configure(Ring& ring, std::uint64_t last_id, std::uint64_t max_group_bytes,
                          std::size_t unit) {
  ring_ = &ring;
  unit_ = unit;
  max_group_ = max_group_bytes;
  durable_.store(last_id, std::memory_order_relaxed);   // before any thread
  recorded_.store(last_id, std::memory_order_relaxed);  // likewise
  taken_to_ = last_id;
  writer_.configure(ring.seed(), ring.max_record(), unit);
}

void Persister::configure(Grouping grouping) {
  grouping_ = std::move(grouping);
  if (grouping_.transactions == 0) return;
  combiner_.configure(grouping_.max_home_bytes);
  packed_writer_.configure(ring_->seed(), ring_->max_record(), unit_);
}

void Persister::configure(std::function<std::uint64_t()> complete) {
  complete_ = std::move(complete);
}

void Persister::add(int slot, VolatileLog& log) noexcept {
  // pairs with gather
  logs_[static_cast<std::size_t>(slot)].store(&log, std::memory_order_release);
  int seen = used_logs_.load(std::memory_order_relaxed);
  // pairs with gather
  while (seen <= slot &&
         !used_logs_.compare_exchange_weak(seen, slot + 1, std::memory_order_acq_rel)) {}
}

VolatileLog* Persister::log_of(std::uint64_t id, VolatileLog::Item& item) noexcept {
  const int n = used_logs_.load(std::memory_order_acquire);  // pairs with add
  for (int i = 0; i < n; ++i) {
    // the log that had the last one is tried first: a busy thread has runs of ids
    const int at = (last_log_ + i) % n;
    // pairs with add
    VolatileLog* const log = logs_[static_cast<std::size_t>(at)].load(std::memory_order_acquire);
    if (log == nullptr) continue;
    item = log->front_seen();
    if (item.id != id) continue;
    last_log_ = at;
    return log;
  }
  return nullptr;
}

// Of the logs' fronts, each its log's oldest, the oldest that is complete. complete() came before
// look(): what it covers was seen.
VolatileLog* Persister::oldest(VolatileLog::Item& item) noexcept {
  const int n = used_logs_.load(std::memory_order_acquire);  // pairs with add
  VolatileLog* found = nullptr;
  for (int i = 0; i < n; ++i) {
    // pairs with add
    VolatileLog* const log = logs_[static_cast<std::size_t>(i)].load(std::memory_order_acquire);
    if (log == nullptr) continue;
    const VolatileLog::Item front = log->front_seen();
    // mutant: take-complete-timestamps, merge-timestamp-order
    if (front.id == 0 || front.id > up_to_ || (found != nullptr && front.id > item.id)) continue;
    item = front;
    found = log;
  }
  if (found == nullptr && up_to_ > taken_to_) taken_to_ = up_to_;
  return found;
}

// A step takes what is there when it begins; what comes meanwhile is the next one's.
void Persister::look() noexcept {
  const int n = used_logs_.load(std::memory_order_acquire);  // pairs with add
  for (int i = 0; i < n; ++i)
    // pairs with add
    if (VolatileLog* const log = logs_[static_cast<std::size_t>(i)].load(std::memory_order_acquire))
      log->look();
}

void Persister::take(VolatileLog& log, const VolatileLog::Item& item) noexcept {
  gathered_bytes_ += footprint(item.words);
  if (complete_) taken_to_ = item.id;
  log.pop(item);
  ++gathered_;
}

// What is gathered is written; the rest has committed and can't be: the pool must be opened again.
void Persister::out_of_memory() {
  fail(failure(Code::out_of_memory, ring_->medium().path(),
               "not enough memory to gather a group of transactions"));
}

// Moves consecutive transactions from the volatile logs to the writer. Returns whether the record
// can be no longer.
bool Persister::gather() {
  writer_.reset();
  for (;;) {
    VolatileLog::Item item;
    VolatileLog* const log = next(item);
    if (log == nullptr) return false;
    const std::uint64_t size = (writer_.payload_words() + item.words + 2 + header_words) * 8;
    if (gathered_ != 0 && (size > max_group_ || size > writer_.max_bytes())) return true;
    // one of the largest size stands alone, without its mark
    const bool marked = size <= writer_.max_bytes();
    try {
      writer_.room(item.words + (marked ? 2 : 0));
    } catch (const std::bad_alloc&) {
      if (gathered_ == 0) out_of_memory();
      return true;
    }
    writer_.entries(item.payload, item.words);
    if (marked) writer_.end_of(recorded() + gathered_ + 1);
    take(*log, item);
  }
}

// As gather(), to the combiner. Here a group outlives the step that began it.
bool Persister::gather_combined() {
  const std::uint64_t most = writer_.max_bytes() / 8 - header_words;
  while (gathered_ < grouping_.transactions) {
    VolatileLog::Item item;
    VolatileLog* const log = next(item);
    if (log == nullptr) return false;
    // mutant: group-ends-at-conflict
    // G1
    if (gathered_ != 0 &&
        (combiner_.bound(item.words) > most || !combiner_.commutes(item.payload, item.words)))
      return true;
    try {
      combiner_.add(item.payload, item.words);
    } catch (const std::bad_alloc&) {
      out_of_memory();
      return true;
    }
    take(*log, item);
  }
  return true;
}

// What a record takes is at most what its transactions take alone. So as long as all allowances
// together lie within what is allocated, the ring's tail does too, in its first lap.
Status Persister::allow(std::uint64_t words, std::uint64_t& allowance) {
  constexpr std::uint64_t at_once = 16 << 10;
  const std::uint64_t n = footprint(words);
  if (allowance >= n) return {};
  const std::uint64_t more = std::max(n - allowance, at_once);
  const std::uint64_t all = allowed_.fetch_add(more, std::memory_order_relaxed) + more;  // a count
  if (Status s = ring_->extent().ready(all) ? Status() : ring_->prepare_to(all); !s.ok()) {
    allowed_.fetch_sub(more, std::memory_order_relaxed);
    return s;
  }
  allowance = ring_->extent().bytes_ready() == ring_->bytes() ? no_bound : allowance + more;
  return {};
}

void Persister::fail(const Status& status) {
  const std::lock_guard guard(failure_);
  status_ = status;
  failed_.store(true, std::memory_order_release);  // pairs with wait
}

Status Persister::append(RecordWriter& record, RecordKind kind, std::uint64_t last) {
  if (grouping_.make_room)
    while (!ring_->fits(record.bytes()))
      if (Status s = grouping_.make_room(); !s.ok()) return s;
  // The record must be durable before durable() says so (P1): else an acknowledged transaction
  // could be lost.
  return ring_->append_fence(record, kind, last, static_cast<std::uint32_t>(gathered_));
}

// Makes what is gathered durable, as one record (P4).
Status Persister::write() {
  RecordKind kind = gathered_ == 1 ? RecordKind::commit : RecordKind::group;
  RecordWriter* record = &writer_;
  const std::uint64_t last = recorded() + gathered_;
  Status status;
  try {
    if (grouping_.transactions != 0) {
      kind = RecordKind::combined;
      writer_.reset();
      combiner_.write(writer_);
      came_.fetch_add(combiner_.came() * 8, std::memory_order_relaxed);
      combined_.fetch_add(writer_.payload_words() * 8, std::memory_order_relaxed);
      if (grouping_.compress && pack(writer_.payload(), writer_.payload_words(), packed_)) {
        kind = RecordKind::packed;
        packed_writer_.reset();
        packed_writer_.entries(packed_.data(), packed_.size());
        record = &packed_writer_;
      }
    }
    written_.fetch_add(record->payload_words() * 8, std::memory_order_relaxed);
    if (kind == RecordKind::packed)
      kept_.put(ring_->tail(), writer_.payload(), writer_.payload_words());
    // mutant: durable-id-before-fence
    status = append(*record, kind, last);
  } catch (const std::bad_alloc&) {
    out_of_memory();
    return this->status();
  }
  if (!status.ok()) {
    fail(status);
    return status;
  }
  combiner_.clear();
  // after tail moved; pairs with reserve
  if (!grouping_.make_room) outstanding_.fetch_sub(gathered_bytes_, std::memory_order_acq_rel);
  // pairs with recorded()
  recorded_.store(last, std::memory_order_release);
  // pairs with durable()
  durable_.store(complete_ ? taken_to_ : last, std::memory_order_release);
  gathered_bytes_ = gathered_ = 0;
  groups_.fetch_add(1, std::memory_order_relaxed);
  return status;
}

Persister::Outcome Persister::step(bool whole) {
  Outcome outcome = Outcome::nothing;
  {
    const std::unique_lock lock(stepping_, std::try_to_lock);
    if (!lock.owns_lock()) return Outcome::busy;
    if (!failed_.load(std::memory_order_relaxed)) {
      const bool combines = grouping_.transactions != 0;
      const std::uint64_t before = gathered_;
      if (complete_) up_to_ = complete_();
      look();  // after it: what it covers is seen
      const bool full = combines ? gather_combined() : gather();
      if (gathered_ != before) outcome = Outcome::gathered;
      if (gathered_ != 0 && (full || !combines || !whole) &&
          !failed_.load(std::memory_order_relaxed) && write().ok())
        outcome = Outcome::wrote;
      if (complete_ && gathered_ == 0 && taken_to_ > durable())
        durable_.store(taken_to_, std::memory_order_release);  // P5; pairs with durable()
      waiting_.store(gathered_, std::memory_order_relaxed);
    }
  }
  // pairs with wait: either the sleeper is counted below, or it sees this
  steps_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) steps_.notify_all();
  return outcome;
}

Status Persister::wait(std::uint64_t id) {
  while (durable() < id) {
    if (failed_.load(std::memory_order_acquire)) return status();  // pairs with write
    const std::uint32_t seen = steps_.load(std::memory_order_seq_cst);
    switch (step()) {
      case Outcome::wrote: break;
      case Outcome::gathered:
      // an id below ours is drawn but not yet in its log
      case Outcome::nothing: std::this_thread::yield(); break;
      case Outcome::busy:
        sleepers_.fetch_add(1, std::memory_order_seq_cst);  // pairs with step
        if (durable() < id && steps_.load(std::memory_order_seq_cst) == seen) steps_.wait(seen);
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
        break;
    }
  }
  return {};
}

Status Persister::status() const {
  const std::lock_guard guard(failure_);
  return status_;
}

}  // namespace perdure::log
