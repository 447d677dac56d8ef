// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/replication/primary.hpp"

#include <algorithm>
#include <utility>

#include "perdure/base/signals.hpp"
#include "perdure/engine/show_stats.hpp"
#include "perdure/replication/logs.hpp"

namespace perdure::replication {
namespace {

using backup::FrameKind;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds shortest_nap(200), longest_nap(50'000);
constexpr milliseconds watch_every(1000);
// How often standbys are looked at, unless a thread waits for them.
constexpr milliseconds look_rarely_every(50);

std::string number(std::uint64_t n) { return std::to_string(n); }

}  // namespace

Status Primary::start(engine::FollowedLog& log) {
  log_ = &log;
  // PRIMARY-2: before the first record of the session.
  tap_.start(log, "replicated log " + service_->name(), stream_->place().end.last,
             log::FloorPolicy::wait);
  if (Status s = file_->archive_log(); !s.ok()) return s;
  if (Status s = deliver(append_header(), Clock::now() + options_.patience); !s.ok()) return s;
  show({});
  file_->when_header_changes.add(this, [this] { return header_changed(); });
  log.before_close.add(this, [this](std::uint64_t last) { return finish(last); });
  const base::BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
  return {};
}

Primary::~Primary() {
  stop_.store(true, std::memory_order_relaxed);
  if (log_ != nullptr) {
    log_->floors().wake();
    log_->before_close.remove(this);
    file_->when_header_changes.remove(this);
  }
  if (thread_.joinable()) thread_.join();
  // The floor stays: the engine's own thread may still make a checkpoint.
}

void Primary::run() {
  microseconds nap = shortest_nap;
  bool idle = false;
  for (;;) {
    // Read before the look at the log: a wait that begins after it ends the nap.
    const std::uint64_t wakes = log_->floors().wakes();
    {
      const std::lock_guard lock(mutex_);
      if (finished_ || stop_.load(std::memory_order_relaxed)) return;
      const std::uint64_t before = stream_->place().sequence;
      Status s;
      try {
        s = step();
        if (s.ok()) s = look_at_standbys();
      } catch (const std::exception& e) {  // the service's, or no memory: what was gathered stays
        s = failure(Code::io, service_->name(), e.what());
      }
      if (s.code() == Code::deposed) return;
      idle = !s.ok() || stream_->place().sequence == before;
      nap = !s.ok() ? retry_after
            : !idle || waiting_.load(std::memory_order_relaxed) != 0
                ? shortest_nap
                : std::min(nap * 2, longest_nap);
      show(s.message());
    }
    // A processor that reads a log closely behind its writer takes the writer's lines away from it.
    if (!idle && (more_ || waiting_.load(std::memory_order_relaxed) != 0)) continue;
    (void)log_->floors().nap(nap, idle, wakes);
  }
}

// Appends what is durable, or asks what has come of what is under way. Under the lock.
Status Primary::step() {
  if (stream_->under_way()) return take(stream_->settle());
  more_ = gather() == backup::LogTap::Found::more;
  if (!entries_.empty()) return append_gathered(file_->data_bytes());
  // A sign to standbys. Where this copy is deposed, it is refused.
  if (const auto beat = options_.beat_every; beat.count() != 0)
    return Clock::now() - watched_ < beat ? Status() : append_rest_of(stream_->place().end.last);
  if (Clock::now() - watched_ < watch_every) return {};
  watched_ = Clock::now();
  const auto state = stream_->watch();
  return has_ended(state) ? deposed() : state.status();
}

// Gathers a frame's worth of what is durable. REQUIRES: nothing is under way. Under the lock.
// Throws std::bad_alloc.
backup::LogTap::Found Primary::gather() {
  return tap_.read([this] { return entries_.bytes() < frame_bytes; },
                   [this](const log::RecordView& record, std::uint64_t) {
                     if (entries_.empty()) {
                       const std::lock_guard lock(shown_mutex_);
                       if (!oldest_) oldest_ = Clock::now();
                     }
                     entries_.add(record);
                   });
}

Status Primary::append_gathered(std::uint64_t data_bytes) {
  const std::uint64_t last = entries_.last();
  // mutant: primary-floor-before-append
  return append(entries_.header(last, data_bytes, backup::unix_nanoseconds()), entries_.payload(),
                entries_.bytes());
}

// A frame without transactions: there is none above the last one that was appended, up to `last`.
Status Primary::append_rest_of(std::uint64_t last) {
  backup::FrameHeader rest{};
  rest.kind = FrameKind::group;
  rest.last = last;
  rest.data_bytes = file_->data_bytes();
  rest.unix_ns = backup::unix_nanoseconds();
  return append(rest, nullptr, 0);
}

Status Primary::append_header() {
  const pool::Header now = file_->header_now();
  backup::FrameHeader header{};
  header.kind = FrameKind::header;
  header.last = stream_->place().end.last;
  header.data_bytes = now.data_bytes;
  header.unix_ns = backup::unix_nanoseconds();
  return append(header, &now, sizeof now);
}

Status Primary::append(backup::FrameHeader header, const void* payload, std::uint64_t bytes) {
  appended_ = Clock::now();
  appending_ = sizeof header + bytes;
  return take(stream_->append(header, payload, bytes));
}

// Whether this copy's term has ended. A log that was trimmed behind its place, which is in it, has
// messages of another term: nothing else is trimmed (trim_log()).
bool Primary::has_ended(const Result<Stream::State>& state) noexcept {
  // mutant: primary-trimmed-is-deposed
  if (state.code() == Code::expired) return true;
  return state.ok() && *state == Stream::State::deposed;
}

// What has come of an append. `unavailable`: it is under way.
Status Primary::take(const Result<Stream::State>& state) {
  if (has_ended(state)) return deposed();
  if (!state.ok()) return state.status();
  if (*state == Stream::State::under_way) {
    const std::lock_guard lock(shown_mutex_);
    ++shown_.unanswered;
    return no_answer(path_, *service_, stream_->why());
  }
  const std::uint64_t last = stream_->place().end.last;
  // Here, and not where they were appended: that call may have thrown.
  if (!entries_.empty() && entries_.last() <= last) entries_.clear();
  note_place();
  watched_ = Clock::now();
  // PRIMARY-2
  // mutant: primary-floor-after-append
  if (tap_.started()) tap_.raise(last);
  const std::lock_guard lock(shown_mutex_);
  // Release: pairs with the acquire in has().
  shipped_.store(last, std::memory_order_release);
  ++shown_.messages;
  shown_.bytes += appending_;
  shown_.last_append = std::chrono::duration_cast<microseconds>(Clock::now() - appended_);
  shown_.appends += shown_.last_append;
  oldest_.reset();
  changed_.notify_all();
  return {};
}

// Under the lock.
Status Primary::look_at_standbys() {
  if (!asked_.load(std::memory_order_relaxed)) return {};
  const bool now = waiting_.load(std::memory_order_relaxed) != 0;
  if (!now && Clock::now() - looked_ < look_rarely_every) return {};
  Status s = standbys_.look(*service_);
  looked_ = Clock::now();
  const std::lock_guard lock(shown_mutex_);
  shown_.standby_ids = standbys_.ids();
  changed_.notify_all();
  return s;
}

// Waits until what is under way is in the log.
Status Primary::deliver(Status s, Clock::time_point late) {
  while (may_pass(s)) {
    if (Clock::now() >= late) return no_answer(path_, *service_, s);
    std::this_thread::sleep_for(retry_after);
    s = take(stream_->settle());
  }
  return s;
}

// Appends all that was durable at the call. Under the lock.
Status Primary::append_all(Clock::time_point late) {
  if (stream_->under_way())
    if (Status s = deliver(take(stream_->settle()), late); !s.ok()) return s;
  for (;;) {
    const backup::LogTap::Found found = gather();
    // mutant: primary-appends-all
    if (!entries_.empty())
      if (Status s = deliver(append_gathered(file_->data_bytes()), late); !s.ok()) return s;
    if (found != backup::LogTap::Found::more) return {};
  }
}

// The thread that changes the header is the only one that commits transactions then, or what the
// change is about is durable: what was committed before is appended before.
Status Primary::header_changed() {
  const std::lock_guard lock(mutex_);
  if (finished_) return {};
  const auto late = Clock::now() + options_.patience;
  if (Status s = append_all(late); !s.ok()) return s;
  return deliver(append_header(), late);
}

// At a clean close: everything is durable. The pool's log is emptied next.
Status Primary::finish(std::uint64_t last) {
  const std::lock_guard lock(mutex_);
  if (finished_) return {};
  const auto late = Clock::now() + options_.close_patience;
  Status s = append_all(late);
  // The next opening finds in the header how far the pool has come.
  if (s.ok() && stream_->place().end.last < last) s = deliver(append_rest_of(last), late);
  finished_ = s.ok();
  show(s.message());
  if (!s.ok() && s.code() != Code::deposed) end();
  return s;
}

// PRIMARY-4
Status Primary::deposed() {
  const std::uint64_t has = stream_->place().end.last;
  Status why =
      failure(Code::deposed, path_,
              "another copy has become the primary; it began with the transactions up to " +
                  number(has) + " of this one",
              {}, "open the pool there; what this copy has above that is in no other");
  // mutant: primary-refuses
  if (log_ != nullptr) log_->depose(why);
  const std::lock_guard lock(shown_mutex_);
  over_ = why;
  shown_.primary = false;
  shown_.problem = why.message();
  show_counters();
  changed_.notify_all();
  return why;
}

// The next header says what is known of the stream.
void Primary::note_place() { file_->note_replication(claims_.words_at(stream_->resume_place())); }

void Primary::show(const std::string& problem) {
  const std::lock_guard lock(shown_mutex_);
  if (!over_.ok()) return;
  shown_.on = true;
  shown_.primary = stream_->primary();
  shown_.term = stream_->place().term;
  shown_.sequence = stream_->place().sequence;
  shown_.problem = problem;
  shown_.behind_bytes = entries_.bytes() + tap_.unread(stream_->under_way());
  show_counters();
}

// Under shown_mutex_.
void Primary::show_counters() {
  if (log_ == nullptr) return;
  using engine::ReplicationRole;
  using engine::set;
  engine::StatWriter& page = log_->page();
  engine::ReplicationCounters& c = page.page().replication;
  set(c.role, static_cast<std::uint64_t>(shown_.primary ? ReplicationRole::primary
                                                        : ReplicationRole::deposed));
  set(c.term, shown_.term);
  set(c.sequence, shown_.sequence);
  set(c.id, shipped_.load(std::memory_order_relaxed));
  set(c.behind_since_ns, oldest_ ? engine::monotonic_ns(*oldest_) : 0);
  set(c.behind_bytes, shown_.behind_bytes);
  set(c.messages, shown_.messages);
  set(c.bytes, shown_.bytes);
  set(c.append_us, static_cast<std::uint64_t>(shown_.appends.count()));
  set(c.last_append_us, static_cast<std::uint64_t>(shown_.last_append.count()));
  set(c.unanswered, shown_.unanswered);
  set(c.waits, log_->floors().waits());
  page.touch();
}

ReplicationStats Primary::stats() const {
  const std::lock_guard lock(shown_mutex_);
  ReplicationStats s = shown_;
  s.shipped_id = shipped_.load(std::memory_order_relaxed);  // a number for people
  if (oldest_) s.behind = std::chrono::duration_cast<milliseconds>(Clock::now() - *oldest_);
  if (log_ != nullptr) s.waits = log_->floors().waits();
  return s;
}

}  // namespace perdure::replication
