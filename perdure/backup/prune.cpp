// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "perdure/backup/base.hpp"
#include "perdure/backup/event_source.hpp"
#include "perdure/backup/places.hpp"
#include "perdure/backup/restore.hpp"
#include "perdure/backup/segment.hpp"
#include "perdure/base/thread_slot.hpp"

namespace perdure::backup {
namespace {

// The newest base from which the point can be restored.
Result<std::uint64_t> base_to_keep(Store& store, const RestorePoint& from) {
  auto ids = list_bases(store);
  if (!ids) return ids.status();
  for (auto id = ids->rbegin(); id != ids->rend(); ++id) {
    if (from.id && *id > *from.id) continue;
    auto base = read_base(store, *id);
    if (!base) return base.status();
    if (!from.unix_ns || base->unix_ns <= *from.unix_ns) return *id;
  }
  return failure(Code::not_found, store.name(), "no backup from before the point", {},
                 "nothing was removed: every backup is needed, or there is none");
}

}  // namespace

Result<PruneReport> prune(Store& store, const RestorePoint& from, bool dry_run) {
  // PRUNE-1
  auto alone = store.lock(dry_run ? Store::Use::chunks : Store::Use::chunks_alone);
  if (!alone) return alone.status();
  auto keep = base_to_keep(store, from);
  if (!keep) return keep.status();
  PruneReport report;
  report.oldest_id = *keep;
  std::vector<std::string> doomed;
  std::unordered_set<std::string> needed;  // chunks
  auto ids = list_bases(store);
  if (!ids) return ids.status();
  for (const std::uint64_t id : *ids) {
    if (id < *keep) {
      doomed.push_back(base_name(id));
      ++report.backups;
      continue;
    }
    // A list that can't be read may name any chunk.
    auto base = read_base(store, id);
    if (!base) return base.status();
    for (const BaseChunk& one : base->chunks) needed.insert(chunk_name(one.hash));
  }
  auto segments = list_segments(store);
  if (!segments) return segments.status();
  auto consumer = slowest_consumer(store);
  if (!consumer) return consumer.status();
  for (const SegmentName& name : *segments) {
    // A consumer needs what follows the transaction that it has passed, which it may have passed in
    // part.
    const bool held = *consumer && name.last >= (*consumer)->position.id;
    if (name.last < *keep && held) report.held_by = (*consumer)->name;
    // The last one says where the log continues. A segment that ends with the kept backup's id may
    // have a later header.
    // mutant: prune-keeps-for-consumers
    if (name.last < *keep && !held && name.number != segments->back().number) {
      doomed.push_back(name.text());
      ++report.files;
    }
  }
  auto chunks = store.list("chunk/");
  if (!chunks) return chunks.status();
  for (const std::string& name : *chunks)
    // mutant: prune-keeps-needed-chunks
    if (needed.count(name) == 0) {
      doomed.push_back(name);
      ++report.chunks;
    }
  // PRUNE-1: in this order.
  if (!dry_run)
    for (const std::string& name : doomed)
      if (Status s = store.remove(name); !s.ok()) return s;
  return report;
}

}  // namespace perdure::backup

namespace perdure {

PruneReport prune_backups(const std::string& folder, const RestorePoint& from, bool dry_run) {
  base::ensure_thread_slot().or_throw();
  return backup::prune(*backup::open_place(folder, false).value(), from, dry_run).value();
}

}  // namespace perdure
