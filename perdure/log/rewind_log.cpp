// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/rewind_log.hpp"

#include <algorithm>
#include <string>

namespace perdure::log {
namespace {

// A bucket for each sixteenth of the log's lines, up to the paper's 1,000 cells.
std::uint64_t cells_of(std::uint64_t bytes, const RewindShape& shape) noexcept {
  return shape.version == LogVersion::simple ? 0 : std::clamp<std::uint64_t>(bytes / 64 / 16 / 8 * 8, 8, shape.bucket_cells);
}

}  // namespace

// Buckets for twice as many pointers as there are lines: gaps take cells, too.
LogArena RewindLog::make_arena(std::uint64_t offset, std::uint64_t bytes, const RewindShape& shape, std::uint64_t cells) {
  if (cells == 0) return {offset, bytes, LogArena::line, 0};
  const std::uint64_t bucket = BucketLog::bucket_bytes(cells);
  const std::uint64_t pointers = shape.layers == 1 ? bytes / 88 * 5 / 2 : bytes / 256;
  return {offset, bytes, bucket, pointers / cells + 3};
}

RewindLog::RewindLog(medium::Medium& medium, const RewindPlace& place, const RewindShape& shape, Use use)
    : place_(place),
      control_(place.offset),
      seed_(place.seed),
      shape_(shape),
      each_(shape.version == LogVersion::simple ? 2 : 1),
      nvm_(medium, place.seed, place.form, use),
      arena_(make_arena(place.offset + LogArena::line, place.bytes - LogArena::line, shape, cells_of(place.bytes, shape))) {
  if (const std::uint64_t cells = cells_of(place.bytes, shape); cells == 0)
    pointers_ = std::make_unique<SimpleLog>(nvm_, arena_, control_);
  else
    pointers_ = std::make_unique<BucketLog>(nvm_, arena_, control_, cells, shape.version == LogVersion::batch ? shape.group : 1);
  if (shape.layers == 2) tree_ = std::make_unique<AtomicAvlTree>(nvm_, arena_, *pointers_, control_ + root_word, seed_);
  removed_.reserve(max_removed);
  capacity_ = arena_.lines() / (tree_ ? 2 : each_);  // a record, and a node of its own
  if (!tree_) return;
  tree_->prepare(capacity_);
  capacity_ -= std::min(capacity_, AtomicAvlTree::lines_of_operation(capacity_, each_) / 2 + 1);
}

Status RewindLog::format() {
  for (std::uint64_t word = 0; word < stamp_word; word += 8) nvm_.start(control_ + word, 0);
  nvm_.fence();  // W1
  const std::uint64_t stamp =
      place_.form == LogForm::first ? seed_ : ControlWord::make(place_.identity, control_ + stamp_word, place_.epoch);
  nvm_.start_word(control_ + stamp_word, stamp);
  nvm_.fence();  // before anything that the log is to hold
  return nvm_.status();
}

bool RewindLog::fits(std::uint64_t n) const noexcept {
  if (tree_) return tree_->fits(n, each_);
  return arena_.free_lines() >= n * each_ && pointers_->fits(n * each_);
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

RewindLog::Cursor RewindLog::first() const noexcept { return tree_ ? cursor(tree_->above(0)) : cursor(pointers_->first()); }
RewindLog::Cursor RewindLog::last() const noexcept { return tree_ ? cursor(tree_->last()) : cursor(pointers_->last()); }
RewindLog::Cursor RewindLog::next(const Cursor& c) const noexcept {
  return tree_ ? cursor(tree_->above(c.record->lsn())) : cursor(pointers_->next(c.at));
}
RewindLog::Cursor RewindLog::prior(const Cursor& c) const noexcept {
  return tree_ ? cursor(tree_->below(c.record->lsn())) : cursor(pointers_->prior(c.at));
}
RewindLog::Cursor RewindLog::find(std::uint64_t lsn) const noexcept { return tree_ ? cursor(tree_->find(lsn)) : Cursor{}; }

void RewindLog::remove(const Cursor& c) noexcept {
  if (nvm_.failed()) return;
  if (tree_)
    tree_->remove(c.record->lsn());
  else
    pointers_->remove(c.at);
  arena_.give_line(c.place);
  count(~std::uint64_t{0});  // one less
}

void RewindLog::remove_soon(const Cursor& c) noexcept {
  if (tree_) return remove(c);
  if (nvm_.failed()) return;
  if (removed_.size() == max_removed) settle();
  pointers_->remove_soon(c.at);
  removed_.push_back(c.place);
  count(~std::uint64_t{0});
}

// A record's line is not given again before the gap in its cell is durable: recovery would find another record there.
void RewindLog::settle() noexcept {
  pointers_->settle();
  if (nvm_.failed()) return;
  for (const std::uint64_t place : removed_) arena_.give_line(place);
  removed_.clear();
}

Result<bool> RewindLog::is_there() const {
  const std::uint64_t stamp = nvm_.word(control_ + stamp_word);
  if (place_.form == LogForm::first) return stamp == seed_;
  if (stamp == 0 || place_.older) return false;  // 0: a new pool's
  if (!ControlWord::whole(place_.identity, control_ + stamp_word, stamp) || ControlWord::value(stamp) > place_.epoch)
    return failure(Code::corrupt, nvm_.medium().path(),
                   "a log whose stamp, at log offset " + std::to_string(control_ + stamp_word) + ", is damaged", "the stamp of a session",
                   "restore a copy");
  return ControlWord::value(stamp) == place_.epoch;
}

Result<bool> RewindLog::recover(bool rehearsed) {
  const auto there = is_there();
  if (!there.ok() || !*there) return there;
  nvm_.start_again(control_, LogArena::line);
  nvm_.fence();  // D4: the anchor, before the operation that it names is done again
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
  // `key`: what an index has it under; 1 layer: its own.
  const auto learn = [&](std::uint64_t key, std::uint64_t place) {
    const auto broken = [&](const char* what) {
      damage = failure(Code::corrupt, nvm_.medium().path(), "a log record at log offset " + std::to_string(place) + " that " + what,
                       "whole records", "restore a copy");
      return false;
    };
    if (!arena_.mark_line(place)) return broken("is none, or is met twice");
    count(1);
    if (rehearsed) return true;
    const AriesRecord& record = *cursor(place).record;
    if (!record.whole(seed_, place) || (tree_ && record.lsn() != key)) return broken("is damaged");
    if (record.lsn() <= before) return broken("stands behind a newer one");
    before = record.lsn();
    return true;
  };
  if (tree_)
    tree_->for_each(learn);
  else
    for (auto at = pointers_->first(); at && learn(0, pointers_->record(at)); at = pointers_->next(at)) {}
  return damage;
}

}  // namespace perdure::log
