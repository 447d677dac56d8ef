// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/follow/follower.hpp"

#include <algorithm>
#include <string>
#include <thread>

#include "perdure/base/room.hpp"
#include "perdure/engine/follow/log_durable.hpp"
#include "perdure/engine/follow/ring_copy.hpp"
#include "perdure/log/record_merge.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/log/ring.hpp"
#include "perdure/tm/tm.hpp"

namespace perdure::engine::follow {
namespace {

using std::chrono::milliseconds;

// How often the thread reads ahead, and for how long after the last view.
constexpr std::chrono::microseconds read_ahead_nap(1000);
// How many records are read, and how many pages given back, before the position is shown anew: the
// writer may wait for it.
constexpr int records_at_once = 128;
constexpr std::uint64_t pages_at_once = 1024;
constexpr milliseconds awake_for(100);
// How long new views wait for those that are open, so that the state can move on.
constexpr milliseconds short_patience(2);
constexpr milliseconds longest_pause(1000);
// How often a follower that finds nothing new asks whether the writer still runs.
constexpr milliseconds writer_asked_every(10);
constexpr std::size_t most_unsure = 1 << 16;

}  // namespace

Follower::Follower(pool::OpenPool& file, const ReaderOptions& options)
    : file_(file),
      options_(options),
      strict_(file.header().order == pool::CommitOrder::strict),
      state_(file),
      log_(file.fd(), file.path()),
      ahead_([this] { work(); }) {}

Follower::~Follower() { stop(); }

// ---- attaching ----------------------------------------------------------------------------------

Status Follower::attach() {
  const std::lock_guard reading(reading_);
  return attach_until(Clock::now() + options_.patience);
}

// Messages name other processes, for which /proc is searched: so they are made at the end.
Status Follower::attach_until(Clock::time_point deadline) {
  for (;;) {
    Attempt attempt = Attempt::failed;
    Status s = try_attach(attempt);
    if (s.ok() || attempt == Attempt::failed) return s;
    if (Clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(1));
      continue;
    }
    if (attempt == Attempt::again) return s;
    std::string others = file_.others();
    if (others.empty()) others = "another process";
    return failure(Code::busy, file_.path(),
                   attempt == Attempt::changing
                       ? others + " is opening it, or gives free parts of its file back"
                       : others + " has it open for writing and serves no readers",
                   "a program that has opened it with the engine shadow, and has finished opening",
                   "try again when it is open, or closed");
  }
}

// What was shown before is gone (generation()), and nothing is right until the end.
Status Follower::try_attach(Attempt& attempt) {
  invalidate();
  generation_.fetch_add(1, std::memory_order_release);
  {
    const std::lock_guard lock(mutex_);
    held_ = 0;  // by what has expired
  }
  file_.hide_position();
  pending_ = {};
  unsure_.clear();
  if (!failed_sync_.ok()) return failed_sync_;
  struct Attaching {
    bool& is;
    explicit Attaching(bool& flag) : is(flag) { is = true; }
    ~Attaching() { is = false; }
  } const attaching(attaching_);
  const pool::ReaderWords& told = file_.told();
  // Acquire: pairs with the writer's store, so that what is read below is at least as new.
  const std::uint64_t sequence = told.sequence.load(std::memory_order_acquire);
  const auto writer = file_.writer();
  if (!writer.ok()) return writer.status();
  live_ = *writer == pool::OpenPool::Writer::serves;
  attempt = Attempt::silent;
  if (*writer == pool::OpenPool::Writer::silent) return busy();
  attempt = Attempt::changing;
  if (live_ && sequence % 2 != 0) return busy();
  attempt = Attempt::again;
  const auto header = file_.newest_header();
  // Nothing but `sequence` tells whether somebody has opened the pool meanwhile, and what is found
  // then means nothing.
  const auto unless_changed = [&](Status s) {
    const auto now = file_.writer();
    if (s.code() != Code::busy && told.sequence.load(std::memory_order_acquire) == sequence &&
        now.ok() && *now == *writer)
      attempt = Attempt::failed;
    return s;
  };
  if (!header.ok()) return unless_changed(header.status());
  if (Status s = state_.attach(*header); !s.ok()) return unless_changed(s);
  attached_.fetch_add(1, std::memory_order_relaxed);
  copied_ = given_back_ = header->checkpoint_id;
  log_.start(*header);
  if (Status s = live_ ? apply_live_log() : apply_dead_log(*header); !s.ok())
    return unless_changed(s);
  // Whatever fails here has failed for good: a second sync would not say so.
  if (Status s = make_records_durable(); !s.ok()) {
    attempt = Attempt::failed;
    return s;
  }
  file_.adopt_growth();
  const std::uint64_t good_until = live_ ? copied_ : no_limit;
  if (layout_)
    if (Status s = layout_(); !s.ok()) {
      if (is_right(good_until, sequence)) attempt = Attempt::failed;
      return s;
    }
  // Whoever has come meanwhile has changed it before the data region.
  if (!is_right(good_until, sequence)) return busy();
  applied_.store(copied_, std::memory_order_release);
  good_until_.store(good_until, std::memory_order_release);
  // Release: pairs with the load in right(), of threads that are in a view that began before.
  sequence_.store(sequence, std::memory_order_release);
  show_position();
  return {};
}

// Beside its writer. The copies of pages may hold, in parts, effects up to home_clock as it is when
// the last one was made.
Status Follower::apply_live_log() {
  constexpr int most_tries = 100;
  for (int tries = 1;; ++tries) {
    if (Status s = read_ahead(); !s.ok()) return s;
    // Acquire: pairs with the writer's exchange: what the pages show is covered. If it were not,
    // each read would find that it was overtaken.
    if (file_.told().home_clock.load(std::memory_order_acquire) <= copied_) return {};
    if (tries == most_tries) return busy();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// Nobody writes: recovery's own reading of the log, and its order.
Status Follower::apply_dead_log(const pool::Header& h) {
  if (h.clean == 1) return {};
  std::vector<RingCopy> rings;
  log::RecordMerge merge(h.append_unit);
  for (std::uint32_t i = 0; i < h.ring_count; ++i) {
    auto copy = RingCopy::make(file_.fd(), file_.path(), pool::ring_offset(h, i), h.ring_bytes);
    if (!copy.ok()) return copy.status();
    const std::uint64_t seed = log::ring_seed(h.uuid, h.epoch, i);
    const std::string name = log::ring_name(file_.medium(), i);
    std::uint64_t from = h.ring_head[i], last = h.checkpoint_id;
    const log::Scan scan =
        log::scan_ring(copy->map(), from, seed, h.append_unit, name, [&](const log::RecordView& r) {
          if (r.id() <= h.checkpoint_id) from = r.position + r.bytes(h.append_unit);
          last = std::max(last, r.id());
        });
    if (!scan.damage.ok()) return scan.damage;
    if (Status s = log::later_than_header(copy->map(), h.ring_head[i], scan.end, seed,
                                          h.append_unit, last, name);
        !s.ok())
      return s;
    rings.push_back(std::move(*copy));
    merge.add(rings.back().map(), from, scan.end);
    unsure_.push_back(
        {pool::ring_offset(h, i), h.ring_bytes, h.ring_head[i], scan.end - h.ring_head[i]});
  }
  for (log::RecordView r; merge.next(r);) {
    if (!strict_ && r.id() - r.transactions() > copied_)
      return failure(Code::corrupt, file_.path(),
                     "transaction " + std::to_string(r.id()) + " follows " +
                         std::to_string(copied_) + " with others missing",
                     "records without a gap", "restore a copy");
    if (Status s = take(r); !s.ok()) return s;
  }
  return {};
}

// ---- reading ahead ------------------------------------------------------------------------------

// FOLLOW-4: records up to this id may be shown.
std::uint64_t Follower::limit() const noexcept {
  // Acquire: pairs with LogWriter's store: the record is in the file.
  // mutant: follower-shows-durable-only
  return strict_ || !live_ ? no_limit : file_.told().durable_id.load(std::memory_order_acquire);
}

Status Follower::take(const log::RecordView& r) {
  if (r.kind() != log::RecordKind::commit && r.kind() != log::RecordKind::group)
    return failure(Code::unsupported, file_.path(),
                   "a record of kind " + std::to_string(static_cast<int>(r.kind())),
                   "those of the engine shadow");
  const std::uint64_t* const payload = r.words + log::header_words;
  const std::uint64_t words = r.payload_words();
  if (Status s = state_.prepare(payload, words, r.id()); !s.ok()) return s;
  records_.fetch_add(1, std::memory_order_relaxed);
  if (attaching_) {
    (void)state_.apply(payload, words, r.id(), false);
  } else if (!pending_.dropped) {
    // Where there is no memory for it, or too much is kept: the next state comes from a new
    // attachment. What is kept is whole, or nothing.
    bool kept = (pending_.words.size() + words) * 8 <= options_.memory;
    if (kept) try {
        base::make_room(pending_.records, 1);
        const std::size_t at = pending_.words.size();
        pending_.words.insert(pending_.words.end(), payload, payload + words);
        pending_.records.push_back({at, words, r.id()});
      } catch (const std::bad_alloc&) {
        kept = false;
      }
    if (!kept) {
      pending_ = {};
      pending_.dropped = true;
    }
  }
  copied_ = r.id();
  return {};
}

Status Follower::read_ahead() {
  for (bool more = true; more;)
    if (Status s = read_some(more); !s.ok()) return s;
  return {};
}

Status Follower::read_some(bool& more) {
  more = false;
  if (!live_) return {};
  const std::uint64_t newest = limit();
  if (newest <= copied_) return {};
  log_.look();
  for (int records = 0; !more; more = ++records == records_at_once) {
    log::RecordView r;
    bool found = false;
    if (Status s = log_.next(copied_, newest, r, found); !s.ok()) return s;
    if (!found) break;
    if (strict_) unsure_.push_back(log_.place());
    if (unsure_.size() > most_unsure)
      if (Status s = make_records_durable(); !s.ok()) return s;
    if (Status s = take(r); !s.ok()) return s;
  }
  return {};
}

// FOLLOW-4. Whatever has been read may be visible only. After a failure nothing that was read is
// shown: the system reports it once, and a second call would seem to succeed.
Status Follower::make_records_durable() {
  if (!failed_sync_.ok()) return failed_sync_;
  if (unsure_.empty()) return {};
  if (Status s = make_log_durable(file_, unsure_); !s.ok()) return failed_sync_ = s;
  unsure_.clear();
  return {};
}

// When nobody reads. The state may be wrong afterwards (right()): it is then read anew.
Status Follower::apply_ahead() {
  if (copied_ == applied_.load(std::memory_order_relaxed)) return {};
  // mutant: follower-makes-durable
  if (Status s = make_records_durable(); !s.ok()) return s;
  bool whole = !pending_.dropped;
  for (const Ahead::Record& r : pending_.records)
    whole = whole && state_.apply(pending_.words.data() + r.at, r.words, r.id, true);
  pending_.records.clear();
  pending_.words.clear();
  if (!whole) {
    invalidate();  // it is no state
    return {};
  }
  file_.adopt_growth();
  applied_.store(copied_, std::memory_order_release);
  return {};
}

void Follower::invalidate() noexcept {
  sequence_.store(~std::uint64_t{0}, std::memory_order_release);
}

Status Follower::busy() const {
  return failure(Code::busy, file_.path(), "a log that is overwritten faster than it can be read",
                 {}, "try again, or give the pool a larger log");
}

void Follower::show_position() noexcept {
  if (live_) file_.show_position(copied_);
}

void Follower::give_back() {
  // Acquire: pairs with the writer's store at a checkpoint's end: the data region has it.
  // mutant: follower-gives-back-known-pages
  const std::uint64_t up_to = std::min(file_.told().checkpoint_id.load(std::memory_order_acquire),
                                       applied_.load(std::memory_order_relaxed));
  if (!live_ || up_to <= given_back_) return;
  if (state_.give_back(up_to, pages_at_once)) given_back_ = up_to;
}

// ---- those who read -----------------------------------------------------------------------------

bool Follower::due(Clock::time_point now) const noexcept {
  return !right() || now - looked_ >= std::max<Clock::duration>(options_.staleness, pause_);
}

// Waits until nobody reads, and keeps others from beginning meanwhile. Returns false when the
// patience is over.
bool Follower::nobody_reads(std::unique_lock<std::mutex>& lock, milliseconds patience) {
  if (inside_ == 0) return true;
  ++wanted_;
  const bool none = changed_.wait_for(lock, patience, [this] { return inside_ == 0; });
  if (--wanted_ == 0) changed_.notify_all();
  return none;
}

// REQUIRES: nobody reads. `anew`: what is held is not right any more.
void Follower::move_on(std::unique_lock<std::mutex>& lock, bool anew) {
  moving_ = true;
  lock.unlock();
  Status s;
  try {
    const std::lock_guard reading(reading_);
    if (!anew) {
      s = read_ahead();
      // FOLLOW-1: the pages were made private in time, all of them.
      // mutant: follower-copies-in-time
      if (s.ok() && right()) {
        good_until_.store(live_ ? copied_ : no_limit, std::memory_order_release);
        show_position();
        const bool new_ones = copied_ != applied_.load(std::memory_order_relaxed);
        s = apply_ahead();
        give_back();
        // What a writer has left that died: records that it has not called durable.
        if (const auto now = Clock::now();
            s.ok() && !new_ones && now - asked_for_writer_ >= writer_asked_every) {
          asked_for_writer_ = now;
          if (!file_.is_at_path())
            s = failure(Code::expired, file_.path(), "a file that another one has replaced",
                        "the file that was opened", "open it again");
          const auto writer = file_.writer();
          anew = live_ && writer.ok() && *writer == pool::OpenPool::Writer::none;
        }
      }
      if (s.ok() && !right()) {
        anew = true;
        overtaken_.fetch_add(1, std::memory_order_relaxed);
      }
    } else {
      overtaken_.fetch_add(1, std::memory_order_relaxed);
    }
    if (anew && s.ok()) s = attach_until(Clock::now() + options_.patience);
  } catch (...) {
    invalidate();
    lock.lock();
    moving_ = false;
    changed_.notify_all();
    throw;
  }
  lock.lock();
  moving_ = false;
  looked_ = Clock::now();
  changed_.notify_all();
  if (!s.ok()) throw error(s);
}

// Begins a read of a state that is not too old.
void Follower::begin(std::unique_lock<std::mutex>& lock) {
  // Those who want to move on wait for a short time only.
  changed_.wait(lock, [this] { return !moving_ && wanted_ == 0; });
  last_view_ = Clock::now();
  const auto deadline = last_view_ + options_.patience;
  while (due(Clock::now())) {
    const bool anew = !right();
    if (!anew && held_ != 0) {
      looked_ = Clock::now();
      break;
    }
    if (nobody_reads(lock, anew ? options_.patience : short_patience)) {
      pause_ = {};
      // Others may have moved on, or begun to hold the state, while the lock was not held.
      if (moving_ || inside_ != 0) {
        changed_.wait(lock, [this] { return !moving_; });
        continue;
      }
      if (due(Clock::now()) && (held_ == 0 || !right())) {
        move_on(lock, !right());
        break;
      }
    } else if (!anew) {  // a long view: the state stays, and short ones are not held up each time
      looked_ = Clock::now();
      pause_ = std::clamp<Clock::duration>(pause_ * 2, milliseconds(50), longest_pause);
      break;
    }
    if (Clock::now() >= deadline && !right())
      throw error(failure(Code::expired, file_.path(),
                          "a state that is gone, and views of it that have not ended", {},
                          "end views that wait for something else"));
  }
  ++inside_;
}

void Follower::enter() {
  {
    std::unique_lock lock(mutex_);
    begin(lock);
  }
  (void)ahead_.notify();
}

void Follower::leave() noexcept {
  const std::lock_guard lock(mutex_);
  if (--inside_ == 0 && (wanted_ != 0 || ended_)) changed_.notify_all();
}

std::uint64_t Follower::refresh(milliseconds patience) {
  std::unique_lock lock(mutex_);
  const auto deadline = Clock::now() + patience;
  for (;;) {
    changed_.wait(lock, [this] { return !moving_; });
    if (right() && held_ != 0) break;
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (!nobody_reads(lock, std::max(left, milliseconds(0)))) break;
    if (moving_ || inside_ != 0) continue;
    if (held_ == 0 || !right()) move_on(lock, !right());
    break;
  }
  return id();
}

std::uint64_t Follower::hold(std::uint64_t& id) {
  std::uint64_t generation = 0;
  {
    std::unique_lock lock(mutex_);
    begin(lock);
    --inside_;
    ++held_;
    generation = this->generation();
    id = this->id();
    if (inside_ == 0 && wanted_ != 0) changed_.notify_all();
  }
  (void)ahead_.notify();
  return generation;
}

void Follower::release(std::uint64_t generation) noexcept {
  const std::lock_guard lock(mutex_);
  if (generation == this->generation() && held_ != 0) --held_;
}

bool Follower::holds(std::uint64_t generation) const noexcept {
  const std::lock_guard lock(mutex_);
  return !ended_ && generation == this->generation() && right();
}

bool Follower::enter_held(std::uint64_t generation) noexcept {
  {
    std::unique_lock lock(mutex_);
    if (ended_) return false;
    // Only an attachment can move a state that is held.
    changed_.wait(lock, [&] { return !moving_; });
    last_view_ = Clock::now();
    if (generation != this->generation() || !right()) return false;
    ++inside_;
  }
  (void)ahead_.notify();
  return true;
}

bool Follower::anything_held() const noexcept {
  const std::lock_guard lock(mutex_);
  return held_ != 0 && right();
}

bool Follower::ended() const noexcept {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void Follower::end() noexcept {
  {
    std::unique_lock lock(mutex_);
    ended_ = true;
    changed_.wait(lock, [this] { return inside_ == 0; });
  }
  ahead_.stop();
}

FollowerStats Follower::stats() const noexcept {
  return {attached_.load(std::memory_order_relaxed), overtaken_.load(std::memory_order_relaxed),
          records_.load(std::memory_order_relaxed), state_.bytes()};
}

// ---- the thread that reads ahead ----------------------------------------------------------------

void Follower::work() {
  const auto idle = [this] {
    const std::lock_guard lock(mutex_);
    return inside_ == 0 && held_ == 0 && Clock::now() - last_view_ > awake_for;
  };
  for (;;) {
    if (idle()) {
      {
        const std::lock_guard reading(reading_);
        file_.hide_position();  // no checkpoint waits for one that does not read
      }
      if (!ahead_.sleep(idle)) return;
      continue;
    }
    try {
      const std::lock_guard reading(reading_);
      if (right() && live_) {
        // What fails here is found again, and reported, by the next one that moves on.
        // mutant: follower-copies-in-time-ahead
        for (bool more = true; more && read_some(more).ok() && right();) {
          good_until_.store(copied_, std::memory_order_release);
          show_position();
        }
        give_back();
      }
    } catch (const std::bad_alloc&) {  // the next attempt may find memory, or is overtaken
    }
    if (!ahead_.nap(read_ahead_nap)) return;
  }
}

}  // namespace perdure::engine::follow
