// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/ring.hpp"

#include <algorithm>
#include <string>

namespace perdure::log {

Scan scan_ring(const medium::RingMap& map, std::uint64_t head, std::uint64_t seed, std::size_t unit, const std::string& name,
               const std::function<void(const RecordView&)>& f) {
  Scan scan;
  const std::uint64_t stop = head + map.bytes;
  const auto record_at = [&](std::uint64_t position) {
    return RecordView{reinterpret_cast<const std::uint64_t*>(map.base + position % map.bytes), position};
  };
  const auto whole = [&](const RecordView& r) {
    return r.plausible(map.bytes / 2) && r.position + r.bytes(unit) <= stop && r.checks(seed);
  };
  std::uint64_t position = head;
  while (position < stop) {
    const RecordView r = record_at(position);
    if (!whole(r)) break;
    f(r);
    position += r.bytes(unit);
    ++scan.records;
  }
  scan.end = position;
  scan.bytes = position - head;
  // R1: a whole record above the break says that the broken one was durable. Only a torn last record may be cut.
  for (std::uint64_t p = position + unit; p < stop; p += unit) {
    const RecordView r = record_at(p);
    if (!whole(r)) continue;
    scan.damage =
        failure(Code::corrupt, name,
                "the record at position " + std::to_string(position) + " is damaged, yet a later one, of transaction " +
                    std::to_string(r.id()) + " at position " + std::to_string(p) + ", is whole",
                "no break below a durable record", "nothing was changed: restore a copy, or read what is left with `perdure log`");
    break;
  }
  return scan;
}

void flush_scanned(medium::Medium& medium, std::uint64_t offset, std::uint64_t ring_bytes, std::uint64_t head, std::uint64_t end) {
  for (std::uint64_t at = head; at < end;) {
    const std::uint64_t n = std::min(end - at, ring_bytes - at % ring_bytes);
    medium.flush(offset + at % ring_bytes, n);
    at += n;
  }
}

}  // namespace perdure::log
