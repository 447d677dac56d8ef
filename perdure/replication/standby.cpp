// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/replication/standby.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

#include "perdure/backup/places.hpp"
#include "perdure/base/signals.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/engine/show_stats.hpp"
#include "perdure/replication/copy.hpp"
#include "perdure/replication/logs.hpp"

namespace perdure::replication {
namespace {

using backup::FrameKind;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds shortest_nap(500), longest_nap(20'000);
constexpr milliseconds most_wait(1000);
// How often a copy says how far it is: while it reads on, and when there is nothing new.
constexpr milliseconds say_every(1), say_again_every(1000);

// Whether the copy can't follow any more: no later attempt succeeds. A full disk may get space.
bool ends(const Status& s) noexcept { return !s.ok() && !may_pass(s) && s.code() != Code::full; }

// From 0 to 1.
double at_random() {
  std::random_device device;
  return std::uniform_real_distribution<double>()(device);
}

// The pool file, if there is none.
Status make_if_absent(const std::string& path, const StandbyOptions& options,
                      const std::shared_ptr<LogService>& log) {
  struct stat st = {};
  if (::stat(path.c_str(), &st) == 0 || errno != ENOENT) return {};
  if (options.backups.empty())
    return failure(Code::not_found, path, "no such file", "a copy of the replicated pool",
                   "name the pool's backups (StandbyOptions::backups): it is made of one of them");
  auto store = backup::open_place(options.backups, false);
  if (!store) return store.status();
  return make_copy(**store, log, path, options.replicate.patience).status();
}

}  // namespace

Result<std::unique_ptr<StandbyCopy>> StandbyCopy::open(const std::string& path,
                                                       const StandbyOptions& options) {
  // The calls of the medium count by thread.
  if (Status s = base::ensure_thread_slot(); !s.ok()) return s;
  if (!options.replicate.wanted())
    return failure(Code::invalid, path, "a standby without a log",
                   "the log over which the pool is replicated", "name it (ReplicateOptions::log)");
  if (options.take_over_after.count() < 0)
    return failure(Code::invalid, path, "StandbyOptions::take_over_after below 0 ms",
                   "0 (never) or more");
  auto log = connect(options.replicate, path, false);
  if (!log) return log.status();
  if (Status s = make_if_absent(path, options, log->service); !s.ok()) return s;
  auto replica = Replica::open({path, options.medium, options.readers, options.archive});
  if (!replica) return replica.status();
  return std::unique_ptr<StandbyCopy>(
      new StandbyCopy(path, options, std::move(*log), std::move(*replica)));
}

StandbyCopy::StandbyCopy(std::string path, const StandbyOptions& options, OpenedLog log,
                         std::unique_ptr<Replica> replica)
    : path_(std::move(path)),
      options_(options),
      service_(std::move(log.service)),
      replica_(std::move(replica)),
      stream_(service_, replica_->file().header().uuid,
              place_of(replica_->file().header().replication)),
      claims_(path_, replica_->file().header().replication),
      silence_(options.take_over_after, at_random(), Clock::now()),
      confirms_(log.traits.confirms),
      said_{copy_id(replica_->file().header().uuid, copy_name(options.replicate, path_)), 0} {
  shown_.follows = true;
  show({}, false);
  const base::BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

StandbyCopy::~StandbyCopy() {
  stop_.store(true, std::memory_order_relaxed);
  if (replica_ != nullptr) replica_->stop_waiting();
  if (thread_.joinable()) thread_.join();
}

void StandbyCopy::run() {
  microseconds nap = shortest_nap;
  const auto f = [this](const backup::Frame& frame, const StreamPlace& after) {
    // Stops in the middle of a long log; what ends the reading is not looked at then.
    if (stop_.load(std::memory_order_relaxed)) return failure(Code::busy, path_, "a stop");
    return on_frame(frame, after);
  };
  while (!stop_.load(std::memory_order_relaxed)) {
    const std::uint64_t before = stream_.place().sequence;
    {
      const std::lock_guard lock(mutex_);
      ++readings_;
    }
    Status s;
    try {
      s = stream_.read(f);
    } catch (const std::exception& e) {  // the service's, or no memory
      s = failure(Code::io, service_->name(), e.what());
    }
    if (stop_.load(std::memory_order_relaxed)) return;
    const Status said = s.ok() ? confirm(stream_.place().end.last, true) : Status();
    show(s, s.ok());
    show_problem(said);
    if (ends(s)) return;
    // What was read before the end of the log did not come is news, too.
    const bool news = stream_.place().sequence != before;
    if (s.ok())
      silence_.heard(news, stream_.beat_ms(), Clock::now());
    else
      silence_.no_answer(Clock::now());
    if (s.ok() && takes_over()) return;
    nap = !s.ok() ? longest_nap : news ? shortest_nap : std::min(nap * 2, longest_nap);
    if (s.ok())
      (void)service_->wait(stream_.place().sequence + 1, nap);
    else
      std::this_thread::sleep_for(nap);
  }
}

// Of a copy that has all that the log has. Returns true when it is the primary of a term, or can't
// become it: it follows no more.
bool StandbyCopy::takes_over() {
  const std::uint64_t term = stream_.place().term;
  Status s;
  if (taking_over_ != 0 && taking_over_ != term) {
    // A claim that had no answer may have got into the log.
    s = claims_.own() ? replica_->note(claims_.words_at(stream_.place()))
                      : failure(Code::deposed, path_, "term " + std::to_string(term));
  } else {
    if (!silence_.over(Clock::now())) return false;
    taking_over_ = term;
    s = claim_next(term);
  }
  if (may_pass(s)) {
    silence_.no_answer(Clock::now());
    return false;
  }
  if (s.code() == Code::deposed) {  // another standby was faster: it is followed
    taking_over_ = 0;
    return false;
  }
  const std::lock_guard lock(mutex_);
  shown_.follows = false;
  shown_.took_over = s.ok();
  if (!s.ok()) shown_.end = s;
  show_counters();
  changed_.notify_all();
  return true;
}

// STANDBY-3: `id` is that of the last transaction that was applied. What was said may not arrive.
Status StandbyCopy::confirm(std::uint64_t id, bool at_end) {
  if (!confirms_) return {};
  const auto now = Clock::now();
  const auto wait = id == said_.id ? say_again_every : at_end ? milliseconds(0) : say_every;
  if (now - said_at_ < wait) return {};
  said_at_ = now;
  said_.id = id;
  return service_->confirm(said_);
}

// STANDBY-1
Status StandbyCopy::on_frame(const backup::Frame& frame, const StreamPlace& after) {
  const backup::FrameHeader& h = frame.header;
  const bool term = h.kind == FrameKind::term;
  Status s;
  // mutant: standby-applies
  if (!term) s = replica_->apply(frame, claims_.words_at(after));
  if (term) s = claims_.on_term(frame, after, replica_->last());
  // STREAM-5
  // mutant: standby-term-durable
  if (term && s.ok()) s = replica_->note(claims_.words_at(after));
  // What this copy could not write will not be written by a later attempt.
  if (may_pass(s)) s = failure(Code::poisoned, path_, s.message(), {}, "open it again");
  if (!s.ok()) return s;
  {
    const std::lock_guard lock(mutex_);
    show_place(after);
    ++shown_.messages;
    shown_.bytes += sizeof h + h.payload_bytes;
    if (term) shown_.primary = claims_.own() ? "this copy" : claims_.other();
  }
  // After it is shown: the primary's user may ask this copy at once. A failure is shown at the
  // log's end, where it is said again.
  // mutant: standby-confirms-what-it-has
  (void)confirm(after.end.last, false);
  return {};
}

// Under the lock.
void StandbyCopy::show_place(const StreamPlace& place) {
  shown_.id = replica_->last();
  shown_.term = place.term;
  shown_.sequence = place.sequence;
  shown_.checkpoint_id = replica_->checkpoint_id();
}

void StandbyCopy::show(const Status& s, bool at_end) {
  const std::lock_guard lock(mutex_);
  show_place(stream_.place());
  shown_.problem = s.message();
  if (at_end) {
    shown_.caught_up = true;
    had_all_ = Clock::now();
    had_all_of_ = readings_;
  }
  if (ends(s)) {
    shown_.follows = false;
    shown_.end = s;
  }
  show_counters();
  changed_.notify_all();
}

void StandbyCopy::show_problem(const Status& s) {
  if (s.ok()) return;
  const std::lock_guard lock(mutex_);
  shown_.problem = s.message();
}

// Under the lock.
void StandbyCopy::show_counters() {
  using engine::ReplicationRole;
  using engine::set;
  replica_->show();
  engine::ReplicationCounters& c = replica_->page().page().replication;
  set(c.role, static_cast<std::uint64_t>(shown_.took_over ? ReplicationRole::primary
                                         : shown_.follows ? ReplicationRole::standby
                                                          : ReplicationRole::ended));
  set(c.term, shown_.term);
  set(c.sequence, shown_.sequence);
  set(c.id, shown_.id);
  set(c.behind_since_ns, engine::monotonic_ns(had_all_));
  set(c.messages, shown_.messages);
  set(c.bytes, shown_.bytes);
}

StandbyStatus StandbyCopy::status() const {
  const std::lock_guard lock(mutex_);
  StandbyStatus s = shown_;
  s.behind = std::chrono::duration_cast<milliseconds>(Clock::now() - had_all_);
  return s;
}

Status StandbyCopy::catch_up(milliseconds patience) {
  std::unique_lock lock(mutex_);
  const std::uint64_t wanted = readings_ + 1;
  const bool has =
      changed_.wait_for(lock, patience, [&] { return had_all_of_ >= wanted || !shown_.follows; });
  if (!shown_.end.ok()) return shown_.end;
  if (shown_.took_over || (has && shown_.follows)) return {};
  return failure(Code::unavailable, path_,
                 "a copy at transaction " + std::to_string(shown_.id) +
                     " that has not come to the end of the log" +
                     (shown_.problem.empty() ? "" : ": " + shown_.problem),
                 {}, "wait longer, or see that the log's servers run");
}

Result<bool> StandbyCopy::took_over(milliseconds patience) {
  std::unique_lock lock(mutex_);
  (void)changed_.wait_for(lock, patience, [&] { return !shown_.follows; });
  if (!shown_.end.ok()) return shown_.end;
  return shown_.took_over;
}

// Of a copy that has ended, why; `invalid` where it is closed.
Status StandbyCopy::end_following() {
  stop_.store(true, std::memory_order_relaxed);
  if (replica_ != nullptr) replica_->stop_waiting();
  if (thread_.joinable()) thread_.join();
  if (replica_ == nullptr)
    return failure(Code::invalid, path_, "a call of a standby that is closed", {}, "open it again");
  const std::lock_guard lock(mutex_);
  shown_.follows = false;
  return shown_.end;
}

// Also of a copy that has ended: it has whole transactions.
Status StandbyCopy::close_file() {
  Status s = replica_->close();
  replica_.reset();
  return s;
}

Status StandbyCopy::close() {
  const Status end = end_following();
  return replica_ == nullptr ? end : close_file();
}

// STANDBY-2
Status StandbyCopy::claim_next(std::uint64_t instead_of) {
  const bool says = options_.replicate.beat_every.count() != 0;
  // Until the pool is opened for writing, what its writer before said holds.
  stream_.say_beat(says ? options_.replicate.beat_every : milliseconds(stream_.beat_ms()));
  // One that tries again later does not wait long, so that it can be ended.
  const milliseconds patience = instead_of != 0 ? std::min(options_.replicate.patience, most_wait)
                                                : options_.replicate.patience;
  Status s = claim_term(
      stream_, claims_, *service_,
      {path_, copy_name(options_.replicate, path_), Clock::now() + patience,
       [this](const backup::Frame& frame, const StreamPlace& after) {
         return on_frame(frame, after);
       },
       [this](const pool::ReplicationWords& words) { return replica_->note(words); }, instead_of});
  if (s.ok()) s = replica_->note(claims_.words_at(stream_.place()));
  if (!s.ok()) return s;
  const std::lock_guard lock(mutex_);
  show_place(stream_.place());
  shown_.primary = "this copy";
  return s;
}

Status StandbyCopy::claim() {
  Status s = end_following();
  if (replica_ == nullptr) return s;
  replica_->stop_waiting(false);
  if (s.ok() && !status().took_over) s = claim_next(0);
  const Status closed = close_file();
  return s.ok() ? closed : s;
}

}  // namespace perdure::replication
