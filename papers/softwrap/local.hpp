// SPDX-License-Identifier: BSD-3-Clause
//
// SoftWrapLocal: local aliasing (papers: SoftWrAP, MSST '15, section IV-D). A wrap's aliases are a
// table of its own (own_aliases.hpp), discarded as it closes: its log is durable, its values are
// in the data region, and other wraps find them there through the caches. They are stored, and
// written back in bulk when a log is full, or by the cache at any time: nothing depends on it
// before. With SoftwrapOptions::stream_home they are streamed, as in the paper, and durable when
// the close returns.
// SOFTWRAP-1, SOFTWRAP-2 and SOFTWRAP-4 as in softwrap.hpp.
// Thread safety: any thread may call the engine; a Transaction belongs to its thread.
#pragma once

#include "papers/names.hpp"
#include "papers/softwrap/logged.hpp"
#include "papers/softwrap/own_aliases.hpp"
#include "perdure/engine/bulk_persistence.hpp"

namespace perdure::papers::softwrap {

template <class Tm>
class SoftWrapLocal : public Logged<Tm> {
  using Base = Logged<Tm>;

 public:
  static constexpr const char* name = local_family;
  class Transaction;

  SoftWrapLocal(pool::OpenPool& file, const Config& config, const Recovery& recovery);

  Transaction& transaction() {
    return transactions_.get(
        [this](int slot) { return std::make_unique<Transaction>(*this, slot); });
  }
  Status checkpoint();
  Status close();
  Stats stats();
  void wait_for_log_space(Transaction& transaction, LogSpace needed);

 private:
  Status checkpoint_up_to(std::uint64_t id);

  using Base::core_, Base::heap_bits_, Base::tm_, Base::logs_;
  const bool stream_home_;
  BulkPersistence bulk_;
  Transactions<Transaction> transactions_;
};

template <class Tm>
class SoftWrapLocal<Tm>::Transaction : public WrapTransaction<Tm> {
  using Base = WrapTransaction<Tm>;
  using Base::core_, Base::heap_, Base::inside_, Base::directory_, Base::offset_of, Base::ops_,
      Base::row_, Base::tm_, Base::view_, Base::open_, Base::needed_, Base::data_writer_, Base::log;

 public:
  Transaction(SoftWrapLocal& engine, int slot)
      : Base(engine.tm_, engine.core_, slot, engine.logs_), engine_(engine) {}

  /// Local aliasing, as every wrap of this engine has. Returns `ok`.
  static Status alias_locally() noexcept { return {}; }
  /// Returns `unsupported`: there are no tables that wraps share.
  Status alias_globally() const;

  // An update's reads must check its aliases.
  [[nodiscard]] bool direct() const noexcept { return this->in_view() && tm_.direct(); }
  [[nodiscard]] std::uint64_t read(const std::uint64_t* a) {
    std::uint64_t value = 0;
    if (own_.find(offset_of(a), value)) return value;
    return tm_.read(a);
  }
  void write(std::uint64_t* a, std::uint64_t v) {
    tm_.own(a);
    room(Base::word_bytes);
    own_.put(offset_of(a), v);
    log().word(offset_of(a), v);
  }
  void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) {
    if (n < Base::min_run) {
      for (std::uint64_t i = 0; i < n; ++i) write(a + i, src[i]);
      return;
    }
    for (std::uint64_t i = 0; i < n; ++i) tm_.own(a + i);
    room(Base::run_bytes(n));
    for (std::uint64_t i = 0; i < n; ++i) own_.put(offset_of(a + i), src[i]);
    log().run(offset_of(a), src, n);
  }
  std::byte* alloc(std::uint64_t bytes) {
    return view_ + ops_.allocate(heap_, bytes, tm_, view_, directory_).offset;
  }
  void free(void* p) { ops_.free(heap_, offset_of(p), tm_); }
  /// As SoftWrap's.
  [[nodiscard]] bool unaliased(std::uint64_t offset, std::uint64_t n) const {
    return !own_.any_of(offset, n);
  }
  /// As SoftWrap's.
  void stream_object(std::byte* block, const void* object, std::uint64_t bytes) {
    room(Base::run_bytes(0));
    Base::stream_object(offset_of(block), object, bytes);
  }
  std::uint64_t commit(Durability durability);
  void rollback() noexcept;
  /// Returns whether the open wrap, which has stored nothing yet, finds half of its log free;
  /// otherwise call wait_for_log_space({half()}).
  [[nodiscard]] bool roomy() {
    this->use_.look();
    return log().roomy(0);
  }
  [[nodiscard]] std::uint64_t half() noexcept { return log().capacity() / 2; }

 private:
  friend class SoftWrapLocal;
  void room(std::uint64_t bytes) {
    Base::room(bytes, [] { return 0U; });
  }
  Status go_home();
  void end() noexcept;

  SoftWrapLocal& engine_;
  OwnAliases own_;
  std::vector<medium::WordStore> home_;  // of these, what the close stores to the data region
};

}  // namespace perdure::papers::softwrap
