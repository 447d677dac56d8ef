// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/redo.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

#include "perdure/log/dependencies.hpp"
#include "perdure/log/record_merge.hpp"
#include "perdure/log/redo_team.hpp"
#include "perdure/log/ring.hpp"
#include "perdure/pool/allocation.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/size_classes.hpp"

namespace perdure::log {
DataWriter::DataWriter(medium::Medium& medium, const pool::Directory& directory, Use use,
                       LineMasks* masks, ReplayedChecksums* sums)
    : medium_(medium),
      directory_(directory),
      use_(use),
      lent_(masks),
      masks_(masks != nullptr       ? masks
             : use == Use::recovery ? &own_
                                    : nullptr),
      sums_(sums) {
  if (masks_ != nullptr)
    masks_->fit(medium.data_bytes());
  else
    lines_.reserve(batch);
}

bool DataWriter::entry(const Entry& e) {
  switch (e.kind) {
    case EntryKind::words:
      if (!pool::possible_words(e.offset, e.count, medium_.data_bytes(), directory_)) return false;
      words(e.offset, e.values, e.count);
      return true;
    case EntryKind::alloc:
    case EntryKind::free:
      // mutant: redo-possible-blocks
      if (!pool::possible(e.heap_op(), medium_.data_bytes(), directory_)) return false;
      if (sums_ != nullptr) looked_at(e.heap_op());
      pool::apply(*this, e.heap_op(), directory_);
      return true;
    case EntryKind::end:
    case EntryKind::note:
    case EntryKind::after: return true;
    case EntryKind::before: return false;
  }
  return false;
}

void DataWriter::looked_at(const pool::HeapOp& op) const {
  if (op.cls == pool::large_class) return;  // its directory words are loaded
  const pool::ClassInfo& info = pool::classes[op.cls];
  const std::uint64_t span = pool::span_chunk_of(op.offset, info.chunks, directory_.first_chunk());
  // mutant: checksum-recovery-notes-bitmaps
  sums_->touch(span * pool::chunk_bytes);
}

std::uint64_t DataWriter::load(std::uint64_t offset) const {
  // mutant: checksum-recovery-notes-loads
  if (sums_ != nullptr) sums_->touch(offset);
  std::uint64_t word;
  std::memcpy(&word, medium_.at(medium_.log_bytes() + offset), sizeof word);
  // The word is stored again: after a failed write-back a kernel treats a page as clean that the
  // disk does not have. A hole has nothing that could be lost; a damaged directory word may lead
  // into one (ALLOC-1).
  // mutant: recovery-rewrites-read-words
  if (const std::uint64_t at = medium_.log_bytes() + offset;
      use_ == Use::recovery && medium_.allocated(at, sizeof word)) {
    medium_.store(at, &word, sizeof word);
    touch(offset, sizeof word);
  }
  return word;
}

void DataWriter::flush() const {
  if (lent_ != nullptr) return;
  std::sort(lines_.begin(), lines_.end());
  lines_.erase(std::unique(lines_.begin(), lines_.end()), lines_.end());
  each_touched([&](const std::vector<std::uint64_t>& lines) {
    medium_.flush_lines(medium_.log_bytes(), lines);
  });
}

std::string ring_name(const medium::Medium& medium, std::uint32_t ring) {
  return medium.path() + ": log ring " + std::to_string(ring);
}

Status strange_record(const medium::Medium& medium, std::uint64_t id) {
  return failure(Code::corrupt, medium.path(),
                 "the record of transaction " + std::to_string(id) +
                     " names bytes or blocks that the pool does not have",
                 "entries inside the data region", "restore a copy");
}

namespace {

// The records that recovery applies, in the order in which it does: of most pools by their ids; of
// a pool with dependent records those of a list, which keep_closed() has chosen and sorted. A copy
// starts where the original is.
class RecordsInOrder {
 public:
  explicit RecordsInOrder(const RecordMerge& merge) : merge_(merge) {}
  RecordsInOrder(const RecordMerge& merge, const std::vector<RecordView>& list)
      : merge_(merge), list_(&list) {}
  /// Sets `r` to the next record. Returns false, and leaves it, where there is none.
  bool next(RecordView& r) {
    if (list_ == nullptr) return merge_.next(r);
    if (at_ == list_->size()) return false;
    r = (*list_)[at_++];
    return true;
  }

 private:
  RecordMerge merge_;
  const std::vector<RecordView>* list_ = nullptr;
  std::size_t at_ = 0;
};

// Pipelined order: the ring is written in id order, so a gap can only mean that the ring is
// damaged.
Status no_gap(RecordsInOrder records, std::uint64_t last_id, const std::string& name) {
  for (RecordView r; records.next(r); last_id = r.id())
    // mutant: redo-no-gaps
    if (r.id() - r.transactions() > last_id)
      return failure(Code::corrupt, name,
                     "transaction " + std::to_string(r.id()) + " follows " +
                         std::to_string(last_id) + " with others missing",
                     "records without a gap",
                     "nothing was acknowledged that is lost here; restore a copy");
  return {};
}

}  // namespace

Status each_record_above(medium::Medium& medium, const pool::Header& header, std::uint64_t id,
                         const std::function<void(const RecordView&)>& f) {
  RecordMerge merge(header.append_unit);
  for (std::uint32_t i = 0; i < header.ring_count; ++i) {
    auto map = medium.map_ring(pool::ring_offset(header, i), header.ring_bytes);
    if (!map) return map.status();
    std::uint64_t from = header.ring_head[i];
    const Scan scan = scan_ring(*map, from, ring_seed(header.uuid, header.epoch, i),
                                header.append_unit, ring_name(medium, i), [&](const RecordView& r) {
                                  if (r.id() <= id) from = r.position + r.bytes(header.append_unit);
                                });
    if (!scan.damage.ok()) return scan.damage;
    merge.add(*map, from, scan.end);
  }
  for (RecordView r; merge.next(r);) f(r);
  return {};
}

Result<RedoRecovery> recover_redo(medium::Medium& medium, const pool::Header& header,
                                  const RecoveryPlan* plan) {
  using Stage = RecoveryProgress::Stage;
  constexpr std::uint64_t worth_a_part = 1 << 20;  // bytes of a ring
  const auto threads_for = [plan](std::uint64_t bytes) {
    return plan != nullptr && plan->threads != 0 ? plan->threads : redo_threads(bytes);
  };
  Progress progress(plan);
  progress.begin(Stage::read, std::uint64_t{header.ring_count} * header.ring_bytes);
  RedoRecovery done;
  done.last_id = header.checkpoint_id;
  RecordMerge merge(header.append_unit);
  // Dependent records are listed: which of them count is known when all have been found.
  const bool dependent = pool::has_feature(header, pool::Feature::dependent_records);
  std::vector<RecordView> list;
  std::vector<std::ptrdiff_t> begins;  // of each ring's records in the list
  std::uint64_t count = 0, total = 0;  // of the records above the checkpoint id; their bytes
  // ALLOC-1: the data region's blocks are allocated before it is changed; `full` changes nothing.
  // What they are is looked up while a record is in the cache because it was checked; of dependent
  // records, when the kept ones are known, because one that is dropped needs no blocks.
  pool::Targets targets(medium, header);
  const std::uint64_t max_words = header.ring_bytes / 16;
  std::atomic<bool> strange_seen{false};
  const auto name_its_targets = [&](const RecordView& r) {
    std::vector<std::uint64_t> own;
    const Payload payload = payload_of(r, max_words, own);
    // Relaxed: the threads of the scan have ended before it is asked.
    if (payload.words == nullptr) strange_seen.store(true, std::memory_order_relaxed);
    name_targets(payload, targets);
  };
  std::function<void(const RecordView&)> found;
  if (targets.wanted() && !dependent) found = name_its_targets;
  for (std::uint32_t i = 0; i < header.ring_count; ++i) {
    auto map = medium.map_ring(pool::ring_offset(header, i), header.ring_bytes);
    if (!map) return map.status();
    const auto parts = std::clamp<std::uint64_t>(header.ring_bytes / worth_a_part, 1,
                                                 threads_for(header.ring_bytes));
    const Scan scan = scan_and_flush_ring(
        medium, *map, header.ring_head[i], ring_seed(header.uuid, header.epoch, i),
        header.append_unit, ring_name(medium, i), header.checkpoint_id,
        static_cast<unsigned>(parts),
        [&](std::uint64_t bytes) { progress.to(i * header.ring_bytes + bytes); }, found);
    if (!scan.damage.ok()) return scan.damage;
    if (Status s = later_than_header(
            *map, header.ring_head[i], scan.end, ring_seed(header.uuid, header.epoch, i),
            header.append_unit, std::max(scan.last_id, header.checkpoint_id), ring_name(medium, i));
        !s.ok())
      return s;
    if (dependent) {
      begins.push_back(static_cast<std::ptrdiff_t>(list.size()));
      RecordMerge ring(header.append_unit);
      ring.add(*map, scan.above, scan.end);
      for (RecordView r; ring.next(r);) list.push_back(r);
    } else {
      merge.add(*map, scan.above, scan.end);
    }
    count += scan.records_above;
    total += scan.bytes_above;
  }
  // REDO-4: the records are durable before the data region holds anything of what they say.
  if (count != 0)
    if (Status s = medium.fence(); !s.ok()) return s;
  if (dependent) {
    begins.push_back(static_cast<std::ptrdiff_t>(list.size()));
    if (Status s = keep_closed(list, begins, header.checkpoint_id, medium); !s.ok()) return s;
    if (targets.wanted()) std::for_each(list.begin(), list.end(), name_its_targets);
  }
  const RecordsInOrder records = dependent ? RecordsInOrder(merge, list) : RecordsInOrder(merge);
  RecordView r;
  if (strange_seen.load(std::memory_order_relaxed)) {
    std::vector<std::uint64_t> own;
    for (RecordsInOrder all = records; all.next(r);)
      if (payload_of(r, max_words, own).words == nullptr) return strange_record(medium, r.id());
  }
  if (header.order == pool::CommitOrder::pipelined)
    if (Status s = no_gap(records, header.checkpoint_id, ring_name(medium, 0)); !s.ok()) return s;
  if (Status s = targets.allocate(); !s.ok()) return s;
  // Nothing can be refused any more but strange records, of which damage alone makes one.
  std::optional<ReplayedChecksums> sums;
  if (count != 0 && pool::PageChecksums::has(header)) {
    sums.emplace(medium, header);
    // mutant: checksum-recovery-marks
    sums->begin();
    if (Status s = medium.fence(); !s.ok()) return s;  // CHECKSUM-1
  }
  progress.begin(Stage::apply, total);
  const unsigned threads = threads_for(total);
  Redo redo(medium, header, DataWriter::Use::recovery, threads, total / 16, {},
            sums ? &*sums : nullptr);
  // Payloads are applied in batches. One thread takes so much that it has read the batch's headers
  // and finds its payloads in the cache; a team, what is worth its start.
  const std::uint64_t batch = threads == 1 ? 256 << 10 : 8 << 20;
  std::vector<Payload> payloads;
  // A vector that is moved keeps its words where they are.
  std::vector<std::vector<std::uint64_t>> unpacked;
  std::vector<std::uint64_t> none;
  std::uint64_t batched = 0, own = 0;  // bytes: of the batch's records; of what was unpacked
  const auto apply = [&] {
    const std::size_t strange = redo.apply(payloads);
    if (strange != no_strange) {
      RecordsInOrder all = records;
      for (std::uint64_t n = done.records - payloads.size() + strange + 1; n > 0; --n)
        (void)all.next(r);
      return strange_record(medium, r.id());
    }
    payloads.clear();
    batched = 0;
    progress.to(done.bytes);
    // Only stores that were made no longer need what was unpacked.
    if (own > max_unpacked) {
      redo.store();
      unpacked.clear();
      own = 0;
    }
    return Status();
  };
  for (RecordsInOrder next = records; next.next(r);) {
    if (r.kind() == RecordKind::packed) unpacked.emplace_back();
    payloads.push_back(
        payload_of(r, max_words, r.kind() == RecordKind::packed ? unpacked.back() : none));
    if (payloads.back().words == nullptr) return strange_record(medium, r.id());
    ++done.records;
    done.transactions += r.transactions();
    done.bytes += r.bytes(header.append_unit);
    done.last_id = r.id();
    batched += r.bytes(header.append_unit);
    if (r.kind() == RecordKind::packed) own += payloads.back().n * 8;
    if (batched >= batch || own > max_unpacked)
      if (Status s = apply(); !s.ok()) return s;
  }
  if (Status s = apply(); !s.ok()) return s;
  redo.finish();
  if (sums) sums->finish();
  // REDO-2: all of it is durable before start_session's header may say that the rings are empty.
  if (done.records != 0)
    if (Status s = medium.fence(); !s.ok()) return s;
  return done;
}

}  // namespace perdure::log
