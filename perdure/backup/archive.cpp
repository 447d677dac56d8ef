// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/archive.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "perdure/backup/base.hpp"
#include "perdure/backup/places.hpp"
#include "perdure/base/signals.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/pool/features.hpp"

namespace perdure::backup {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint64_t frame_bytes = 1 << 20;  // a frame's entries, about
constexpr milliseconds shortest_nap(1), longest_nap(50), retry_after(200);

}  // namespace

Result<std::unique_ptr<Archive>> Archive::open(const ArchiveOptions& options,
                                               const pool::OpenPool& file) {
  if (Status s = options.check(file.path()); !s.ok()) return s;
  std::shared_ptr<Store> store = options.store;
  if (store == nullptr) {
    auto folder = open_place(options.folder, true);
    if (!folder) return folder.status();
    store = std::move(*folder);
  }
  std::unique_ptr<Archive> archive(new Archive(options, std::move(store)));
  auto lock = archive->store_->lock(Store::Use::log);
  if (!lock) return lock.status();
  archive->lock_ = std::move(*lock);
  std::memcpy(archive->uuid_, file.header().uuid, sizeof archive->uuid_);
  // What an earlier process has made may not be durable yet.
  if (Status s = archive->store_->sync(); !s.ok()) return s;
  if (Status s = archive->find_end(); !s.ok()) return s;
  if (Status s = check_owner(*archive->store_, archive->uuid_); !s.ok()) return s;
  return archive;
}

// Reads the last segment: where the history ends.
Status Archive::find_end() {
  auto segments = list_segments(*store_);
  if (!segments) return segments.status();
  if (segments->empty()) return {};
  const SegmentName newest = segments->back();
  auto bytes = store_->get(newest.text());
  if (!bytes) return bytes.status();
  auto segment = read_segment(newest, std::move(*bytes), store_->name());
  if (!segment) return segment.status();
  if (std::memcmp(segment->header.uuid, uuid_, sizeof uuid_) != 0)
    return failure(Code::incompatible, store_->name(), "the archive of another pool",
                   "an empty folder, or this pool's archive", "name another folder");
  HistoryEnd end = segment->begin();
  if (Status s = each_frame(segment->frames(), segment->frames_bytes(),
                            store_->name() + "/" + newest.text(), end,
                            [](const Frame&) { return Status(); });
      !s.ok())
    return s;
  begin_ = end_ = end;
  stored_ = end.last;
  number_ = newest.number + 1;
  run_ = segment->header.run;
  has_history_ = true;
  return {};
}

Status Archive::catch_up(pool::OpenPool& file) {
  const pool::Header& h = file.header();
  const std::uint64_t last = h.checkpoint_id;  // after recovery: of all that the pool has
  auto bases = list_bases(*store_);
  if (!bases) return bases.status();
  if (!bases->empty()) newest_base_ = bases->back();
  if (const std::uint64_t has = std::max(end_.last, newest_base_.value_or(0)); has > last)
    return failure(
        Code::incompatible, store_->name(),
        "an archive with transactions up to " + std::to_string(has),
        "up to " + std::to_string(last) + " at most, which is all that " + file.path() + " has",
        "the pool is an older copy: restore it from the archive (perdure restore), or name another "
        "folder");
  // ARCHIVE-3
  // mutant: archive-sees-gap
  const bool whole = has_history_ && pool::has_feature(h, pool::Feature::archived_log) &&
                     h.log_from_id <= end_.last;
  if (!whole) return begin_anew(last);
  if (h.clean == 1) return {};  // it was finished at the close
  // ARCHIVE-2: the segments are durable in the store before the session empties the log.
  bool dependent = false;
  // mutant: archive-catches-up
  Status s = catch_up_with_log(file, dependent);
  // Recovery has dropped some of such records, and does not say which.
  if (s.ok() && dependent) return begin_anew(last);
  if (s.ok() || options_.when_full != ArchiveOptions::WhenFull::give_up) return s;
  problem_ = s.message();
  return begin_anew(last);
}

Status Archive::begin_anew(std::uint64_t last) {
  had_gap_ = has_history_ && last != stored_;
  run_ = stored_ = last;
  entries_ = {};
  frames_.clear();
  sealing_.reset();
  begin_ = end_ = {last, end_.unix_ns, {}};
  // An attempt that has failed may have made its file.
  auto segments = list_segments(*store_);
  if (!segments) return segments.status();
  if (!segments->empty()) number_ = segments->back().number + 1;
  return {};
}

Status Archive::catch_up_with_log(pool::OpenPool& file, bool& dependent) {
  const pool::Header& h = file.header();
  Status sealed;
  Status s = log::each_record_above(file.medium(), h, end_.last, [&](const auto& record) {
    dependent = dependent || record.kind() == log::RecordKind::dependent;
    if (!sealed.ok() || dependent) return;
    entries_.add(record);
    if (entries_.bytes() < frame_bytes) return;
    append(h.data_bytes);
    if (frames_.size() >= options_.file_bytes) sealed = seal();
  });
  if (!s.ok()) return s;
  if (dependent) return {};
  if (!sealed.ok()) return sealed;
  if (!entries_.empty()) append(h.data_bytes);
  return frames_.empty() ? Status() : seal();
}

// What was gathered becomes a frame.
void Archive::append(std::uint64_t data_bytes) {
  if (frames_.empty()) oldest_ = steady_clock::now();
  entries_.append_to(frames_, uuid_, entries_.last(), data_bytes, unix_nanoseconds(), end_);
}

Status Archive::start(engine::FollowedLog& log, pool::OpenPool& file) {
  file_ = &file;
  log_eighth_ = file.header().ring_bytes / 8;
  created_ = file.created();
  // ARCHIVE-2: before the first record of the session.
  tap_.start(log, "archive " + store_->name(), end_.last,
             options_.when_full == ArchiveOptions::WhenFull::wait ? log::FloorPolicy::wait
                                                                  : log::FloorPolicy::give_up,
             options_.patience);
  if (Status s = file.archive_log(); !s.ok()) return s;
  {
    const std::lock_guard lock(mutex_);
    append_header_frame(frames_, file.header_now(), unix_nanoseconds(), end_);
    if (Status s = seal(); !s.ok()) return s;
    show();
  }
  file.when_header_changes.add(this, [this] { return header_changed(); });
  log.before_close.add(this, [this](std::uint64_t last) { return finish(last); });
  const base::BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
  return {};
}

Archive::~Archive() {
  stop_.store(true, std::memory_order_relaxed);
  if (tap_.started()) {
    tap_.log().floors().wake();
    tap_.log().before_close.remove(this);
    file_->when_header_changes.remove(this);
  }
  if (thread_.joinable()) thread_.join();
  // The floor stays: the engine's own thread may still make a checkpoint.
  if (created_ && !kept_ && !has_history_) forget_all();
}

// The opening has failed, and the file that it made is removed: no other pool has its uuid.
void Archive::forget_all() noexcept {
  try {
    for (const std::string_view prefix : {segment_prefix, base_prefix})
      if (const auto names = store_->list(prefix); names.ok())
        for (const std::string& name : *names) (void)store_->remove(name);
  } catch (...) {  // the folder stays that pool's
  }
}

void Archive::run() {
  milliseconds nap = shortest_nap;
  bool failed = false;
  for (;;) {
    const bool asked = tap_.log().floors().nap(nap, failed);
    if (stop_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    if (finished_ || given_up_) return;
    const std::uint64_t before = end_.last;
    std::string problem;
    try {
      const Status s = step(asked);
      failed = !s.ok();
      problem = s.message();
    } catch (const std::exception& e) {  // the store's, or no memory: what was gathered stays
      failed = true;
      problem = e.what();
    }
    nap = failed                ? retry_after
          : end_.last != before ? shortest_nap
                                : std::min(nap * 2, longest_nap);
    if (!given_up_) problem_.swap(problem);
    show();
  }
}

// Gathers what is durable and, where it is time or `now` says so, writes a segment. Under the lock.
Status Archive::step(bool now) {
  (void)gather();
  if (frames_.empty() && !sealing_) return {};
  // Padding counts: it fills the log.
  const bool due = now || sealing_ || frames_.size() >= options_.file_bytes ||
                   log_bytes_ >= log_eighth_ || steady_clock::now() - oldest_ >= options_.file_age;
  return due ? seal() : Status();
}

// An archive that can't be written keeps two segments' worth at most: the rest stays in the log.
// Returns whether there is nothing left that was durable at the call. Under the lock. Throws
// std::bad_alloc, with no record passed that was not gathered.
bool Archive::gather() {
  if (given_up_) return false;
  // ARCHIVE-1
  const LogTap::Found found = tap_.read(
      [&] {
        if (entries_.bytes() >= frame_bytes) append(file_->data_bytes());
        return frames_.size() < 2 * options_.file_bytes;
      },
      [&](const log::RecordView& record, std::uint64_t bytes) {
        entries_.add(record);
        log_bytes_ += bytes;
      });
  if (found != LogTap::Found::given_up) {
    if (!entries_.empty()) append(file_->data_bytes());
    return found == LogTap::Found::all;
  }
  // Commits no longer wait for it.
  gave_up("commits had to wait for it for " + std::to_string(options_.patience.count()) + " ms" +
          (problem_.empty() ? "" : ": " + problem_));
  return false;
}

// Gathers what was durable at the call, and writes segments wherever there is no room. Returns ok
// also when the archive was given up. Under the lock.
Status Archive::gather_all() {
  for (;;) {
    const bool all = gather();
    // mutant: archive-gathers-all
    if (all || given_up_) return {};
    if (Status s = write_all(); !s.ok()) return s;
  }
}

// Writes the frames as a segment; an attempt that has failed is repeated with the same bytes, since
// it may have made the file. Under the lock.
Status Archive::seal() {
  if (!sealing_) {
    const SegmentName name{number_, begin_.last, end_.last};
    sealing_.emplace(Sealing{name, make_segment(name, run_, uuid_, begin_, frames_)});
    begin_ = end_;
    frames_.clear();
    log_bytes_ = 0;
    ++number_;
  }
  const std::string name = sealing_->name.text();
  const std::vector<std::byte>& bytes = sealing_->bytes;
  // mutant: archive-floor-before-segment
  auto made = store_->put(name, bytes.data(), bytes.size());
  if (!made) return made.status();
  if (!*made) {
    auto there = store_->get(name);
    if (!there) return there.status();
    if (*there != bytes)
      return failure(Code::exists, store_->name() + "/" + name, "another file of that name",
                     "none, or the same", "name another folder for this pool's archive");
  }
  // ARCHIVE-2
  // mutant: archive-floor-after-segment
  if (tap_.started()) tap_.raise(sealing_->name.last);
  stored_ = sealing_->name.last;
  ++files_;
  bytes_ += bytes.size();
  sealing_.reset();
  return {};
}

void Archive::gave_up(const std::string& why) {
  given_up_ = true;
  problem_ = why;
  frames_.clear();
  sealing_.reset();
  tap_.give_up();
}

// The thread that changes the header is the only one that commits transactions then, or what the
// change is about is durable: what was committed before is archived before.
Status Archive::header_changed() {
  const std::lock_guard lock(mutex_);
  if (finished_) return {};
  Status s = gather_all();
  if (!s.ok() && options_.when_full == ArchiveOptions::WhenFull::give_up) gave_up(s.message());
  if (given_up_) return {};
  if (!s.ok()) return s;
  append_header_frame(frames_, file_->header_now(), unix_nanoseconds(), end_);
  // Before it is used: after a kill its place in the history would be lost.
  s = write_all();
  return options_.when_full == ArchiveOptions::WhenFull::wait ? s : Status();
}

// Under the lock.
Status Archive::write_all() {
  while (sealing_ || !frames_.empty())
    if (Status s = seal(); !s.ok()) return s;
  return {};
}

Status Archive::flush(std::uint64_t id) {
  for (;;) {
    const std::lock_guard lock(mutex_);
    if (finished_) return {};
    // Read before the log: what is not there then, has logged nothing.
    const bool durable = tap_.log().followable_id() >= id;
    Status s = gather_all();
    if (s.ok()) s = write_all();
    if (given_up_)
      return failure(Code::expired, store_->name(), "an archive that was given up: " + problem_, {},
                     "open the pool again");
    problem_ = s.message();
    show();
    if (!s.ok() || durable || stored_ >= id) return s;
    if (tap_.log().refuses() != 0)
      return failure(Code::poisoned, file_->path(), "a pool whose medium has failed", {},
                     "open it again");
    // There is more, or another thread has drawn a lower id and is about to be durable.
    std::this_thread::yield();
  }
}

// At a clean close: everything is durable. The log is emptied next.
Status Archive::finish(std::uint64_t last) {
  const std::lock_guard lock(mutex_);
  if (finished_) return {};
  for (std::uint64_t before = ~std::uint64_t{0}; !given_up_;) {
    Status s = gather_all();
    if (given_up_) break;
    const bool all = s.ok() && end_.last == before;
    before = end_.last;
    // The next opening finds in the header how far the pool has come.
    if (all && end_.last < last) {
      FrameHeader rest{};
      rest.kind = FrameKind::group;
      std::memcpy(rest.uuid, uuid_, sizeof rest.uuid);
      rest.last = last;
      rest.data_bytes = file_->data_bytes();
      rest.unix_ns = unix_nanoseconds();
      append_frame(frames_, rest, nullptr, 0, end_);
    }
    if (s.ok()) s = write_all();
    if (s.ok() && all) break;
    if (s.ok()) continue;
    problem_ = s.message();
    show();
    if (options_.when_full == ArchiveOptions::WhenFull::wait) return s;
    gave_up(s.message());
  }
  finished_ = true;
  show();
  return {};
}

// Under the lock. A call of stats() does not wait while a segment is written.
void Archive::show() {
  const std::lock_guard lock(shown_mutex_);
  shown_.on = !given_up_;
  shown_.last_id = stored_;
  shown_.files = files_;
  shown_.bytes = bytes_;
  shown_.gaps = had_gap_ ? 1 : 0;
  shown_.problem = problem_;
}

ArchiveStats Archive::stats() const {
  const std::lock_guard lock(shown_mutex_);
  ArchiveStats s = shown_;
  if (tap_.started()) s.waits = tap_.log().floors().waits();
  return s;
}

}  // namespace perdure::backup
