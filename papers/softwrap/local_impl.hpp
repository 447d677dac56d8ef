// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of local aliasing that are not inlined into users' transactions; compiled once per
// instance (instances.cpp).
#pragma once

#include <string>

#include "papers/names.hpp"
#include "papers/softwrap/local.hpp"
#include "papers/softwrap/softwrap_impl.hpp"

namespace perdure::papers::softwrap {

template <class Tm>
SoftWrapLocal<Tm>::SoftWrapLocal(pool::OpenPool& file, const Config& config,
                                 const Recovery& recovery)
    : Base(file, config, recovery),
      stream_home_(options_of(config).stream_home),
      bulk_(core_, file.header().checkpoint_id) {}

template <class Tm>
Status SoftWrapLocal<Tm>::Transaction::alias_globally() const {
  return failure(
      Code::unsupported, core_.file.path(),
      "global aliasing for a wrap in a pool of engine " + std::string(name),
      "local aliasing: this engine has no tables that wraps share",
      "make the pool with engine " + std::string(global_family) + ", whose wraps may have either");
}

// The wrap's log is durable: stores its values to the data region, where other wraps find them.
template <class Tm>
Status SoftWrapLocal<Tm>::Transaction::go_home() {
  Status s;
  if (engine_.stream_home_ && !home_.empty())
    s = this->stream_home(home_);
  else
    this->store_home(home_);  // flush_all writes it back
  if (!s.ok() || ops_.empty()) return s;
  const std::lock_guard lock(engine_.heap_bits_);
  this->apply_heap_ops(data_writer_);
  data_writer_.hand_over([](std::uint64_t) {});
  return s;
}

template <class Tm>
std::uint64_t SoftWrapLocal<Tm>::Transaction::commit(Durability) {
  if (needed_ != 0) this->throw_log_full({needed_});
  if (!open_ && ops_.empty()) return this->end_read_only();
  const auto prepare = [&] {
    home_.clear();
    home_.reserve(own_.size());
    own_.for_each(
        [&](std::uint64_t offset, std::uint64_t value) { home_.push_back({offset, value}); });
    if (ops_.empty()) return;
    room(static_cast<std::uint64_t>(std::distance(ops_.begin(), ops_.end())) *
         WrapRecord::entry_bytes);
    for (const pool::HeapOp& op : ops_) log().heap(op);
  };
  const auto persist = [&](std::uint64_t drawn) {
    Status s = this->objects_durable();
    if (s.ok()) s = log().close(drawn);
    ThreadCounters::add(row_.log_bytes, log().lines() * medium::line_bytes);
    return s.ok() ? go_home() : s;  // SOFTWRAP-1
  };
  return this->commit_durably(engine_, prepare, persist, [&] {
    log().prepare_ahead();
    end();
  });
}

template <class Tm>
void SoftWrapLocal<Tm>::Transaction::rollback() noexcept {
  if (!inside_) return;
  if (core_.forked()) {
    inside_ = false;
    return;
  }
  this->abandon();
  end();
}

template <class Tm>
void SoftWrapLocal<Tm>::Transaction::end() noexcept {
  own_.clear();
  this->end_log();
}

template <class Tm>
void SoftWrapLocal<Tm>::wait_for_log_space(Transaction& transaction, LogSpace needed) {
  if (core_.state() != 0) core_.refuse();
  WrapLog& log = transaction.log();
  const auto turn = transaction.use_.hold();
  log.open(0);
  if (log.fits(needed.bytes)) return;  // another thread has made space in a shared log
  // `full` means that the disk is full. The wrap was rolled back, and does not run again.
  if (log.lacks_blocks(0, needed.bytes)) return log.prepare(0, needed.bytes).or_throw();
  Status s = checkpoint_up_to(log.last_id());
  if (s.ok()) {
    log.begin_bucket(0, bulk_.checkpoint_id());  // SOFTWRAP-2
    // mutant: softwrap-local-base-fence, call softwrap-local-base-fence
    // WRAPLOG-2 (papers/softwrap/wrap_log.hpp): before another thread's wrap is streamed to it.
    s = core_.medium.fence();
  }
  if (!s.ok()) core_.poison(s);
}

// Writes back all that was ever stored, then the checkpoint id X: afterwards the caller's log may
// begin again (SOFTWRAP-2).
template <class Tm>
Status SoftWrapLocal<Tm>::checkpoint_up_to(std::uint64_t id) {
  // mutant: softwrap-local-id-before-bucket-reuse
  return bulk_.checkpoint_up_to(id, tm_.domain,
                                [this](std::uint64_t x) { return logs_[0].note_checkpoint_id(x); });
}

template <class Tm>
Status SoftWrapLocal<Tm>::checkpoint() {
  return Base::checkpoint([this](std::uint64_t id) { return checkpoint_up_to(id); });
}

template <class Tm>
Status SoftWrapLocal<Tm>::close() {
  Status s;
  if (!core_.file.read_only())
    s = this->close_logs(core_.state() != 0 ? core_.why() : checkpoint());
  core_.closed();
  return s;
}

template <class Tm>
Stats SoftWrapLocal<Tm>::stats() {
  Stats s;
  this->fill(s);
  s.checkpoint_id = bulk_.checkpoint_id();
  s.checkpoints = bulk_.times();
  return s;
}

}  // namespace perdure::papers::softwrap
