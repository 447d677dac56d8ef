// SPDX-License-Identifier: BSD-3-Clause
//
// SoftWrAP's recovery (section IV-C): the closed wraps of all logs above the checkpoint id X are
// stored to the data region in the order of their ids; wraps that never closed are bypassed. Then
// start_session raises the epoch, which invalidates the logs.
#include <algorithm>
#include <chrono>
#include <string>

#include "papers/softwrap/logged.hpp"
#include "papers/softwrap/objects.hpp"
#include "perdure/log/record.hpp"
#include "perdure/pool/allocation.hpp"

namespace perdure::papers::softwrap {

WrapPlace place_of(const pool::Header& header, std::uint32_t ring) noexcept {
  return {pool::ring_offset(header, ring), header.ring_bytes, log::ring_seed(header.uuid, 0, ring),
          header.epoch, pool::engine_name(header) == global_family ? max_buckets : 1};
}

namespace {

struct Closed {
  WrapFound wrap;
  WrapPlace place;
};

// Returns whether each entry names bytes or blocks that the pool has, and adds them to `targets`,
// or to `objects`.
bool possible(const medium::Medium& medium, const pool::Header& header, const Closed& c,
              pool::Targets& targets, Objects& objects) {
  const std::uint64_t data_bytes = medium.data_bytes();
  bool all = true;
  return WrapLog::entries(
             medium, c.place, c.wrap,
             [&](std::uint64_t offset, std::uint64_t) {
               all = all && pool::possible_words(offset, 1, data_bytes, header);
               targets.words(offset, 1);
             },
             [&](const pool::HeapOp& op) {
               all = all && pool::possible(op, data_bytes, header);
               targets.block(op);
             },
             [&](std::uint64_t offset, std::uint64_t words) {
               all = all && pool::possible_words(offset, words, data_bytes, header);
               objects.note(offset, words, c.wrap.id);
             }) >= 0 &&
         all;
}

}  // namespace

Status replay_closed(medium::Medium& medium, const pool::Header& header, Recovery& report) {
  const WrapControl first = WrapLog::control(medium, place_of(header, 0));
  if (!first.damage.ok()) return first.damage;
  const std::uint64_t x = std::max(header.checkpoint_id, first.ours ? first.x : 0);
  report.last_id = x;
  std::vector<Closed> closed;
  for (std::uint32_t i = 0; i < header.ring_count; ++i) {
    WrapPlace place = place_of(header, i);
    const WrapControl control = WrapLog::control(medium, place);
    if (!control.damage.ok()) return control.damage;
    place.form = control.form;
    if (!control.ours) continue;
    for (unsigned b = 0; b < place.buckets; ++b) {
      const WrapScan scan = WrapLog::scan(medium, place, b, control.base[b], x);
      if (!scan.damage.ok()) return scan.damage;
      // mutant: softwrap-log-rewritten
      WrapLog::flush_scanned(medium, place, b, scan);
      for (const auto& w : scan.wraps)
        // mutant: softwrap-recovery-skips-covered
        if (w.id > x) closed.push_back({w, place});
    }
  }
  // mutant: softwrap-id-order
  std::sort(closed.begin(), closed.end(),
            [](const auto& a, const auto& b) { return a.wrap.id < b.wrap.id; });
  pool::Targets targets(medium, header);
  Objects objects;
  // All wraps are checked before the data region is changed (LAW-10).
  for (std::size_t i = 0; i < closed.size(); ++i)
    if (!possible(medium, header, closed[i], targets, objects) ||
        (i != 0 && closed[i].wrap.id == closed[i - 1].wrap.id))
      return failure(
          Code::corrupt, medium.path(),
          "wrap " + std::to_string(closed[i].wrap.id) +
              " in the log is there twice, or names bytes or blocks that the pool does not have",
          "entries inside the data region", "restore a copy");
  if (Status s = targets.allocate(); !s.ok()) return s;  // ALLOC-1: `full` changes nothing
  // REDO-4 (log/redo.hpp): the logs are durable before the data region has anything of what they
  // say.
  if (Status s = medium.fence(); !s.ok()) return s;
  log::DataWriter home(medium, header, log::DataWriter::Use::recovery);
  for (const Closed& c : closed) {
    WrapLog::entries(
        medium, c.place, c.wrap,
        [&](std::uint64_t offset, std::uint64_t value) {
          // mutant: softwrap-objects-not-overwritten
          if (!objects.newer(offset, c.wrap.id)) home.words(offset, &value, 1);
        },
        [&](const pool::HeapOp& op) { pool::apply(home, op, header); },
        [](std::uint64_t, std::uint64_t) {});
    ++report.transactions;
    report.records += c.wrap.last - c.wrap.first;
    report.last_id = std::max(report.last_id, c.wrap.id);
  }
  report.bytes = report.records * medium::line_bytes;
  home.flush();
  return medium.fence();  // the data region, before start_session's header or X may say so
}

Status recover(pool::OpenPool& file, Recovery& report) {
  return replay_closed(file.medium(), file.header(), report);
}

}  // namespace perdure::papers::softwrap
