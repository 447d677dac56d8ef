// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/claim.hpp"

#include <algorithm>

#include "perdure/base/thread_slot.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/pool/heap.hpp"

namespace perdure::pool {

void Claim::begin(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return !begun_; });
  begun_ = true;
}

void Claim::add(const FreeClaim& claim) {
  claim_ = claim;
  if (!claim_.runs.empty()) state_ = State::claimed;
}

bool Claim::begin_clearing() noexcept {
  if (state_ != State::claimed) return false;
  state_ = State::clearing;
  in_body_ = true;
  ops_ = 0;
  slot_ = base::thread_slot();
  return true;
}

const ChunkRange* Claim::span_at(std::uint64_t offset) const noexcept {
  if (state_ != State::clearing || slot_ != base::thread_slot()) return nullptr;
  const auto at = std::lower_bound(
      claim_.spans.begin(), claim_.spans.end(), offset,
      [](const ChunkRange& span, std::uint64_t o) { return span.first * chunk_bytes < o; });
  return at != claim_.spans.end() && at->first * chunk_bytes == offset ? &*at : nullptr;
}

bool Claim::is_clearing(std::uint64_t offset) const noexcept { return span_at(offset) != nullptr; }

Result<HeapOp> Claim::clear(std::uint64_t offset, const Result<HeapOp>& other) {
  const ChunkRange* const span = in_body_ ? span_at(offset) : nullptr;
  if (span == nullptr) return other;
  ++ops_;
  return HeapOp{offset, large_class, static_cast<std::uint32_t>(span->count), false};
}

bool Claim::op_ended(const HeapOp& op) noexcept {
  // While the claim is clearing, no other thread has its chunks, so the offset tells whether the op
  // is the claim's.
  if (op.set || span_at(op.offset) == nullptr) return false;
  if (--ops_ == 0 && !in_body_) change(State::claimed);
  return true;
}

void Claim::cleared() noexcept {
  if (state_ != State::clearing || slot_ != base::thread_slot()) return;
  in_body_ = false;
  if (ops_ == 0) change(State::claimed);
}

bool Claim::begin_punching() noexcept {
  if (state_ != State::claimed) return false;
  state_ = State::punching;
  return true;
}

void Claim::forget() noexcept {
  claim_.runs.clear();
  claim_.spans.clear();
  change(State::none);
}

void Claim::end() noexcept {
  begun_ = false;
  forget();
}

bool Claim::wait_while_used(std::unique_lock<std::mutex>& lock) {
  const auto until = std::chrono::steady_clock::now() + max_wait;
  // When this thread wakes after the clearing, the trim may already be making holes. Then no thread
  // may take the chunks until the holes are durable (TRIM-4).
  do {
    changed_.wait(lock, [this] { return state_ != State::punching; });
    if (!changed_.wait_until(lock, until, [this] { return state_ != State::clearing; }))
      return false;
  } while (state_ == State::punching);
  return true;
}

}  // namespace perdure::pool
