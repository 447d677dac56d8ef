// SPDX-License-Identifier: BSD-3-Clause
//
// SoftWrAP (Doshi, Giles, Varman, "SoftWrAP: A Lightweight Framework for Transactional Support of
// Storage Class Memory", MSST '15): what a wrap (the paper's word for a transaction) stores does
// not reach the data region before its log is durable. There are two paths: values reach other
// wraps through an alias in DRAM, and a redo record is streamed past the cache.
//
//   SoftWrap       Global aliasing: aliases are in two tables that all wraps share
//                  (papers/softwrap/alias_tables.hpp); a thread retires them, which means that it
//                  stores their values to the data region (retirer.hpp).
//   SoftWrapLocal  Local aliasing (section IV-D), for strict isolation: a wrap's aliases are its
//                  own, copied to the data region when it has closed.
// The log is the same (papers/softwrap/wrap_log.hpp), one per thread. Entries are streamed as the
// wrap stores; its close is durable by one fence, within the TM's commit: what it has stored is not
// visible before, where the TM isolates.
//   SOFTWRAP-1 The data region has nothing of a wrap before its log is durable, but for objects in
//              blocks of their own (SOFTWRAP-4).
//   SOFTWRAP-2 A bucket of a log begins again only when the data region durably holds all of its
//              wraps, and the checkpoint id X says so; X covers the wraps of all logs up to it.
//              Otherwise an older value, still in another thread's log, would overwrite a newer one
//              whose log has been truncated.
//   SOFTWRAP-3 Words of the heap (bitmaps, directory) have no alias: they are stored to the data
//              region at the close, after the fence. A chunk whose words still have aliases, of
//              blocks that were freed, becomes a span only after these were stored: they would
//              overwrite its bitmap.
//   SOFTWRAP-4 An object that a wrap streams to a block of its own is durable before the close of
//              the wrap's log is streamed. The log says where it lies, and not what it is: older
//              wraps' stores to that place are not replayed over it.
// wrapOpen ... wrapClose of the paper are begin ... commit here, wrapLoad and wrapStore are read
// and write; papers/softwrap/wrap_calls.hpp has them under their names.
// Thread safety: any thread may call the engine; a Transaction belongs to its thread.
#pragma once

#include <bit>
#include <memory>
#include <vector>

#include "papers/names.hpp"
#include "papers/softwrap/alias_tables.hpp"
#include "papers/softwrap/logged.hpp"
#include "papers/softwrap/own_aliases.hpp"
#include "papers/softwrap/retirer.hpp"

namespace perdure::papers::softwrap {

/// From this many words on, words that are written at once are an object, whose alias is in pages.
inline constexpr std::uint64_t object_words = 16;

/// Global aliasing.
template <class Tm>
class SoftWrap : public Logged<Tm> {
  using Base = Logged<Tm>;

 public:
  static constexpr const char* name = global_family;
  class Transaction;

  SoftWrap(pool::OpenPool& file, const Config& config, const Recovery& recovery);
  ~SoftWrap();

  Transaction& transaction() {
    return transactions_.get(
        [this](int slot) { return std::make_unique<Transaction>(*this, slot); });
  }
  Status checkpoint();
  Status close();
  Stats stats();
  void wait_for_log_space(Transaction& transaction, LogSpace needed);
  /// For tests: the tables, and the thread that retires them (null: read-only).
  [[nodiscard]] AliasTables& tables() noexcept { return tables_; }
  [[nodiscard]] const Retirer* retirer() const noexcept { return retirer_.get(); }

 private:
  using Base::core_, Base::heap_bits_, Base::tm_, Base::logs_;
  const bool stream_home_;
  AliasTables tables_;
  std::unique_ptr<Retirer> retirer_;
  Transactions<Transaction> transactions_;
};

template <class Tm>
class SoftWrap<Tm>::Transaction : public WrapTransaction<Tm> {
  using Base = WrapTransaction<Tm>;
  using Base::core_, Base::heap_, Base::inside_, Base::directory_, Base::offset_of, Base::ops_,
      Base::row_, Base::tm_, Base::view_, Base::open_, Base::needed_, Base::data_writer_, Base::log;

 public:
  Transaction(SoftWrap& engine, int slot);

  void begin(bool update) {
    // A pool that refuses work, or a forked child's, has no thread that would end the wait.
    if (update && engine_.retirer_ && core_.state() == 0) engine_.retirer_->wait_at_threshold();
    Base::begin(update);
    local_ = false;
    opened_ = engine_.retirer_ ? engine_.retirer_->open(slot_) : engine_.tables_.open(slot_);
  }
  /// Local aliasing for the open wrap, which has stored nothing yet. Returns `ok`.
  Status alias_locally() noexcept {
    local_ = true;
    return {};
  }
  /// Global aliasing, as every wrap of this engine has unless it says otherwise. Returns `ok`.
  Status alias_globally() noexcept {
    local_ = false;
    return {};
  }
  // Each access looks up the alias tables.
  [[nodiscard]] static constexpr bool direct() noexcept { return false; }
  [[nodiscard]] std::uint64_t read(const std::uint64_t* a) {
    check_expired();
    std::uint64_t own = 0;
    if (own_.find(offset_of(a), own)) return own;
    if (const std::uint64_t* alias = engine_.tables_.find(offset_of(a)))
      return tm::load_word(alias);
    return tm_.read(a);
  }
  void write(std::uint64_t* a, std::uint64_t v) {
    check_expired();
    room(Base::word_bytes);
    local_ ? own_.put(offset_of(a), v) : store(offset_of(a), v);
    log().word(offset_of(a), v);
  }
  void write_words(std::uint64_t* a, const std::uint64_t* src, std::uint64_t n) {
    if (n < Base::min_run) {
      for (std::uint64_t i = 0; i < n; ++i) write(a + i, src[i]);
      return;
    }
    check_expired();
    room(Base::run_bytes(n));
    if (local_)
      for (std::uint64_t i = 0; i < n; ++i) own_.put(offset_of(a + i), src[i]);
    else if (n < object_words)
      for (std::uint64_t i = 0; i < n; ++i) store(offset_of(a + i), src[i]);
    else
      store_object(offset_of(a), src, n);
    log().run(offset_of(a), src, n);
  }
  /// read() of n words, those of pages as a whole.
  void read_words(std::uint64_t* to, const std::uint64_t* a, std::uint64_t n) {
    check_expired();
    engine_.tables_.read(offset_of(a), to, n, [&](std::uint64_t i) { return tm_.read(a + i); });
    own_.over(offset_of(a), to, n);
  }
  std::byte* alloc(std::uint64_t bytes) {
    check_expired();
    Spans spans{*this};
    return view_ + ops_.allocate(heap_, bytes, spans, view_, directory_).offset;
  }
  void free(void* p) {
    check_expired();
    ops_.free(heap_, offset_of(p), tm_);
  }
  /// Returns whether none of n words has an alias.
  [[nodiscard]] bool unaliased(std::uint64_t offset, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i)
      if (engine_.tables_.find(offset + i * 8) != nullptr) return false;
    return !own_.any_of(offset, n);
  }
  /// Streams an object to a block that this wrap has allocated, and whose words have no alias.
  void stream_object(std::byte* block, const void* object, std::uint64_t bytes) {
    check_expired();
    room(Base::run_bytes(0));
    Base::stream_object(offset_of(block), object, bytes);
  }
  std::uint64_t commit(Durability durability);
  void rollback() noexcept;
  /// Returns whether the open wrap, which has stored nothing yet, finds half of its bucket and half
  /// of a table free; otherwise call wait_for_log_space({half()}).
  [[nodiscard]] bool roomy() {
    this->use_.look();
    return log().roomy(static_cast<unsigned>(opened_.period() % 3)) &&
           engine_.tables_.active().size() * 2 <= engine_.tables_.active().words.limit();
  }
  [[nodiscard]] std::uint64_t half() noexcept { return log().capacity() / 2; }

 private:
  friend class SoftWrap;
  enum class Need : std::uint8_t { nothing, log, table, drain };
  struct Spans {  // SOFTWRAP-3: the TM that HeapOps::allocate uses
    Transaction& c;
    void own(const std::uint64_t* line) {
      c.tm_.own(line);
      for (unsigned i = 0; i < 8; ++i)
        // mutant: softwrap-spans-drained
        if (c.engine_.tables_.find(c.offset_of(line + i)) != nullptr) c.need(Need::drain);
    }
  };
  void room(std::uint64_t bytes) {
    Base::room(bytes, [this] { return static_cast<unsigned>(opened_.period() % 3); });
  }
  /// Gives the word's alias this value; the old one is recorded for undo.
  void store(std::uint64_t offset, std::uint64_t v) {
    AliasTables::Table& table = engine_.tables_.active();
    std::uint64_t* alias = table.find(offset);
    if (alias == nullptr) {
      const std::uint64_t* const other = engine_.tables_.find(offset);  // in the other table
      const std::uint64_t old =
          other != nullptr ? *other
                           : tm::load_word(reinterpret_cast<const std::uint64_t*>(view_ + offset));
      added_.push_back(nullptr);  // first: memory may run out
      alias = table.words.add(offset, old);
      if (__builtin_expect(alias == nullptr, 0)) {
        added_.pop_back();
        need(Need::table);
      }
      added_.back() = alias;
    }
    tm_.undo().push(alias, *alias);  // TMs put it back where it was: into the alias
    tm::store_word(alias, v);
  }
  void store_object(std::uint64_t offset, const std::uint64_t* src, std::uint64_t n) {
    const auto before = [this](const AliasPages::Change& c, std::uint64_t there) {
      if (c.bits != 0) objects_.push_back(c);
      for (; there != 0; there &= there - 1) {
        std::uint64_t* const word = c.first + std::countr_zero(there);
        tm_.undo().push(word, *word);
      }
    };
    if (__builtin_expect(!engine_.tables_.active().pages.write(offset, src, n, before), 0))
      need(Need::table);
  }
  void check_expired() {
    if (engine_.retirer_ && engine_.retirer_->expired(opened_.period())) expired();
  }
  [[noreturn]] void need(Need what);
  [[noreturn]] void expired();
  void prepare();
  void choose_home();
  Status go_home();
  void take_back() noexcept;
  void end() noexcept;

  SoftWrap& engine_;
  const int slot_;
  AliasTables::Moment opened_;
  Need need_ = Need::nothing;
  unsigned full_ = 0;                        // how often in a row its table was full
  std::uint64_t entries_ = 0;                // what that table has space for
  std::vector<std::uint64_t*> added_;        // aliases that this wrap has added
  std::vector<AliasPages::Change> objects_;  // the same for words in pages
  bool local_ = false;                       // this wrap's aliasing
  OwnAliases own_;                           // with local aliasing
  std::vector<medium::WordStore> home_;      // of these, what the data region gets at the close
  Retirer::Node node_;                       // lines that this wrap has stored to itself
  bool huge_ = false;                        // they are more than the writer holds
};

}  // namespace perdure::papers::softwrap
