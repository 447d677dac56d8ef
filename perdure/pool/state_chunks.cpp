// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/state_chunks.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "perdure/pool/heap_apply.hpp"
#include "perdure/pool/scrub.hpp"

namespace perdure::pool {
namespace {

constexpr std::uint64_t told_each = 1 << 20;

// The chunks that are being made, each of zeros at first.
class Images final : public HeapTarget {
 public:
  using Image = std::unique_ptr<std::byte[]>;
  [[nodiscard]] std::byte* chunk(std::uint64_t n) {
    Image& image = images_[n];
    if (image == nullptr) image = std::make_unique<std::byte[]>(chunk_bytes);
    return image.get();
  }
  /// Gives f(chunk, bytes) the chunks below `end`, except those that hold directory words, and
  /// drops them.
  template <class F>
  Status give_below(std::uint64_t end, const Directory& directory, F&& f) {
    for (auto it = images_.begin(); it != images_.end() && it->first < end;) {
      if (directory.holds_words(it->first)) {
        ++it;
        continue;
      }
      if (Status s = f(it->first, it->second.get()); !s.ok()) return s;
      it = images_.erase(it);
    }
    return {};
  }
  template <class F>
  Status give_rest(F&& f) {
    for (const auto& [n, image] : images_)
      if (Status s = f(n, image.get()); !s.ok()) return s;
    return {};
  }

  [[nodiscard]] std::uint64_t load(std::uint64_t offset) const override {
    const auto it = images_.find(offset / chunk_bytes);
    std::uint64_t word = 0;
    if (it != images_.end())
      std::memcpy(&word, it->second.get() + offset % chunk_bytes, sizeof word);
    return word;
  }
  void store(std::uint64_t offset, std::uint64_t value) override {
    std::memcpy(chunk(offset / chunk_bytes) + offset % chunk_bytes, &value, sizeof value);
  }
  void set_bits(std::uint64_t offset, std::uint64_t mask) override {
    store(offset, load(offset) | mask);
  }
  void clear_bits(std::uint64_t offset, std::uint64_t mask) override {
    store(offset, load(offset) & ~mask);
  }

 private:
  std::map<std::uint64_t, Image> images_;
};

// The first chunk of a block's span, or of a large block.
std::uint64_t first_chunk_of(const HeapOp& op, const Directory& directory) {
  return op.cls == large_class
             ? op.offset / chunk_bytes
             : span_chunk_of(op.offset, classes[op.cls].chunks, directory.first_chunk());
}

}  // namespace

std::uint64_t PoolState::bytes() const noexcept {
  std::uint64_t all = 0;
  for (const HeapOp& block : blocks) all += op_bytes(block);
  return all;
}

Result<PoolState> state_at_rest(const OpenPool& pool) {
  const Header& h = pool.header();
  if (h.clean != 1)
    return failure(Code::invalid, pool.path(), "a pool that was not closed in order", {},
                   "open it once with its program, or run perdure recover");
  if (Status s = must_be_undamaged(pool); !s.ok()) return s;
  PoolState state;
  state.id = h.checkpoint_id;
  const std::byte* const data = pool.medium().data();
  const Directory directory(h);
  const HeapAudit heap = audit_heap(
      data, h,
      [&](std::uint64_t offset, std::uint64_t bytes) {
        // A block of one chunk may be a large one, or one of a span.
        ChunkWord word;
        std::memcpy(&word, data + directory.word(offset / chunk_bytes), sizeof word);
        const bool large = word.kind() == ChunkWord::large;
        state.blocks.push_back({offset, large ? large_class : size_class(bytes),
                                large ? static_cast<std::uint32_t>(word.count()) : 0, true});
      },
      &pool.medium());
  if (!heap.problems.empty())
    return failure(Code::corrupt, pool.path(), heap.problems.front(), {},
                   "see perdure check; restore an earlier backup");
  std::sort(state.blocks.begin(), state.blocks.end(),
            [](const auto& a, const auto& b) { return a.offset < b.offset; });
  state.read = [data](void* to, std::uint64_t offset, std::uint64_t n) {
    std::memcpy(to, data + offset, n);
  };
  state.must_be_sound = [] {};
  return state;
}

Status each_chunk(const PoolState& state, const Directory& directory,
                  const std::function<Status(std::uint64_t chunk, const std::byte* bytes)>& f,
                  const StateProgress& progress) {
  Images images;
  const std::uint64_t bytes = state.bytes();
  std::uint64_t done = 0, told = 0;
  // The data region's first page has the address of a catalog that the pool got later.
  state.read(images.chunk(0), 0, directory_offset);
  for (const HeapOp& op : state.blocks) {
    if (Status s = images.give_below(first_chunk_of(op, directory), directory, f); !s.ok())
      return s;
    apply_op(images, op, directory);
    for (std::uint64_t at = op.offset, end = op.offset + op_bytes(op); at < end;) {
      const std::uint64_t n = std::min(end - at, chunk_bytes - at % chunk_bytes);
      state.read(images.chunk(at / chunk_bytes) + at % chunk_bytes, at, n);
      at += n;
      done += n;
      if (op.cls == large_class)
        if (Status s = images.give_below(at / chunk_bytes, directory, f); !s.ok()) return s;
      if (progress && (done >= told + told_each || done == bytes) && done != told)
        progress(told = done, bytes);
    }
  }
  state.must_be_sound();
  if (Status s = images.give_below(directory.chunks(), directory, f); !s.ok()) return s;
  return images.give_rest(f);
}

}  // namespace perdure::pool
