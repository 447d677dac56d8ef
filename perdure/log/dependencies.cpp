// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/dependencies.hpp"

#include <algorithm>
#include <string>

#include "perdure/log/redo.hpp"

namespace perdure::log {
namespace {

struct Placed {
  std::uint64_t timestamp;
  std::size_t ring;
  RecordView record;
};

// What the pass has seen of a ring.
struct Passed {
  std::uint64_t kept = 0;        // the timestamp of its last record that counts
  std::uint64_t dropped = 0;     // the timestamp of the one that does not; 0: none
  std::uint64_t missing = 0;     // what that one names
  std::size_t missing_ring = 0;  // ... in this ring
};

Status acknowledged_once(const medium::Medium& medium, std::size_t ring, const Passed& passed) {
  return failure(Code::corrupt, ring_name(medium, static_cast<std::uint32_t>(ring)),
                 "the record with timestamp " + std::to_string(passed.dropped) +
                     " counts only with the one with timestamp " + std::to_string(passed.missing) +
                     " in ring " + std::to_string(passed.missing_ring) +
                     ", which is missing, yet a later record follows it",
                 "no record after one that was never acknowledged",
                 "nothing was changed: restore a copy, or read what is left with `perdure log`");
}

}  // namespace

Status keep_closed(std::vector<RecordView>& records, const std::vector<std::ptrdiff_t>& begins,
                   std::uint64_t checkpoint_id, const medium::Medium& medium) {
  const std::size_t rings = begins.size() - 1;
  std::vector<Placed> all;
  all.reserve(records.size());
  for (std::size_t ring = 0; ring < rings; ++ring)
    for (auto i = begins[ring]; i < begins[ring + 1]; ++i) {
      const RecordView& r = records[static_cast<std::size_t>(i)];
      all.push_back({r.timestamp(), ring, r});
    }
  // DEPEND-2. Records of equal timestamps, which only damage makes, keep their ring's order.
  // mutant: dependent-timestamp-order
  std::stable_sort(all.begin(), all.end(),
                   [](const Placed& a, const Placed& b) { return a.timestamp < b.timestamp; });
  std::vector<Passed> passed(rings);
  records.clear();
  for (const Placed& p : all) {
    Passed& own = passed[p.ring];
    // mutant: dependent-dropped-is-last
    if (own.dropped != 0) return acknowledged_once(medium, p.ring, own);
    bool possible = true;
    const auto look_at = [&](const Entry& e) {
      if (e.kind != EntryKind::after) return;
      const std::uint64_t ring = e.count, timestamp = e.values[0];
      // mutant: dependent-names-lower
      possible &= ring < rings && ring != p.ring && timestamp < p.timestamp;
      if (!possible || id_of_timestamp(timestamp) <= checkpoint_id) return;
      // RING-3: the pass has seen all records of that ring up to the named timestamp, so if the
      // last one kept is not below it, the named one is kept.
      // mutant: dependent-needs-named
      if (passed[ring].kept < timestamp) own = {own.kept, p.timestamp, timestamp, ring};
    };
    if (p.record.kind() == RecordKind::dependent)
      possible &= each_entry(p.record.words + header_words, p.record.payload_words(), look_at);
    if (!possible) return strange_record(medium, p.record.id());
    if (own.dropped != 0) continue;
    own.kept = p.timestamp;
    records.push_back(p.record);
  }
  return {};
}

}  // namespace perdure::log
