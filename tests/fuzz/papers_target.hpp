// SPDX-License-Identifier: BSD-3-Clause
//
// The same as pool_target.hpp for the papers' engines, whose logs have forms of their own: REWIND's
// lists, buckets and index, the torn-bit log, the log of wraps. Almost every mutation fails at a
// check, so an input may ask that the first log's checks be corrected.
// Thread safety: one thread.
#pragma once

#include <algorithm>

#include "papers/blurred/torn_log.hpp"
#include "papers/rewind/aries_record.hpp"
#include "papers/rewind/rewind_log.hpp"
#include "papers/softwrap/wrap_log.hpp"
#include "tests/fuzz/pool_target.hpp"

namespace perdure::fuzz {

inline std::vector<Base>& papers_bases() {
  static std::vector<Base> all = [] {
    std::vector<Base> made;
    std::uint64_t seed = 10;
    for (const std::string_view engine :
         {"rewind-1l-nfp-batch", "rewind-1l-nfp-optimized", "rewind-1l-fp-simple",
          "rewind-2l-nfp-optimized", "bppm", "bppm-xil-late", "redo-base-ordered", "softwrap",
          "softwrap-local"})
      made.push_back(
          make_base(engine, false, 9, ++seed, engine.starts_with("rewind-2l") ? 65536 : 16384));
    for (Base& base : made) base.arena = crash::Arena::make(base.geometry).value();
    return made;
  }();
  return all;
}

/// Each changed word of REWIND's log: a line that holds a record is sealed again, any other word is
/// a value with its check.
inline void mend_rewind(Patched& p, const pool::Header& h) {
  using papers::rewind::AriesRecord;
  const std::uint64_t from = pool::ring_offset(h, 0), seed = log::ring_seed(h.uuid, h.epoch, 0);
  const auto changed = p.changed;
  for (const crash::Word& word : changed) {
    const std::uint64_t at = std::uint64_t{word.index} * 8;
    if (at < from + 64 || at >= from + h.ring_bytes) continue;
    AriesRecord record{};
    for (std::uint64_t i = 0; i < 8; ++i) record.words[i] = p.word(at / 64 * 8 + i);
    const auto type = static_cast<unsigned>(record.type());
    if (type >= 1 && type <= 7 && record.transaction() < 1000) {
      record.seal(seed, at / 64 * 64);
      for (const std::uint64_t i : {1, 7}) p.set(at / 64 * 8 + i, record.words[i]);
    } else {
      p.set(at / 8, log::ControlWord::make(seed, at, word.value & (log::ControlWord::limit - 1)));
    }
  }
}

/// The commit and abort records of a torn-bit log, each over what stands before it, and its
/// control.
inline void mend_torn(Patched& p, const pool::Header& h) {
  using namespace papers::blurred;
  const std::uint64_t from = pool::ring_offset(h, 0);
  const TornPlace place{from, h.ring_bytes, log::ring_seed(h.uuid, 0, 0), h.epoch};
  for (const std::uint64_t at : {8, 16, 24})
    p.set((from + at) / 8,
          log::ControlWord::make(place.identity, at,
                                 log::ControlWord::value(p.word((from + at) / 8))));
  const auto record = [&](std::uint64_t n) {
    const std::uint64_t at = (from + TornLog::control_bytes + n * TornRecord::bytes) / 8;
    TornRecord r;
    r.data = p.word(at);
    r.meta = p.word(at + 1);
    return r;
  };
  const std::uint64_t records = TornLog::records_of(place),
                      generation = record(0).value() / std::max<std::uint64_t>(records, 1);
  const bool sense = record(0).torn_meta();
  std::uint64_t last_commit = generation * records;
  TornSum sum(place.seed(), generation * records + 1);
  for (std::uint64_t n = 1; n < std::min<std::uint64_t>(records, 512); ++n) {
    const TornRecord r = record(n);
    const std::uint64_t position = generation * records + n;
    const TornKind kind = r.kind();
    if (!r.written(sense)) continue;
    if (kind != TornKind::commit && kind != TornKind::abort) {
      sum.add(r);
      continue;
    }
    const std::uint64_t value = kind == TornKind::abort ? last_commit : r.value();
    const TornSum of = kind == TornKind::abort ? TornSum(place.seed(), position) : sum;
    const TornRecord mended =
        TornRecord::make(kind, of.value(kind, value, position, last_commit), value, sense);
    const std::uint64_t at = (from + TornLog::control_bytes + n * TornRecord::bytes) / 8;
    p.set(at, mended.data);
    p.set(at + 1, mended.meta);
    if (kind == TornKind::commit) last_commit = position;
    sum = TornSum(place.seed(), position + 1);
  }
}

/// The control words of a log of wraps.
inline void mend_wraps(Patched& p, const pool::Header& h) {
  const std::uint64_t from = pool::ring_offset(h, 0), identity = log::ring_seed(h.uuid, 0, 0);
  for (std::uint64_t at = 0; at < 40; at += 8)
    p.set((from + at) / 8,
          log::ControlWord::make(identity, at, log::ControlWord::value(p.word((from + at) / 8))));
}

inline void open_mutated_of_papers(const std::uint8_t* data, std::size_t size) {
  open_mutated(papers_bases(), data, size, [](Patched& patched, const Base& base) {
    const pool::Header h = header_of(patched, pool::header_a);
    if (!has_rings(h, base.geometry)) return;
    if (base.family.starts_with("rewind"))
      mend_rewind(patched, h);
    else if (base.family.starts_with("softwrap"))
      mend_wraps(patched, h);
    else
      mend_torn(patched, h);
  });
}

}  // namespace perdure::fuzz
