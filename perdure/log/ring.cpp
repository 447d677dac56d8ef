// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/ring.hpp"

#include <algorithm>
#include <string>

#include "perdure/log/team.hpp"

namespace perdure::log {
namespace {

constexpr std::uint64_t nowhere = ~std::uint64_t{0};
constexpr std::uint64_t told_together = 64 << 10;  // bytes between two reports of progress

// Reads records of one generation.
struct Reader {
  const medium::RingMap& map;
  std::uint64_t stop;
  base::Checksum fold;  // as it starts from the ring's seed
  std::size_t unit;

  [[nodiscard]] RecordView at(std::uint64_t position) const {
    return {reinterpret_cast<const std::uint64_t*>(map.base + position % map.bytes), position};
  }
  [[nodiscard]] bool whole(const RecordView& r) const {
    // mutant: record-plausible-size, record-within-ring
    return r.plausible(map.bytes / 2) && r.position + r.bytes(unit) <= stop && r.checks(fold);
  }
  /// Returns the position of the first whole record in [from, to), or nowhere.
  template <class F>
  [[nodiscard]] std::uint64_t next(std::uint64_t from, std::uint64_t to, F&& passed) const {
    for (std::uint64_t p = from; p < to; p += unit) {
      if (p % told_together == 0) passed(p);
      // Zeros are no record. Reading them would cost a page fault for every 4 KiB.
      if (p % medium::page_bytes == 0 && map.hole(p)) {
        p += medium::page_bytes - unit;
        continue;
      }
      // mutant: ring-damage-below-whole-record
      if (whole(at(p))) return p;
    }
    return nowhere;
  }
};

Status damage_at(const std::string& name, std::uint64_t position, const RecordView& above) {
  return failure(Code::corrupt, name,
                 "the record at position " + std::to_string(position) +
                     " is damaged, yet a later one, of transaction " + std::to_string(above.id()) +
                     " at position " + std::to_string(above.position) + ", is whole",
                 "no break below a durable record",
                 "nothing was changed: restore a copy, or read what is left with `perdure log`");
}

// A part of one generation, and what one thread finds there without knowing where a record begins.
struct Section {
  std::uint64_t from = 0, to = 0;
  std::uint64_t first = nowhere;  // the first whole record here
  // The position after those that follow it without a break; may lie beyond `to`.
  std::uint64_t end = nowhere;
  std::uint64_t above = nowhere;         // a whole record above the break at `end`
  std::uint64_t count = 0, last_id = 0;  // of all records
  // Of those with an id above the given one.
  std::uint64_t first_new = nowhere, new_count = 0, new_bytes = 0;

  /// `exact`: a record begins at `from`, or there is none. Calls flush(position, bytes) for what
  /// was found, 1 MiB at a time.
  template <class F, class G>
  void read(const Reader& reader, std::uint64_t above_id, bool exact, F&& passed, G&& flush,
            const std::function<void(const RecordView&)>& found) {
    constexpr std::uint64_t flushed_together = 1 << 20;
    std::uint64_t flushed = 0, told = from;
    count = last_id = new_count = new_bytes = 0;
    above = first_new = nowhere;
    first =
        exact ? (reader.whole(reader.at(from)) ? from : nowhere) : reader.next(from, to, passed);
    end = first;
    if (first == nowhere) {
      if (exact) above = reader.next(from + reader.unit, to, passed);
      return;
    }
    flushed = first;
    bool good = true;  // `first` is whole
    for (RingCursor next(reader.map, first); end < to;) {
      const RecordView r = next.record();
      if (end != first) good = reader.whole(r);
      if (!good) break;
      const std::uint64_t n = r.bytes(reader.unit);
      ++count;
      last_id = r.id();
      // mutant: redo-above-checkpoint-id
      if (r.id() > above_id) {
        if (first_new == nowhere) first_new = end;
        ++new_count;
        new_bytes += n;
        if (found) found(r);
      }
      next.pass(n);
      end += n;
      if (end - told >= told_together) passed(told = end);
      if (end - flushed < flushed_together) continue;
      flush(flushed, end - flushed);
      flushed = end;
    }
    flush(flushed, end - flushed);
    if (!good) above = reader.next(end + reader.unit, to, passed);
  }
};

}  // namespace

Scan scan_ring(const medium::RingMap& map, std::uint64_t head, std::uint64_t seed, std::size_t unit,
               const std::string& name, const std::function<void(const RecordView&)>& f) {
  Scan scan;
  const Reader reader{map, head + map.bytes, base::Checksum(seed), unit};
  std::uint64_t position = head;
  while (position < reader.stop) {
    const RecordView r = reader.at(position);
    if (!reader.whole(r)) break;
    f(r);
    position += r.bytes(unit);
    ++scan.records;
  }
  scan.end = position;
  scan.bytes = position - head;
  // RING-1: a whole record above the break proves that the broken one was durable. Only a torn last
  // record may be cut.
  if (const std::uint64_t above = reader.next(position + unit, reader.stop, [](std::uint64_t) {});
      above != nowhere)
    scan.damage = damage_at(name, position, reader.at(above));
  return scan;
}

Scan scan_and_flush_ring(medium::Medium& medium, const medium::RingMap& map, std::uint64_t head,
                         std::uint64_t seed, std::size_t unit, const std::string& name,
                         std::uint64_t above_id, unsigned parts,
                         const std::function<void(std::uint64_t)>& passed,
                         const std::function<void(const RecordView&)>& found) {
  const Reader reader{map, head + map.bytes, base::Checksum(seed), unit};
  const std::uint64_t step = (map.bytes / parts + unit - 1) / unit * unit;
  // mutant: scan-flush
  const auto flush = [&](std::uint64_t position, std::uint64_t n) {
    medium.flush_ring(map, position, n);
  };
  std::vector<Section> sections(parts);
  in_team(parts, [&](unsigned me) {
    Section& s = sections[me];
    s.from = std::min(head + me * step, reader.stop);
    s.to = std::min(s.from + step, reader.stop);
    // The caller reports its own section: the others are about as far in theirs.
    const auto told = [&](std::uint64_t position) {
      if (me == 0) passed((position - head) * parts);
    };
    s.read(reader, above_id, me == 0, told, flush, found);
    // mutant: scan-team-fence
    // It covers this thread's write-backs, which the caller's fence does not. A failed medium fails
    // again there.
    if (me != 0) (void)medium.fence();
  });
  // The sections together give what scan_ring finds.
  Scan scan;
  std::uint64_t position = head, above = nowhere, first_new = nowhere;
  bool broken = false;
  for (Section& s : sections) {
    if (broken) {
      above = above == nowhere ? s.first : above;
      continue;
    }
    if (position >= s.to) continue;  // inside a record
    if (s.first < position) {        // bytes inside a record that look like a record
      s.from = position;
      s.read(reader, above_id, true, [](std::uint64_t) {}, flush, found);
    }
    if (s.first != position) {
      broken = true;
      above = s.first != nowhere ? s.first : s.above;
      continue;
    }
    position = s.end;
    scan.records += s.count;
    scan.last_id = s.last_id;
    first_new = std::min(first_new, s.first_new);
    scan.records_above += s.new_count;
    scan.bytes_above += s.new_bytes;
    broken = position < s.to;
    above = s.above;
  }
  scan.end = position;
  scan.above = std::min(first_new, position);
  scan.bytes = position - head;
  if (above != nowhere) scan.damage = damage_at(name, position, reader.at(above));
  return scan;
}

Status later_than_header(const medium::RingMap& map, std::uint64_t head, std::uint64_t end,
                         std::uint64_t seed, std::size_t unit, std::uint64_t above_id,
                         const std::string& name) {
  constexpr std::uint64_t max_generations = 65'536;
  std::uint64_t tries = 1 << 24;  // of generations, in all: about 50 ms, whatever the ring holds
  // The search does not begin at `end`: the record that a crash tore may be there, whose id is the
  // next, and for which every generation would be tried.
  for (std::uint64_t p = end + unit; p < head + map.bytes && tries != 0; p += unit) {
    if (p % medium::page_bytes == 0 && map.hole(p)) {
      p += medium::page_bytes - unit;
      continue;
    }
    const RecordView r{reinterpret_cast<const std::uint64_t*>(map.base + p % map.bytes), p};
    if (r.id() <= above_id || !r.plausible(map.bytes / 2)) continue;
    const std::uint64_t most = std::min(tries, max_generations),
                        later = r.generations_later(seed, map.bytes, most);
    tries -= later != 0 ? later : most;
    if (later == 0) continue;
    return failure(Code::corrupt, name,
                   "transaction " + std::to_string(r.id()) + " at position " + std::to_string(p) +
                       ", written " + std::to_string(later) +
                       " generations of the log after what the header says (the newest that "
                       "follows from it is " +
                       std::to_string(above_id) + ")",
                   "a header and a log of one time",
                   "the file was copied while a program wrote the pool: such a copy is not usable; "
                   "copy it when the pool is closed; "
                   "nothing was changed");
  }
  return {};
}

void flush_scanned(medium::Medium& medium, std::uint64_t offset, std::uint64_t ring_bytes,
                   std::uint64_t head, std::uint64_t end) {
  for (std::uint64_t at = head; at < end;) {
    const std::uint64_t n = std::min(end - at, ring_bytes - at % ring_bytes);
    // mutant: scanned-flush, call scanned-flush
    medium.flush(offset + at % ring_bytes, n);
    at += n;
  }
}

}  // namespace perdure::log
