// SPDX-License-Identifier: BSD-3-Clause
//
// NvmStore: the stores from which REWIND's log structures are built (papers: REWIND, VLDB '15,
// section 3.1), on a medium.
//
// The paper's non-temporal store is synchronous: it does not complete before the word has reached
// memory. No x86 instruction does that: here it is a store, the line's write-back and a fence, and
// it is counted separately from the paper's own fences.
// Values are written as control words (log/control_word.hpp), bound to the log by `identity` and to
// their offset; logs of the first form have the bare values. Recovery checks with whole() each word
// that it needs to read the log, before it follows it; while a log is in use nothing is checked. A
// rehearsal reads the medium and keeps its stores to itself, so a recovery can be tried out before
// it writes.
// Errors: the first failure of the medium is stored; nothing is written after it (LAW-9).
// Thread safety: none of its own, except that any thread may call failed() and status() beside the
// one that stores.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <unordered_map>
#include <utility>

#include "papers/names.hpp"
#include "perdure/base/status.hpp"
#include "perdure/log/control_word.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::papers::rewind {

class NvmStore {
 public:
  enum class Use : std::uint8_t { real, rehearsal };
  explicit NvmStore(medium::Medium& medium, std::uint64_t identity = 0,
                    LogForm form = LogForm::checked, Use use = Use::real) noexcept
      : medium_(medium), identity_(identity), form_(form), rehearses_(use == Use::rehearsal) {}
  NvmStore(const NvmStore&) = delete;
  NvmStore& operator=(const NvmStore&) = delete;

  /// Returns the word at a file offset of the log range, as it is now.
  [[nodiscard]] std::uint64_t word(std::uint64_t offset) const noexcept {
    if (__builtin_expect(!kept_.empty(), 0))
      if (const auto kept = kept_.find(offset); kept != kept_.end()) return kept->second;
    return *reinterpret_cast<const std::uint64_t*>(medium_.at(offset));
  }
  /// Returns the value in the word there.
  [[nodiscard]] std::uint64_t value(std::uint64_t offset) const noexcept {
    const std::uint64_t w = word(offset);
    return form_ == LogForm::checked ? ControlWord::value(w) : w;
  }
  /// Returns whether the word there was written for that place. The first form can't tell.
  [[nodiscard]] bool whole(std::uint64_t offset) const noexcept {
    return form_ == LogForm::first || ControlWord::whole(identity_, offset, word(offset));
  }
  /// Returns the word that holds this value there.
  [[nodiscard]] std::uint64_t word_of(std::uint64_t offset, std::uint64_t value) const noexcept {
    return form_ == LogForm::first ? value : ControlWord::make(identity_, offset, value);
  }

  /// The paper's non-temporal store of a value: durable when this returns.
  void synchronous(std::uint64_t offset, std::uint64_t value) noexcept {
    start(offset, value);
    end_synchronous();
  }
  /// Waits for what was started, which counts as one synchronous store of several words.
  void end_synchronous() noexcept {
    if (failed()) return;
    ++synchronous_;
    wait();
  }
  /// Stores a value: durable after start_again() of it and a fence.
  void store(std::uint64_t offset, std::uint64_t value) noexcept {
    if (!failed()) put(offset, word_of(offset, value));
  }
  /// Stores a value: durable after the next fence.
  void start(std::uint64_t offset, std::uint64_t value) noexcept {
    start_word(offset, word_of(offset, value));
  }
  /// Stores a word as it is: durable after the next fence.
  void start_word(std::uint64_t offset, std::uint64_t word) noexcept {
    if (failed()) return;
    put(offset, word);
    start_again(offset, 8);
  }
  /// Stores a whole line of words as they are, past the cache; durable after the next fence.
  void start_line(std::uint64_t offset, const std::uint64_t* words) noexcept {
    if (failed()) return;
    if (__builtin_expect(rehearses_, 0))
      for (std::uint64_t i = 0; i < 8; ++i) keep(offset + i * 8, words[i]);
    else
      medium_.stream(offset, words, 64);
  }
  /// Starts the write-back of the bytes there as they are now: durable after the next fence.
  void start_again(std::uint64_t offset, std::uint64_t bytes) noexcept {
    if (!failed() && !rehearses_) medium_.flush(offset, bytes);
  }
  /// The paper's memory fence: what was started is durable.
  void fence() noexcept {
    if (failed()) return;
    ++fences_;
    wait();
  }

  /// Returns whether the medium has failed. After that status() has the failure, and does not
  /// change any more.
  [[nodiscard]] bool failed() const noexcept {
    // Acquire: pairs with the release in fail().
    return __builtin_expect(failed_.load(std::memory_order_acquire), 0);
  }
  /// Returns ok, or the first failure.
  [[nodiscard]] Status status() const { return failed() ? status_ : Status(); }
  [[nodiscard]] std::uint64_t fences() const noexcept { return fences_; }
  [[nodiscard]] std::uint64_t synchronous_stores() const noexcept { return synchronous_; }
  [[nodiscard]] bool rehearses() const noexcept { return rehearses_; }
  [[nodiscard]] LogForm form() const noexcept { return form_; }
  [[nodiscard]] medium::Medium& medium() const noexcept { return medium_; }

 private:
  void put(std::uint64_t offset, std::uint64_t word) noexcept {
    if (__builtin_expect(rehearses_, 0))
      keep(offset, word);
    else
      medium_.store(offset, &word, 8);
  }
  void keep(std::uint64_t offset, std::uint64_t word) noexcept {
    try {
      kept_[offset] = word;
    } catch (const std::bad_alloc&) {
      fail(failure(Code::out_of_memory, medium_.path(),
                   "no memory to try out the recovery of a log", "",
                   "free memory and open the pool again"));
    }
  }
  void wait() noexcept {
    if (rehearses_) return;
    if (Status s = medium_.fence(); __builtin_expect(!s.ok(), 0)) fail(std::move(s));
  }
  void fail(Status&& status) noexcept {
    if (failed()) return;
    status_ = std::move(status);
    // Release: pairs with failed(): a thread that sees it may read status_.
    failed_.store(true, std::memory_order_release);
  }
  medium::Medium& medium_;
  const std::uint64_t identity_;
  const LogForm form_;
  const bool rehearses_;
  Status status_;  // written once, before failed_
  std::atomic<bool> failed_{false};
  std::uint64_t fences_ = 0, synchronous_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> kept_;  // stored by the rehearsal
};

}  // namespace perdure::papers::rewind
