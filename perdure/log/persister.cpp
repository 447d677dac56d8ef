// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/persister.hpp"

#include <thread>

namespace perdure::log {

void Persister::configure(Ring& ring, std::uint64_t last_id, std::uint64_t max_group_bytes, std::size_t unit) {
  ring_ = &ring;
  unit_ = unit;
  max_group_ = max_group_bytes;
  durable_.store(last_id, std::memory_order_relaxed);  // before any thread
  writer_.configure(ring.seed(), ring.max_record(), unit);
}

void Persister::add(int slot, VolatileLog& log) noexcept {
  logs_[static_cast<std::size_t>(slot)].store(&log, std::memory_order_release);  // pairs with gather
  int seen = used_logs_.load(std::memory_order_relaxed);
  while (seen <= slot && !used_logs_.compare_exchange_weak(seen, slot + 1, std::memory_order_acq_rel)) {}  // pairs with gather
}

// Moves consecutive transactions from the volatile logs to the writer. Returns how many; stops at the group's bound.
std::uint64_t Persister::gather() {
  std::uint64_t next = durable() + 1;
  std::uint64_t taken = 0;
  gathered_bytes_ = 0;
  writer_.reset();
  for (;;) {
    VolatileLog* log = nullptr;
    VolatileLog::Item item;
    const int n = used_logs_.load(std::memory_order_acquire);  // pairs with add
    for (int i = 0; i < n; ++i) {  // the log that had the last one is tried first: a busy thread has runs of ids
      const int at = (last_log_ + i) % n;
      VolatileLog* l = logs_[static_cast<std::size_t>(at)].load(std::memory_order_acquire);  // pairs with add
      if (l == nullptr) continue;
      item = l->front();
      if (item.id == next) {
        log = l;
        last_log_ = at;
        break;
      }
    }
    if (log == nullptr) return taken;
    const std::uint64_t size = (writer_.payload_words() + item.words + 2 + header_words) * 8;
    if (taken != 0 && (size > max_group_ || size > writer_.max_bytes())) return taken;
    const bool marked = size <= writer_.max_bytes();  // one of the largest size stands alone, without its mark
    try {
      writer_.room(item.words + (marked ? 2 : 0));
    } catch (const std::bad_alloc&) {
      // What is gathered is written; the rest has committed and can't be: the pool must be opened again.
      if (taken == 0) fail(failure(Code::out_of_memory, ring_->medium().path(), "not enough memory to gather a group of transactions"));
      return taken;
    }
    writer_.entries(item.payload, item.words);
    if (marked) writer_.end_of(item.id);
    gathered_bytes_ += footprint(item.words);
    log->pop();
    ++next;
    ++taken;
  }
}

void Persister::fail(const Status& status) {
  const std::lock_guard guard(failure_);
  status_ = status;
  failed_.store(true, std::memory_order_release);  // pairs with wait
}

Status Persister::write(std::uint64_t transactions) {
  const std::uint64_t last = durable_.load(std::memory_order_relaxed) + transactions;
  // The record must be durable before durable() says so (P1): else an acknowledged transaction could be lost.
  Status status = ring_->append_fence(writer_, transactions == 1 ? RecordKind::commit : RecordKind::group, last,
                                      static_cast<std::uint32_t>(transactions));
  if (!status.ok()) {
    fail(status);
    return status;
  }
  outstanding_.fetch_sub(gathered_bytes_, std::memory_order_acq_rel);  // after tail moved; pairs with reserve
  durable_.store(last, std::memory_order_release);                     // pairs with durable()
  groups_.fetch_add(1, std::memory_order_relaxed);
  return status;
}

Persister::Outcome Persister::step() {
  Outcome outcome = Outcome::nothing;
  {
    const std::unique_lock lock(stepping_, std::try_to_lock);
    if (!lock.owns_lock()) return Outcome::busy;
    if (!failed_.load(std::memory_order_relaxed))
      if (const std::uint64_t taken = gather(); taken != 0 && write(taken).ok()) outcome = Outcome::wrote;
  }
  steps_.fetch_add(1, std::memory_order_seq_cst);  // pairs with wait: either the sleeper is counted below, or it sees this
  if (sleepers_.load(std::memory_order_seq_cst) != 0) steps_.notify_all();
  return outcome;
}

Status Persister::wait(std::uint64_t id) {
  while (durable() < id) {
    if (failed_.load(std::memory_order_acquire)) return status();  // pairs with write
    const std::uint32_t seen = steps_.load(std::memory_order_seq_cst);
    switch (step()) {
      case Outcome::wrote: break;
      case Outcome::nothing: std::this_thread::yield(); break;  // an id below ours is drawn but not yet in its log
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
