// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/archive.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "perdure/backup/base.hpp"
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
    auto folder = open_folder(options.folder, true);
    if (!folder) return folder.status();
    store = std::move(*folder);
  }
  std::unique_ptr<Archive> archive(new Archive(options, std::move(store)));
  auto lock = archive->store_->lock();
  if (!lock) return lock.status();
  archive->lock_ = std::move(*lock);
  std::memcpy(archive->uuid_, file.header().uuid, sizeof archive->uuid_);
  if (Status s = archive->find_end(); !s.ok()) return s;
  if (Status s = check_owner(*archive->store_, archive->uuid_); !s.ok()) return s;
  return archive;
}

// Reads the last segment: where the history ends.
Status Archive::find_end() {
  auto names = store_->list(segment_prefix);
  if (!names) return names.status();
  std::optional<SegmentName> newest;
  for (const std::string& name : *names)
    if (const auto parsed = parse_segment_name(name)) newest = parsed;
  if (newest) {
    auto bytes = store_->get(newest->text());
    if (!bytes) return bytes.status();
    auto segment = read_segment(*newest, std::move(*bytes), store_->name());
    if (!segment) return segment.status();
    if (std::memcmp(segment->header.uuid, uuid_, sizeof uuid_) != 0)
      return failure(Code::incompatible, store_->name(), "the archive of another pool",
                     "an empty folder, or this pool's archive", "name another folder");
    HistoryEnd end = segment->begin();
    if (Status s = each_frame(segment->frames(), segment->frames_bytes(),
                              store_->name() + "/" + newest->text(), end,
                              [](const Frame&) { return Status(); });
        !s.ok())
      return s;
    begin_ = end_ = end;
    number_ = newest->number + 1;
    run_ = segment->header.run;
    has_history_ = true;
  }
  return {};
}

Status Archive::catch_up(pool::OpenPool& file) {
  const pool::Header& h = file.header();
  const std::uint64_t last = h.checkpoint_id;  // after recovery: of all that the pool has
  if (has_history_ && end_.last > last)
    return failure(
        Code::incompatible, store_->name(),
        "an archive with transactions up to " + std::to_string(end_.last),
        "up to " + std::to_string(last) + " at most, which is all that " + file.path() + " has",
        "the pool is an older copy: restore it from the archive (perdure restore), or name another "
        "folder");
  // ARCHIVE-3
  // mutant: archive-sees-gap
  const bool whole = has_history_ && pool::has_feature(h, pool::Feature::archived_log) &&
                     h.log_from_id <= end_.last;
  if (!whole) {
    had_gap_ = has_history_;
    run_ = last;
    begin_ = end_ = {last, end_.unix_ns, {}};
    return {};
  }
  if (h.clean == 1) return {};  // it was finished at the close
  // mutant: archive-catches-up
  Status s = log::each_record_above(file.medium(), h, end_.last, [&](const auto& record) {
    entries_.add(record);
    if (entries_.bytes() >= frame_bytes) append(h.data_bytes);
  });
  if (!s.ok()) return s;
  if (!entries_.empty()) append(h.data_bytes);
  return {};
}

// What was gathered becomes a frame.
void Archive::append(std::uint64_t data_bytes) {
  if (frames_.empty()) oldest_ = steady_clock::now();
  entries_.append_to(frames_, uuid_, entries_.last(), data_bytes, unix_nanoseconds(), end_);
}

Status Archive::start(engine::FollowedLog& log, pool::OpenPool& file) {
  log_ = &log;
  file_ = &file;
  log_eighth_ = file.header().ring_bytes / 8;
  cursor_ = log.cursor();
  // ARCHIVE-2: before the first record of the session.
  floor_ = log.floors().add("archive " + store_->name(), end_.last,
                            options_.when_full == ArchiveOptions::WhenFull::wait
                                ? log::FloorPolicy::wait
                                : log::FloorPolicy::give_up,
                            options_.patience);
  if (Status s = file.archive_log(); !s.ok()) return s;
  {
    const std::lock_guard lock(mutex_);
    append_header_frame(frames_, file.header_now(), unix_nanoseconds(), end_);
    if (Status s = seal(); !s.ok()) return s;
    auto bases = list_bases(*store_);
    if (!bases) return bases.status();
    needs_backup_ = bases->empty() || bases->back() < run_;
  }
  file.when_header_changes([this] { return header_changed(); });
  log.before_close([this](std::uint64_t last) { return finish(last); });
  const base::BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
  return {};
}

Archive::~Archive() {
  stop_.store(true, std::memory_order_relaxed);
  if (log_ != nullptr) {
    log_->floors().wake();
    log_->before_close({});
    file_->when_header_changes({});
  }
  if (thread_.joinable()) thread_.join();
  if (floor_ != nullptr) log_->floors().remove(floor_);
}

void Archive::run() {
  milliseconds nap = shortest_nap;
  for (;;) {
    const bool asked = log_->floors().nap(nap);
    if (stop_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    if (finished_ || given_up_) return;
    try {
      const std::uint64_t before = end_.last;
      const Status s = step(asked);
      nap = !s.ok()               ? retry_after
            : end_.last != before ? shortest_nap
                                  : std::min(nap * 2, longest_nap);
      problem_ = s.message();
      // Commits no longer wait for it.
      if (floor_->given_up.load(std::memory_order_relaxed))
        gave_up("commits had to wait for it for " + std::to_string(options_.patience.count()) +
                " ms" + (s.ok() ? "" : ": " + s.message()));
    } catch (const std::bad_alloc&) {
      nap = retry_after;
    }
  }
}

// Gathers what is durable and, where it is time or `now` says so, writes a segment. Under the lock.
Status Archive::step(bool now) {
  gather();
  if (frames_.empty()) return {};
  const bool due = now || frames_.size() >= std::min(options_.file_bytes, log_eighth_) ||
                   steady_clock::now() - oldest_ >= options_.file_age;
  return due ? seal() : Status();
}

// A writer that can't be written keeps two segments' worth at most: the rest stays in the log.
void Archive::gather() {
  // ARCHIVE-1: the id is read before the rings' tails.
  // mutant: archive-durable-only
  const std::uint64_t durable = log_->followable_id();
  cursor_.look();
  for (log::RecordView record;
       frames_.size() < 2 * options_.file_bytes && cursor_.next(durable, record);) {
    entries_.add(record);
    if (entries_.bytes() >= frame_bytes) append(file_->data_bytes());
  }
  if (!entries_.empty()) append(file_->data_bytes());
}

// Writes the frames as a segment. Under the lock.
Status Archive::seal() {
  const SegmentName name{number_, begin_.last, end_.last};
  // mutant: archive-floor-before-segment
  const std::vector<std::byte> bytes = make_segment(name, run_, uuid_, begin_, frames_);
  auto made = store_->put(name.text(), bytes.data(), bytes.size());
  if (!made) return made.status();
  if (!*made) {
    // An attempt that returned an error may have made it nevertheless.
    auto there = store_->get(name.text());
    if (!there) return there.status();
    if (*there != bytes)
      return failure(Code::exists, store_->name() + "/" + name.text(), "another file of that name",
                     "none, or the same", "name another folder for this pool's archive");
  }
  // ARCHIVE-2
  // mutant: archive-floor-after-segment
  if (floor_ != nullptr) log_->floors().raise(*floor_, end_.last);
  begin_ = end_;
  frames_.clear();
  ++number_;
  ++files_;
  bytes_ += bytes.size();
  return {};
}

void Archive::gave_up(const std::string& why) {
  given_up_ = true;
  problem_ = why;
  frames_.clear();
  log_->floors().give_up(*floor_);
}

// Whoever changes the header is the only one who commits transactions then, or what the change is
// about is durable: what was committed before is archived before.
Status Archive::header_changed() {
  const std::lock_guard lock(mutex_);
  if (given_up_ || finished_) return {};
  gather();
  if (frames_.empty()) oldest_ = steady_clock::now();
  append_header_frame(frames_, file_->header_now(), unix_nanoseconds(), end_);
  return {};
}

Status Archive::flush(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (given_up_)
    return failure(Code::expired, store_->name(), "an archive that was given up: " + problem_, {},
                   "open the pool again");
  while (begin_.last < id && !finished_) {
    const std::uint64_t before = begin_.last;
    if (Status s = step(true); !s.ok()) return s;
    if (begin_.last == before) break;  // the ids above are of transactions that logged nothing
  }
  return {};
}

// At a clean close: everything is durable. The log is emptied next.
Status Archive::finish(std::uint64_t last) {
  const std::lock_guard lock(mutex_);
  if (given_up_ || finished_) return {};
  do {
    gather();
    // The next opening finds in the header how far the pool has come.
    if (frames_.size() < 2 * options_.file_bytes && end_.last < last) {
      FrameHeader rest{};
      rest.kind = FrameKind::group;
      std::memcpy(rest.uuid, uuid_, sizeof rest.uuid);
      rest.last = last;
      rest.data_bytes = file_->data_bytes();
      rest.unix_ns = unix_nanoseconds();
      append_frame(frames_, rest, nullptr, 0, end_);
    }
    Status s = frames_.empty() ? Status() : seal();
    if (s.ok()) continue;
    problem_ = s.message();
    if (options_.when_full == ArchiveOptions::WhenFull::wait) return s;
    gave_up(s.message());
    return {};
  } while (begin_.last < last);
  finished_ = true;
  return {};
}

ArchiveStats Archive::stats() const {
  const std::lock_guard lock(mutex_);
  ArchiveStats s;
  s.on = !given_up_;
  s.last_id = begin_.last;
  s.files = files_;
  s.bytes = bytes_;
  s.waits = log_ != nullptr ? log_->floors().waits() : 0;
  s.gaps = had_gap_ ? 1 : 0;
  s.problem = problem_;
  return s;
}

}  // namespace perdure::backup
