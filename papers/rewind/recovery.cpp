// SPDX-License-Identifier: BSD-3-Clause
//
// REWIND's recovery (section 4.5): the logs, analysis, redo (no-force only), undo. Then the
// caller's start_session makes the logs those of a past epoch, which clears them all at once.
// Before the first store all logs are recovered in a rehearsal, which stores nothing
// (papers/rewind/nvm.hpp), and analysed: a pool that is refused as damaged was not written to
// (LAW-10).
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "papers/rewind/manager.hpp"
#include "perdure/log/record.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/pool/allocation.hpp"
#include "perdure/pool/heap_apply.hpp"

namespace perdure::papers::rewind {

namespace {

/// An entry of the transaction table, made by the analysis.
struct Xact {
  std::size_t log = 0;
  enum Status : std::uint8_t { running, aborted, finished } status = running;
  std::uint64_t commit_id = 0;
  std::uint64_t last_lsn = 0;
  std::uint64_t undone = ~std::uint64_t{0};  ///< undoMap: UPDATEs from here on have been undone
  std::uint64_t updates = 0;
  std::uint64_t missing = 0;  ///< 2 layers: the LSN of a record that is missing
};

/// A walk through the records of several logs, each of which is in the order of LSNs.
class Walk {
 public:
  enum class Direction : std::uint8_t { forwards, backwards };
  /// `which`: the logs' numbers.
  Walk(Manager& manager, const std::vector<std::size_t>& which, Direction direction)
      : direction_(direction) {
    for (const std::size_t i : which) {
      RewindLog& log = manager.log_of(i).log;
      places_.push_back({&log, i, direction == Direction::forwards ? log.first() : log.last()});
    }
  }
  /// Calls f(record, number of its log) for each record in the order of LSNs. What f appends to the
  /// logs is not met on the way back.
  template <class F>
  void for_each(F&& f) {
    for (;;) {
      Place* next = nullptr;
      for (Place& p : places_)
        if (p.at && (next == nullptr || before(p, *next))) next = &p;
      if (next == nullptr) return;
      const RewindLog::Cursor here = next->at;
      next->at = direction_ == Direction::forwards ? next->log->next(here) : next->log->prior(here);
      f(*here.record, next->number);
    }
  }

 private:
  struct Place {
    RewindLog* log;
    std::size_t number;
    RewindLog::Cursor at;
  };
  [[nodiscard]] bool before(const Place& a, const Place& b) const noexcept {
    const std::uint64_t left = a.at.record->lsn(), right = b.at.record->lsn();
    // mutant: rewind-lsn-order
    return direction_ == Direction::forwards ? left < right : left > right;
  }
  const Direction direction_;
  std::vector<Place> places_;
};

/// One recovery: the phases of section 4.5, each a function.
class Recoverer {
 public:
  Recoverer(pool::OpenPool& file, Manager& manager, Recovery& report)
      : file_(file),
        header_(file.header()),
        medium_(file.medium()),
        manager_(manager),
        how_(manager.how()),
        report_(report),
        data_(file.medium(), file.header(), log::DataWriter::Use::recovery) {}

  Status run() {
    if (Status s = rehearse(); !s.ok()) return s;
    if (Status s = recover_logs(); !s.ok()) return s;
    if (Status s = allocate(); !s.ok()) return s;
    redo();
    how_.layers == 2 ? undo_by_index() : undo_in_one_scan();
    if (Status s = end_undone(); !s.ok()) return s;
    if (how_.force) apply_in_order();
    // All of it is durable before start_session's header may say that the logs are those of a past
    // epoch.
    return medium_.fence();
  }

 private:
  // Recovers the logs in a rehearsal, and analyses their records.
  Status rehearse() {
    // mutant: rewind-recovery-rehearsal
    Manager rehearsal(file_, how_, Manager::Use::rehearsal);
    for (std::size_t i = 0; i < rehearsal.logs(); ++i) {
      auto there = rehearsal.log_of(i).log.recover();
      if (!there) return there.status();
      if (*there) logs_.push_back(i);
    }
    return analyse(rehearsal);
  }

  // Does what the rehearsal has tried.
  Status recover_logs() {
    for (std::size_t i = 0; i < manager_.logs(); ++i)
      if (auto there = manager_.log_of(i).log.recover(true); !there) return there.status();
    return {};
  }

  // Makes the transaction table. All records are checked before the data region is changed
  // (LAW-10).
  Status analyse(Manager& rehearsal) {
    Status damage;
    Walk(rehearsal, logs_, Walk::Direction::forwards)
        .for_each([&](const AriesRecord& r, std::size_t log) {
          if (damage.ok()) damage = learn(r, log);
        });
    if (!damage.ok()) return damage;
    report_.bytes = report_.records * AriesRecord::bytes;
    for (const auto& [id, x] : table_)
      if (x.missing != 0 && x.status != Xact::finished)
        return failure(Code::corrupt, medium_.path(),
                       "transaction " + std::to_string(id) + " has lost log record " +
                           std::to_string(x.missing),
                       "all records of what has not ended", "restore a copy");
    return {};
  }
  Status learn(const AriesRecord& r, std::size_t log) {
    ++report_.records;
    manager_.go_on_from(r.lsn(), r.transaction());
    if ((r.stores_word() && !pool::possible_words(r.address(), 1, medium_.data_bytes(), header_)) ||
        (r.changes_heap() && !pool::possible(r.heap_op(), medium_.data_bytes(), header_)))
      return failure(Code::corrupt, medium_.path(),
                     "log record " + std::to_string(r.lsn()) +
                         " names bytes or blocks that the pool does not have",
                     "entries inside the data region", "restore a copy");
    if (r.type() == AriesType::checkpoint) return {};
    Xact& x = table_[r.transaction()];
    x.log = log;
    if (how_.layers == 2 && r.prior_lsn() != x.last_lsn)
      x.missing = r.prior_lsn() != 0 ? r.prior_lsn() : r.lsn();
    x.last_lsn = r.lsn();
    if (r.type() == AriesType::update) ++x.updates;
    if (r.type() == AriesType::clr) x.undone = std::min(x.undone, r.undo_lsn());
    if (r.type() == AriesType::rollback) x.status = Xact::aborted;
    if (r.type() != AriesType::end) return {};
    x.status = Xact::finished;
    x.commit_id = r.commit_id();
    report_.last_id = std::max(report_.last_id, r.commit_id());
    if (r.commit_id() != 0) ++report_.transactions;
    return {};
  }
  // ALLOC-1: allocates all that will be stored to, in the logs and in the data region, before any
  // of it is. A `full` disk changes nothing: recovery of the logs, which has been done, ends in the
  // same state if it is done again.
  Status allocate() {
    std::vector<std::uint64_t> more(manager_.logs(), 2);
    for (const auto& [id, x] : table_)
      if (x.status != Xact::finished) more[x.log] += x.updates + 2;  // CLRs, ROLLBACK and END
    for (std::size_t i = 0; i < more.size(); ++i)
      if (Status s = manager_.log_of(i).log.extend(more[i]); !s.ok()) return s;
    pool::Targets targets(medium_, header_);
    Walk(manager_, logs_, Walk::Direction::forwards)
        .for_each([&](const AriesRecord& r, std::size_t) {
          if (r.stores_word()) targets.words(r.address(), 1);
          if (r.changes_heap()) targets.block(r.heap_op());
        });
    return targets.allocate();
  }
  // REWIND-4: the data region holds all of those, whatever remains of their records; REWIND-2: and
  // all of what was rolled back, whose commit id is 0.
  // mutant: rewind-recovery-skips-covered, rewind-covered-id
  [[nodiscard]] bool covered(const Xact& x) const {
    return x.status == Xact::finished && x.commit_id <= header_.checkpoint_id;
  }

  // Redoes, without force, what has committed; heap ops where their transaction ended. Of a
  // rollback that has not ended it redoes the CLRs: the data region may lack their last stores (the
  // paper redoes one; Batch may have had a group of them in the log before the first store). What
  // has been rolled back is in the data region (REWIND-2) and must not be redone: the blocks that
  // it had allocated may be part of other things by now, which the data region already holds.
  void redo() {
    std::unordered_map<std::uint64_t, std::vector<pool::HeapOp>> ops;
    Walk(manager_, logs_, Walk::Direction::forwards)
        .for_each([&](const AriesRecord& r, std::size_t) {
          if (r.type() == AriesType::checkpoint || covered(table_[r.transaction()])) return;
          const Xact& x = table_[r.transaction()];
          // mutant: rewind-redo-without-force, rewind-redo-clrs
          const bool redone = x.status == Xact::finished ? !how_.force : r.type() == AriesType::clr;
          if (r.stores_word() && redone) data_.words(r.address(), &r.words[5], 1);
          if (r.changes_heap()) ops[r.transaction()].push_back(r.heap_op());
          if (r.type() != AriesType::end || r.commit_id() == 0) return;
          if (how_.force)
            in_order_[r.commit_id()] = std::move(ops[r.transaction()]);
          else
            for (const auto& op : ops[r.transaction()]) pool::apply_op(data_, op, header_);
        });
    data_.flush();
  }

  // --- undo --------------------------------------------------------------------------------------

  // Returns a transaction that has not ended, as the manager rolls it back.
  ManagedTransaction& undoing(std::uint64_t id, Xact& x) {
    ManagedTransaction& tx = undoing_[id];
    if (tx.id == 0) {
      manager_.take_up(manager_.log_of(x.log), tx, id, x.last_lsn, report_.records + 2,
                       x.status == Xact::running);
      x.status = Xact::aborted;
    }
    return tx;
  }
  void undo(std::uint64_t id, Xact& x, const AriesRecord& r) {
    ManagedTransaction& tx = undoing(id, x);
    // mutant: rewind-update-undone-once
    if (r.type() == AriesType::update && r.lsn() < x.undone)
      manager_.undo(manager_.log_of(x.log), tx, r);
  }

  // 2 layers: each transaction separately, its records by the index.
  void undo_by_index() {
    for (auto& [id, x] : table_) {
      if (x.status == Xact::finished) continue;
      const RewindLog& log = manager_.log_of(x.log).log;
      for (std::uint64_t lsn = x.last_lsn; lsn != 0;) {
        const AriesRecord r = *log.find(lsn).record;  // it exists: analyse() has checked
        lsn = r.prior_lsn();
        undo(id, x, r);
      }
    }
  }
  // Algorithm 2. As printed it undoes an UPDATE where undoMap holds a CLR that is not newer. What
  // is meant, and done here, is to undo it where no CLR has undone it yet.
  void undo_in_one_scan() {
    Walk(manager_, logs_, Walk::Direction::backwards)
        .for_each([&](const AriesRecord& r, std::size_t) {
          if (r.type() == AriesType::checkpoint) return;
          Xact& x = table_[r.transaction()];
          if (x.status != Xact::finished) undo(r.transaction(), x, r);
        });
  }
  Status end_undone() {
    for (auto& [id, tx] : undoing_) {
      if (Status s = manager_.end(manager_.log_of(table_[id].log), tx, 0); !s.ok()) return s;
      ++report_.rolled_back;
    }
    return {};
  }

  // Force: applies heap ops by commit id, over all logs. They are last, because no log would store
  // again what their directory words may zero.
  void apply_in_order() {
    pool::StagedTarget heap(data_, header_);
    for (const auto& [id, of_one] : in_order_)
      for (const auto& op : of_one) pool::apply_op(heap, op, header_);
    heap.write();
    data_.flush();
  }

  pool::OpenPool& file_;
  const pool::Header& header_;
  medium::Medium& medium_;
  Manager& manager_;
  const Composition& how_;
  Recovery& report_;
  log::DataWriter data_;
  std::vector<std::size_t> logs_;  // the numbers of those that there are
  std::unordered_map<std::uint64_t, Xact> table_;
  std::map<std::uint64_t, std::vector<pool::HeapOp>> in_order_;
  std::unordered_map<std::uint64_t, ManagedTransaction> undoing_;
};

}  // namespace

Status Manager::recover(pool::OpenPool& file, Recovery& report, const Composition& how) {
  Manager manager(file, how);
  return Recoverer(file, manager, report).run();
}

}  // namespace perdure::papers::rewind
