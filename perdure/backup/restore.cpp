// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/restore.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "perdure/backup/base.hpp"
#include "perdure/backup/history.hpp"
#include "perdure/backup/places.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/log/redo_team.hpp"
#include "perdure/pool/allocation.hpp"
#include "perdure/pool/copy.hpp"
#include "perdure/pool/create.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/page_checksums.hpp"

namespace perdure::backup {
namespace {

constexpr std::uint64_t all = ~std::uint64_t{0};

std::string point_text(const RestorePoint& to) {
  if (to.id) return "transaction " + std::to_string(*to.id);
  if (to.unix_ns) return "the time " + std::to_string(*to.unix_ns / 1000000000) + " (Unix seconds)";
  return "the newest state";
}

// The newest base that is not behind the point.
Result<Base> choose_base(Store& store, const RestorePoint& to, const RestoreSource& source) {
  auto ids = list_bases(store);
  if (!ids) return ids.status();
  std::string oldest;
  for (auto id = ids->rbegin(); id != ids->rend(); ++id) {
    if (source.newest_base && *id > *source.newest_base) continue;
    if (to.id && *id > *to.id) {
      oldest = ": the oldest has the state after transaction " + std::to_string(*id);
      continue;
    }
    auto base = read_base(store, *id);
    if (!base) return base.status();
    if (to.unix_ns && base->unix_ns > *to.unix_ns) {
      oldest = ": the oldest was made at " + std::to_string(base->unix_ns / 1000000000);
      continue;
    }
    return base;
  }
  return failure(Code::not_found, store.name(), "no backup for " + point_text(to) + oldest,
                 "a backup from before that",
                 "choose a later point: perdure verify lists what can be restored");
}

/// What there is to replay, found without writing anything.
struct Plan {
  Base base;
  std::unique_ptr<Frames> frames;
  pool::Header header{};  // the pool's at the point
  std::uint64_t data_bytes = 0;
  std::uint64_t log_bytes = 0;  // of frames, for the progress
  RestoreReport report;
};

// The frames are read up to the point. `use` is given each group's part that is wanted.
Status read_frames(Store& store, const Plan& plan, const RestorePoint& to, Frames& frames,
                   const std::function<Status(const Frame&, const Entries&)>& use,
                   const std::function<void(const Frame&)>& header,
                   const std::function<Status()>& release) {
  const std::uint64_t upto = to.id.value_or(all);
  return frames.each(
      [&](const Frame& frame) -> Result<bool> {
        const FrameHeader& h = frame.header;
        if (h.before >= upto && h.last > upto) return false;
        // mutant: restore-to-time
        if (to.unix_ns && h.unix_ns > *to.unix_ns) return false;
        if (h.kind == FrameKind::header) {
          header(frame);
          return true;
        }
        auto entries = entries_of(frame, plan.base.id, upto, store.name());
        if (!entries) return entries.status();
        if (Status s = use(frame, *entries); !s.ok()) return s;
        return true;
      },
      release);
}

Result<Plan> plan_restore(Store& store, const RestorePoint& to, const RestoreSource& source) {
  Plan plan;
  auto base = choose_base(store, to, source);
  if (!base) return base.status();
  plan.base = std::move(*base);
  plan.header = plan.base.header;
  plan.data_bytes = plan.base.header.data_bytes;
  RestoreReport& report = plan.report;
  report.backup_id = report.id = plan.base.id;
  report.unix_ns = plan.base.unix_ns;
  auto opened = source.frames(plan.base);
  if (!opened) return opened.status();
  plan.frames = std::move(*opened);
  Frames& frames = *plan.frames;
  Status header_of_frame;
  std::uint64_t reached = plan.base.id;
  Status s = read_frames(
      store, plan, to, frames,
      [&](const Frame& frame, const Entries& entries) {
        reached = std::max(reached, frame.header.last);
        if (entries.n == 0) return Status();
        (void)log::each_entry(entries.words, entries.n, [&](const log::Entry& e) {
          report.transactions += e.kind == log::EntryKind::end ? 1 : 0;
        });
        report.id = entries.last;
        report.unix_ns = std::max(report.unix_ns, frame.header.unix_ns);
        plan.data_bytes = std::max(plan.data_bytes, frame.header.data_bytes);
        plan.log_bytes += entries.n * 8;
        return Status();
      },
      [&](const Frame& frame) {
        // The base's header may be newer than a frame of the same id.
        const auto header = header_of(frame, store.name());
        if (!header) {
          header_of_frame = header.status();
          return;
        }
        // Copies of a replicated pool number their headers each for itself.
        // mutant: restore-newer-header
        if (std::pair(header->replication.term, header->sequence) >
            std::pair(plan.header.replication.term, plan.header.sequence))
          plan.header = *header;
      },
      {});
  if (!s.ok()) return s;
  if (!header_of_frame.ok()) return header_of_frame;
  report.gap = frames.gap();
  if (to.id && reached < *to.id)
    return failure(Code::not_found, store.name(),
                   "backup " + std::to_string(plan.base.id) + " with the log up to transaction " +
                       std::to_string(reached),
                   point_text(to),
                   frames.gap() ? "the archive has a gap there: restore to an id before it, or "
                                  "from a backup after it"
                                : "restore to an id up to that");
  return plan;
}

Status replay(Store& store, Plan& plan, const RestorePoint& to, medium::Medium& medium,
              const pool::Header& header, const std::function<void(std::uint64_t)>& passed) {
  const pool::Directory directory(header);
  // One thread: the entries of one frame are few.
  log::Redo redo(medium, directory, log::DataWriter::Use::recovery, 1, 1 << 16);
  const auto strange = [&store](std::uint64_t id) {
    return failure(Code::corrupt, store.name(),
                   "the log of transaction " + std::to_string(id) +
                       " names bytes or blocks that the backup does not have",
                   "entries inside the data region", "restore from another backup");
  };
  Status s = read_frames(
      store, plan, to, *plan.frames,
      [&](const Frame& frame, const Entries& entries) {
        if (entries.n == 0) return Status();
        const log::Payload payload{entries.words, entries.n};
        pool::Targets targets(medium, header);
        if (targets.wanted()) {
          log::name_targets(payload, targets);
          if (Status allocated = targets.allocate(); !allocated.ok()) return allocated;
        }
        if (redo.apply({&payload, 1}) != log::no_strange) return strange(frame.header.last);
        passed(payload.n * 8);
        return Status();
      },
      [](const Frame&) {},
      [&redo] {
        redo.store();
        return Status();
      });
  if (!s.ok()) return s;
  redo.finish();
  return {};
}

}  // namespace

Result<RestoreReport> restore(Store& store, const std::string& path, const RestorePoint& to,
                              const RestoreProgress& progress) {
  return restore(store, path, to, progress,
                 {[&store](const Base& base) { return FramesAfter::open(store, base); },
                  [&path](const pool::Header& of) { return pool::header_of_copy(path, of); }});
}

Result<RestoreReport> restore(Store& store, const std::string& path, const RestorePoint& to,
                              const RestoreProgress& progress, const RestoreSource& source) {
  if (to.id && to.unix_ns)
    return failure(Code::invalid, path, "an id and a time to restore to", "one of them",
                   "leave one out");
  auto plan = plan_restore(store, to, source);
  if (!plan) return plan.status();
  plan->header.checkpoint_id = 0;
  auto header = source.header(plan->header);
  if (!header) return header.status();
  pool::Header& h = *header;
  // As after a clean close in that state.
  h.checkpoint_id = std::max(h.checkpoint_id, plan->report.id);
  h.clean = 1;
  h.heap_exact = 0;
  std::fill(std::begin(h.ring_head), std::end(h.ring_head), 0);
  pool::set_data_bytes(h, plan->data_bytes);
  // The chunks of the state lie where they lay when the header had another place for checksums.
  pool::place_checksums_anew(h);
  pool::set_log_from(h, h.checkpoint_id);
  h.checksum = pool::header_checksum(h);
  if (std::string why; pool::judge(h, &why) != pool::CopyState::valid)
    return failure(Code::corrupt, store.name(), "a header that can't be right " + why,
                   "a valid one", "restore from another backup");
  const std::uint64_t bytes = plan->base.chunks.size() * pool::chunk_bytes + plan->log_bytes;
  std::uint64_t done = 0;
  const auto passed = [&](std::uint64_t n) {
    done += n;
    if (progress) progress(done, bytes);
  };
  Status made = pool::create_copy(path, h, plan->base.mode, [&](medium::Medium& medium) -> Status {
    const pool::Directory directory(h);
    pool::NewDataRegion data(medium, h.log_bytes);
    for (const BaseChunk& one : plan->base.chunks) {
      auto chunk = read_chunk(store, one.hash);
      if (!chunk) return chunk.status();
      if (one.chunk >= plan->data_bytes / pool::chunk_bytes)
        return failure(
            Code::corrupt, store.name(),
            "backup " + std::to_string(plan->base.id) + " with chunk " + std::to_string(one.chunk),
            "chunks inside the data region", "restore from another backup");
      if (!directory.holds_words(one.chunk))
        if (Status s = pool::allocate_chunks(medium, one.chunk, 1); !s.ok()) return s;
      data.store_chunk(one.chunk, chunk->data());
      passed(pool::chunk_bytes);
    }
    return replay(store, *plan, to, medium, h, passed);
  });
  if (!made.ok()) return made;
  return plan->report;
}

}  // namespace perdure::backup

namespace perdure {

RestoreReport restore(const std::string& folder, const std::string& path, const RestorePoint& to,
                      const RestoreProgress& progress) {
  base::ensure_thread_slot().or_throw();  // the new file's medium counts by thread
  return backup::restore(*backup::open_place(folder, false).value(), path, to, progress).value();
}

VerifyReport verify_backups(const std::string& folder, const RestoreProgress& progress) {
  return backup::verify(*backup::open_place(folder, false).value(), progress).value();
}

}  // namespace perdure
