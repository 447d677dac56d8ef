// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/replication/primary.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "perdure/base/signals.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/replication/logs.hpp"

namespace perdure::replication {
namespace {

using backup::FrameKind;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t frame_bytes = 1 << 20;  // of entries, about
constexpr microseconds shortest_nap(200), longest_nap(50'000), retry_after(20'000);
constexpr milliseconds watch_every(1000);

std::string number(std::uint64_t n) { return std::to_string(n); }

std::string claim_text(std::uint64_t claim) {
  char text[17];
  (void)std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(claim));
  return text;
}

// Never 0.
std::uint64_t random_number() {
  std::uint64_t n = 0;
  while (n == 0)
    if (::getrandom(&n, sizeof n, 0) != static_cast<ssize_t>(sizeof n)) n = 0;
  return n;
}

std::string machine() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

// A later attempt may succeed.
bool may_pass(const Status& s) noexcept {
  return s.code() == Code::io || s.code() == Code::unavailable;
}

}  // namespace

Result<std::unique_ptr<Primary>> Primary::open(const ReplicateOptions& options,
                                               const pool::OpenPool& file) {
  if (Status s = options.check(file.path()); !s.ok()) return s;
  std::shared_ptr<LogService> service = options.service;
  std::optional<LogTraits> traits;
  Status failed;
  const auto late = Clock::now() + options.patience;
  // A cluster answers when it has chosen its leader.
  while (!traits) {
    if (service == nullptr) {
      auto opened = open_named_log(options.log);
      if (opened.ok())
        service = std::move(*opened);
      else
        failed = opened.status();
    }
    if (service != nullptr) {
      auto described = service->describe();
      if (described.ok())
        traits = *described;
      else
        failed = described.status();
    }
    if (traits) break;
    if (!may_pass(failed)) return failed;
    if (Clock::now() >= late)
      return failure(Code::unavailable, file.path(),
                     "no answer of the replicated log: " + failed.message(), {},
                     "see that its servers run; the pool was not changed");
    std::this_thread::sleep_for(retry_after);
  }
  std::unique_ptr<Primary> primary(new Primary(options, std::move(service)));
  primary->path_ = file.path();
  primary->name_ = (options.name.empty() ? machine() : options.name) + ":" + file.path();
  primary->traits_ = *traits;
  return primary;
}

Status Primary::no_answer(const Status& why) const {
  return failure(Code::unavailable, path_,
                 "no answer of the replicated log " + service_->name() +
                     (why.ok() ? "" : ": " + why.message()),
                 {}, "see that its servers run, and open the pool again");
}

// Before this copy claims a term: a frame that the log has, and whether it may go on after it.
Status Primary::on_frame(const backup::Frame& frame, const StreamPlace& after) {
  const backup::FrameHeader& h = frame.header;
  if (h.kind == FrameKind::term) {
    const std::string text(reinterpret_cast<const char*>(frame.payload), h.payload_bytes);
    const auto begins = [&](std::uint64_t claim) {
      return claim != 0 && text.starts_with(claim_text(claim));
    };
    own_ = begins(words_.claim) || begins(words_.claim_before);
    other_ = text.size() > 17 ? std::string(text.c_str() + 17) : "of an unknown name";
    // mutant: primary-diverged
    if (own_ || last_ <= h.last) return {};
    return failure(
        Code::diverged, path_,
        "transactions " + number(h.last + 1) + " to " + number(last_) + ", which the copy " +
            other_ + " began term " + number(after.term) + " without",
        "none that the replicated log lacks",
        "keep this file, and make the copy anew from a backup; `perdure log` shows these "
        "transactions");
  }
  // A frame without entries says how far a session came that was closed: a crash of this copy may
  // have kept that from its header.
  // mutant: primary-behind
  if (h.kind != FrameKind::group || h.last <= last_ || h.payload_bytes == 0) return {};
  if (own_)
    return failure(Code::incompatible, path_,
                   "transactions up to " + number(last_) + ", an older copy of the file",
                   number(h.last) + " or more, which it has appended to " + service_->name(),
                   "open the right file, or make the copy anew from a backup");
  return failure(Code::deposed, path_,
                 "transactions up to " + number(last_) + "; the copy " + other_ +
                     " is the primary of term " + number(after.term) + ", and has more",
                 "all that the replicated log has", "make this copy anew from a backup");
}

Status Primary::take_over(pool::OpenPool& file) {
  file_ = &file;
  const pool::Header& h = file.header();
  last_ = h.checkpoint_id;  // after recovery: of all that the pool has
  words_ = h.replication;
  if (!pool::is_replicated(h)) {
    auto ends = service_->ends();
    if (!ends) return may_pass(ends.status()) ? no_answer(ends.status()) : ends.status();
    if (ends->last != 0)
      return failure(Code::incompatible, service_->name(),
                     "a log with messages up to " + number(ends->last),
                     "an empty one, for a pool that is not replicated yet", "name another log");
    words_.last = last_;
  }
  // STREAM-6 has a limit, too.
  const std::uint64_t most = std::min<std::uint64_t>(traits_.largest * 0x8000, 0xffffffff);
  if (traits_.largest < 8192 || h.ring_bytes / 2 > most)
    return failure(Code::unsupported, path_,
                   "transactions with up to " + number(h.ring_bytes / 2) +
                       " bytes of log, and a replicated log with messages of " +
                       number(traits_.largest) + " bytes",
                   "at most " + number(most) + ", and 8 KiB for a message",
                   "let the log's servers take larger messages, or make a pool with a smaller log");
  own_ = words_.own != 0;
  stream_.emplace(service_, h.uuid, place_of(words_));
  if (Status s = claim(); !s.ok()) return s;
  return append_rest();
}

Status Primary::claim() {
  pool::OpenPool& file = *file_;
  const auto late = Clock::now() + options_.patience;
  const Stream::OnFrame f = [this](const backup::Frame& frame, const StreamPlace& after) {
    return on_frame(frame, after);
  };
  bool noted = false;
  for (Status why;;) {
    // What the log has of earlier openings is known by their numbers, which the next one replaces.
    Status s = stream_->read(f);
    if (s.ok() && !noted) {
      // PRIMARY-3
      words_.claim_before = words_.claim;
      words_.claim = random_number();
      note_place();
      // mutant: primary-claim-durable
      if (s = file.replicate(words_); !s.ok()) return s;
      noted = true;
    }
    if (s.ok()) {
      auto claimed = stream_->claim(claim_text(words_.claim) + " " + name_, f);
      if (claimed.ok() && *claimed == Stream::Claim::primary) break;
      s = claimed.status();
      why = claimed.ok() ? stream_->why() : s;
    } else {
      why = s;
    }
    if (!s.ok() && !may_pass(s)) return s;
    if (Clock::now() >= late) return no_answer(why);
    std::this_thread::sleep_for(retry_after);
  }
  own_ = true;
  note_place();
  // STREAM-5: the session's first header has it.
  file.note_replication(words_);
  const pool::Header& h = file.header();
  const std::uint64_t has = stream_->place().end.last;
  if (pool::has_feature(h, pool::Feature::archived_log) && h.log_from_id > has)
    return failure(Code::incompatible, path_,
                   "a log from transaction " + number(h.log_from_id + 1) + " on",
                   "from " + number(has + 1) + " on, where the replicated log ends",
                   "make this copy anew from a backup");
  shipped_.store(has, std::memory_order_release);  // pairs with the acquire in has()
  // A session that was closed may have got further in the log than in a header.
  if (has > h.checkpoint_id) file.recovered(has);
  return {};
}

// PRIMARY-2: what a crash has kept from the log.
Status Primary::append_rest() {
  const pool::Header& h = file_->header();
  if (h.clean == 1) return {};
  const auto late = Clock::now() + options_.patience;
  Status appended;
  const auto flush = [&] { appended = deliver(append_gathered(h.data_bytes), late); };
  // mutant: primary-appends-rest
  Status s = log::each_record_above(
      file_->medium(), h, stream_->place().end.last, [&](const log::RecordView& record) {
        if (!appended.ok()) return;
        if (record.kind() == log::RecordKind::dependent) {
          appended = failure(Code::unsupported, path_, "a log that shadow/htm has written");
          return;
        }
        entries_.add(record);
        if (entries_.bytes() >= frame_bytes) flush();
      });
  if (s.ok() && appended.ok() && !entries_.empty()) flush();
  return s.ok() ? appended : s;
}

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
    if (!idle) continue;
    (void)log_->floors().nap(nap, true, wakes);
  }
}

// Appends what is durable, or asks what has come of what is under way. Under the lock.
Status Primary::step() {
  if (stream_->under_way()) return take(stream_->settle());
  (void)gather();
  if (!entries_.empty()) return append_gathered(file_->data_bytes());
  if (Clock::now() - watched_ < watch_every) return {};
  watched_ = Clock::now();
  auto state = stream_->watch();
  return state.ok() && *state == Stream::State::deposed ? deposed() : state.status();
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

// What has come of an append. `unavailable`: it is under way.
Status Primary::take(const Result<Stream::State>& state) {
  if (!state.ok()) return state.status();
  if (*state == Stream::State::deposed) return deposed();
  if (*state == Stream::State::under_way) {
    const std::lock_guard lock(shown_mutex_);
    ++shown_.unanswered;
    return no_answer(stream_->why());
  }
  const std::uint64_t last = stream_->place().end.last;
  // Here, and not where they were appended: that call may have thrown.
  if (!entries_.empty() && entries_.last() <= last) entries_.clear();
  note_place();
  file_->note_replication(words_);
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
  oldest_.reset();
  changed_.notify_all();
  return {};
}

// Waits until what is under way is in the log.
Status Primary::deliver(Status s, Clock::time_point late) {
  while (may_pass(s)) {
    if (Clock::now() >= late) return no_answer(s);
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
  if (s.ok() && stream_->place().end.last < last) {
    backup::FrameHeader rest{};
    rest.kind = FrameKind::group;
    rest.last = last;
    rest.data_bytes = file_->data_bytes();
    rest.unix_ns = backup::unix_nanoseconds();
    s = deliver(append(rest, nullptr, 0), late);
  }
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
  changed_.notify_all();
  return why;
}

// The words say what is known of the stream.
void Primary::note_place() {
  set_place(words_, stream_->resume_place());
  words_.own = own_ ? 1 : 0;
}

Status Primary::wait(std::uint64_t id, Ack level) {
  if (level == Ack::quorum && !proven())
    return failure(Code::unsupported, path_,
                   "a wait for `quorum`, with the log " + service_->name() +
                       ", which does not say that three servers have on disk what it has",
                   "a log that does", "wait for `shipped`");
  if (has(id, level)) return {};
  const auto late = Clock::now() + options_.patience;
  std::unique_lock lock(shown_mutex_);
  // Relaxed: a hint, and the wake-up comes after it.
  waiting_.fetch_add(1, std::memory_order_relaxed);
  struct Over {
    std::atomic<int>& waiting;
    ~Over() { waiting.fetch_sub(1, std::memory_order_relaxed); }
  } const over{waiting_};
  log_->floors().wake();
  while (!has(id, level)) {
    if (!over_.ok()) return over_;
    if (changed_.wait_until(lock, late) == std::cv_status::timeout && !has(id, level))
      return failure(
          Code::in_doubt, path_,
          "transaction " + number(id) + ", which is durable here and not known to be in the log " +
              service_->name() + (shown_.problem.empty() ? "" : " (" + shown_.problem + ")"),
          "an answer within " + number(static_cast<std::uint64_t>(options_.patience.count())) +
              " ms",
          "wait again: it may get there yet");
  }
  return {};
}

void Primary::end() noexcept {
  try {
    const std::lock_guard lock(shown_mutex_);
    if (over_.ok())
      over_ = failure(Code::in_doubt, path_,
                      "a wait for the replicated log in a pool that is closed" +
                          (shown_.problem.empty() ? "" : ": " + shown_.problem),
                      {}, "open the pool again, which appends the rest");
    changed_.notify_all();
  } catch (...) {  // the waits end when their patience does
  }
}

bool Primary::has(std::uint64_t id, Ack level) const noexcept {
  if (level == Ack::quorum && !proven()) return false;
  // Acquire: pairs with the release where it is raised: the log's answer came before.
  return shipped_.load(std::memory_order_acquire) >= id;
}

void Primary::show(const std::string& problem) {
  const std::lock_guard lock(shown_mutex_);
  if (!over_.ok()) return;
  shown_.on = true;
  shown_.primary = stream_->primary();
  shown_.term = stream_->place().term;
  shown_.sequence = stream_->place().sequence;
  shown_.problem = problem;
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
