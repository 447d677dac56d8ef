// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/redo.hpp"

#include <algorithm>

#include "perdure/log/redo_team.hpp"
#include "perdure/log/ring.hpp"

namespace perdure::log {

bool HomeWriter::entry(const Entry& e) {
  switch (e.kind) {
    case EntryKind::words:
      if (e.count == 0 || e.offset + e.count * 8 > medium_.home_bytes()) return false;
      words(e.offset, e.values, e.count);
      return true;
    case EntryKind::alloc:
    case EntryKind::free:
      if (!pool::possible(e.heap_op(), medium_.home_bytes(), max_home_bytes_)) return false;
      pool::apply(*this, e.heap_op(), max_home_bytes_);
      return true;
    case EntryKind::end: return true;
    case EntryKind::before: return false;
  }
  return false;
}

bool HomeWriter::payload(const std::uint64_t* p, std::uint64_t n) {
  bool good = true;
  return each_entry(p, n, [&](const Entry& e) { good = entry(e) && good; }) && good;
}

std::uint64_t HomeWriter::load(std::uint64_t offset) const {
  std::uint64_t word;
  std::memcpy(&word, medium_.at(medium_.log_bytes() + offset), sizeof word);
  if (use_ == Use::recovery) {  // stored anew: after a write-back that failed, a kernel takes a page for clean that the disk does not have
    medium_.store(medium_.log_bytes() + offset, &word, sizeof word);
    touch(offset, sizeof word);
  }
  return word;
}

void HomeWriter::flush() const {
  std::sort(lines_.begin(), lines_.end());
  lines_.erase(std::unique(lines_.begin(), lines_.end()), lines_.end());
  medium_.flush_lines(medium_.log_bytes(), lines_);
  lines_.clear();
}

std::string ring_name(const medium::Medium& medium, std::uint32_t ring) { return medium.path() + ": log ring " + std::to_string(ring); }

Status strange_record(const medium::Medium& medium, std::uint64_t id) {
  return failure(Code::corrupt, medium.path(),
                 "the record of transaction " + std::to_string(id) + " names bytes or blocks that the pool does not have",
                 "entries inside home", "restore a copy");
}

Result<RedoRecovery> recover_redo(medium::Medium& medium, const pool::Header& header) {
  RedoRecovery done;
  done.last_id = header.applied;
  std::vector<RecordView> records;
  for (std::uint32_t i = 0; i < header.ring_count; ++i) {
    const std::uint64_t offset = pool::ring_offset(header, i);
    auto map = medium.map_ring(offset, header.ring_bytes);
    if (!map) return map.status();
    const Scan scan = scan_ring(*map, header.ring_head[i], ring_seed(header.uuid, header.epoch, i), header.append_unit,
                                ring_name(medium, i), [&](const RecordView& r) {
                                  if (r.id() > header.applied) records.push_back(r);
                                });
    if (!scan.damage.ok()) return scan.damage;
    flush_scanned(medium, offset, header.ring_bytes, header.ring_head[i], scan.end);
  }
  // D4: the records durable before home has anything of what they say.
  if (!records.empty())
    if (Status s = medium.fence(); !s.ok()) return s;
  std::sort(records.begin(), records.end(), [](const RecordView& a, const RecordView& b) { return a.id() < b.id(); });
  std::vector<Payload> payloads;
  payloads.reserve(records.size());
  std::vector<std::vector<std::uint64_t>> unpacked;  // a vector that moves keeps its words where they are
  std::vector<std::uint64_t> none;
  std::uint64_t bytes = 0;
  const auto apply = [&] {
    const std::size_t strange = redo(medium, header.max_home_bytes, payloads, HomeWriter::Use::recovery, redo_threads(bytes));
    const bool good = strange == no_strange;
    const std::uint64_t id = good ? 0 : records[done.records - payloads.size() + strange].id();
    payloads.clear();
    unpacked.clear();
    bytes = 0;
    return good ? Status() : strange_record(medium, id);
  };
  for (const RecordView& r : records) {
    // prefix: the ring is written in id order, so a gap can only mean that the ring is not what it should be
    if (header.order == pool::Order::prefix && r.id() - r.transactions() > done.last_id)
      return failure(Code::corrupt, ring_name(medium, 0),
                     "transaction " + std::to_string(r.id()) + " follows " + std::to_string(done.last_id) + " with others missing",
                     "records without a gap", "nothing was acknowledged that is lost here; restore a copy");
    if (r.kind() == RecordKind::packed) unpacked.emplace_back();
    payloads.push_back(payload_of(r, header.ring_bytes / 16, r.kind() == RecordKind::packed ? unpacked.back() : none));
    if (payloads.back().words == nullptr) return strange_record(medium, r.id());
    bytes += payloads.back().n * 8;
    ++done.records;
    done.transactions += r.transactions();
    done.bytes += r.bytes(header.append_unit);
    done.last_id = r.id();
    if (!unpacked.empty() && bytes > most_unpacked)
      if (Status s = apply(); !s.ok()) return s;
  }
  if (Status s = apply(); !s.ok()) return s;
  // D2: all of it durable before start_session's header may say that the rings are empty.
  if (done.records != 0)
    if (Status s = medium.fence(); !s.ok()) return s;
  return done;
}

}  // namespace perdure::log
