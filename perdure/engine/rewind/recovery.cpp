// SPDX-License-Identifier: BSD-3-Clause
//
// REWIND's recovery (section 4.5): the logs, analysis, redo (no-force only), undo; then the caller's start_session makes the logs those of an epoch that is
// over, which clears them at one stroke.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "perdure/engine/rewind/manager.hpp"
#include "perdure/log/record.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/pool/heap_apply.hpp"

namespace perdure::engine::rewind {

using log::AriesRecord;
using log::AriesType;

namespace {

/// The transaction table's entry, made by the analysis.
struct Xact {
  std::size_t log = 0;
  enum Status : std::uint8_t { running, aborted, finished } status = running;
  std::uint64_t end_lsn = 0, commit_id = 0;
  std::uint64_t last_lsn = 0;
  std::uint64_t undone = ~std::uint64_t{0};  ///< undoMap: UPDATEs from here on have been undone
};

struct Seen {  // a copy: the log moves on
  AriesRecord record;
  std::size_t log = 0;
};

}  // namespace

Status Manager::recover(pool::PoolFile& file, Recovery& report, const Composition& how) {
  const pool::Header& header = file.header();
  medium::Medium& medium = file.medium();
  Manager manager(file, how);
  std::vector<Seen> records;
  for (std::size_t i = 0; i < manager.logs_.size(); ++i) {
    auto there = manager.logs_[i]->log.recover();
    if (!there) return there.status();
    if (!*there) continue;
    for (auto c = manager.logs_[i]->log.first(); c; c = manager.logs_[i]->log.next(c)) records.push_back({*c.record, i});
  }
  std::sort(records.begin(), records.end(), [](const Seen& a, const Seen& b) { return a.record.lsn() < b.record.lsn(); });
  report.records = records.size();
  report.bytes = records.size() * AriesRecord::bytes;

  // Analysis.
  std::unordered_map<std::uint64_t, Xact> table;
  for (const auto& [r, log] : records) {
    manager.lsn_ = r.lsn();
    manager.ids_ = std::max(manager.ids_.load(), r.transaction());
    if ((r.stores_word() && (r.address() % 8 != 0 || r.address() + 8 > medium.home_bytes())) ||
        (r.changes_heap() && !pool::possible(r.heap_op(), medium.home_bytes(), header.max_home_bytes)))
      return failure(Code::corrupt, medium.path(),
                     "log record " + std::to_string(r.lsn()) + " names bytes or blocks that the pool does not have", "entries inside home",
                     "restore a copy");  // all is looked at before home is touched (law L10)
    if (r.type() == AriesType::checkpoint) continue;
    Xact& x = table[r.transaction()];
    x.log = log;
    x.last_lsn = r.lsn();
    if (r.type() == AriesType::clr) x.undone = std::min(x.undone, r.undo_lsn());
    if (r.type() == AriesType::rollback) x.status = Xact::aborted;
    if (r.type() != AriesType::end) continue;
    x.status = Xact::finished;
    x.end_lsn = r.lsn();
    x.commit_id = r.commit_id();
    report.last_id = std::max(report.last_id, r.commit_id());
    if (r.commit_id() != 0) ++report.transactions;
  }
  // K4: home has all of those, whatever of their records is left.
  const auto covered = [&](const Xact& x) {
    return x.status == Xact::finished && x.end_lsn * header.append_unit <= header.ring_head[x.log] && x.commit_id <= header.applied;
  };

  log::HomeWriter home(medium, header.max_home_bytes, log::HomeWriter::Use::recovery);
  // Redo of what has committed, without force; heap ops where their transaction ended. Of a rollback that has not ended, the CLRs: home may lack their last
  // stores (the paper redoes one; Batch may have had a group of them in the log before the first store). What has been rolled back is home (K2), and must not
  // be redone: the blocks that it had allocated may be part of other things by now, which home knows of already.
  std::unordered_map<std::uint64_t, std::vector<pool::HeapOp>> ops;
  std::map<std::uint64_t, std::vector<pool::HeapOp>> in_order;  // force: by commit id
  for (const auto& [r, log] : records) {
    if (r.type() == AriesType::checkpoint || covered(table[r.transaction()])) continue;
    const Xact& x = table[r.transaction()];
    const bool redone = x.status == Xact::finished ? !how.force && x.commit_id != 0 : r.type() == AriesType::clr;
    if (r.stores_word() && redone) home.words(r.address(), &r.words[5], 1);
    if (r.changes_heap()) ops[r.transaction()].push_back(r.heap_op());
    if (r.type() != AriesType::end || r.commit_id() == 0) continue;
    if (how.force)
      in_order[r.commit_id()] = std::move(ops[r.transaction()]);
    else
      for (const auto& op : ops[r.transaction()]) pool::apply_op(home, op, header.max_home_bytes);
  }
  home.flush();

  // Undo.
  std::unordered_map<std::uint64_t, Transaction> undoing;
  const auto transaction = [&](std::uint64_t id, Xact& x) -> Transaction& {
    Transaction& tx = undoing[id];
    if (tx.id != 0) return tx;
    tx.id = id;
    tx.flushes = true;
    tx.last_lsn = x.last_lsn;
    tx.kept = records.size() + 2;
    manager.logs_[x.log]->kept += tx.kept;
    manager.reserve(*manager.logs_[x.log], tx, 0);
    if (x.status == Xact::running) {
      manager.append(*manager.logs_[x.log], tx, AriesRecord::make(AriesType::rollback, manager.next_lsn(), id));
      x.status = Xact::aborted;
    }
    return tx;
  };
  if (how.layers == 2) {
    for (auto& [id, x] : table) {
      if (x.status == Xact::finished) continue;
      ManagedLog& log = *manager.logs_[x.log];
      for (std::uint64_t lsn = x.last_lsn; lsn != 0;) {
        const auto c = log.log.find(lsn);
        if (!c || c.record->transaction() != id)
          return failure(Code::corrupt, medium.path(), "transaction " + std::to_string(id) + " has lost log record " + std::to_string(lsn),
                         "all records of what has not ended", "restore a copy");
        const AriesRecord r = *c.record;
        lsn = r.prior_lsn();
        if (r.type() == AriesType::update && r.lsn() < x.undone) manager.undo(log, transaction(id, x), r);
      }
      transaction(id, x);
    }
  } else {
    // Algorithm 2: one scan backwards. As printed it undoes an UPDATE where undoMap holds a CLR that is not newer: what is meant, and done here, is where no CLR
    // has undone it yet.
    for (std::size_t i = records.size(); i-- > 0;) {
      const AriesRecord& r = records[i].record;
      if (r.type() == AriesType::checkpoint) continue;
      Xact& x = table[r.transaction()];
      if (x.status == Xact::finished) continue;
      Transaction& tx = transaction(r.transaction(), x);
      if (r.type() == AriesType::update && r.lsn() < x.undone) manager.undo(*manager.logs_[x.log], tx, r);
    }
  }
  for (auto& [id, tx] : undoing) {
    ManagedLog& log = *manager.logs_[table[id].log];
    if (Status s = manager.end(log, tx, 0); !s.ok()) return s;
    ++report.rolled_back;
  }
  if (how.force && !in_order.empty()) {
    pool::StagedTarget heap(home, header.max_home_bytes);
    for (const auto& [id, of_one] : in_order)
      for (const auto& op : of_one) pool::apply_op(heap, op, header.max_home_bytes);
    heap.write();
    home.flush();
  }
  // All of it durable before start_session's header may say that the logs are those of an epoch that is over.
  if (Status s = medium.fence(); !s.ok()) return s;
  file.header().applied = report.last_id;
  return {};
}

}  // namespace perdure::engine::rewind
