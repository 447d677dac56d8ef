// SPDX-License-Identifier: BSD-3-Clause
//
// REWIND (Chatzistergiou, Cintra, Viglas, VLDB '15): words are stored to the data region in place,
// and their old and new values to a log that lies, like the data, in persistent memory, and is a
// recoverable structure itself. manager.hpp has the protocol, papers/rewind/rewind_log.hpp the log.
//
// A composition = {1, 2} layers x {force, no-force} x {Simple, Optimized, Batch}. One type serves
// them all: the pool's header says which one the pool has. The paper leaves isolation to the caller
// (section 4.7): the TM here is the pool's lock, software transactional memory, or none.
// Thread safety: any thread may call the engine; a Transaction belongs to its thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>

#include "papers/names.hpp"
#include "papers/rewind/manager.hpp"
#include "perdure/engine/data_at_commit.hpp"
#include "perdure/engine/engine_info.hpp"
#include "perdure/engine/transaction.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::papers::rewind {

// The compositions, best first, with the names in headers. There is one list, from which the names
// and the Composition of a name are derived.
// clang-format off
#define PERDURE_REWIND(name)                                                              \
  name("rewind-1l-nfp-batch"), name("rewind-1l-nfp-optimized"), name("rewind-1l-nfp-simple"), \
  name("rewind-1l-fp-batch"),  name("rewind-1l-fp-optimized"),  name("rewind-1l-fp-simple"),  \
  name("rewind-2l-nfp-batch"), name("rewind-2l-nfp-optimized"), name("rewind-2l-nfp-simple"), \
  name("rewind-2l-fp-batch"),  name("rewind-2l-fp-optimized"),  name("rewind-2l-fp-simple")
#define PERDURE_SELF(text) InstanceName{text, text}
#define PERDURE_NONE(text) InstanceName{text "/none", text}
#define PERDURE_STM(text) InstanceName{text "/stm", text}
// clang-format on
inline constexpr std::array<InstanceName, 12> names = {PERDURE_REWIND(PERDURE_SELF)};
inline constexpr std::array<InstanceName, 12> names_none = {PERDURE_REWIND(PERDURE_NONE)};
// Of each layer, policy and version that groups records one: the TM is the same in all.
inline constexpr std::array<InstanceName, 4> names_stm = {
    PERDURE_STM("rewind-1l-nfp-batch"), PERDURE_STM("rewind-1l-fp-batch"),
    PERDURE_STM("rewind-1l-nfp-optimized"), PERDURE_STM("rewind-2l-nfp-optimized")};
#undef PERDURE_REWIND
#undef PERDURE_SELF
#undef PERDURE_NONE
#undef PERDURE_STM

/// Returns the composition that an instance's name, or a header's engine name, stands for.
[[nodiscard]] Composition composition_of(std::string_view name) noexcept;
/// `group` as in RewindOptions::log_group.
[[nodiscard]] Composition composition_of(const pool::Header& header,
                                         std::uint32_t group = 0) noexcept;

template <class Tm>
class Rewind : public DataAtCommit<Tm> {
  using Base = DataAtCommit<Tm>;

 public:
  static constexpr bool ring_records = false;

  class Transaction;

  static pool::Identity identity(const Config& config) {
    // One ring is the paper's shared log; more are its distributed log.
    pool::Identity who = Base::a_log_each(config);
    who.min_ring = composition_of(config.instance).layers == 1 ? 16384 : 65536;
    return who;
  }
  static Status recover(pool::OpenPool& file, Recovery& report);
  static Status prepare_log(pool::OpenPool& file) {
    return Manager(file, composition_of(file.header())).reserve();
  }

  Rewind(pool::OpenPool& file, const Config& config, const Recovery& recovery);

  Transaction& transaction() {
    return transactions_.get(
        [this](int slot) { return std::make_unique<Transaction>(*this, slot); });
  }
  Status checkpoint();
  Status close();
  Stats stats();
  void wait_for_log_space(Transaction& transaction, LogSpace needed);

 private:
  using Base::core_, Base::heap_bits_, Base::tm_;
  const Composition composition_;
  Manager manager_;
  std::mutex checkpointing_;
  std::atomic<std::uint64_t> checkpoints_{0}, checkpoint_id_{0};
  Transactions<Transaction> transactions_;
};

template <class Tm>
class Rewind<Tm>::Transaction : public TransactionBase<Tm> {
  using Base = TransactionBase<Tm>;
  using Base::core_, Base::heap_, Base::inside_, Base::directory_, Base::offset_of, Base::ops_,
      Base::row_, Base::shows_, Base::tm_, Base::view_;

 public:
  Transaction(Rewind& engine, int slot);

  [[nodiscard]] bool direct() const noexcept {
    return (!waits_ || this->in_view()) && tm_.direct();
  }
  [[nodiscard]] std::uint64_t read(const std::uint64_t* a) {
    if (__builtin_expect(!tx_.waiting.empty(), 0))
      if (const std::uint64_t* const value = tx_.find(offset_of(a))) return *value;
    return tm_.read(a);
  }
  void write(std::uint64_t* a, std::uint64_t v) {
    tm_.own(a);
    log_and_store(offset_of(a), v);
  }
  void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) write(a + i, src[i]);
  }
  std::byte* alloc(std::uint64_t bytes) {
    return view_ + ops_.allocate(heap_, bytes, tm_, view_, directory_).offset;
  }
  void free(void* p) { ops_.free(heap_, offset_of(p), tm_); }
  std::uint64_t commit(Durability durability);
  void rollback() noexcept;

  /// For the paper's calls (papers/rewind/rewind_calls.hpp), which cannot run a transaction again.
  /// Returns false, with nothing changed, if the log is too full.
  [[nodiscard]] bool log(std::uint64_t* a, std::uint64_t v);
  /// Puts what was logged in the log, and stores it.
  void end_group();
  /// Called after commit() has thrown LogFull, so that it may be called again.
  void room_made() noexcept { needed_ = 0; }

 private:
  friend class Rewind;
  void log_and_store(std::uint64_t offset, std::uint64_t value);
  void look_for_failure();
  void end() noexcept;
  [[noreturn]] void log_full(std::uint64_t bytes);

  Rewind& engine_;
  ManagedLog& log_;
  const bool force_;
  const bool waits_;  // stores wait for their group (section 3.3): reads must check them
  ManagedTransaction tx_;
  // It has thrown LogFull with this many bytes: if a caller swallowed that, commit throws it
  // again.
  std::uint64_t needed_ = 0;
  log::DataWriter data_writer_;
};

}  // namespace perdure::papers::rewind
