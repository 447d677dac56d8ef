// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/replication/copy.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "perdure/backup/base.hpp"
#include "perdure/backup/history.hpp"
#include "perdure/pool/copy.hpp"
#include "perdure/replication/logs.hpp"
#include "perdure/replication/stream.hpp"

namespace perdure::replication {
namespace {

using backup::FrameKind;
using Clock = std::chrono::steady_clock;

Status unavailable(const LogService& log, const Status& why) {
  return failure(Code::unavailable, log.name(), "no answer: " + why.message(), {},
                 "see that its servers run, and try again");
}

// Calls f() again while its failure may pass.
template <class F>
auto patiently(const LogService& log, std::chrono::milliseconds patience, F&& f) -> decltype(f()) {
  const auto late = Clock::now() + patience;
  for (;;) {
    auto answer = f();
    Status s;
    if constexpr (std::is_same_v<decltype(answer), Status>)
      s = answer;
    else
      s = answer.status();
    if (!may_pass(s)) return answer;
    if (Clock::now() >= late) return unavailable(log, s);
    std::this_thread::sleep_for(retry_after);
  }
}

// What counts in the log after the place that a backup's header has. The second reading ends where
// the first one has.
class FramesInLog final : public backup::Frames {
 public:
  struct Found {
    StreamPlace end;  // behind the last frame of the first reading
    /// The base has transactions that never got into the log: one of at most this id may have none.
    std::optional<std::uint64_t> strange_above;
  };
  FramesInLog(std::shared_ptr<LogService> log, std::chrono::milliseconds patience,
              const backup::Base& base, Found& found)
      : log_(std::move(log)),
        patience_(patience),
        base_id_(base.id),
        base_(place_of(base.header.replication)),
        found_(found) {
    found_.end = base_;
    std::memcpy(uuid_, base.header.uuid, sizeof uuid_);
  }

  Status each(const std::function<Result<bool>(const backup::Frame&)>& f,
              const std::function<Status()>& release) override {
    Stream stream(log_, uuid_, base_);
    const bool again = std::exchange(read_, true);
    bool over = false, first = true;
    const Status s =
        read_all(stream, [&](const backup::Frame& frame, const StreamPlace& after) -> Status {
          const backup::FrameHeader& h = frame.header;
          if (first && h.before > base_id_)
            return failure(Code::not_found, log_->name(),
                           "a log that begins after transaction " + std::to_string(h.before),
                           "a backup from after that; the newest is of transaction " +
                               std::to_string(base_id_),
                           "make a backup with the pool's primary");
          first = false;
          // mutant: copy-of-diverged-backup
          if (h.kind == FrameKind::term && h.term > base_.term && h.last < base_id_)
            return strange_base(h.last);
          over = again && after.sequence > found_.end.sequence;
          if (over) return failure(Code::exists, log_->name(), "the end");
          if (h.kind == FrameKind::header || (h.kind == FrameKind::group && h.last > base_id_)) {
            auto more = f(frame);
            if (!more) return more.status();
            if (release)
              if (Status released = release(); !released.ok()) return released;
            over = !*more;
            if (over) return failure(Code::exists, log_->name(), "the end");
          }
          if (!again) found_.end = after;
          return {};
        });
    if (over) return {};
    if (!s.ok()) return s;
    const std::uint64_t came_to = stream.place().sequence;
    if (came_to == 0)
      return failure(Code::not_found, log_->name(), "an empty log",
                     "that of the pool whose backup this is", "name the log");
    if (again && came_to < found_.end.sequence)
      return failure(Code::io, log_->name(),
                     "messages up to " + std::to_string(came_to) + " at the second reading",
                     std::to_string(found_.end.sequence) + ", as at the first", "try again");
    if (found_.end.end.last < base_id_) return strange_base(found_.end.end.last);
    return {};
  }
  [[nodiscard]] bool gap() const noexcept override { return false; }

 private:
  // While its servers choose a leader the log does not answer: the stream reads on where it is.
  template <class F>
  Status read_all(Stream& stream, F&& f) {
    bool own = false;  // the failure is f's
    auto late = Clock::now() + patience_;
    for (;;) {
      const std::uint64_t before = stream.place().sequence;
      Status s = stream.read([&](const backup::Frame& frame, const StreamPlace& after) {
        Status done = f(frame, after);
        own = !done.ok();
        return done;
      });
      if (own || !may_pass(s)) return s;
      if (stream.place().sequence != before) late = Clock::now() + patience_;
      if (Clock::now() >= late) return unavailable(*log_, s);
      std::this_thread::sleep_for(retry_after);
    }
  }
  Status strange_base(std::uint64_t has) {
    found_.strange_above = std::min(has, base_id_ - 1);
    return failure(Code::diverged, log_->name(),
                   "a history that goes on after transaction " + std::to_string(has) +
                       ", and a backup of transaction " + std::to_string(base_id_) +
                       " by a copy that had more",
                   "a backup with nothing that the log lacks", "make one with the pool's primary");
  }
  const std::shared_ptr<LogService> log_;
  const std::chrono::milliseconds patience_;
  const std::uint64_t base_id_;
  const StreamPlace base_;  // of the base's header
  std::uint8_t uuid_[16] = {};
  Found& found_;
  bool read_ = false;  // once
};

}  // namespace

Result<TrimReport> trim_log(backup::Store& store, std::shared_ptr<LogService> log,
                            std::chrono::milliseconds patience) {
  auto bases = backup::list_bases(store);
  if (!bases) return bases.status();
  for (auto id = bases->rbegin(); id != bases->rend(); ++id) {
    auto base = backup::read_base(store, *id);
    if (!base) return base.status();
    const StreamPlace place = place_of(base->header.replication);
    if (place.sequence == 0) break;  // and so have those before it
    auto ends = patiently(*log, patience, [&] { return log->ends(); });
    if (!ends) return ends.status();
    TrimReport report{*id, ends->first, ends->last, 0};
    if (place.sequence <= ends->first) return report;
    // As far as the first transactions after the base.
    FramesInLog::Found found;
    FramesInLog frames(log, patience, *base, found);
    const Status s = frames.each(
        [](const backup::Frame& frame) -> Result<bool> {
          return frame.header.kind == FrameKind::header;
        },
        {});
    if (s.code() == Code::diverged) continue;
    if (!s.ok()) return s;
    if (Status t = patiently(*log, patience, [&] { return log->trim(place.sequence); }); !t.ok())
      return t;
    report.removed = place.sequence - ends->first;
    return report;
  }
  return failure(Code::not_found, store.name(),
                 "no backup that was made since the pool is replicated",
                 "one that the log continues", "make a backup with the pool's primary");
}

Result<RestoreReport> make_copy(backup::Store& store, std::shared_ptr<LogService> log,
                                const std::string& path, std::chrono::milliseconds patience,
                                const RestoreProgress& progress) {
  FramesInLog::Found found;
  backup::RestoreSource source;
  source.frames = [&](const backup::Base& base) {
    return Result<std::unique_ptr<backup::Frames>>(
        std::make_unique<FramesInLog>(log, patience, base, found));
  };
  source.header = [&](const pool::Header& of) -> Result<pool::Header> {
    const StreamPlace& end = found.end;
    pool::ReplicationWords words{};
    set_place(words, end);
    pool::Header with = of;
    // A session that was closed may have got further in the log than its transactions.
    with.checkpoint_id = end.end.last;
    return pool::header_of_replica(path, with, words);
  };
  for (;;) {
    found = {};
    auto made = backup::restore(store, path, {}, progress, source);
    if (made.code() != Code::diverged || !found.strange_above) return made;
    // An older backup may be one that the log continues.
    auto bases = backup::list_bases(store);
    if (!bases) return bases.status();
    if (bases->empty() || bases->front() > *found.strange_above) return made;
    source.newest_base = *found.strange_above;
  }
}

}  // namespace perdure::replication
