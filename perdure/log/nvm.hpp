// SPDX-License-Identifier: BSD-3-Clause
//
// NvmStore: the stores that REWIND's log structures are made of (papers: REWIND, VLDB '15, section 3.1), on a medium.
//
// The paper's non-temporal store is synchronous: it does not complete before the word has reached memory. On x86 nothing does that by itself: here
// it is a store, the line's write-back and a fence, and is counted apart from the paper's own fences.
// Errors: the first failure of the medium is kept; nothing is stored after it (law L9).
// Thread safety: none of its own.
#pragma once

#include <cstdint>

#include "perdure/base/status.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::log {

class NvmStore {
 public:
  explicit NvmStore(medium::Medium& medium) noexcept : medium_(medium) {}
  NvmStore(const NvmStore&) = delete;
  NvmStore& operator=(const NvmStore&) = delete;

  /// The word at a file offset of the log range, as it is now.
  [[nodiscard]] std::uint64_t word(std::uint64_t offset) const noexcept {
    return *reinterpret_cast<const std::uint64_t*>(medium_.at(offset));
  }
  /// The paper's non-temporal store: durable when this returns.
  void synchronous(std::uint64_t offset, std::uint64_t value) noexcept {
    start(offset, value);
    if (failed()) return;
    ++synchronous_;
    wait();
  }
  /// Durable after start_again() of it and a fence.
  void store(std::uint64_t offset, std::uint64_t value) noexcept {
    if (!failed()) medium_.store(offset, &value, 8);
  }
  /// Durable after the next fence.
  void start(std::uint64_t offset, std::uint64_t value) noexcept {
    if (failed()) return;
    medium_.store(offset, &value, 8);
    medium_.flush(offset, 8);
  }
  /// A whole line, past the cache; durable after the next fence.
  void start_line(std::uint64_t offset, const std::uint64_t* words) noexcept {
    if (!failed()) medium_.stream(offset, words, 64);
  }
  /// What lies there, as it is seen now: durable after the next fence.
  void start_again(std::uint64_t offset, std::uint64_t bytes) noexcept {
    if (!failed()) medium_.flush(offset, bytes);
  }
  /// The paper's memory fence: what was started is durable.
  void fence() noexcept {
    if (failed()) return;
    ++fences_;
    wait();
  }

  [[nodiscard]] bool failed() const noexcept { return __builtin_expect(failed_, 0); }
  /// Ok, or the first failure.
  [[nodiscard]] Status status() const { return status_; }
  [[nodiscard]] std::uint64_t fences() const noexcept { return fences_; }
  [[nodiscard]] std::uint64_t synchronous_stores() const noexcept { return synchronous_; }
  [[nodiscard]] medium::Medium& medium() const noexcept { return medium_; }

 private:
  void wait() noexcept {
    if (Status s = medium_.fence(); __builtin_expect(!s.ok(), 0)) {
      status_ = std::move(s);
      failed_ = true;
    }
  }
  medium::Medium& medium_;
  Status status_;
  bool failed_ = false;
  std::uint64_t fences_ = 0, synchronous_ = 0;
};

}  // namespace perdure::log
