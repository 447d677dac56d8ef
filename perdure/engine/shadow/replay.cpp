// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/shadow/replay.hpp"

#include <utility>

#include "perdure/log/redo_team.hpp"

namespace perdure::engine::shadow {

Replay::Replay(Core& core, log::Ring* rings, std::uint32_t count, std::function<std::uint64_t()> quiet, log::Kept& kept,
               std::uint64_t applied)
    : core_(core),
      rings_(rings),
      count_(count),
      quiet_(std::move(quiet)),
      kept_(kept),
      applied_to_(count),
      cursors_(count),
      masks_(core.config.reproduce_threads),
      applied_(applied),
      reproduced_(applied) {}

// Adds a record to the round. False: it can't be unpacked.
bool Replay::add(const log::RecordView& record) {
  if (record.kind() != log::RecordKind::packed) {
    payloads_.push_back({record.words + log::header_words, record.payload_words()});
    return true;
  }
  unpacked_.push_back(kept_.take(record.position));
  std::vector<std::uint64_t>& own = unpacked_.back();
  payloads_.push_back(own.empty() ? log::payload_of(record, rings_[0].max_record() / 8, own) : log::Payload{own.data(), own.size()});
  own_bytes_ += payloads_.back().n * 8;
  return payloads_.back().words != nullptr;
}

void Replay::clear() noexcept {
  payloads_.clear();
  unpacked_.clear();
  own_bytes_ = 0;
}

std::uint64_t Replay::step(std::uint64_t most) {
  const std::lock_guard lock(mutex_);
  if (core_.state() & Core::poisoned_bit) return 0;
  // Before the tails: what is quiet lies below them. What lies below a tail is durable: append_fence moves it after its fence. A failed append
  // poisons, and nothing of it is replayed.
  const std::uint64_t x = quiet_ ? quiet_() : tm::no_id;
  std::uint64_t bytes = 0;
  clear();
  for (std::uint32_t i = 0; i < count_; ++i) cursors_[i] = {applied_to_[i], rings_[i].tail()};
  const std::size_t unit = core_.medium.append_unit();
  std::uint64_t last = reproduced_.load(std::memory_order_relaxed);
  while (bytes < most && own_bytes_ < log::most_unpacked) {
    std::uint32_t next = count_;  // the ring whose record has the lowest id
    std::uint64_t lowest = x;
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (cursors_[i].at == cursors_[i].end) continue;
      if (const std::uint64_t id = rings_[i].at(cursors_[i].at).id(); id <= lowest) {
        next = i;
        lowest = id;
      }
    }
    if (next == count_) break;
    const log::RecordView record = rings_[next].at(cursors_[next].at);
    if (!add(record)) return core_.poison(log::strange_record(core_.medium, record.id())), 0;
    last = record.id();
    cursors_[next].at += record.bytes(unit);
    bytes += record.bytes(unit);
  }
  if (bytes != 0) {
    const std::uint64_t max_home = core_.file.header().max_home_bytes;
    if (log::redo(core_.medium, max_home, payloads_, log::HomeWriter::Use::running, core_.config.reproduce_threads, {}, masks_) !=
        log::no_strange)
      return core_.poison(log::strange_record(core_.medium, last)), 0;
    clear();
    reproduced_.store(last, std::memory_order_release);  // pairs with reproduced()
    // Home must be durable before the header says that these records are no longer needed; another thread's step may be the one that says it.
    if (Status s = core_.medium.fence(); !s.ok()) return core_.poison(s), 0;
    // Not before: a step that ends early, for want of memory, has applied nothing.
    for (std::uint32_t i = 0; i < count_; ++i) applied_to_[i] = cursors_[i].at;
    unsettled_ += bytes;
  }
  if (unsettled_ == 0 || (most != all && unsettled_ < rings_[0].bytes() / 8)) return bytes;
  const Status s = core_.publish([&](pool::Header& h) {
    h.applied = last;
    for (std::uint32_t i = 0; i < count_; ++i) h.ring_head[i] = applied_to_[i];
  });
  if (!s.ok()) return core_.poison(s), 0;
  applied_.store(last, std::memory_order_relaxed);
  rounds_.fetch_add(1, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count_; ++i) rings_[i].release(applied_to_[i]);  // only now may the bytes be overwritten
  unsettled_ = 0;
  return bytes + 1;
}

}  // namespace perdure::engine::shadow
