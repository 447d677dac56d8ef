// SPDX-License-Identifier: BSD-3-Clause
#include "papers/dudetm/persister.hpp"

#include <algorithm>
#include <utility>

#include "perdure/log/packed.hpp"

namespace perdure::papers::dudetm {

void Persister::configure(Grouping grouping) {
  grouping_ = std::move(grouping);
  if (grouping_.transactions == 0) return;
  combiner_.configure(grouping_.directory);
  packed_writer_.configure(ring_->seed(), ring_->max_record(), unit_);
}

// Returns the log whose front is the oldest of those that are complete; a log's front is its oldest
// transaction. complete() was called before look(), so what it covers was seen.
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

void Persister::look() noexcept {
  if (complete_) up_to_ = complete_();
  LogWriter::look();  // after complete(), so that what it covers is seen
}

bool Persister::gather() {
  if (grouping_.transactions != 0) return gather_combined();
  return gather_with([this](VolatileLog::Item& item) { return next(item); },
                     [this](VolatileLog& log, const VolatileLog::Item& item) { take(log, item); });
}

// Does what gather() does, with the combiner. A group may last longer than the step that began it.
bool Persister::gather_combined() {
  const std::uint64_t most = writer_.max_bytes() / 8 - header_words;
  while (gathered_ < grouping_.transactions) {
    VolatileLog::Item item;
    VolatileLog* const log = next(item);
    if (log == nullptr) return false;
    // GROUP-1: a transaction that does not commute with the group begins the next one.
    // mutant: group-ends-at-conflict
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

// A record takes at most what its transactions take alone. So as long as the sum of all allowances
// is within what is allocated, the ring's tail is too, in the ring's first generation.
Status Persister::allow(std::uint64_t words, std::uint64_t& allowance) {
  constexpr std::uint64_t at_once = 16 << 10;
  const std::uint64_t n = bytes_for(words);
  if (allowance >= n) return {};
  const std::uint64_t more = std::max(n - allowance, at_once);
  const std::uint64_t all =
      allowed_.fetch_add(more, std::memory_order_relaxed) + more;  // a counter
  if (Status s = ring_->extent().ready(all) ? Status() : ring_->prepare_to(all); !s.ok()) {
    allowed_.fetch_sub(more, std::memory_order_relaxed);
    return s;
  }
  allowance = ring_->extent().bytes_ready() == ring_->bytes() ? no_bound : allowance + more;
  return {};
}

Status Persister::append_fence(RecordWriter& record, RecordKind kind, std::uint64_t last) {
  if (!promises()) {
    gathered_bytes_ = 0;  // no transaction reserved bytes
    while (!ring_->fits(record.bytes()))
      if (Status s = grouping_.wait_for_log_space(); !s.ok()) return s;
  }
  return ring_->append_fence(record, kind, last, static_cast<std::uint32_t>(gathered_));
}

// PERSIST-1: a combined group is one record.
Status Persister::append(std::uint64_t last) {
  RecordKind kind = gathered_ == 1 ? RecordKind::commit : RecordKind::group;
  RecordWriter* record = &writer_;
  if (grouping_.transactions != 0) {
    kind = RecordKind::combined;
    writer_.reset();
    combiner_.write(writer_);
    bytes_in_.fetch_add(combiner_.words_in() * 8, std::memory_order_relaxed);
    combined_.fetch_add(writer_.payload_words() * 8, std::memory_order_relaxed);
    if (grouping_.combined) grouping_.combined(writer_.payload(), writer_.payload_words());
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
  Status status = append_fence(*record, kind, last);
  if (status.ok()) combiner_.clear();
  return status;
}

void Persister::stepped() noexcept {
  if (complete_ && gathered_ == 0 && taken_to_ > durable())
    durable_.store(taken_to_, std::memory_order_release);  // PERSIST-2; pairs with durable()
  waiting_.store(gathered_, std::memory_order_relaxed);
}

}  // namespace perdure::papers::dudetm
