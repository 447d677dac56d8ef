// SPDX-License-Identifier: BSD-3-Clause
#include "papers/softwrap/retirer.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>

namespace perdure::papers::softwrap {

Retirer::Retirer(House house, std::uint64_t x, std::uint64_t entries,
                 const SoftwrapOptions& options)
    : house_(std::move(house)),
      long_wrap_ms_(options.long_wrap_ms),
      waits_(options.wait_at_threshold),
      stream_home_(options.stream_home),
      threshold_(std::clamp<std::uint64_t>(options.retire_at != 0 ? options.retire_at : entries / 8,
                                           1, entries / 8 * 7)),
      x_(x) {}

// Called under the mutex.
bool Retirer::start() noexcept {
  return !stopping_ && thread_.start([this] { work(); });
}

void Retirer::wake() noexcept {
  const std::lock_guard lock(mutex_);
  wanted_period_ = std::max(wanted_period_, house_.tables.now().period() + 1);
  // Otherwise the thread that finds no space in a table does the round.
  if (start()) wake_.notify_one();
}

// Called under the mutex: waits for the rounds that are wanted; without a thread it does them.
template <class Done>
Status Retirer::wait_for(std::unique_lock<std::mutex>& lock, Done&& done) {
  while (failure_.ok() && !stopping_ && !done()) {
    if (stuck_)
      return failure(Code::busy, house_.medium.path(),
                     "a transaction that has been open for more than 3 times " +
                         std::to_string(long_wrap_ms_) +
                         " ms, makes no call and keeps an alias table",
                     "transactions that end", "end it, then run this again");
    if (start() || working_) {
      wake_.notify_one();
      done_.wait(lock);
    } else {
      round_by_this_thread(lock);
    }
  }
  return failure_;
}

void Retirer::push(Node& one) noexcept {
  const std::lock_guard lock(mutex_);
  pushed_.splice(pushed_.end(), one);
}

Status Retirer::next_period(std::uint64_t entries) {
  std::unique_lock lock(mutex_);
  const std::uint64_t period = house_.tables.now().period() + 1;
  wanted_period_ = std::max(wanted_period_, period);
  wanted_entries_ = std::max(wanted_entries_, entries);
  return wait_for(lock, [&] { return house_.tables.now().period() >= period; });
}

Status Retirer::drain() {
  std::unique_lock lock(mutex_);
  const std::uint64_t period = house_.tables.now().period() + 1;
  wanted_period_ = std::max(wanted_period_, period);
  return wait_for(lock, [&] {
    const auto now = house_.tables.now();
    return now.period() > period || (now.period() == period && now.other_retired());
  });
}

void Retirer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  tell();
}

void Retirer::tell() noexcept {
  const std::lock_guard lock(mutex_);
  done_.notify_all();
}

void Retirer::wait_held() noexcept {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] {
    return stopping_ || !failure_.ok() || !held_.load(std::memory_order_acquire);
  });
}

void Retirer::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] {
      return stopping_ || !failure_.ok() ||
             (!working_ && wanted_period_ > house_.tables.now().period());
    });
    if (stopping_ || !failure_.ok()) return;
    round_by_this_thread(lock);
  }
}

// One thread at a time runs it, under the mutex, which it releases meanwhile.
void Retirer::round_by_this_thread(std::unique_lock<std::mutex>& lock) {
  working_ = true;
  lock.unlock();
  Status s;
  try {
    s = round();
  } catch (const std::bad_alloc&) {
    s = failure(Code::out_of_memory, house_.medium.path(), "no memory to retire an alias table");
  }
  if (!s.ok()) house_.failed(s);
  lock.lock();
  working_ = false;
  if (!s.ok()) failure_ = s;
  wake_.notify_one();
  done_.notify_all();
}

bool Retirer::stopping() noexcept {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

// Waits until done() returns true. Returns false if the time is over.
template <class Done>
bool Retirer::wait_until(Done&& done, std::uint32_t at_most_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(at_most_ms);
  for (unsigned spins = 0; !done(); ++spins) {
    if (at_most_ms != 0 && std::chrono::steady_clock::now() > end) return false;
    if (spins < 64)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(spins < 5000 ? 20 : 1000));
  }
  return true;
}

void Retirer::stuck(bool yes) noexcept {
  {
    const std::lock_guard lock(mutex_);
    stuck_ = yes;
  }
  tell();
}

void Retirer::hold(bool yes) noexcept {
  {
    const std::lock_guard lock(mutex_);
    held_.store(yes, std::memory_order_seq_cst);  // pairs with open()
  }
  tell();
}

Status Retirer::round() {
  AliasTables& tables = house_.tables;
  const std::uint64_t period = tables.now().period();
  std::uint64_t entries = 0;
  {
    const std::lock_guard lock(mutex_);
    entries = wanted_entries_;
  }
  // It is empty already; it may need more space.
  tables.empty(entries);
  house_.begin_buckets(static_cast<unsigned>((period + 1) % 3),
                       house_.low_watermark());  // RETIRE-3
  // WRAPLOG-2 (papers/softwrap/wrap_log.hpp): before a wrap is streamed to them.
  if (Status s = house_.medium.fence(); !s.ok()) return s;
  const std::uint64_t x = house_.low_watermark();  // RETIRE-1: before the switch
  {
    const std::lock_guard lock(mutex_);
    tables.switch_over();
  }
  tell();
  const auto ended = [&] { return !tables.any_of_period(period); };
  // mutant: softwrap-closed-wraps-only
  if (!wait_until(ended, long_wrap_ms_)) {
    hold(true);
    if (!wait_until(ended, long_wrap_ms_)) return evict(period, x);
    hold(false);
  }
  return end_of_period(period, x);
}

// No wrap of the period is open any more: retires and empties the period's table.
Status Retirer::end_of_period(std::uint64_t period, std::uint64_t x) {
  AliasTables& tables = house_.tables;
  tables.note_closed();
  // mutant: softwrap-id-at-switch
  if (Status s = retire(x); !s.ok()) return s;
  {
    const std::lock_guard lock(mutex_);
    tables.note_retired();
  }
  rounds_.fetch_add(1, std::memory_order_relaxed);
  tell();
  wait_until([&] { return !tables.any_that_looks(period + 1); }, 0);
  tables.empty(0);
  return {};
}

// Makes durable what wraps have stored to the data region by themselves, and whatever else this
// thread has flushed; then the checkpoint id X says so.
Status Retirer::flush_pushed(const Lines& lines, std::uint64_t x) {
  for (const std::uint64_t line : lines)
    house_.medium.flush(house_.medium.log_bytes() + line, medium::line_bytes);
  // RETIRE-1: the data region, before X covers what it has.
  if (Status s = house_.medium.fence(); !s.ok()) return s;
  if (x > this->checkpoint_id()) {
    // mutant: softwrap-id-before-bucket-reuse
    if (Status s = house_.note_checkpoint_id(x); !s.ok()) return s;
    x_.store(x, std::memory_order_release);  // pairs with the acquire in checkpoint_id()
  }
  return {};
}

Retirer::Lines Retirer::take_pushed() {
  std::list<Lines> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(pushed_);
  }
  Lines all;
  for (const Lines& l : taken) all.insert(all.end(), l.begin(), l.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// C -> R.
Status Retirer::retire(std::uint64_t x) {
  std::vector<medium::WordStore> words;
  const AliasTables::Table& table = house_.tables.table(house_.tables.now().active() ^ 1);
  words.reserve(table.size());
  table.for_each(
      [&](std::uint64_t offset, std::uint64_t value) { words.push_back({offset, value}); });
  // The sort is stable: for a word that is also in a page, the page's value is the later one.
  std::stable_sort(words.begin(), words.end(),
                   [](const auto& a, const auto& b) { return a.offset < b.offset; });
  const Lines lines = take_pushed();  // RETIRE-1: after X was drawn
  medium::Medium& medium = house_.medium;
  const std::uint64_t home = medium.log_bytes();
  std::uint64_t count = lines.size();
  for (std::size_t i = 0; i < words.size(); ++count) {
    // A line is written back as soon as it is whole, which overlaps the next one's stores.
    const std::uint64_t line = words[i].offset / medium::line_bytes * medium::line_bytes;
    const std::size_t first = i;
    while (i < words.size() && words[i].offset < line + medium::line_bytes) ++i;
    const std::span<const medium::WordStore> of_line(words.data() + first, i - first);
    if (stream_home_) {
      medium.stream_words(home, of_line);
      continue;
    }
    for (const medium::WordStore& w : of_line) medium.store(home + w.offset, &w.value, 8);
    medium.flush(home + line, medium::line_bytes);
  }
  lines_.fetch_add(count, std::memory_order_relaxed);
  return flush_pushed(lines, x);
}

// A wrap of `period` has been open for too long. Waits for all other wraps to end, then for this
// one at its next call.
Status Retirer::evict(std::uint64_t period, std::uint64_t x_at_switch) {
  AliasTables& tables = house_.tables;
  expired_.store(period + 1, std::memory_order_relaxed);
  if (!wait_until([&] { return !tables.any_open(); }, long_wrap_ms_)) {
    stuck(true);
    hold(false);
    // Aborted at last, it has put its old values back: the table is as if it had ended in time.
    const auto ended = [&] { return !tables.any_of_period(period); };
    wait_until([&] { return stopping() || ended(); }, 0);
    stuck(false);
    // Otherwise the pool is being closed, and is recovered when it is opened.
    return ended() ? end_of_period(period, x_at_switch) : Status();
  }
  // No wrap is open, and none opens. What was aborted has put its old values back; what was closed
  // is in the logs.
  tables.note_closed();
  tables.table(0).clear();
  tables.table(1).clear();
  const std::uint64_t x = house_.low_watermark();
  const Lines lines = take_pushed();
  // mutant: softwrap-replays-evicted
  if (Status s = house_.replay(); !s.ok()) return s;
  if (Status s = flush_pushed(lines, x); !s.ok()) return s;
  replays_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    tables.note_retired();
  }
  tables.empty(0);
  hold(false);
  return {};
}

}  // namespace perdure::papers::softwrap
