// SPDX-License-Identifier: BSD-3-Clause
#include "papers/rewind/pointer_log.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "perdure/base/thread_slot.hpp"

namespace perdure::papers::rewind {

// --- simple --------------------------------------------------------------------------------------

void SimpleLog::append(std::uint64_t record) noexcept {
  const std::uint64_t node = arena_.take_line();
  const Adll::Links links = list_.links_of_new();
  const std::uint64_t words[8] = {nvm_.word_of(node, links.next),
                                  nvm_.word_of(node + 8, links.prior),
                                  nvm_.word_of(node + record_word, record)};
  nvm_.start_line(node, words);
  // ADLL-1, PTRLOG-1: node and record are durable with lastTail, before toAppend names the node.
  list_.append(node);
}

void SimpleLog::remove(At at) noexcept {
  list_.remove(at.node);
  arena_.give_line(at.node);
}

Status SimpleLog::recover() {
  if (Status s = list_.recover({arena_.begin(), arena_.end(), arena_.lines()}); !s.ok()) return s;
  for (At at = first(); at; at = next(at)) {
    if (!arena_.mark_line(at.node) || !nvm_.whole(at.node + record_word))
      return failure(Code::corrupt, nvm_.medium().path(),
                     "a log whose list goes through log offset " + std::to_string(at.node),
                     "a line of the log, once, and whole", "restore a copy");
  }
  return {};
}

// --- optimized and batch -------------------------------------------------------------------------

void BucketLog::add_bucket() noexcept {
  const std::uint64_t old = list_.tail(), bucket = arena_.take_bucket();
  in_use(bucket) = 0;
  const Adll::Links links = list_.links_of_new();
  const std::uint64_t header[8] = {nvm_.word_of(bucket, links.next),
                                   nvm_.word_of(bucket + 8, links.prior),
                                   nvm_.word_of(bucket + persistent_word, 0)};
  const std::uint64_t zeros[8] = {};
  nvm_.start_line(bucket, header);
  // mutant: bucket-zeroed-cells
  // PTRLOG-2: recovery takes the first zero cell for the end; batch has its index for that.
  if (group_ == 1)
    for (std::uint64_t at = first_cell; at < bucket_bytes(cells_); at += 64)
      nvm_.start_line(bucket + at, zeros);
  list_.append(bucket);  // ADLL-1, PTRLOG-2: durable with lastTail
  filled_ = persistent_ = 0;
  if (old != 0 && in_use(old) == 0) drop(old);
}

void BucketLog::drop(std::uint64_t bucket) noexcept {
  list_.remove(bucket);
  arena_.give_bucket(bucket);
}

// Stores a pointer to the next cell, whose line is written back later. Returns false after a
// failure of the medium: there may be no bucket.
bool BucketLog::take_cell(std::uint64_t record) noexcept {
  if (left() == 0) {
    add_bucket();
    if (nvm_.failed()) return false;
  }
  const At at{list_.tail(), filled_++};
  ++in_use(at.node);
  nvm_.store(cell(at), as_written(record));
  const int me = base::thread_slot();
  of_others_ = pending() > 1 && (of_others_ || appender_ != me);
  appender_ = me;
  return true;
}

void BucketLog::append(std::uint64_t record) noexcept {
  if (group_ == 1) return append_all({&record, 1});
  if (!take_cell(record)) return;
  if (pending() == group_ || filled_ == cells_) persist();
}

// Batch: the index makes the pointers count, and a full bucket's before another one is added.
// Optimized: those of a full bucket are durable with the new bucket's lastTail, before it is in the
// list; so a crash leaves cells empty in the tail only.
void BucketLog::append_all(std::span<const std::uint64_t> records) noexcept {
  if (group_ != 1) {
    for (const std::uint64_t record : records) {
      if (!take_cell(record)) return;
      if (filled_ == cells_) persist();
    }
    return persist();
  }
  // mutant: bucket-record-before-cell
  nvm_.fence();  // PTRLOG-1
  const auto start_new_cells = [this] {
    nvm_.start_again(cell({list_.tail(), persistent_}), pending() * 8);
    persistent_ = filled_;
  };
  for (const std::uint64_t record : records) {
    if (pending() != 0 && left() == 0) start_new_cells();
    if (!take_cell(record)) return;
  }
  start_new_cells();
  // mutant: bucket-cells-durable
  nvm_.end_synchronous();
}

void BucketLog::persist() noexcept {
  if (pending() == 0) return;
  // A fence covers only what its own thread has started, and no flush by this thread would cover
  // another thread's non-temporal store. So what another thread has appended (a checkpoint ends the
  // group of a transaction in progress) is written again. The callers' lock has made it visible.
  // mutant: bucket-group-of-other-threads
  if (of_others_ || appender_ != base::thread_slot())
    for (At at{list_.tail(), persistent_}; at.cell < filled_; ++at.cell) {
      std::uint64_t words[8];
      for (std::uint64_t i = 0; i < 8; ++i) words[i] = nvm_.word(record(at) + i * 8);
      nvm_.start_line(record(at), words);
    }
  // mutant: bucket-cells-before-index
  nvm_.start_again(cell({list_.tail(), persistent_}), pending() * 8);
  // PTRLOG-1, PTRLOG-3: the group's records and cells are durable before the index that makes them
  // count.
  // mutant: bucket-group-before-index
  nvm_.fence();
  nvm_.synchronous(list_.tail() + persistent_word, filled_);
  persistent_ = filled_;
}

void BucketLog::remove(At at) noexcept {
  nvm_.synchronous(cell(at), as_written(gap));
  if (--in_use(at.node) == 0 && at.node != list_.tail()) drop(at.node);
}

void BucketLog::remove_soon(At at) noexcept {
  const std::uint64_t line = cell(at) / 64 * 64;
  if (unsettled_ != 0 && line != unsettled_) nvm_.start_again(unsettled_, 64);
  nvm_.store(cell(at), as_written(gap));
  unsettled_ = line;
  if (--in_use(at.node) == 0 && at.node != list_.tail()) {
    settle();
    drop(at.node);
  }
}

void BucketLog::settle() noexcept {
  if (unsettled_ == 0) return;
  // mutant: bucket-removal-durable-before-reuse
  nvm_.start_again(unsettled_, 64);
  nvm_.fence();
  unsettled_ = 0;
}

PointerLog::At BucketLog::forward(At at) const noexcept {
  for (; at.node != 0; at = {list_.next(at.node), 0})
    for (const std::uint64_t end = limit(at.node); at.cell < end; ++at.cell)
      if (record(at) != gap) return at;
  return {};
}

PointerLog::At BucketLog::backward(At at) const noexcept {
  while (at.node != 0) {
    while (at.cell-- > 0)
      if (record(at) != gap) return at;
    at.node = list_.prior(at.node);
    at.cell = cells_;
  }
  return {};
}

void BucketLog::compact() {
  persist();
  std::vector<std::uint64_t> pointers, old, buckets;
  for (std::uint64_t b = list_.head(); b != 0; b = list_.next(b)) old.push_back(b);
  std::uint64_t used = 0;
  for (const std::uint64_t b : old) used += in_use(b);
  const std::uint64_t needed = (used + cells_ - 1) / cells_;
  if (needed == 0 || needed >= old.size() || used * sparse > old.size() * cells_ ||
      needed > arena_.free_buckets())
    return;
  pointers.reserve(needed * cells_);
  for (At at = first(); at; at = next(at)) pointers.push_back(record(at));
  buckets.reserve(needed);
  std::vector<std::uint64_t> words(bucket_bytes(cells_) / 8);
  while (buckets.size() < needed) buckets.push_back(arena_.take_bucket());
  for (std::size_t i = 0; i < needed; ++i) {
    const std::uint64_t from = i * cells_, n = used - from < cells_ ? used - from : cells_;
    std::fill(words.begin(), words.end(), 0);
    const auto set = [&](std::uint64_t at, std::uint64_t value) {
      words[at / 8] = nvm_.word_of(buckets[i] + at, value);
    };
    set(0, i + 1 < needed ? buckets[i + 1] : 0);
    set(8, i != 0 ? buckets[i - 1] : 0);
    set(persistent_word, group_ != 1 ? n : 0);
    for (std::uint64_t c = 0; c < n; ++c) set(first_cell + c * 8, as_written(pointers[from + c]));
    for (std::size_t w = 0; w < words.size(); w += 8)
      nvm_.start_line(buckets[i] + w * 8, words.data() + w);
    in_use(buckets[i]) = n;
  }
  list_.replace(buckets.front(), buckets.back());  // ADLL-1: the chain is durable with lastTail
  filled_ = persistent_ = in_use(buckets.back());
  for (const std::uint64_t b : old) arena_.give_bucket(b);
}

Status BucketLog::recover() {
  if (Status s = list_.recover({arena_.begin(), arena_.end(), arena_.buckets()}); !s.ok()) return s;
  filled_ = persistent_ = 0;
  for (std::uint64_t b = list_.head(); b != 0; b = list_.next(b))
    if (Status s = learn(b); !s.ok()) return s;
  nvm_.fence();  // REDO-4 (log/redo.hpp)
  // Drops the bucket that a crash left empty before the tail: its last pointer was just removed.
  for (std::uint64_t b = list_.head(), next = 0; b != 0; b = next) {
    next = list_.next(b);
    if (in_use(b) == 0 && b != list_.tail()) drop(b);
  }
  return {};
}

Status BucketLog::learn(std::uint64_t bucket) {
  const auto broken = [&](const std::string& what) {
    return failure(Code::corrupt, nvm_.medium().path(),
                   "a log whose bucket at log offset " + std::to_string(bucket) + " " + what,
                   "what the log's last operation can have left", "restore a copy");
  };
  if (!arena_.mark_bucket(bucket)) return broken("is none, or is met twice");
  const bool is_tail = bucket == list_.tail();
  // mutant: bucket-index-check
  if (!nvm_.whole(bucket + persistent_word)) return broken("has a damaged index");
  std::uint64_t end = cells_;
  // mutant: bucket-cells-above-index
  if (group_ != 1) {
    const std::uint64_t index = nvm_.value(bucket + persistent_word);
    if (is_tail ? index > cells_ : index != cells_)
      return broken("counts " + std::to_string(index) + " of " + std::to_string(cells_) + " cells");
    end = index;
  } else if (is_tail) {
    while (end > 0 && nvm_.word(cell({bucket, end - 1})) == 0) --end;
  }
  std::uint64_t used = 0;
  for (std::uint64_t c = 0; c < end; ++c) {
    if (nvm_.word(cell({bucket, c})) == 0) {
      // PTRLOG-3: only the last append_all() can have left it.
      if (!is_tail || group_ != 1 || end - c > at_once_)
        return broken("has an empty cell, number " + std::to_string(c) + ", before others");
      // mutant: bucket-hole-becomes-gap
      nvm_.store(cell({bucket, c}), as_written(gap));
    }
    // mutant: bucket-cell-check
    if (!nvm_.whole(cell({bucket, c})))
      return broken("has a damaged cell, number " + std::to_string(c));
    if (record({bucket, c}) != gap) ++used;
  }
  // mutant: bucket-rewritten
  // REDO-4: a cell, a gap or the index, whichever was stored last.
  nvm_.start_again(bucket, first_cell + end * 8);
  in_use(bucket) = used;
  if (is_tail) filled_ = persistent_ = end;
  return {};
}

}  // namespace perdure::papers::rewind
