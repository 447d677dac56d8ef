// SPDX-License-Identifier: BSD-3-Clause
//
// What one thread of the system `bound` (bound.cpp) pays for: its part of the heap, a record that
// it gathers, a ring that it streams the record to, and the lines of its checkpoints.
// Thread safety: a Lane belongs to one thread at a time; the memory is shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "bench/harness/session.hpp"
#include "bench/systems/streamed.hpp"
#include "perdure/api/compiled_pool.hpp"
#include "perdure/base/checksum.hpp"
#include "perdure/engine/view.hpp"
#include "perdure/engine/volatile/instances.hpp"
#include "perdure/perdure.hpp"

namespace bench {

inline constexpr std::size_t line_bytes = 64;

/// The heap and the memory that the structures are in: those of a pool that nothing else is asked
/// of.
class BoundMemory {
  struct Nothing {};
  using Pool = perdure::Pool<Nothing, perdure::engines<perdure::volatile_none>>;

 public:
  explicit BoundMemory(const Setting& setting) : pool_(Pool::open(path(setting), options())) {}
  [[nodiscard]] std::byte* view() { return pool_.file().view(); }
  [[nodiscard]] perdure::pool::Heap& heap() { return pool_.file().heap(); }
  [[nodiscard]] std::uint64_t data_bytes() { return pool_.file().data_bytes(); }
  [[nodiscard]] std::uint64_t max_data_bytes() { return pool_.header().max_data_bytes; }

 private:
  static std::string path(const Setting& setting) { return setting.directory + "/bound.perdure"; }
  static perdure::Options options() {
    perdure::Options o;
    o.medium = "emulated";
    o.isolation = perdure::Isolation::caller;
    o.creation.max_size = std::uint64_t{2} << 30;
    return o;
  }
  Pool pool_;
};

/// What one thread has: a ring, a record that it gathers, and the lines of its checkpoints.
class alignas(128) Lane {
 public:
  Lane(BoundMemory& memory, std::byte* ring, std::uint64_t ring_bytes)
      : heap_(memory.heap()),
        view_(memory.view()),
        max_data_(memory.max_data_bytes()),
        target_(view_, nullptr),
        ring_(ring),
        ring_bytes_(ring_bytes),
        wide_(streams_lines()),
        record_(static_cast<std::uint64_t*>(std::aligned_alloc(4096, record_words * 8)),
                &std::free) {
    if (!record_) throw std::bad_alloc();
    at_ = record_.get() + header_words;
  }

  /// A cell begins: with `alone`, no other lane applies heap ops beside this one. `data` is where
  /// its checkpoints write, null while the structure is filled.
  void begin_cell(bool alone, std::byte* data, std::uint64_t data_bytes) {
    target_.alone(alone);
    data_ = data;
    changed_.assign(data == nullptr ? 0 : data_bytes / line_bytes / 64 + 1, 0);
    lines_.clear();
    learning_ = data != nullptr;
    position_ = since_ = 0;
  }

  /// Gathers a word that was stored at `to`.
  void stored(const void* to, std::uint64_t value) {
    *at_++ = key(to, 1);
    *at_++ = value;
    note(to);
  }
  /// Gathers n words that were stored from `to` on.
  void stored_words(const std::byte* to, std::size_t n) {
    *at_++ = key(to, n);
    std::memcpy(at_, to, n * 8);
    at_ += n;
    if (n % 2 == 0) *at_++ = 0;
    for (std::size_t i = 0; i < n * 8; i += line_bytes) note(to + i);
    note(to + n * 8 - 1);
  }
  std::byte* allocate(std::size_t bytes) {
    const perdure::pool::HeapOp op = heap_.reserve(bytes).value();
    apply(op);
    return view_ + op.offset;
  }
  void free(void* block) {
    const auto op =
        heap_.prepare_free(static_cast<std::uint64_t>(static_cast<std::byte*>(block) - view_))
            .value();
    apply(op);
    heap_.reusable(op);
  }
  /// The transaction's end: its record is durable.
  void commit() {
    std::uint64_t* const words = record_.get();
    if (at_ == words + header_words) return;
    const auto payload = static_cast<std::uint64_t>(at_ - words) - header_words;
    while ((at_ - words) % 8 != 0) *at_++ = 0;
    const auto bytes = static_cast<std::uint64_t>(at_ - words) * 8;
    at_ = words + header_words;
    if (bytes > ring_bytes_) std::abort();  // no workload has such a transaction
    if (position_ + bytes > ring_bytes_) position_ = 0;
    perdure::base::Checksum sum(position_);
    for (std::uint64_t i = 0; i < payload; i += 2)
      sum.add(words[header_words + i], words[header_words + i + 1]);
    words[0] = ++transactions_;
    words[2] = payload;
    sum.add(words[0], words[2]);
    words[1] = sum.value();
    stream(ring_ + position_, reinterpret_cast<const std::byte*>(words), bytes, wide_);
    _mm_sfence();
    position_ += bytes;
    since_ += bytes;
    log_bytes_ += bytes;
    if (__builtin_expect(since_ >= ring_bytes_ / 4 * 3, 0)) checkpoint();
  }
  /// The number of elements has changed by n.
  void grew(int n) noexcept { grown_ += n; }
  [[nodiscard]] std::int64_t grown() const noexcept { return grown_; }
  [[nodiscard]] std::uint64_t transactions() const noexcept { return transactions_; }
  [[nodiscard]] std::uint64_t log_bytes() const noexcept { return log_bytes_; }
  [[nodiscard]] std::uint64_t checkpoint_lines() const noexcept { return checkpoint_lines_; }

 private:
  static constexpr std::size_t header_words = 3, record_words = std::size_t{1} << 16;

  [[nodiscard]] std::uint64_t key(const void* at, std::uint64_t count) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - view_) << 21 |
           count << 4 | 1;
  }
  void note(const void* at) {
    if (__builtin_expect(!learning_, 1)) return;
    const auto n =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - view_) / line_bytes;
    if (n / 64 < changed_.size()) changed_[n / 64] |= std::uint64_t{1} << n % 64;
  }
  void apply(const perdure::pool::HeapOp& op) {
    *at_++ = op.offset << 21 | std::uint64_t{op.cls} << 4 | 2;
    *at_++ = op.chunks;
    perdure::pool::apply_op(target_, op, max_data_);
  }
  void checkpoint() {
    since_ = 0;
    if (learning_) {
      learning_ = false;
      for (std::uint64_t i = 0; i < changed_.size(); ++i)
        for (std::uint64_t m = changed_[i]; m != 0; m &= m - 1)
          lines_.push_back((i * 64 + static_cast<std::uint64_t>(__builtin_ctzll(m))) * line_bytes);
    }
    for (const std::uint64_t at : lines_) stream(data_ + at, view_ + at, line_bytes, wide_);
    _mm_sfence();
    checkpoint_lines_ += lines_.size();
  }

  std::uint64_t* at_ = nullptr;
  bool learning_ = false;
  perdure::pool::Heap& heap_;
  std::byte* const view_;
  const std::uint64_t max_data_;
  perdure::engine::ViewTarget target_;
  std::byte* const ring_;
  const std::uint64_t ring_bytes_;
  const bool wide_;
  std::uint64_t position_ = 0, since_ = 0, transactions_ = 0, log_bytes_ = 0;
  std::uint64_t checkpoint_lines_ = 0;
  std::int64_t grown_ = 0;
  std::byte* data_ = nullptr;
  std::unique_ptr<std::uint64_t, decltype(&std::free)> record_;
  std::vector<std::uint64_t> changed_, lines_;
};

}  // namespace bench
