// SPDX-License-Identifier: BSD-3-Clause
#include "papers/dudetm/replay.hpp"

#include <algorithm>
#include <utility>

#include "perdure/log/redo_team.hpp"
#include "perdure/pool/directory.hpp"

namespace perdure::papers::dudetm {

Replay::Replay(EngineBase& core, ThreadLogs<log::Ring>& rings,
               std::function<std::uint64_t()> low_watermark, Kept& kept,
               std::uint64_t checkpoint_id)
    : core_(core),
      rings_(rings),
      count_(rings.size()),
      low_watermark_(std::move(low_watermark)),
      kept_(kept),
      checkpoint_to_(count_),  // sized here, so that a checkpoint begins without allocating
      masks_(1),
      checkpoint_id_(checkpoint_id),
      reproduced_(checkpoint_id) {
  for (std::size_t i = 0; i < count_; ++i) applied_to_.add(rings_[i], 0);
  next_ = applied_to_;
}

// Adds a record to the round. Returns false if it can't be unpacked.
bool Replay::add(const log::RecordView& record) {
  if (record.kind() != log::RecordKind::packed) {
    payloads_.push_back({record.words + log::header_words, record.payload_words()});
    return true;
  }
  unpacked_.push_back(kept_.take(record.position));
  std::vector<std::uint64_t>& own = unpacked_.back();
  payloads_.push_back(own.empty() ? log::payload_of(record, rings_[0].max_record() / 8, own)
                                  : log::Payload{own.data(), own.size()});
  own_bytes_ += payloads_.back().n * 8;
  return payloads_.back().words != nullptr;
}

void Replay::clear() noexcept {
  payloads_.clear();
  unpacked_.clear();
  own_bytes_ = 0;
}

bool Replay::apply(std::uint64_t most) {
  const std::lock_guard lock(mutex_);
  return apply_locked(most);
}

bool Replay::apply_locked(std::uint64_t most) {
  if (core_.state() & EngineBase::poisoned_bit) return false;
  // The low watermark is read before the tails, so what it covers lies below them. What lies below
  // a tail is durable, because append_fence moves the tail after its fence. A failed append poisons
  // the pool, and nothing of it is replayed.
  // mutant: replay-low-watermark
  const std::uint64_t x = low_watermark_ ? low_watermark_() : tm::no_id;
  std::uint64_t bytes = 0;
  clear();
  next_ = applied_to_;
  next_.look();
  std::uint64_t last = reproduced_.load(std::memory_order_relaxed);
  for (log::RecordView record;
       bytes < most && own_bytes_ < log::max_unpacked && next_.next(x, record);) {
    if (!add(record)) return core_.poison(log::strange_record(core_.medium, record.id())), false;
    last = record.id();
    bytes += next_.bytes(record);
  }
  if (bytes == 0) return false;
  const pool::Directory directory(core_.file.header());
  const auto use =
      applied_in_part_ ? log::DataWriter::Use::running : log::DataWriter::Use::in_order;
  applied_in_part_ = true;
  if (log::redo(core_.medium, directory, payloads_, use, 1, masks_) != log::no_strange)
    return core_.poison(log::strange_record(core_.medium, last)), false;
  applied_in_part_ = false;
  clear();
  // Only now: a thread that ended early for lack of memory has applied nothing that counts.
  applied_to_ = next_;
  note_applied();
  reproduced_.store(last, std::memory_order_release);  // pairs with reproduced()
  return true;
}

void Replay::note_applied() noexcept {
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < count_; ++i)
    most = std::max(most, applied_to_.position(i) - rings_[i].head());
  applied_bytes_.store(most, std::memory_order_relaxed);
}

void Replay::begin_checkpoint() {
  checkpointing_ = true;
  for (std::size_t i = 0; i < count_; ++i) checkpoint_to_[i] = applied_to_.position(i);
  next_checkpoint_id_ = reproduced_.load(std::memory_order_relaxed);
  for (log::LineMasks& masks : masks_) masks.begin();
}

// Writes back about `max_lines` lines, or what is left.
bool Replay::slice_locked(std::uint64_t max_lines) {
  bool done = true;
  for (log::LineMasks& masks : masks_) done = masks.write_back(core_.medium, max_lines) && done;
  // The data region must be durable before the header says that these records are no longer needed.
  // Another thread may publish that header.
  if (Status s = core_.medium.fence(); !s.ok()) return core_.poison(s), true;
  // mutant: replay-all-lines-durable
  if (!done) return true;
  // mutant: replay-truncates-before-header
  const Status s = core_.publish([&](pool::Header& h) {
    // mutant: replay-checkpoint-id
    h.checkpoint_id = next_checkpoint_id_;
    for (std::size_t i = 0; i < count_; ++i) h.ring_head[i] = checkpoint_to_[i];
  });
  if (!s.ok()) return core_.poison(s), true;
  checkpointing_ = false;
  checkpoint_id_.store(next_checkpoint_id_, std::memory_order_relaxed);
  rounds_.fetch_add(1, std::memory_order_relaxed);
  // mutant: replay-truncates-before-header-late
  // Only now may the bytes be overwritten (RING-2).
  for (std::size_t i = 0; i < count_; ++i) rings_[i].release(checkpoint_to_[i]);
  note_applied();
  return true;
}

bool Replay::checkpoint_slice(bool begin) {
  // 128 lines take about 8 us at 1 GB/s.
  const std::uint64_t lines = std::clamp<std::uint64_t>(rings_[0].bytes() / 8192, 4, 128);
  const std::lock_guard lock(mutex_);
  if (core_.state() & EngineBase::poisoned_bit) return false;
  if (!checkpointing_) {
    if (!begin || applied_bytes() == 0) return false;
    begin_checkpoint();
  }
  // One sync per slice would cost more than it saves.
  return slice_locked(core_.config.fence_is_sync ? ~std::uint64_t{0} : lines);
}

bool Replay::checkpoint() {
  const std::lock_guard lock(mutex_);
  bool did = apply_locked(~std::uint64_t{0});
  for (int rest = checkpointing_ ? 2 : 1; rest > 0; --rest) {
    // First the checkpoint that had begun, then what has been applied since.
    if (core_.state() & EngineBase::poisoned_bit) return false;
    if (!checkpointing_ && applied_bytes() == 0) break;
    if (!checkpointing_) begin_checkpoint();
    did = slice_locked(~std::uint64_t{0});
  }
  return did;
}

}  // namespace perdure::papers::dudetm
