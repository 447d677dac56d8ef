// SPDX-License-Identifier: BSD-3-Clause
//
// RecordMerge: the records of several rings, in id order. It has a position in each ring and no
// list of records, which would take a quarter of what it lists where each record is 64 bytes long.
//
// Thread safety: one thread at a time. A copy starts where the original is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "perdure/log/record.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::log {

class RecordMerge {
 public:
  /// `unit`: the unit in which the records were appended.
  explicit RecordMerge(std::size_t unit) : unit_(unit) {}

  /// Adds the records of a ring from position `from` to `end`. All of them are whole, and their ids
  /// rise (RING-3). Throws std::bad_alloc.
  void add(const medium::RingMap& map, std::uint64_t from, std::uint64_t end) {
    if (from >= end) return;
    rings_.push_back({{map, from}, end, 0});
    rings_.back().id = rings_.back().next.record().id();
    std::push_heap(rings_.begin(), rings_.end(), later);
  }
  /// Sets `r` to the next record. Returns false, and leaves it, where there is none.
  bool next(RecordView& r) {
    if (rings_.empty()) return false;
    const bool several = rings_.size() > 1;
    if (several) std::pop_heap(rings_.begin(), rings_.end(), later);
    Place& place = rings_.back();
    r = place.next.record();
    place.next.pass(r.bytes(unit_));
    if (place.next.position >= place.end) {
      rings_.pop_back();
    } else if (several) {
      place.id = place.next.record().id();
      // mutant: redo-id-order
      std::push_heap(rings_.begin(), rings_.end(), later);
    }
    return true;
  }

 private:
  struct Place {
    RingCursor next;
    std::uint64_t end, id;  // the end of its records; of the next one
  };
  static bool later(const Place& a, const Place& b) noexcept { return a.id > b.id; }

  const std::size_t unit_;
  std::vector<Place> rings_;  // a heap; the front has the lowest id
};

}  // namespace perdure::log
