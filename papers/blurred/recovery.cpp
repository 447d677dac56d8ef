// SPDX-License-Identifier: BSD-3-Clause
//
// BPPM's recovery (section III-C): in each log separately, committed transactions are told from
// uncommitted ones; the committed transactions of all logs are sorted by TxID (the transaction id);
// those that the data region may lack are stored again in that order. Then start_session raises the
// epoch, which invalidates the logs.
#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "papers/blurred/bppm.hpp"
#include "perdure/log/record.hpp"
#include "perdure/pool/allocation.hpp"
#include "perdure/pool/heap_apply.hpp"

namespace perdure::papers::blurred {

const Mode& mode_of(const pool::Header& header) noexcept {
  const std::string_view name(header.engine, strnlen(header.engine, sizeof header.engine));
  return *std::find_if(modes.begin(), modes.end() - 1,
                       [&](const Mode& m) { return m.name == name; });
}

TornPlace place_of(const pool::Header& header, std::uint32_t ring) noexcept {
  return {pool::ring_offset(header, ring), header.ring_bytes, log::ring_seed(header.uuid, 0, ring),
          header.epoch};
}

namespace {

struct Committed {
  TornTransaction transaction;
  TornPlace place;
};

// Returns whether each record names bytes or blocks that the pool has, and adds them to `targets`.
bool possible(const medium::Medium& medium, const pool::Header& header, const Committed& c,
              pool::Targets& targets) {
  const std::uint64_t data_bytes = medium.data_bytes();
  const TornRecord* const records = &TornLog::record_at(medium, c.place, 0);
  for (std::uint64_t n = c.transaction.first; n < c.transaction.last; ++n) {
    const TornRecord& r = records[n];
    switch (r.kind()) {
      case TornKind::word:
        if (!pool::possible_words(r.address(), 1, data_bytes, header)) return false;
        targets.words(r.address(), 1);
        break;
      case TornKind::alloc:
      case TornKind::free:
        if (!pool::possible(r.heap_op(), data_bytes, header)) return false;
        targets.block(r.heap_op());
        break;
      default: return false;
    }
  }
  return true;
}

void replay(medium::Medium& medium, const pool::Header& header, const Committed& c,
            log::DataWriter& home) {
  // In records: words lie anywhere in the data region, and a store takes less time than its cache
  // miss.
  constexpr std::uint64_t ahead = 24;
  const std::uint64_t count = TornLog::records_of(c.place), data_bytes = medium.data_bytes(),
                      data_at = medium.log_bytes();
  const TornRecord* const records = &TornLog::record_at(medium, c.place, 0);
  for (std::uint64_t n = c.transaction.first; n < c.transaction.last; ++n) {
    const TornRecord& r = records[n];
    if (const std::uint64_t coming = records[std::min(n + ahead, count - 1)].address();
        coming < data_bytes)
      __builtin_prefetch(medium.data() + coming, 1);
    if (r.kind() == TornKind::word) {
      const std::uint64_t value =
          r.mask() == TornRecord::all_bytes ? r.value() : r.over(home.load(r.address()));
      medium.store(data_at + r.address(), &value, 8);  // flush_all writes it back
    } else {
      pool::apply_op(home, r.heap_op(), header);
    }
  }
}

}  // namespace

Status recover(pool::OpenPool& file, Recovery& report) {
  const pool::Header& header = file.header();
  medium::Medium& medium = file.medium();

  const bool ordered = mode_of(header).log == TornWriting::ordered;
  const TornControl first = TornLog::control(medium, place_of(header, 0), ordered);
  if (!first.damage.ok()) return first.damage;
  // mutant: bppm-recovery-skips-covered
  const std::uint64_t x = std::max(header.checkpoint_id, first.x);
  report.last_id = x;
  std::vector<Committed> committed;
  for (std::uint32_t i = 0; i < header.ring_count; ++i) {
    // Step 1: detection of uncommitted data blocks.
    const TornPlace place = place_of(header, i);
    const TornControl control = TornLog::control(medium, place, ordered);
    if (!control.damage.ok()) return control.damage;
    if (!control.ours) continue;
    const std::uint64_t covered = std::max(x, control.home);  // BPPM-2
    report.last_id = std::max(report.last_id, covered);
    const TornScan scan = TornLog::scan(medium, place, covered);
    if (!scan.damage.ok()) return scan.damage;
    // TORN-6: the tail of another generation says nothing of this one.
    const std::uint64_t records = TornLog::records_of(place);
    // mutant: torn-ordered-tail-check
    if (control.tail / records == scan.generation && control.tail % records > scan.end)
      return failure(Code::corrupt, medium.path(),
                     "the log at log offset " + std::to_string(place.offset) + " ends at record " +
                         std::to_string(scan.end),
                     "its tail, record " + std::to_string(control.tail % records),
                     "restore a copy");
    // mutant: bppm-log-rewritten
    TornLog::flush_scanned(medium, place, scan);
    for (const auto& t : scan.transactions)
      if (t.id > covered) committed.push_back({t, place});
  }
  // mutant: bppm-txid-order
  std::sort(committed.begin(), committed.end(),
            // Step 2: sorting by TxID.
            [](const auto& a, const auto& b) { return a.transaction.id < b.transaction.id; });
  pool::Targets targets(medium, header);
  // All records are checked before the data region is changed (LAW-10).
  for (std::size_t i = 0; i < committed.size(); ++i)
    if (!possible(medium, header, committed[i], targets) ||
        (i != 0 && committed[i].transaction.id == committed[i - 1].transaction.id))
      return failure(
          Code::corrupt, medium.path(),
          "transaction " + std::to_string(committed[i].transaction.id) +
              " in the log is there twice, or names bytes or blocks that the pool does not have",
          "entries inside the data region", "restore a copy");
  if (Status s = targets.allocate(); !s.ok()) return s;  // ALLOC-1: `full` changes nothing
  // REDO-4 (log/redo.hpp): the logs are durable before the data region has anything of what they
  // say.
  if (Status s = medium.fence(); !s.ok()) return s;
  log::DataWriter home(medium, header, log::DataWriter::Use::recovery);
  for (const Committed& c : committed) {  // step 3
    replay(medium, header, c, home);
    home.hand_over([](std::uint64_t) {});  // flush_all writes each line back once
    ++report.transactions;
    report.records += c.transaction.last - c.transaction.first;
    report.last_id = std::max(report.last_id, c.transaction.id);
  }
  report.bytes = report.records * TornRecord::bytes;
  if (Status s = medium.flush_all(); !s.ok())
    // The data region, before start_session's header may say that the logs are of a past epoch.
    return s;
  return {};
}

}  // namespace perdure::papers::blurred
