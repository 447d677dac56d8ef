// SPDX-License-Identifier: BSD-3-Clause
//
// REWIND's checkpoints, which run beside transactions (section 4.6), and the compaction of its logs
// (section 3.3).
#include <mutex>
#include <unordered_set>

#include "papers/rewind/manager.hpp"

namespace perdure::papers::rewind {

void Manager::compact() {
  for (auto& l : logs_) {
    const std::lock_guard lock(l->log.mutex());
    l->log.compact();
  }
}

Status Manager::checkpoint(std::uint64_t x) {
  std::uint64_t before = 0;
  for (auto& l : logs_) {
    const std::lock_guard lock(l->log.mutex());
    ManagedTransaction marker;
    const std::uint64_t lsn = next_lsn();
    if (before == 0) before = lsn;
    append(*l, marker, AriesRecord::make(AriesType::checkpoint, lsn, 0));
    l->log.persist();
    if (Status s = l->log.nvm().status(); !s.ok()) return s;
  }
  // mutant: rewind-flush-before-header
  if (Status s = medium_.flush_all(); !s.ok()) return s;  // REWIND-4
  // mutant: rewind-header-before-removal, rewind-flush-before-header-late
  const Status published = file_.publish([&](pool::Header& h) { h.checkpoint_id = x; });
  if (!published.ok()) return published;
  for (auto& l : logs_) {
    // The mutex is held for 64 records at a time: other threads append in between, and no other
    // thread removes.
    constexpr int hold = 64;
    std::unordered_set<std::uint64_t> ended;
    RewindLog& log = l->log;
    const auto walk = [&](auto&& visit) {
      std::unique_lock lock(log.mutex());
      int held = 0;
      for (auto c = log.first(); c && c.record->lsn() <= before;) {
        const auto here = c;
        c = log.next(c);
        visit(here);
        if (++held % hold == 0) {
          log.settle();
          lock.unlock();
          lock.lock();
        }
      }
      log.settle();
    };
    walk([&](const auto& c) {
      // mutant: rewind-checkpoint-removes-to-id
      if (c.record->type() == AriesType::end && c.record->commit_id() <= x)
        ended.insert(c.record->transaction());
    });
    walk([&](const auto& c) {
      const bool marker = c.record->type() == AriesType::checkpoint && c.record->lsn() < before;
      // mutant: rewind-checkpoint-ends-last
      if (marker || (c.record->type() != AriesType::end && ended.contains(c.record->transaction())))
        log.remove_soon(c);
    });
    walk([&](const auto& c) {
      // REWIND-3: after all the other records are durably removed. Removals share fences.
      if (c.record->type() == AriesType::end && ended.contains(c.record->transaction()))
        log.remove_soon(c);
    });
    const std::lock_guard lock(log.mutex());
    log.compact();
    if (log.nvm().failed()) return log.nvm().status();
  }
  return {};
}

}  // namespace perdure::papers::rewind
