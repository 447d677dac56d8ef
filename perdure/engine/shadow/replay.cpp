// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/shadow/replay.hpp"

namespace perdure::engine::shadow {

std::uint64_t Replay::step() {
  const std::lock_guard lock(mutex_);
  // What lies below tail is durable: append_fence moves tail after its fence. A failed append poisons, and nothing of it is replayed.
  const std::uint64_t head = ring_.head(), tail = ring_.tail();
  if (head == tail || core_.state() & Core::poisoned_bit) return 0;
  const std::size_t unit = core_.medium.append_unit();
  std::uint64_t last = applied_.load(std::memory_order_relaxed);
  for (std::uint64_t at = head; at < tail;) {
    const log::RecordView r = ring_.at(at);
    home_.payload(r.words + log::header_words, r.payload_words());
    last = r.id();
    at += r.bytes(unit);
  }
  home_.flush();
  // Home must be durable before the header says that these records are no longer needed.
  if (Status s = core_.medium.fence(); !s.ok()) return core_.poison(s), 0;
  const Status s = core_.publish([&](pool::Header& h) {
    h.applied = last;
    h.ring_head[0] = tail;
  });
  if (!s.ok()) return core_.poison(s), 0;
  applied_.store(last, std::memory_order_relaxed);
  rounds_.fetch_add(1, std::memory_order_relaxed);
  ring_.release(tail);  // only now may the bytes be overwritten
  return tail - head;
}

}  // namespace perdure::engine::shadow
