// SPDX-License-Identifier: BSD-3-Clause
#include "papers/rewind/rewind_log.hpp"

#include <algorithm>
#include <string>

namespace perdure::papers::rewind {
namespace {

// Returns one bucket's cells: a sixteenth of the log's lines, up to the paper's 1,000.
std::uint64_t cells_of(std::uint64_t bytes, const RewindShape& shape) noexcept {
  return shape.version == LogVersion::simple
             ? 0
             : std::clamp<std::uint64_t>(bytes / 64 / 16 / 8 * 8, 8, shape.bucket_cells);
}

}  // namespace

// There are buckets for twice as many pointers as there are lines, because gaps take cells too.
LogArena RewindLog::make_arena(std::uint64_t offset, std::uint64_t bytes, const RewindShape& shape,
                               std::uint64_t cells) {
  if (cells == 0) return {offset, bytes, LogArena::line, 0};
  const std::uint64_t bucket = BucketLog::bucket_bytes(cells);
  const std::uint64_t pointers = shape.layers == 1 ? bytes / 88 * 5 / 2 : bytes / 256;
  return {offset, bytes, bucket, pointers / cells + 3};
}

RewindLog::RewindLog(medium::Medium& medium, const RewindPlace& place, const RewindShape& shape,
                     Use use)
    : place_(place),
      control_(place.offset),
      seed_(place.seed),
      shape_(shape),
      each_(shape.version == LogVersion::simple ? 2 : 1),
      nvm_(medium, place.seed, place.form, use),
      arena_(make_arena(place.offset + LogArena::line, place.bytes - LogArena::line, shape,
                        cells_of(place.bytes, shape))) {
  if (use == Use::real) start_arena();  // a rehearsal stores nothing: all of it is ready
  if (const std::uint64_t cells = cells_of(place.bytes, shape); cells == 0)
    pointers_ = std::make_unique<SimpleLog>(nvm_, arena_, control_);
  else
    pointers_ = std::make_unique<BucketLog>(
        nvm_, arena_, control_, cells, shape.version == LogVersion::batch ? shape.group : 1,
        shape.layers == 2 ? AtomicAvlTree::max_writes(arena_.lines() / 2) : 0);
  if (shape.layers == 2)
    tree_ = std::make_unique<AtomicAvlTree>(nvm_, arena_, *pointers_, control_ + root_word, seed_);
  removed_.reserve(max_removed);
  capacity_ = arena_.lines() / (tree_ ? 2 : each_);  // a record, and a node of its own
  if (!tree_) return;
  tree_->prepare(capacity_);
  capacity_ -= std::min(capacity_, AtomicAvlTree::lines_of_operation(capacity_, each_) / 2 + 1);
}

Status RewindLog::format() {
  // mutant: rewind-stamp-after-anchor
  for (std::uint64_t word = 0; word < stamp_word; word += 8) nvm_.start(control_ + word, 0);
  nvm_.fence();  // REWINDLOG-1
  const std::uint64_t stamp =
      place_.form == LogForm::first
          ? seed_
          : ControlWord::make(place_.identity, control_ + stamp_word, place_.epoch);
  nvm_.start_word(control_ + stamp_word, stamp);
  nvm_.fence();  // before anything that the log will hold
  return nvm_.status();
}

bool RewindLog::fits(std::uint64_t n) const noexcept {
  if (tree_) return tree_->fits(n, each_);
  return arena_.free_lines() >= n * each_ && pointers_->fits(n * each_);
}

// Marks as ready what is allocated, from the beginning of each kind.
void RewindLog::start_arena() noexcept {
  const auto whole = [this](std::uint64_t from, std::uint64_t to, std::uint64_t of) {
    return nvm_.medium().allocated_from(from, to - from) / of;
  };
  arena_.start(whole(arena_.begin(), arena_.line_at(arena_.lines()), LogArena::line),
               arena_.buckets() == 0
                   ? 0
                   : whole(arena_.bucket(0), arena_.end(), arena_.bucket(1) - arena_.bucket(0)));
  note_whole();
}

// Makes at least `lines` and `buckets` ready.
Status RewindLog::ready(std::uint64_t lines, std::uint64_t buckets) {
  lines = std::clamp(lines, arena_.lines_ready(), arena_.lines());
  buckets = std::clamp(buckets, arena_.buckets_ready(), arena_.buckets());
  const auto allocate = [this](std::uint64_t from, std::uint64_t to) {
    return nvm_.medium().allocate(from, to - from);
  };
  if (Status s = allocate(arena_.line_at(arena_.lines_ready()), arena_.line_at(lines)); !s.ok())
    return s;
  if (Status s = allocate(arena_.bucket(arena_.buckets_ready()), arena_.bucket(buckets)); !s.ok())
    return s;
  arena_.more(lines, buckets);
  note_whole();
  return {};
}

// For a tree of eight records one operation takes 123 lines and 106 pointers
// (AtomicAvlTree::lines_of_operation); a bucket of a larger log has 64 cells or more. A small log
// is allocated as a whole.
Status RewindLog::reserve() {
  constexpr std::uint64_t lines = 128, buckets = 3, small = (64 << 10) / LogArena::line;
  if (arena_.lines() <= small) return ready(arena_.lines(), arena_.buckets());
  return ready(lines, buckets);
}

Status RewindLog::extend(std::uint64_t n) {
  constexpr std::uint64_t a_page = medium::page_bytes / LogArena::line;
  while (!fits(n) &&
         (arena_.lines_ready() < arena_.lines() || arena_.buckets_ready() < arena_.buckets())) {
    // Asks for twice as many lines, and the same share of the buckets; where the disk is nearly
    // full, for as few as possible.
    const std::uint64_t lines = arena_.lines_ready() + std::max(arena_.lines_ready(), a_page);
    const std::uint64_t share =
        arena_.buckets() == 0
            ? 0
            : arena_.buckets() * std::min(lines, arena_.lines()) / arena_.lines() + 3;
    Status s = ready(lines, std::max(share, arena_.buckets_ready() + 1));
    if (s.code() == Code::full)
      s = ready(arena_.lines_ready() + a_page, arena_.buckets_ready() + 1);
    if (!s.ok()) return s;
  }
  return {};
}

// Before recovery reads the log, it allocates everything in which a list or a record may lie. That
// is allocated already, unless the file was copied without its holes. A bucket that was being put
// in the list may still be all zeros, and is the next after those that were ever used.
Status RewindLog::cover() {
  const auto used = [this](std::uint64_t from, std::uint64_t to) {
    return nvm_.medium().allocated_end(from, to - from);
  };
  // The last page of the lines may be allocated for the first bucket alone: its lines are in use
  // only if all lines before are.
  const std::uint64_t shared = arena_.bucket(0) / medium::page_bytes * medium::page_bytes,
                      end = arena_.line_at(arena_.lines());
  const std::uint64_t before = std::max(std::min(end, shared), arena_.begin());
  std::uint64_t lines = used(arena_.begin(), before) / LogArena::line;
  if (arena_.line_at(lines) + LogArena::line > before) lines = arena_.lines();
  if (arena_.buckets() == 0) return ready(lines, 0);
  return ready(lines,
               used(arena_.bucket(0), arena_.end()) / (arena_.bucket(1) - arena_.bucket(0)) + 2);
}

std::uint64_t RewindLog::append(const AriesRecord& record) noexcept {
  if (nvm_.failed()) return appended_ + 1;  // it is not in the log
  const std::uint64_t at = arena_.take_line();
  AriesRecord sealed = record;
  sealed.seal(seed_, at);
  nvm_.start_line(at, sealed.words);
  if (tree_)
    tree_->insert(sealed.lsn(), at);
  else
    pointers_->append(at);
  count(1);
  return ++appended_;
}

void RewindLog::persist() noexcept {
  if (!tree_) pointers_->persist();
}

RewindLog::Cursor RewindLog::cursor(PointerLog::At at) const noexcept {
  Cursor c = cursor(at ? pointers_->record(at) : 0);
  c.at = at;
  return c;
}

RewindLog::Cursor RewindLog::cursor(std::uint64_t record) const noexcept {
  if (record == 0) return {};
  return {{}, record, reinterpret_cast<const AriesRecord*>(nvm_.medium().at(record))};
}

RewindLog::Cursor RewindLog::first() const noexcept {
  return tree_ ? cursor(tree_->above(0)) : cursor(pointers_->first());
}
RewindLog::Cursor RewindLog::last() const noexcept {
  return tree_ ? cursor(tree_->last()) : cursor(pointers_->last());
}
RewindLog::Cursor RewindLog::next(const Cursor& c) const noexcept {
  return tree_ ? cursor(tree_->above(c.record->lsn())) : cursor(pointers_->next(c.at));
}
RewindLog::Cursor RewindLog::prior(const Cursor& c) const noexcept {
  return tree_ ? cursor(tree_->below(c.record->lsn())) : cursor(pointers_->prior(c.at));
}
RewindLog::Cursor RewindLog::find(std::uint64_t lsn) const noexcept {
  return tree_ ? cursor(tree_->find(lsn)) : Cursor{};
}

void RewindLog::remove(const Cursor& c) noexcept {
  if (nvm_.failed()) return;
  if (tree_)
    tree_->remove(c.record->lsn());
  else
    pointers_->remove(c.at);
  arena_.give_line(c.place);
  count(~std::uint64_t{0});  // subtracts one
}

void RewindLog::remove_soon(const Cursor& c) noexcept {
  if (tree_) return remove(c);
  if (nvm_.failed()) return;
  if (removed_.size() == max_removed) settle();
  pointers_->remove_soon(c.at);
  removed_.push_back(c.place);
  count(~std::uint64_t{0});
}

// A record's line is not reused before the gap in its cell is durable: otherwise recovery would
// find another record there.
void RewindLog::settle() noexcept {
  pointers_->settle();
  if (nvm_.failed()) return;
  for (const std::uint64_t place : removed_) arena_.give_line(place);
  removed_.clear();
}

Result<bool> RewindLog::is_there() const {
  const std::uint64_t stamp = nvm_.word(control_ + stamp_word);
  if (place_.form == LogForm::first) return stamp == seed_;
  if (stamp == 0 || place_.older) return false;  // 0: a new pool
  // mutant: rewind-log-stamp-check
  if (!ControlWord::whole(place_.identity, control_ + stamp_word, stamp) ||
      ControlWord::value(stamp) > place_.epoch)
    return failure(Code::corrupt, nvm_.medium().path(),
                   "a log whose stamp, at log offset " + std::to_string(control_ + stamp_word) +
                       ", is damaged",
                   "the stamp of a session", "restore a copy");
  // mutant: rewind-log-epoch
  return ControlWord::value(stamp) == place_.epoch;
}

Result<bool> RewindLog::recover(bool rehearsed) {
  const auto there = is_there();
  if (!there.ok() || !*there) return there;
  if (!nvm_.rehearses())
    if (Status s = cover(); !s.ok()) return s;
  // mutant: rewind-anchor-rewritten
  nvm_.start_again(control_, LogArena::line);
  nvm_.fence();  // REDO-4: the anchor, before the operation that it names is done again
  if (Status s = pointers_->recover(); !s.ok()) return s;
  if (tree_)
    if (Status s = tree_->recover(); !s.ok()) return s;
  if (Status s = learn_records(rehearsed); !s.ok()) return s;
  if (nvm_.failed()) return nvm_.status();
  return true;
}

Status RewindLog::learn_records(bool rehearsed) {
  std::uint64_t before = 0;
  Status damage;
  // `key`: the record's key in the index; in 1 layer it is not used.
  const auto learn = [&](std::uint64_t key, std::uint64_t place) {
    const auto broken = [&](const char* what) {
      damage = failure(Code::corrupt, nvm_.medium().path(),
                       "a log record at log offset " + std::to_string(place) + " that " + what,
                       "whole records", "restore a copy");
      return false;
    };
    if (!arena_.mark_line(place)) return broken("is none, or is met twice");
    count(1);
    if (rehearsed) return true;
    const AriesRecord& record = *cursor(place).record;
    // mutant: rewind-record-checksum
    if (!record.whole(seed_, place) || (tree_ && record.lsn() != key)) return broken("is damaged");
    if (record.lsn() <= before) return broken("stands behind a newer one");
    before = record.lsn();
    return true;
  };
  if (tree_)
    tree_->for_each(learn);
  else
    for (auto at = pointers_->first(); at && learn(0, pointers_->record(at));
         at = pointers_->next(at)) {}
  return damage;
}

}  // namespace perdure::papers::rewind
