// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/redo.hpp"

#include <algorithm>

#include "perdure/log/redo_team.hpp"
#include "perdure/log/ring.hpp"
#include "perdure/pool/allocation.hpp"

namespace perdure::log {
DataWriter::DataWriter(medium::Medium& medium, std::uint64_t max_data_bytes, Use use,
                       LineMasks* masks)
    : medium_(medium),
      max_data_bytes_(max_data_bytes),
      use_(use),
      lent_(masks),
      masks_(masks != nullptr       ? masks
             : use == Use::recovery ? &own_
                                    : nullptr) {
  if (masks_ != nullptr)
    masks_->fit(medium.data_bytes());
  else
    lines_.reserve(batch);
}

bool DataWriter::entry(const Entry& e) {
  switch (e.kind) {
    case EntryKind::words:
      if (e.count == 0 || e.offset + e.count * 8 > medium_.data_bytes()) return false;
      words(e.offset, e.values, e.count);
      return true;
    case EntryKind::alloc:
    case EntryKind::free:
      // mutant: redo-possible-blocks
      if (!pool::possible(e.heap_op(), medium_.data_bytes(), max_data_bytes_)) return false;
      pool::apply(*this, e.heap_op(), max_data_bytes_);
      return true;
    case EntryKind::end: return true;
    case EntryKind::before: return false;
  }
  return false;
}

std::uint64_t DataWriter::load(std::uint64_t offset) const {
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
  std::vector<RecordView> records;
  std::vector<std::ptrdiff_t> begins;  // of each ring's records
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < header.ring_count; ++i) {
    auto map = medium.map_ring(pool::ring_offset(header, i), header.ring_bytes);
    if (!map) return map.status();
    begins.push_back(static_cast<std::ptrdiff_t>(records.size()));
    const auto parts = std::clamp<std::uint64_t>(header.ring_bytes / worth_a_part, 1,
                                                 threads_for(header.ring_bytes));
    const Scan scan = scan_and_flush_ring(
        medium, *map, header.ring_head[i], ring_seed(header.uuid, header.epoch, i),
        header.append_unit, ring_name(medium, i), header.checkpoint_id,
        static_cast<unsigned>(parts),
        [&](std::uint64_t bytes) { progress.to(i * header.ring_bytes + bytes); }, records);
    if (!scan.damage.ok()) return scan.damage;
    const bool any = static_cast<std::ptrdiff_t>(records.size()) != begins.back();
    if (Status s = later_than_header(*map, header.ring_head[i], scan.end,
                                     ring_seed(header.uuid, header.epoch, i), header.append_unit,
                                     any ? records.back().id() : header.checkpoint_id,
                                     ring_name(medium, i));
        !s.ok())
      return s;
    total += scan.bytes_above;
  }
  begins.push_back(static_cast<std::ptrdiff_t>(records.size()));
  // REDO-4: the records are durable before the data region holds anything of what they say.
  if (!records.empty())
    if (Status s = medium.fence(); !s.ok()) return s;
  // The ids in each ring rise (RING-3): rings are merged in pairs, then pairs of pairs.
  const std::size_t rings = header.ring_count;
  for (std::size_t width = 1; width < rings; width *= 2)
    for (std::size_t i = 0; i + width < rings; i += 2 * width)
      // mutant: redo-id-order
      std::inplace_merge(records.begin() + begins[i], records.begin() + begins[i + width],
                         records.begin() + begins[std::min(i + 2 * width, rings)],
                         [](const RecordView& a, const RecordView& b) { return a.id() < b.id(); });
  // ALLOC-1: the data region's blocks are allocated before it is changed; `full` changes nothing.
  if (pool::Targets targets(medium, header); targets.wanted()) {
    std::vector<std::uint64_t> own;
    for (const RecordView& r : records) {
      const Payload payload = payload_of(r, header.ring_bytes / 16, own);
      if (payload.words == nullptr) return strange_record(medium, r.id());
      each_entry(payload.words, payload.n, [&](const Entry& e) {
        if (e.kind == EntryKind::words) targets.words(e.offset, e.count);
        if (e.kind == EntryKind::alloc || e.kind == EntryKind::free) targets.block(e.heap_op());
      });
    }
    if (Status s = targets.allocate(); !s.ok()) return s;
  }
  progress.begin(Stage::apply, total);
  std::vector<Payload> payloads;
  // A vector that is moved keeps its words where they are.
  std::vector<std::vector<std::uint64_t>> unpacked;
  std::vector<std::uint64_t> none;
  std::uint64_t bytes = 0, applied = 0;  // of payloads; of records
  // Payloads are applied in batches, each durable once the caller has fenced: so progress is
  // reported between them, and the memory for unpacked payloads is bounded.
  const auto apply = [&] {
    if (payloads.empty()) return Status();
    const auto passed = [&](std::size_t n) {
      progress.to(applied + (done.bytes - applied) * n / payloads.size());
    };
    const std::size_t strange = redo(medium, header.max_data_bytes, payloads,
                                     DataWriter::Use::recovery, threads_for(bytes), passed);
    const bool good = strange == no_strange;
    const std::uint64_t id = good ? 0 : records[done.records - payloads.size() + strange].id();
    applied = done.bytes;
    payloads.clear();
    unpacked.clear();
    bytes = 0;
    return good ? Status() : strange_record(medium, id);
  };
  for (const RecordView& r : records) {
    // Pipelined order: the ring is written in id order, so a gap can only mean that the
    // ring is damaged.
    // mutant: redo-no-gaps
    if (header.order == pool::CommitOrder::pipelined && r.id() - r.transactions() > done.last_id)
      return failure(Code::corrupt, ring_name(medium, 0),
                     "transaction " + std::to_string(r.id()) + " follows " +
                         std::to_string(done.last_id) + " with others missing",
                     "records without a gap",
                     "nothing was acknowledged that is lost here; restore a copy");
    if (r.kind() == RecordKind::packed) unpacked.emplace_back();
    payloads.push_back(payload_of(r, header.ring_bytes / 16,
                                  r.kind() == RecordKind::packed ? unpacked.back() : none));
    if (payloads.back().words == nullptr) return strange_record(medium, r.id());
    bytes += payloads.back().n * 8;
    ++done.records;
    done.transactions += r.transactions();
    done.bytes += r.bytes(header.append_unit);
    done.last_id = r.id();
    if (bytes > max_unpacked)
      if (Status s = apply(); !s.ok()) return s;
  }
  if (Status s = apply(); !s.ok()) return s;
  // REDO-2: all of it is durable before start_session's header may say that the rings are empty.
  if (done.records != 0)
    if (Status s = medium.fence(); !s.ok()) return s;
  return done;
}

}  // namespace perdure::log
