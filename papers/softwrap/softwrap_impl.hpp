// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of SoftWrAP that are not inlined into users' transactions; compiled once per instance
// (instances.cpp).
#pragma once

#include <string>

#include "papers/names.hpp"
#include "papers/softwrap/options.hpp"
#include "papers/softwrap/softwrap.hpp"

namespace perdure::papers::softwrap {

template <class Tm>
Logged<Tm>::Logged(pool::OpenPool& file, const Config& config, const Recovery& recovery)
    : Base(file, config, recovery) {
  for (std::uint32_t i = 0; i < file.header().ring_count; ++i) {
    WrapLog& log = logs_.add(this->core_.medium, place_of(file.header(), i));
    if (file.read_only()) continue;
    if (Status s = log.format(file.header().checkpoint_id); !s.ok()) {
      this->core_.poison(s);
      return;
    }
  }
}

template <class Tm>
Status Logged<Tm>::close_logs(Status s) {
  // Acquire: pairs with the draw of the last id.
  const std::uint64_t clock = this->tm_.domain.clock.load(std::memory_order_acquire);
  if (s.ok()) s = this->core_.publish([clock](pool::Header& h) { h.checkpoint_id = clock; });
  return s.ok() ? this->core_.file.close_clean(clock) : s;
}

template <class Tm>
void Logged<Tm>::fill(Stats& stats) const {
  this->core_.fill(stats);
  stats.last_id = this->tm_.domain.clock.load(std::memory_order_relaxed);
  stats.durable_id = this->durable_id();
  for (std::size_t i = 0; i < logs_.size(); ++i)
    stats.log_used += logs_[i].used() * medium::line_bytes;
}

template <class Tm>
void WrapTransaction<Tm>::no_log_space(std::uint64_t bytes) {
  if (core_.state() != 0) core_.refuse();
  if (log().bytes() + bytes > log().capacity())
    throw error(failure(
        Code::too_big, core_.file.path(),
        "a transaction that stores, allocates and frees more than a bucket of its log holds",
        "at most " + std::to_string(log().capacity()) +
            " bytes: 12 a word or a block, 8 a word of a run of 4 and more",
        "split it, or make the pool with a larger log_size"));
  needed_ = log().bytes() + bytes;
  this->throw_log_full({needed_});
}

template <class Tm>
void WrapTransaction<Tm>::stream_object(std::uint64_t offset, const void* object,
                                        std::uint64_t bytes) noexcept {
  medium::Medium& medium = core_.medium;
  const auto* const from = static_cast<const std::byte*>(object);
  const std::uint64_t at = medium.log_bytes() + offset;
  // Whole lines are streamed; what is left of the first and the last is stored and written back.
  const std::uint64_t first =
      std::min((medium::line_bytes - at % medium::line_bytes) % medium::line_bytes, bytes);
  std::uint64_t whole = (bytes - first) / medium::line_bytes * medium::line_bytes;
  if (reinterpret_cast<std::uintptr_t>(from + first) % 8 != 0) whole = 0;  // stream() refuses it
  const auto store = [&](std::uint64_t i, std::uint64_t n) {
    if (n == 0) return;
    medium.store(at + i, from + i, n);
    medium.flush(at + i, n);
  };
  store(0, first);
  if (whole != 0) medium.stream(at + first, from + first, whole);
  store(first + whole, bytes - first - whole);
  streamed_ = true;
  log().object(offset, (bytes + 7) / 8);
}

// --- global aliasing -----------------------------------------------------------------------------

inline constexpr std::uint32_t default_alias_entries = 1 << 16;
inline const papers::SoftwrapOptions& options_of(const Config& config) noexcept {
  return config.options.get<papers::SoftwrapOptions>();
}
constexpr std::uint64_t or_else(std::uint64_t chosen, std::uint64_t unless) noexcept {
  return chosen != 0 ? chosen : unless;
}

template <class Tm>
SoftWrap<Tm>::SoftWrap(pool::OpenPool& file, const Config& config, const Recovery& recovery)
    : Base(file, config, recovery),
      stream_home_(options_of(config).stream_home),
      tables_(or_else(options_of(config).alias_entries, default_alias_entries),
              or_else(options_of(config).alias_page_bytes, AliasPages::default_bytes)) {
  if (file.read_only() || core_.poisoned()) return;
  const auto begin_buckets = [this](unsigned bucket, std::uint64_t base) {
    for (std::size_t i = 0; i < logs_.size(); ++i) logs_[i].begin_bucket(bucket, base);
  };
  const auto replay = [this] {
    Recovery report;
    return replay_closed(core_.medium, core_.file.header(), report);
  };
  retirer_ = std::make_unique<Retirer>(
      Retirer::House{tables_, core_.medium, [this] { return tm_.domain.low_watermark(); },
                     begin_buckets,
                     [this](std::uint64_t x) { return logs_[0].note_checkpoint_id(x); }, replay,
                     [this](const Status& s) { core_.poison(s); }},
      file.header().checkpoint_id, tables_.table(0).capacity(), options_of(config));
}

template <class Tm>
SoftWrap<Tm>::~SoftWrap() {
  retirer_.reset();  // while what it calls exists
}

template <class Tm>
SoftWrap<Tm>::Transaction::Transaction(SoftWrap& engine, int slot)
    : Base(engine.tm_, engine.core_, slot, engine.logs_),
      engine_(engine),
      slot_(slot),
      opened_(engine.tables_.now()) {}

template <class Tm>
void SoftWrap<Tm>::Transaction::need(Need what) {
  if (core_.state() != 0) core_.refuse();
  need_ = what;
  if (what == Need::table) {
    ++full_;
    entries_ = engine_.tables_.active().capacity();  // it stays while the wrap is open
  }
  needed_ = 1;
  this->throw_log_full({needed_});
}

template <class Tm>
void SoftWrap<Tm>::Transaction::expired() {
  const std::string ms = std::to_string(engine_.retirer_->long_wrap_ms());
  throw error(
      failure(Code::busy, core_.file.path(),
              "a transaction that was open for more than twice " + ms + " ms while others waited",
              "one that ends within long_wrap_ms",
              "do less in it, or open the pool with a larger long_wrap_ms"));
}

// Does all that may fail, before the commit draws its id.
template <class Tm>
void SoftWrap<Tm>::Transaction::prepare() {
  check_expired();
  choose_home();
  const auto ops = static_cast<std::uint64_t>(std::distance(ops_.begin(), ops_.end()));
  if (ops != 0) room(ops * WrapRecord::entry_bytes);
  for (const pool::HeapOp& op : ops_) log().heap(op);
  std::size_t heap = 0;
  // Counts lines at most: a span's bitmap and directory words, or an object's.
  for (const pool::HeapOp& op : ops_) heap += 16 + op.chunks;
  huge_ = heap > log::DataWriter::batch;
  node_.clear();
  if (ops != 0 || !home_.empty()) node_.emplace_back().reserve(heap + home_.size());
}

// Local aliasing beside global: the words of which a table has an alias get their values there, for
// a round would store the older one over them; the others go to the data region (SOFTWRAP-1). Until
// this wrap has closed no other one uses these words: the caller isolates.
template <class Tm>
void SoftWrap<Tm>::Transaction::choose_home() {
  home_.clear();
  home_.reserve(own_.size());
  own_.for_each([&](std::uint64_t offset, std::uint64_t value) {
    // mutant: softwrap-local-beside-aliases
    if (engine_.tables_.find(offset) != nullptr) return store(offset, value);
    home_.push_back({offset, value});
  });
}

// The wrap's log is durable. RETIRE-1: the lines are flushed by the round that covers the wrap.
template <class Tm>
Status SoftWrap<Tm>::Transaction::go_home() {
  if (!home_.empty() && engine_.stream_home_) {
    if (Status s = this->stream_home(home_); !s.ok()) return s;
  } else {
    this->store_home(home_);
    // mutant: softwrap-local-lines-flushed
    for (const medium::WordStore& w : home_)
      node_.front().push_back(w.offset / medium::line_bytes * medium::line_bytes);
  }
  if (!ops_.empty()) {
    {
      const std::lock_guard lock(engine_.heap_bits_);
      this->apply_heap_ops(data_writer_);  // SOFTWRAP-3
    }
    data_writer_.hand_over([&](std::uint64_t line) { node_.front().push_back(line); });
  }
  // The writer had to flush lines by itself: no other thread's fence covers them.
  if (huge_)
    if (Status s = core_.medium.fence(); !s.ok()) return s;
  // mutant: softwrap-heap-lines-flushed
  if (!node_.empty()) engine_.retirer_->push(node_);
  return {};
}

template <class Tm>
std::uint64_t SoftWrap<Tm>::Transaction::commit(Durability) {
  if (needed_ != 0) this->throw_log_full({needed_});
  if (!open_ && ops_.empty()) {
    engine_.tables_.close(slot_);  // it reads nothing any more
    return this->end_read_only();
  }
  const auto persist = [&](std::uint64_t drawn) {
    Status s = this->objects_durable();
    if (s.ok()) s = log().close(drawn);
    ThreadCounters::add(row_.log_bytes, log().lines() * medium::line_bytes);
    return s.ok() ? go_home() : s;
  };
  return this->commit_durably(
      engine_, [&] { prepare(); }, persist,
      [&] {
        full_ = 0;
        log().prepare_ahead();
        end();
        engine_.retirer_->closed();
      });
}

// Restores in each table what the wrap has overwritten, while no other wrap sees it. An alias that
// the wrap added is removed: if its value were stored to the data region, it might overwrite a
// bitmap, because its block may be a span by then (SOFTWRAP-3).
template <class Tm>
void SoftWrap<Tm>::Transaction::take_back() noexcept {
  tm_.undo().take_back([](std::uint64_t* alias, std::uint64_t old) { tm::store_word(alias, old); });
  // mutant: softwrap-abort-forgets-aliases
  for (std::uint64_t* const alias : added_) AliasTable::forget(alias);
  // mutant: softwrap-abort-forgets-objects
  for (const AliasPages::Change& c : objects_) AliasPages::forget(c);
}

template <class Tm>
void SoftWrap<Tm>::Transaction::rollback() noexcept {
  if (!inside_) return;
  if (core_.forked()) {
    inside_ = false;
    return;
  }
  take_back();
  this->abandon();
  end();
}

template <class Tm>
void SoftWrap<Tm>::Transaction::end() noexcept {
  added_.clear();
  objects_.clear();
  own_.clear();
  local_ = false;
  this->end_log();
  engine_.tables_.close(slot_);
}

template <class Tm>
void SoftWrap<Tm>::wait_for_log_space(Transaction& transaction, LogSpace needed) {
  if (core_.state() != 0) core_.refuse();
  using Need = typename Transaction::Need;
  const Need need = std::exchange(transaction.need_, Need::nothing);
  // `full` means that the disk is full. The wrap was rolled back, and does not run again.
  if (const auto bucket = static_cast<unsigned>(transaction.opened_.period() % 3);
      need == Need::nothing && transaction.log().lacks_blocks(bucket, needed.bytes))
    return transaction.log().prepare(bucket, needed.bytes).or_throw();
  // A table that is full again, although it was empty when the wrap ran again, is too small for the
  // wrap.
  const std::uint64_t entries =
      need == Need::table && transaction.full_ > 1 ? transaction.entries_ * 2 : 0;
  const Status s = need == Need::drain ? retirer_->drain() : retirer_->next_period(entries);
  if (s.code() == Code::busy) throw error(s);  // the wrap was rolled back, and does not run again
  if (!s.ok()) core_.refuse();
}

template <class Tm>
Status SoftWrap<Tm>::checkpoint() {
  if ((core_.state() & ~EngineBase::read_only_bit) != 0) return core_.why();
  if (!retirer_) return {};
  Status s = retirer_->drain();
  return s.ok() || s.code() == Code::busy ? s : core_.why();  // it has poisoned the pool
}

template <class Tm>
Status SoftWrap<Tm>::close() {
  Status s;
  if (!core_.file.read_only()) {
    s = core_.state() != 0 ? core_.why() : checkpoint();
    if (retirer_) retirer_->stop();
    s = this->close_logs(s);
  }
  core_.closed();
  return s;
}

template <class Tm>
Stats SoftWrap<Tm>::stats() {
  Stats s;
  this->fill(s);
  if (retirer_) {
    s.checkpoint_id = retirer_->checkpoint_id();
    s.checkpoints = retirer_->rounds();
    s.checkpoint_lines = retirer_->lines();
  }
  return s;
}

}  // namespace perdure::papers::softwrap
