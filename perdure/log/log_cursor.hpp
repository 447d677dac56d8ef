// SPDX-License-Identifier: BSD-3-Clause
//
// LogCursor: reads the records of a pool's rings in id order, while the rings' writers append. It
// has a place in each ring. Whatever reads a live log uses it: replay (papers/dudetm/replay.hpp)
// and the archive (backup/archive.hpp). Recovery reads rings that nobody writes (record_merge.hpp).
//
// Up to which id the records are whole and durable is known to the engine, not to the rings: below
// a ring's tail lies what is durable, but of several rings one may have a later record while
// another's is not fenced. So the caller reads that id first, then calls look().
// REQUIRES: no byte from the cursor's places on is released (RING-2): the caller releases the rings
// itself, or has a floor (floors.hpp).
// Thread safety: one thread at a time. A copy starts where the original is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "perdure/log/record.hpp"
#include "perdure/log/ring.hpp"

namespace perdure::log {

class LogCursor {
 public:
  LogCursor() = default;
  /// Adds a ring from `position` on, which is where a record begins or the tail. Throws
  /// std::bad_alloc.
  void add(const Ring& ring, std::uint64_t position) {
    places_.push_back({&ring, position, position});
  }
  /// Finds what has been appended. Call it after the id was read that next() is given.
  void look() noexcept {
    for (Place& p : places_) p.end = p.ring->tail();
  }
  /// Sets `r` to the next record whose id is at most `limit`, and passes it. Returns false, and
  /// leaves it, where there is none.
  bool next(std::uint64_t limit, RecordView& r) noexcept {
    Place* first = nullptr;  // the place whose record has the lowest id
    for (Place& p : places_) {
      if (p.at == p.end) continue;
      if (const std::uint64_t id = p.ring->at(p.at).id(); id <= limit) {
        // mutant: log-cursor-lowest-id
        limit = id;
        first = &p;
      }
    }
    if (first == nullptr) return false;
    r = first->ring->at(first->at);
    first->at += bytes(*first, r);
    return true;
  }
  /// Returns how many bytes look() has found that next() has not passed.
  [[nodiscard]] std::uint64_t ahead() const noexcept {
    std::uint64_t n = 0;
    for (const Place& p : places_) n += p.end - p.at;
    return n;
  }
  /// Returns the cursor's place in ring i, in the order in which they were added.
  [[nodiscard]] std::uint64_t position(std::size_t i) const noexcept { return places_[i].at; }
  /// Returns how many bytes a record of these rings takes.
  [[nodiscard]] std::uint64_t bytes(const RecordView& r) const noexcept {
    return bytes(places_.front(), r);
  }

 private:
  struct Place {
    const Ring* ring;
    std::uint64_t at, end;
  };
  static std::uint64_t bytes(const Place& place, const RecordView& r) noexcept {
    return r.bytes(place.ring->medium().append_unit());
  }
  std::vector<Place> places_;
};

}  // namespace perdure::log
