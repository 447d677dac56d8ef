// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/shadow/saver.hpp"

#include <algorithm>

namespace perdure::engine::shadow {

void Saver::use_versions() noexcept {
  if (generation_ == snapshots_.generation()) return;
  generation_ = snapshots_.generation();
  versions_ = snapshots_.versions();
  chunk_ = Versions::no_chunk;
  next_ = Versions::chunk_entries;
}

void Saver::save(std::uint64_t offset, std::uint64_t bytes) noexcept {
  use_versions();
  constexpr std::uint64_t size = Versions::line_bytes;
  for (std::uint64_t at = offset / size; at * size < offset + bytes && !given_up_; ++at)
    save_line(at);
}

// SNAP-3, where the newest entry has this stamp.
bool Saver::needs(std::uint64_t stamp) const noexcept {
  // The owner of a line stamps its entries before another transaction owns the line (SNAP-4).
  if (stamp == Versions::in_flight) return false;
  // mutant: snapshot-saves-once
  return mode_ == OpenSnapshots::always || stamp <= Versions::committed(mode_ - 1);
}

void Saver::save_line(std::uint64_t line) noexcept {
  point();
  std::atomic<std::uint32_t>& head = versions_->head(line);
  const std::uint32_t first = head.load(std::memory_order_acquire);
  std::uint64_t before = 0;
  if (first != 0) {
    const Versions::Entry& newest = versions_->entry(first);
    // In this order: an entry that is used again gets its line before its stamp.
    before = newest.stamp.load(std::memory_order_acquire);
    // mutant: snapshot-saver-s-line
    if (newest.line.load(std::memory_order_acquire) != line) {
      before = 0;  // no snapshot needs what it was (SNAP-1)
      // mutant: snapshot-saves-own-stores
      if (!snapshots_.serves(mode_)) given_up_ = true;
    } else if (!needs(before)) {
      return;
    }
  }
  if (!has_next()) return;
  const std::uint32_t index = next_index();
  Versions::Entry& entry = versions_->entry(index);
  const std::uint64_t* const words = versions_->words(line);
  // Releases: see versions.hpp. The stamp comes after the line, so that the line's old head does
  // not take the entry for its own, and the head last (SNAP-2).
  entry.line.store(line, std::memory_order_release);
  entry.before.store(before, std::memory_order_release);
  entry.next.store(before == 0 ? 0 : first, std::memory_order_release);
  for (std::uint64_t i = 0; i < Versions::line_words; ++i)
    entry.words[i].store(tm::load_word(words + i), std::memory_order_release);
  entry.stamp.store(Versions::in_flight, std::memory_order_release);
  point();
  head.store(index, std::memory_order_release);  // pairs with Versions::read()
  ++next_;
  ++pushed_;
  point();
}

void Saver::committed(std::uint64_t id, const HeapOps& ops,
                      const pool::Directory& directory) noexcept {
  if (!ops.empty()) use_versions();
  // A trim frees spans in which no block is allocated: nothing that was there at any id.
  const auto frees_a_span = [&](const pool::HeapOp& op) {
    const std::uint64_t word = directory.word(op.offset / pool::chunk_bytes);
    // mutant: snapshot-trimmed-spans
    return !op.set && op.cls == pool::large_class &&
           pool::ChunkWord{tm::load_word(versions_->words(0) + word / 8)}.kind() ==
               pool::ChunkWord::small;
  };
  std::uint64_t number = 0;
  // mutant: snapshot-saves-heap-ops
  for (auto op = ops.begin(); op != ops.end() && has_next();) {
    Versions::Entry& entry = versions_->entry(next_index());
    // As in save_line(). No head leads here.
    entry.line.store(Versions::heap_ops, std::memory_order_release);
    entry.before.store(number, std::memory_order_release);
    for (std::uint64_t i = 0; i < Versions::ops_per_entry; ++i) {
      Versions::OpWords words{};
      for (; op != ops.end() && words[0] == 0; ++op)
        if (!frees_a_span(*op)) words = Versions::op_words(*op);
      entry.words[2 * i].store(words[0], std::memory_order_release);
      entry.words[2 * i + 1].store(words[1], std::memory_order_release);
    }
    entry.stamp.store(Versions::in_flight, std::memory_order_release);
    number += Versions::ops_per_entry;
    ++next_;
    ++pushed_;
    point();
  }
  stamp(Versions::committed(id));
}

// Whether there is an entry for the transaction to use. False: no snapshot is left to save for.
bool Saver::has_next() noexcept {
  // mutant: snapshot-gives-up
  if (given_up_) return false;
  given_up_ = next_ == Versions::chunk_entries && !next_chunk();
  return !given_up_;
}

bool Saver::next_chunk() noexcept {
  const std::uint32_t chunk = snapshots_.claim();
  if (chunk == Versions::no_chunk) return false;
  // Entries of this transaction have no stamp yet: stamp() leaves their chunk.
  if (chunk_ != Versions::no_chunk && pushed_ == 0) versions_->left(chunk_, last_stamp_);
  versions_->previous(chunk) = chunk_;
  chunk_ = chunk;
  next_ = 0;
  return true;
}

void Saver::stamp(std::uint64_t stamp) noexcept {
  point();
  if (pushed_ != 0) last_stamp_ = stamp;
  std::uint32_t chunk = chunk_, end = next_;
  while (pushed_ != 0) {
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(pushed_, end));
    for (std::uint32_t i = end - n; i < end; ++i)
      // SNAP-4; pairs with the acquires of readers and of the line's next owner
      versions_->entry(chunk * Versions::chunk_entries + i + 1)
          .stamp.store(stamp, std::memory_order_release);
    pushed_ -= n;
    const std::uint32_t previous = versions_->previous(chunk);
    if (chunk != chunk_) versions_->left(chunk, stamp);
    chunk = previous;
    end = Versions::chunk_entries;
  }
  given_up_ = false;
  point();
}

}  // namespace perdure::engine::shadow
