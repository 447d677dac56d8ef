// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/log_writer.hpp"

#include <chrono>
#include <thread>
#include <utility>

namespace perdure::log {

void LogWriter::configure(Ring& ring, std::uint64_t last_id, std::uint64_t max_group_bytes,
                          std::size_t unit) {
  ring_ = &ring;
  unit_ = unit;
  max_group_ = max_group_bytes;
  durable_.store(last_id, std::memory_order_relaxed);   // before any thread
  recorded_.store(last_id, std::memory_order_relaxed);  // likewise
  writer_.configure(ring.seed(), ring.max_record(), unit);
}

void LogWriter::add(int slot, VolatileLog& log) noexcept {
  // pairs with look, log_of
  logs_[static_cast<std::size_t>(slot)].store(&log, std::memory_order_release);
  int seen = used_logs_.load(std::memory_order_relaxed);
  // pairs with look, log_of
  while (seen <= slot &&
         !used_logs_.compare_exchange_weak(seen, slot + 1, std::memory_order_acq_rel)) {}
}

void LogWriter::look() noexcept {
  const int n = used_logs_.load(std::memory_order_acquire);  // pairs with add
  for (int i = 0; i < n; ++i)
    // pairs with add
    if (VolatileLog* const log = logs_[static_cast<std::size_t>(i)].load(std::memory_order_acquire))
      log->look();
}

bool LogWriter::gather() {
  return gather_with(
      [this](VolatileLog::Item& item) { return log_of(recorded() + gathered_ + 1, item); },
      [this](VolatileLog& log, const VolatileLog::Item& item) { take(log, item); });
}

// What is gathered is written; the rest has committed and cannot be: the pool must be opened again.
void LogWriter::out_of_memory() {
  fail(failure(Code::out_of_memory, ring_->medium().path(),
               "not enough memory to gather a group of transactions"));
}

void LogWriter::fail(const Status& status) {
  const std::lock_guard guard(failure_);
  status_ = status;
  failed_.store(true, std::memory_order_release);  // pairs with wait
}

Status LogWriter::append(std::uint64_t last) {
  const RecordKind kind = gathered_ == 1 ? RecordKind::commit : RecordKind::group;
  written_.fetch_add(writer_.payload_words() * 8, std::memory_order_relaxed);
  return ring_->append_fence(writer_, kind, last, static_cast<std::uint32_t>(gathered_));
}

// Makes what is gathered durable. The record must be durable before durable() says so
// (LOGWRITER-1): else an acknowledged transaction could be lost.
Status LogWriter::write() {
  const std::uint64_t last = recorded() + gathered_;
  Status status;
  try {
    // mutant: durable-id-before-fence
    status = append(last);
  } catch (const std::bad_alloc&) {
    out_of_memory();
    return this->status();
  }
  if (!status.ok()) {
    fail(status);
    return status;
  }
  // after tail moved; pairs with reserve
  outstanding_.fetch_sub(gathered_bytes_, std::memory_order_acq_rel);
  // pairs with recorded()
  recorded_.store(last, std::memory_order_release);
  // pairs with durable()
  durable_.store(durable_with(last), std::memory_order_release);
  // Release: pairs with the follower's acquire (engine/follow/log_reader.cpp), which then reads the
  // record.
  if (told_ != nullptr) told_->store(durable_with(last), std::memory_order_release);
  last_bytes_[1] = std::exchange(last_bytes_[0], gathered_bytes_);
  had_company_[1] = std::exchange(had_company_[0], turns_ > 1);
  last_taken_ = nullptr;
  turns_ = 0;
  gathered_bytes_ = gathered_ = 0;
  groups_.fetch_add(1, std::memory_order_relaxed);
  return status;
}

// The threads that share a record are acknowledged together, and commit again at about the same
// time. Where the next record is begun by the first of them, the others miss it: the waiting
// threads fall into two cohorts that take turns, and each commit takes two syncs. So the first one
// waits until as much is promised as the last two records had, but at most a third of a sync, and
// not at all where the last two records had one thread's transactions each. Relaxed loads: hints.
void LogWriter::wait_for_cohort() noexcept {
  if (!had_company_[0] && !had_company_[1]) return;
  const std::chrono::nanoseconds limit(ring_->medium().sync_ns() / 3);
  const std::uint64_t expected = last_bytes_[0] + last_bytes_[1];
  if (limit.count() == 0 || outstanding() >= expected) return;
  const auto start = std::chrono::steady_clock::now();
  do std::this_thread::yield();
  while (outstanding() < expected && std::chrono::steady_clock::now() - start < limit);
}

LogWriter::Outcome LogWriter::step_unless(bool may_wait, bool for_cohort) {
  Outcome outcome = Outcome::nothing;
  {
    const std::unique_lock lock(stepping_, std::try_to_lock);
    if (!lock.owns_lock()) return Outcome::busy;
    if (!failed()) {
      const std::uint64_t before = gathered_;
      if (for_cohort) wait_for_cohort();
      look();
      const bool full = gather();
      if (gathered_ != before) outcome = Outcome::gathered;
      if (gathered_ != 0 && due(full, may_wait) && !failed() && write().ok())
        outcome = Outcome::wrote;
      stepped();
    }
  }
  // pairs with wait: either the sleeper is counted below, or it sees this
  steps_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) steps_.notify_all();
  return outcome;
}

Status LogWriter::wait(std::uint64_t id) {
  while (durable() < id) {
    if (failed_.load(std::memory_order_acquire)) return status();  // pairs with fail
    const std::uint32_t seen = steps_.load(std::memory_order_seq_cst);
    switch (step_unless(false, true)) {
      case Outcome::wrote: break;
      case Outcome::gathered:
      // an id below ours is drawn but not yet in its log
      case Outcome::nothing: std::this_thread::yield(); break;
      case Outcome::busy:
        sleepers_.fetch_add(1, std::memory_order_seq_cst);  // pairs with step_unless
        if (durable() < id && steps_.load(std::memory_order_seq_cst) == seen) steps_.wait(seen);
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
        break;
    }
  }
  return {};
}

Status LogWriter::status() const {
  const std::lock_guard guard(failure_);
  return status_;
}

}  // namespace perdure::log
