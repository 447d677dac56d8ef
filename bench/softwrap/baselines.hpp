// SPDX-License-Identifier: BSD-3-Clause
//
// The baselines of SoftWrAP's paper (SoftWrAP, MSST '15, section V and Table I), on the emulated
// medium. COST BASELINES ONLY: nothing here recovers.
//   NonAtomic  each store goes to the data region and its line is written back; one fence per wrap.
//              n lines, 1 fence. A crash within a wrap leaves a part of it.
//   UndoLog    before each store a record with the word's old value is written back and fenced; at
//              the close the stored lines and an end marker, with one more fence. 2n + 1 lines and
//              one more for each record that crosses the end of a line, n + 1 fences. A record has
//              the paper's 12 bytes: 4 that name the word, 8 of value. The marker and the stores
//              share a fence, as the paper counts: a crash there may leave one without the other.
// The places of free memory are kept in DRAM alone, and cost these two nothing. Thread safety: one
// transaction per thread; the caller isolates the threads that store to the same word.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/softwrap/setup.hpp"
#include "bench/tpcc/nvm.hpp"
#include "perdure/base/thread_slot.hpp"

namespace bench::softwrap {

/// The bytes of the data region, allocated from its beginning, and one piece of log per thread: for
/// the threads with the first slots.
class Memory {
 public:
  static constexpr std::uint64_t line = perdure::medium::line_bytes;
  const std::uint64_t log_part;  ///< bytes of a thread's log

  explicit Memory(const Setup& setup, std::uint64_t part = 64 << 10,
                  int threads = perdure::base::max_threads)
      : log_part(part) {
    perdure::medium::OpenMedium how;
    how.path = setup.directory + "/home";
    how.kind = "emulated";
    how.create = true;
    how.log_bytes = log_part * static_cast<std::uint64_t>(threads);
    how.log_bytes = (how.log_bytes + perdure::medium::region_align - 1) /
                    perdure::medium::region_align * perdure::medium::region_align;
    how.data_bytes =
        (setup.data_size / perdure::medium::region_align + 2) * perdure::medium::region_align;
    how.delays = setup.delays();
    medium_ = perdure::medium::open_medium(how).value();
    touch_pages(medium_->at(0), medium_->log_bytes());
    touch_pages(medium_->data(), medium_->data_bytes());
  }
  [[nodiscard]] perdure::medium::Medium& medium() const noexcept { return *medium_; }
  [[nodiscard]] std::byte* data() const noexcept { return const_cast<std::byte*>(medium_->data()); }
  [[nodiscard]] std::uint64_t offset_of(const void* data_address) const noexcept {
    return medium_->log_bytes() +
           static_cast<std::uint64_t>(static_cast<const std::byte*>(data_address) -
                                      medium_->data());
  }
  /// Allocates whole lines.
  std::byte* allocate(std::uint64_t n) {
    const std::lock_guard lock(taking_);
    n = (n + line - 1) / line * line;
    if (n > medium_->data_bytes() - taken_)
      throw std::runtime_error("home is too small for this workload");
    taken_ += n;
    return data() + (taken_ - n);
  }

 private:
  std::unique_ptr<perdure::medium::Medium> medium_;
  std::mutex taking_;
  std::uint64_t taken_ = 0;
};

/// Shared by both: reads, and words instead of values. `Derived` has word(offset, value), close().
template <class Derived>
class BaselineTx {
 public:
  template <class T>
  using Field = tpcc::NvmModel::Field<T>;
  template <class T>
  using Link = tpcc::NvmModel::Link<T>;

  explicit BaselineTx(Memory& memory) : memory_(memory), medium_(memory.medium()) {}

  template <class T>
  T get(const Field<T>& field) const {
    return field.value;
  }
  template <class T>
  T* get(const Link<T>& link) const {
    return link.target;
  }
  template <class T>
  void set(Field<T>& field, std::type_identity_t<T> value) {
    store(&field, &value);
  }
  template <class T>
  void set(Link<T>& link, std::type_identity_t<T>* target) {
    store(&link, &target);
  }
  template <class T>
  T* allocate(std::size_t n) {
    return reinterpret_cast<T*>(memory_.allocate(n * sizeof(T)));
  }

 protected:
  template <class T>
  void store(void* to, const T* value) {
    static_assert(sizeof(T) == 8);
    static_cast<Derived&>(*this).word(memory_.offset_of(to), value);
  }
  Memory& memory_;
  perdure::medium::Medium& medium_;
};

class NonAtomicTx : public BaselineTx<NonAtomicTx> {
 public:
  using BaselineTx::BaselineTx;
  void word(std::uint64_t at, const void* value) {
    medium_.store(at, value, 8);
    medium_.flush(at, 8);
  }
  void close() { medium_.fence().or_throw(); }
};

class UndoLogTx : public BaselineTx<UndoLogTx> {
 public:
  explicit UndoLogTx(Memory& memory)
      : BaselineTx(memory),
        log_(static_cast<std::uint64_t>(perdure::base::thread_slot()) * memory.log_part),
        at_(log_) {
    if (log_ + memory.log_part > medium_.log_bytes())
      throw std::runtime_error("no log for a thread with slot " +
                               std::to_string(perdure::base::thread_slot()));
  }
  void word(std::uint64_t at, const void* value) {
    std::uint64_t old = 0;
    std::memcpy(&old, medium_.at(at), 8);
    append(static_cast<std::uint32_t>((at - medium_.log_bytes()) / 8 + 1), old);
    medium_.fence().or_throw();  // the old value is durable before the data region may change
    medium_.store(at, value, 8);
    stored_.push_back(at);
  }
  void close() {
    for (const std::uint64_t at : stored_) medium_.flush(at, 8);
    append(0, 0);  // the end marker
    medium_.fence().or_throw();
    stored_.clear();
    at_ = log_;
  }

 private:
  static constexpr std::uint64_t record_bytes = 12;
  void append(std::uint32_t word, std::uint64_t old) {
    if (at_ + record_bytes > log_ + memory_.log_part)
      throw std::runtime_error("a wrap stores more than the undo log has room for");
    std::array<std::byte, record_bytes> record;
    std::memcpy(record.data(), &word, 4);
    std::memcpy(record.data() + 4, &old, 8);
    medium_.store(at_, record.data(), record_bytes);
    medium_.flush(at_, record_bytes);
    at_ += record_bytes;
  }
  const std::uint64_t log_;
  std::uint64_t at_;                   // the position of the next record
  std::vector<std::uint64_t> stored_;  // in the open wrap
};

/// A root and wraps on it, like PoolHost.
template <class Root, class Tx>
class BaselineHost {
 public:
  using Model = tpcc::NvmModel;
  explicit BaselineHost(const Setup& setup)
      : memory_(setup), root_(reinterpret_cast<Root*>(memory_.allocate(sizeof(Root)))) {}

  /// Runs a wrap: f(tx, root).
  template <class F>
  void wrap(F&& f) {
    auto& tx = mine_[static_cast<std::size_t>(perdure::base::thread_slot())];
    if (!tx) tx = std::make_unique<Tx>(memory_);
    f(*tx, *root_);
    tx->close();
  }
  template <class F>
  void view(F&& f) {
    Tx tx(memory_);
    f(tx, static_cast<const Root&>(*root_));
  }
  void ready() {}
  void settle() {}
  void reopen() {}
  std::vector<std::string> check() { return {}; }
  [[nodiscard]] Counts counts() const {
    const auto c = memory_.medium().counters();
    return {c.fences, c.streamed_lines, c.flushed_lines, 0};
  }
  [[nodiscard]] std::string describe() const {
    return "not crash atomic: a cost baseline; " + memory_.medium().describe();
  }

 private:
  Memory memory_;
  Root* const root_;
  // One per thread.
  std::array<std::unique_ptr<Tx>, static_cast<std::size_t>(perdure::base::max_threads)> mine_;
};

}  // namespace bench::softwrap
