// SPDX-License-Identifier: BSD-3-Clause
#include "papers/rewind/manager.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "perdure/log/record.hpp"

namespace perdure::papers::rewind {

namespace {

// A log of the first form is stamped with its session's seed, which may be that of any session up
// to this one.
RewindPlace place_of(const medium::Medium& medium, const pool::Header& header, std::uint32_t ring) {
  RewindPlace p{.offset = pool::ring_offset(header, ring),
                .bytes = header.ring_bytes,
                .seed = log::ring_seed(header.uuid, header.epoch, ring),
                .identity = log::ring_seed(header.uuid, 0, ring),
                .epoch = header.epoch};
  const std::uint64_t at = p.offset + RewindPlace::stamp_word,
                      stamp = *reinterpret_cast<const std::uint64_t*>(medium.at(at));
  if (stamp == 0 || log::ControlWord::whole(p.identity, at, stamp)) return p;
  if (stamp == p.seed) {
    p.form = log::LogForm::first;
    return p;
  }
  for (std::uint64_t epoch = header.epoch; epoch-- > 0 && !p.older;)
    p.older = stamp == log::ring_seed(header.uuid, epoch, ring);
  return p;
}

}  // namespace

Manager::Manager(pool::OpenPool& file, const Composition& how, Use use)
    : file_(file), medium_(file.medium()), how_(how) {
  const pool::Header& header = file.header();
  for (std::uint32_t i = 0; i < header.ring_count; ++i)
    logs_.push_back(std::make_unique<ManagedLog>(medium_, place_of(medium_, header, i),
                                                 RewindShape{how.layers, how.version, how.group},
                                                 use));
}

Status Manager::reserve() {
  for (auto& l : logs_)
    if (Status s = l->log.reserve(); !s.ok()) return s;
  return {};
}

Result<bool> Manager::extend(ManagedLog& log, std::uint64_t n) {
  const std::lock_guard lock(log.log.mutex());
  if (Status s = log.log.extend(log.kept + n); !s.ok()) return s;
  return log.log.fits(log.kept + n);
}

void Manager::prepare_ahead(ManagedLog& log, std::uint64_t n) noexcept {
  if (log.log.whole()) return;
  try {
    (void)extend(log, n);
  } catch (const std::bad_alloc&) {  // the message could not be allocated
  }
}

Status Manager::format() {
  for (auto& l : logs_)
    if (Status s = l->log.format(); !s.ok()) return s;
  return {};
}

std::uint64_t Manager::records() const noexcept {
  std::uint64_t n = 0;
  for (const auto& l : logs_) n += l->log.records();
  return n;
}

// --- logging -------------------------------------------------------------------------------------

void Manager::begin(ManagedLog& log, ManagedTransaction& tx) noexcept {
  if (tx.id != 0) return;
  tx.id = ids_.fetch_add(1, std::memory_order_relaxed) + 1;
  tx.kept = 2;  // for ROLLBACK and END
  log.kept += tx.kept;
}

std::uint64_t Manager::append(ManagedLog& log, ManagedTransaction& tx,
                              AriesRecord&& record) noexcept {
  if (how_.layers == 2) record.words[6] = tx.last_lsn;  // the last record in the transaction table
  tx.last_lsn = record.lsn();
  ++tx.records;
  return log.log.append(record);
}

// Allocates the memory of what must not fail later: the stores that wait, and clear()'s list of the
// records.
void Manager::reserve(ManagedLog& log, ManagedTransaction& tx, std::uint64_t heap_records) {
  const std::uint64_t group = 2 * log.log.shape().group,
                      records = 2 * tx.updates + heap_records + 8;
  if (tx.waiting.capacity() < group) tx.waiting.reserve(group);
  tx.newest.reserve(group);
  if (how_.force && log.found.capacity() < records) log.found.reserve(2 * records);
}

// A transaction's own records, including its CLRs, leave an eighth of its log to the reserved
// records.
void Manager::must_fit(const ManagedLog& log, std::uint64_t records) const {
  const std::uint64_t capacity = log.log.capacity() - log.log.capacity() / 8;
  if ((records + 2) * 2 + 16 > capacity)
    throw error(failure(
        Code::too_big, file_.path(),
        "a transaction that stores, allocates and frees more than its log holds",
        "at most " + std::to_string(capacity > 20 ? capacity / 2 - 10 : 0) + " words and blocks",
        "split it, or make the pool with a larger log_size"));
}

bool Manager::update(ManagedLog& log, ManagedTransaction& tx, std::uint64_t offset,
                     std::uint64_t value) {
  const std::lock_guard lock(log.log.mutex());
  must_fit(log, tx.updates);
  if (!log.log.fits(log.kept + (tx.id == 0 ? 4 : 2))) return false;
  reserve(log, tx, 0);
  begin(log, tx);
  ++tx.updates;
  ++tx.kept;
  // mutant: rewind-clr-space
  ++log.kept;  // for its CLR
  AriesRecord r = AriesRecord::make(AriesType::update, next_lsn(), tx.id);
  r.words[3] = offset;
  const std::uint64_t* const waiting = tx.find(offset);
  r.words[4] = waiting != nullptr
                   ? *waiting
                   : *reinterpret_cast<const std::uint64_t*>(medium_.data() + offset);
  r.words[5] = value;
  // mutant: rewind-wal
  const std::uint64_t number = append(log, tx, std::move(r));
  store(log, tx, offset, value, number);
  return true;
}

void Manager::store(ManagedLog& log, ManagedTransaction& tx, std::uint64_t offset,
                    std::uint64_t value, std::uint64_t number) noexcept {
  if (log.log.nvm().failed()) return;  // REWIND-1
  if (number <= log.log.in_log() && tx.waiting.empty()) return store_now(tx, offset, value);
  tx.waiting.push_back({offset, value, number});
  tx.newest.put(offset, value);
  drain(log, tx);
}

// REWIND-1: makes the stores whose records are in the log, in their order.
void Manager::drain(ManagedLog& log, ManagedTransaction& tx) noexcept {
  if (log.log.nvm().failed()) return;
  const std::uint64_t in_log = log.log.in_log();
  std::size_t n = 0;
  // mutant: rewind-wal-batch
  for (; n < tx.waiting.size() && tx.waiting[n].number <= in_log; ++n)
    store_now(tx, tx.waiting[n].offset, tx.waiting[n].value);
  tx.waiting.erase(tx.waiting.begin(), tx.waiting.begin() + static_cast<std::ptrdiff_t>(n));
  if (tx.waiting.empty()) tx.newest.clear();
}

void Manager::store_now(const ManagedTransaction& tx, std::uint64_t offset,
                        std::uint64_t value) noexcept {
  medium_.store(medium_.log_bytes() + offset, &value, 8);
  if (how_.force || tx.flushes) medium_.flush(medium_.log_bytes() + offset, 8);
}

void Manager::end_group(ManagedLog& log, ManagedTransaction& tx) noexcept {
  if (tx.waiting.empty()) return;
  const std::lock_guard lock(log.log.mutex());
  log.log.persist();
  drain(log, tx);
}

// --- the end of a transaction --------------------------------------------------------------------

bool Manager::prepare(ManagedLog& log, ManagedTransaction& tx, std::uint64_t heap_records) {
  if (heap_records == 0 && tx.id != 0) return true;
  const std::lock_guard lock(log.log.mutex());
  must_fit(log, tx.updates + heap_records);
  if (!log.log.fits(log.kept + heap_records + (tx.id == 0 ? 2 : 0))) return false;
  reserve(log, tx, heap_records);
  begin(log, tx);
  tx.kept += heap_records;
  log.kept += heap_records;
  return true;
}

Status Manager::end(ManagedLog& log, ManagedTransaction& tx, std::uint64_t commit_id) noexcept {
  // mutant: rewind-stores-before-end
  if (how_.force || commit_id == 0) {
    // REWIND-2: the fence that makes END's record durable before its pointer also covers the stores
    // to the data region.
    log.log.persist();
    drain(log, tx);
  }
  AriesRecord r = AriesRecord::make(AriesType::end, next_lsn(), tx.id);
  r.words[3] = commit_id;
  append(log, tx, std::move(r));
  log.log.persist();
  // No-force: END may stand in the last group; stores after it are redone.
  drain(log, tx);
  log.kept -= tx.kept;
  tx.kept = 0;
  return log.log.nvm().status();
}

Status Manager::clear(ManagedLog& log, const ManagedTransaction& tx) noexcept {
  const std::lock_guard lock(log.log.mutex());
  RewindLog& l = log.log;
  const std::uint64_t end = tx.last_lsn;
  log.found.clear();
  if (how_.layers == 2) {
    for (std::uint64_t lsn = end; lsn != 0; lsn = log.found.back().record->prior_lsn())
      log.found.push_back(l.find(lsn));
  } else {
    for (auto c = l.last(); c && log.found.size() < tx.records; c = l.prior(c))
      if (c.record->transaction() == tx.id) log.found.push_back(c);
  }
  // Removals share fences. A block's ALLOC is gone before its DELETE, which a transaction can only
  // log later: of a block's ops the last counts, whenever a crash happens. The list, newest first,
  // is sorted before any of its records may be stored over.
  const auto first = log.found.begin() + 1;
  const auto others = std::stable_partition(
      first, log.found.end(), [](const auto& c) { return c.record->type() == AriesType::remove; });
  for (auto c = log.found.end(); c != first;) {
    l.remove_soon(*--c);
    // mutant: rewind-removes-frees-last
    if (c == others && c != first) l.settle();
  }
  // mutant: rewind-removals-before-end
  l.settle();
  // REWIND-3. The END of the newest commit stays, from which recovery learns the newest id; that of
  // the newest before is removed. Threads that share the log may clear in another order than they
  // drew their ids in: an older commit's END is removed as a rollback's is, whose id is 0.
  auto gone = log.found.front();
  // mutant: rewind-newest-end-kept
  if (const std::uint64_t id = gone.record->commit_id(); id > log.last_id) {
    log.last_id = id;
    const std::uint64_t old = std::exchange(log.last_end, end);
    gone = l.find(old);
    if (how_.layers == 1 && old != 0)
      for (gone = l.last(); gone && gone.record->lsn() != old;) gone = l.prior(gone);
  }
  if (gone) l.remove(gone);
  return l.nvm().status();
}

// --- rollback ------------------------------------------------------------------------------------

void Manager::undo(ManagedLog& log, ManagedTransaction& tx, const AriesRecord& update) noexcept {
  AriesRecord clr = AriesRecord::make(AriesType::clr, next_lsn(), tx.id);
  clr.words[3] = update.address();
  clr.words[4] = update.lsn();
  clr.words[5] = update.old_value();
  const std::uint64_t offset = update.address(), old = update.old_value();
  --tx.kept;
  --log.kept;
  store(log, tx, offset, old, append(log, tx, std::move(clr)));
}

void Manager::take_up(ManagedLog& log, ManagedTransaction& tx, std::uint64_t id,
                      std::uint64_t last_lsn, std::uint64_t room, bool marks) {
  tx.id = id;
  // mutant: rewind-recovered-rollback-flushes
  tx.flushes = true;  // REWIND-2
  tx.last_lsn = last_lsn;
  tx.kept = room;
  log.kept += tx.kept;
  reserve(log, tx, 0);
  if (marks) append(log, tx, AriesRecord::make(AriesType::rollback, next_lsn(), id));
}

Status Manager::rollback(ManagedLog& log, ManagedTransaction& tx) noexcept {
  if (tx.id == 0) return {};
  const std::lock_guard lock(log.log.mutex());
  log.log.persist();
  drain(log, tx);
  // mutant: rewind-rollback-flushes
  tx.flushes = true;
  const std::uint64_t newest = tx.last_lsn;
  append(log, tx, AriesRecord::make(AriesType::rollback, next_lsn(), tx.id));
  if (how_.layers == 2) {
    for (std::uint64_t lsn = newest; lsn != 0;) {
      const auto c = log.log.find(lsn);
      lsn = c.record->prior_lsn();
      if (c.record->type() == AriesType::update) undo(log, tx, *c.record);
    }
  } else {
    std::uint64_t left = tx.updates;
    for (auto c = log.log.last(); c && left != 0; c = log.log.prior(c))
      if (c.record->transaction() == tx.id && c.record->type() == AriesType::update) {
        undo(log, tx, *c.record);
        --left;
      }
  }
  return end(log, tx, 0);
}

}  // namespace perdure::papers::rewind
