// SPDX-License-Identifier: BSD-3-Clause
//
// Applying a heap op to words of the data region, wherever they are: the view, the data region
// through a medium, or an image in a test.
//
// A small op is one load (of its span's directory word: does it say already what the op says?) and
// one set or clear of a bit. If the word differs, a set makes the span first: a zeroed bitmap, a
// fence, then its directory words. A structure that lay over those chunks is dissolved and its
// other chunks are set free, so that the directory never shows two structures in one place.
// Replay: the data region may be newer than the op, or newer in parts, and the contents of an older
// structure are stored again before it is freed again. So every op enforces its own time's state of
// the directory. A clear whose span has become another structure sets those chunks free; the later
// ops that made that structure (their ids are higher, HEAP-2; all are replayed) make it again, with
// a bitmap of zeros. A set also clears away what a torn directory still shows of a span that had no
// blocks left and gave way to this one: nothing else in the log tells of its end.
// Thread safety: several threads may apply ops on different blocks to one target at once if its
// words are atomic; making and dissolving structures is serialized here.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "perdure/pool/directory.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/size_classes.hpp"

namespace perdure::pool {

namespace detail {
/// Serializes changes of directory words in targets of several threads. There is one mutex for the
/// process, because such changes are rare.
std::unique_lock<std::mutex> lock_directory();
/// The same, where several threads use the target.
std::unique_lock<std::mutex> lock_directory(const HeapTarget& target);
/// The slow paths; the caller holds the lock.
void make_span(HeapTarget& target, std::uint64_t chunk, std::uint32_t cls,
               const Directory& directory);
void set_free(HeapTarget& target, std::uint64_t chunk, std::uint64_t count,
              const Directory& directory);
void apply_large(HeapTarget& target, const HeapOp& op, const Directory& directory);
}  // namespace detail

/// The directory word of a span's first chunk.
[[nodiscard]] constexpr ChunkWord span_word(std::uint32_t cls) noexcept {
  return ChunkWord::make(ChunkWord::small, cls, classes[cls].chunks);
}

/// apply(), with the target's calls inlined where Target is final.
template <class Target>
void apply_op(Target& target, const HeapOp& op, const Directory& directory) {
  if (op.cls >= small_classes) {
    if (op.cls == large_class) detail::apply_large(target, op, directory);
    return;
  }
  const ClassInfo& info = classes[op.cls];
  const std::uint64_t chunk = span_chunk_of(op.offset, info.chunks, directory.first_chunk());
  const ChunkWord want = span_word(op.cls);
  if (__builtin_expect(
          ChunkWord{target.load(directory.word(chunk))} != want || (op.set && target.replay()),
          0)) {
    const auto lock = detail::lock_directory(target);
    if (!op.set) {  // this never happens in a view
      if (target.replay()) detail::set_free(target, chunk, info.chunks, directory);
      return;
    }
    detail::make_span(target, chunk, op.cls, directory);
  }
  const std::uint64_t span = chunk * chunk_bytes;
  const std::uint64_t index = (op.offset - span - info.first) * info.reciprocal >> 42;
  const std::uint64_t word = span + index / 64 * 8, mask = std::uint64_t{1} << index % 64;
  if (op.set) {
    target.set_bits(word, mask);
  } else {
    target.clear_bits(word, mask);
  }
}

/// Plain memory: a view without marks, or the image of a data region (`replay`).
class MemoryTarget final : public HeapTarget {
 public:
  explicit MemoryTarget(std::byte* data, bool replay = false) noexcept
      : data_(data), replay_(replay) {}
  // The acquire pairs with the release in store(): a thread that sees a span's directory word sees
  // its zeroed bitmap.
  [[nodiscard]] std::uint64_t load(std::uint64_t offset) const override {
    return at(offset).load(std::memory_order_acquire);
  }
  void store(std::uint64_t offset, std::uint64_t value) override {
    at(offset).store(value, std::memory_order_release);
  }
  void set_bits(std::uint64_t offset, std::uint64_t mask) override {
    at(offset).fetch_or(mask, std::memory_order_relaxed);
  }
  void clear_bits(std::uint64_t offset, std::uint64_t mask) override {
    at(offset).fetch_and(~mask, std::memory_order_relaxed);
  }
  [[nodiscard]] bool replay() const noexcept override { return replay_; }

 private:
  [[nodiscard]] std::atomic_ref<std::uint64_t> at(std::uint64_t offset) const noexcept {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(data_ + offset));
  }
  std::byte* data_;
  bool replay_;
};

/// Computes in DRAM what replayed ops make of the data region's directory and bitmaps, and stores
/// only the final state: for recovery where the data region holds data that no log will store again
/// (undo). An op that is older than the data region may make a span where data lies by now; its
/// bitmap of zeros must not reach that data.
class StagedTarget final : public HeapTarget {
 public:
  StagedTarget(HeapTarget& data, const Directory& directory) noexcept
      : data_(data), directory_(directory) {}
  [[nodiscard]] std::uint64_t load(std::uint64_t offset) const override {
    const auto it = words_.find(offset);
    return it == words_.end() ? data_.load(offset) : it->second;
  }
  void store(std::uint64_t offset, std::uint64_t value) override { words_[offset] = value; }
  void set_bits(std::uint64_t offset, std::uint64_t mask) override {
    store(offset, load(offset) | mask);
  }
  void clear_bits(std::uint64_t offset, std::uint64_t mask) override {
    store(offset, load(offset) & ~mask);
  }
  [[nodiscard]] bool replay() const noexcept override { return true; }
  /// Stores what differs to the data region: the bitmaps of chunks that are spans in the end, a
  /// fence (HEAP-4), the directory. The caller fences.
  void write();

 private:
  HeapTarget& data_;
  const Directory directory_;
  std::map<std::uint64_t, std::uint64_t> words_;
};

}  // namespace perdure::pool
