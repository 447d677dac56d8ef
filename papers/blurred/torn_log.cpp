// SPDX-License-Identifier: BSD-3-Clause
#include "papers/blurred/torn_log.hpp"

#include <algorithm>
#include <string>

namespace perdure::papers::blurred {

// --- writing -------------------------------------------------------------------------------------

TornRecord TornLog::abort_record(std::uint64_t seed, std::uint64_t position,
                                 std::uint64_t backpointer, bool sense) noexcept {
  return TornRecord::make(
      TornKind::abort,
      TornSum(seed, position).value(TornKind::abort, backpointer, position, backpointer),
      backpointer, sense);
}

TornRecord TornLog::commit_record(const TornSum& sum, std::uint64_t id, std::uint64_t position,
                                  std::uint64_t last_commit, bool sense) noexcept {
  return TornRecord::make(TornKind::commit, sum.value(TornKind::commit, id, position, last_commit),
                          id, sense);
}

void TornLog::fill(std::uint64_t first, std::uint64_t last, const TornRecord& record) noexcept {
  const TornRecord line[a_line] = {record, record, record, record};
  while (first < last) {
    if (first % a_line == 0 && last - first >= a_line) {
      medium_.stream(at(first), line, 64);
      first += a_line;
    } else {
      put(first, record);
      flush(first, first + 1);
      ++first;
    }
  }
}

// Zeroes all that is allocated: the rest is zero, and must not be stored to (ALLOC-1).
void TornLog::zero() noexcept {
  for (std::uint64_t at = 0; at < place_.bytes;) {
    const std::uint64_t n = medium_.allocated_from(place_.offset + at, place_.bytes - at);
    // A page is a multiple of a record, and records lie at multiples of their size: none crosses a
    // page.
    const auto number = [](std::uint64_t bytes) {
      return bytes > control_bytes ? (bytes - control_bytes) / TornRecord::bytes : 0;
    };
    fill(number(at), std::min(number(at + n), records_), TornRecord{});
    at = n == 0 ? (place_.offset + at) / medium::page_bytes * medium::page_bytes +
                      medium::page_bytes - place_.offset
                : at + n;
  }
}

void TornLog::start_word(std::uint64_t word, std::uint64_t value) noexcept {
  const std::uint64_t whole = ControlWord::make(place_.identity, word, value);
  medium_.store(place_.offset + word, &whole, 8);
  medium_.flush(place_.offset + word, 8);
}

Status TornLog::control_word(std::uint64_t word, std::uint64_t value) noexcept {
  start_word(word, value);
  return medium_.fence();  // before anything is done that relies on it
}

void TornLog::begin_generation() noexcept {
  put(0, abort_record(seed_, position(0), position(0), sense()));
  // mutant: torn-generation-begin-flush
  flush(0, 1);
  tail_ = 1;
  line_.fill(TornRecord::filler(!sense()));
  line_[0] = record(0);
  if (writing_ == TornWriting::ordered) start_word(tail_word, position(tail_));
  last_commit_ = position(0);
  last_id_ = 0;
  aborts_since_commit_ = aborts_in_generation_ = false;
  begin_run();
}

Status TornLog::format(bool zero) {
  if (Status s =
          ControlWord::forget_other_form(medium_, place_.offset, place_.identity, epoch_word);
      !s.ok())
    return s;
  // mutant: torn-format-zeroes
  if (!zero) this->zero();
  start_word(data_word, 0);
  start_word(x_word, 0);
  begin_generation();
  // TORN-3, TORN-5: before the epoch says that this is a log of the session.
  if (Status s = medium_.fence(); !s.ok()) return s;
  return control_word(epoch_word, place_.epoch);
}

Status TornLog::wipe() noexcept {
  // The epoch is cleared first: no log is valid, before it is overwritten.
  if (Status s = control_word(epoch_word, 0); !s.ok()) return s;
  zero();
  // mutant: torn-close-zero-fence, call torn-close-zero-fence
  return medium_.fence();  // TORN-5: before the header may say that the pool was closed
}

// Appends a record, which is durable after the line was streamed, and a fence.
void TornLog::append_past(const TornRecord& record) noexcept {
  line_[tail_ % a_line] = record;
  if (++tail_ % a_line != 0) return;
  medium_.stream(at(tail_ - a_line), line_.data(), 64);
  line_.fill(TornRecord::filler(!sense()));
}

// Streams the line that the tail is in, if it has a record.
void TornLog::stream_line() noexcept {
  if (tail_ % a_line != 0) medium_.stream(at(tail_ / a_line * a_line), line_.data(), 64);
}

void TornLog::append_all(const std::vector<TornRecord>& records) noexcept {
  if (writing_ == TornWriting::past) {
    for (const TornRecord& r : records) {
      sum_.add(r);
      append_past(r);
    }
    return;
  }
  std::size_t i = 0;
  if (writing_ == TornWriting::filled) {
    while (i < records.size() && tail_ % a_line != 0) append(records[i++]);
    const std::size_t lines = (records.size() - i) / a_line;
    if (lines != 0) {
      medium_.stream(at(tail_), &records[i], lines * 64);
      for (std::size_t n = 0; n < lines * a_line; ++n) sum_.add(records[i + n]);
      streamed_first_ = tail_;
      tail_ += lines * a_line;
      i += lines * a_line;
      streamed_last_ = tail_;
    }
  }
  while (i < records.size()) append(records[i++]);
}

Status TornLog::commit(std::uint64_t id) noexcept {
  const TornRecord last = commit_record(sum_, id, position(tail_), last_commit_, sense());
  if (writing_ == TornWriting::ordered) {
    flush(run_, tail_);
    // mutant: call torn-ordered-records-fence
    if (Status s = medium_.fence(); !s.ok()) return s;  // TORN-6: the records, before the commit
    streamed_first_ = run_;
    streamed_last_ = tail_;
  }
  if (writing_ == TornWriting::past) {
    append_past(last);
    stream_line();
    streamed_first_ = run_;
    streamed_last_ = tail_--;  // as for the others: the tail is the commit record's place
  } else {
    put(tail_, last);
  }
  // mutant: torn-commit-flush-aborts
  if (aborts_since_commit_)
    for (std::uint64_t n = last_commit_ % records_ + 1; n < run_; ++n)
      if (record(n).kind() == TornKind::abort) flush(n, n + 1);
  // mutant: torn-commit-flush-head
  flush(run_, streamed_first_);
  // mutant: torn-commit-flush-tail
  flush(streamed_last_, tail_ + 1);
  committed_ = {run_, tail_};
  last_commit_ = position(tail_++);
  last_id_ = id;
  aborts_since_commit_ = false;
  begin_run();
  // TORN-1: before any thread sees what the transaction has written, and before it is acknowledged.
  if (Status s = medium_.fence(); !s.ok()) return s;
  if (writing_ == TornWriting::ordered) return control_word(tail_word, position(tail_));
  return {};
}

void TornLog::abort() noexcept {
  if (run_ == tail_) return;
  const auto abort_at = [this](std::uint64_t n) {
    return abort_record(seed_, position(n), last_commit_, sense());
  };
  // mutant: torn-abort-record-spacing
  for (std::uint64_t n = run_ + reach - 1; n < tail_; n += reach) {
    const TornRecord r = abort_at(n);
    medium_.store(at(n), &r.data, 8);  // TORN-4: the data block first
    medium_.store(at(n) + 8, &r.meta, 8);
  }
  put(tail_, abort_at(tail_));
  ++tail_;
  aborts_since_commit_ = aborts_in_generation_ = true;
  begin_run();
}

Status TornLog::truncate() noexcept {
  // TORN-2: whatever a crash would have left of an aborted run, its blocks have this generation's
  // torn bit now, and so has the rest.
  // mutant: torn-generation-aborts-flushed
  if (aborts_in_generation_)
    for (std::uint64_t n = 1, from = 1; n < tail_; ++n) {
      const TornKind kind = record(n).kind();
      if (kind == TornKind::abort) flush(from, n + 1);
      if (kind == TornKind::abort || kind == TornKind::commit) from = n + 1;
    }
  // mutant: torn-generation-filled
  fill(tail_, records_, TornRecord::filler(sense()));
  // mutant: torn-generation-fill-fence, call torn-generation-fill-fence
  if (Status s = medium_.fence(); !s.ok()) return s;  // TORN-2
  ++lap_;
  begin_generation();
  // mutant: torn-generation-begin-fence, call torn-generation-begin-fence
  return medium_.fence();  // TORN-3
}

// --- recovery ------------------------------------------------------------------------------------

namespace {

Status broken(const medium::Medium& medium, const TornPlace& place, const std::string& what) {
  return failure(Code::corrupt, medium.path(),
                 "the log at log offset " + std::to_string(place.offset) + " " + what,
                 "what a crash can have left of a log", "restore a copy");
}

}  // namespace

TornControl TornLog::control(const medium::Medium& medium, const TornPlace& place, bool ordered) {
  TornControl c;
  const auto word = [&](std::uint64_t at) {
    return *reinterpret_cast<const std::uint64_t*>(medium.at(place.offset + at));
  };
  const std::uint64_t epoch = word(epoch_word);
  if (epoch == 0) return c;  // a new pool
  const LogForm form = ControlWord::form_of(
      place.identity, {{epoch_word, epoch}, {data_word, word(data_word)}, {x_word, word(x_word)}});
  const auto whole = [&](std::uint64_t at) {
    return ControlWord::whole(place.identity, at, word(at), form);
  };
  if (!whole(epoch_word) || ControlWord::value(epoch) > place.epoch) {
    c.damage = broken(medium, place, "names no session that it can be of");
    return c;
  }
  // mutant: torn-log-epoch
  c.ours = ControlWord::value(epoch) == place.epoch;
  if (!c.ours) return c;
  if (!whole(data_word) || !whole(x_word) || (ordered && !whole(tail_word)))
    c.damage = broken(medium, place, "has damaged control words");
  c.home = ControlWord::value(word(data_word));
  c.x = ControlWord::value(word(x_word));
  c.tail = ordered ? ControlWord::value(word(tail_word)) : 0;
  return c;
}

TornScan TornLog::scan(const medium::Medium& medium, const TornPlace& place,
                       std::uint64_t covered) {
  TornScan s;
  const std::uint64_t records = records_of(place), seed = place.seed();
  const auto record = [&](std::uint64_t n) -> const TornRecord& {
    return record_at(medium, place, n);
  };
  const auto damaged = [&](const std::string& what) {
    s.damage = broken(medium, place, what);
    return s;
  };
  const auto commits = [&](std::uint64_t from, bool sense, std::uint64_t above) {
    std::vector<std::uint64_t> found;
    for (std::uint64_t i = from; i < records; ++i)
      if (record(i).written(sense) && record(i).kind() == TornKind::commit &&
          record(i).value() > above)
        found.push_back(i);
    return found;
  };
  const TornRecord& beginning = record(0);
  if (beginning.torn_data() != beginning.torn_meta()) {
    // The next generation's beginning was being written: the data region holds all of the
    // generation before.
    s.end = 1;
    s.generation = TornScan::between;
    if (!commits(1, false, covered).empty() || !commits(1, true, covered).empty())
      return damaged("has a damaged beginning");
    return s;
  }
  const bool sense = beginning.torn_meta();
  const std::uint64_t generation = s.generation = beginning.value() / records;
  if (sense != sense_of(generation) || beginning.value() != generation * records ||
      beginning.meta != abort_record(seed, generation * records, generation * records, sense).meta)
    return damaged("does not begin as a generation does");

  std::uint64_t last_commit = generation * records, last_id = 0, first = 1, n = 1;
  TornSum sum(seed, generation * records + 1), before = sum;  // before: without the last record
  const auto leads_on = [&](std::uint64_t i) {
    const TornRecord& r = record(i);
    // mutant: torn-backpointer
    return r.written(sense) && r.kind() == TornKind::abort && r.value() == last_commit &&
           r.meta == abort_record(seed, generation * records + i, last_commit, sense).meta;
  };
  const auto like_data = [](const TornRecord& r) {
    return (r.meta & (TornRecord::flag_dc | TornRecord::flag_ca)) == 0 && r.address() % 8 == 0;
  };
  const auto is_commit = [&](std::uint64_t i, const TornSum& of) {  // whatever its flags say
    return record(i).address() ==
           of.value(TornKind::commit, record(i).value(), generation * records + i, last_commit);
  };
  const auto go_on_behind = [&](std::uint64_t i) {
    n = first = i + 1;
    sum = TornSum(seed, generation * records + first);
  };
  while (n < records) {
    const TornRecord& r = record(n);
    if (leads_on(n)) {
      ++s.aborted;
      go_on_behind(n);
    } else if (r.written(sense) &&
               (r.kind() == TornKind::commit || (!like_data(r) && is_commit(n, sum)) ||
                (r.meta & TornRecord::flag_ca) != 0)) {
      const std::uint64_t id = r.value();
      // mutant: torn-transaction-checksum
      if (first == n ||
          r.meta != commit_record(sum, id, generation * records + n, last_commit, sense).meta)
        return damaged("has a damaged transaction before record " + std::to_string(n));
      if (id <= last_id)
        return damaged("has transaction " + std::to_string(id) + " behind " +
                       std::to_string(last_id));
      s.transactions.push_back({id, first, n});
      last_id = id;
      last_commit = generation * records + n;
      go_on_behind(n);
    } else if (r.written(sense) && r.kind() != TornKind::abort) {
      before = sum;
      sum.add(r);
      ++n;
    } else {  // a hole, or a half-written record as in TORN-4
      std::uint64_t ahead = n + 1;
      // mutant: torn-hole-limit
      const std::uint64_t limit = std::min(n + reach + 1, records);
      while (ahead < limit && !leads_on(ahead)) ++ahead;
      if (ahead == limit) break;
      ++s.aborted;
      go_on_behind(ahead);
    }
  }
  if (first != n && is_commit(n - 1, before))
    return damaged("ends in a damaged commit record, number " + std::to_string(n - 1));
  s.end = first;
  // A crash can have left at most one commit record after the end, and its transaction was not
  // acknowledged. Each transaction before it was durable (TORN-1), so the record names as the last
  // commit before it the one that was found last.
  const auto beyond = commits(n, sense, last_id);
  bool follows = beyond.size() > 1;
  if (beyond.size() == 1) {
    std::uint64_t from = beyond[0];
    while (from > n + 1 && record(from - 1).written(sense)) --from;
    TornSum own(seed, generation * records + from);
    for (std::uint64_t i = from; i < beyond[0]; ++i) own.add(record(i));
    const TornRecord& r = record(beyond[0]);
    for (std::uint64_t i = n; i < from && !follows; ++i)
      follows =
          r.address() == own.value(TornKind::commit, r.value(), generation * records + beyond[0],
                                   generation * records + i);
  }
  // mutant: torn-break-detected
  if (follows)
    return damaged("breaks off at record " + std::to_string(n) + ", and transactions follow");
  return s;
}

}  // namespace perdure::papers::blurred
