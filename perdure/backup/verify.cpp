// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "perdure/backup/base.hpp"
#include "perdure/backup/history.hpp"
#include "perdure/backup/restore.hpp"
#include "perdure/backup/segment.hpp"

namespace perdure::backup {
namespace {

using Uuid = std::array<std::uint8_t, 16>;

// Reads every segment, and follows the history from one to the next. `uuid`: of the backups' pool.
Status verify_log(Store& store, VerifyReport& report, std::optional<Uuid> uuid,
                  const std::function<void()>& passed) {
  auto segments = list_segments(store);
  if (!segments) return segments.status();
  HistoryEnd at;
  std::uint64_t next = 0;
  bool follows = false;
  for (const SegmentName& name : *segments) {
    const std::string text = name.text();
    passed();
    const auto problem = [&](const Status& s) {
      report.problems.push_back(s.message());
      follows = false;
    };
    if (name.number != next && next != 0) {
      report.problems.push_back(store.name() + ": no file of the log between number " +
                                std::to_string(next - 1) + " and number " +
                                std::to_string(name.number));
      follows = false;
    }
    next = name.number + 1;
    auto bytes = store.get(text);
    if (!bytes) return bytes.status();
    auto segment = read_segment(name, std::move(*bytes), store.name());
    if (!segment) {
      problem(segment.status());
      continue;
    }
    if (uuid && std::memcmp(segment->header.uuid, uuid->data(), uuid->size()) != 0) {
      report.problems.push_back(store.name() + "/" + text + ": a file of another pool's log");
      continue;
    }
    HistoryEnd end = segment->begin();
    const bool new_run = segment->header.run == end.last && end.chain == Hash{};
    if (follows && !new_run && (end.last != at.last || !(end.chain == at.chain))) {
      report.problems.push_back(store.name() + "/" + text +
                                ": does not continue the file before it");
      follows = false;
    }
    // A run that begins where the last one ended lacks nothing.
    const bool goes_on = follows && (!new_run || end.last == at.last);
    if (!goes_on) report.runs.push_back({end.last, end.last, 0, 0, 0, 0});
    VerifyReport::Run& run = report.runs.back();
    Status s = each_frame(segment->frames(), segment->frames_bytes(), store.name() + "/" + text,
                          end, [&](const Frame& frame) {
                            run.transactions += frame.header.transactions;
                            if (run.first_ns == 0) run.first_ns = frame.header.unix_ns;
                            run.last_ns = frame.header.unix_ns;
                            return Status();
                          });
    run.last = end.last;
    ++run.files;
    at = end;
    follows = true;
    if (!s.ok()) problem(s);
  }
  return {};
}

}  // namespace

Result<VerifyReport> verify(Store& store, const RestoreProgress& progress) {
  VerifyReport report;
  auto ids = list_bases(store);
  if (!ids) return ids.status();
  std::vector<Base> bases;
  std::uint64_t chunks = 0, done = 0;
  for (const std::uint64_t id : *ids) {
    auto base = read_base(store, id);
    if (!base) {
      report.problems.push_back(base.status().message());
      continue;
    }
    chunks += base->chunks.size();
    bases.push_back(std::move(*base));
  }
  const auto passed = [&] {
    ++done;
    if (progress) progress(std::min(done, chunks) * pool::chunk_bytes, chunks * pool::chunk_bytes);
  };
  std::unordered_map<std::string, bool> seen;  // chunks that were read: whether they are whole
  for (const Base& base : bases) {
    std::uint64_t bad = 0;
    for (const BaseChunk& one : base.chunks) {
      passed();
      const auto [place, first] = seen.emplace(one.hash.text(), true);
      if (first) {
        auto chunk = read_chunk(store, one.hash);
        place->second = chunk.ok();
        if (!chunk) report.problems.push_back(chunk.status().message());
      }
      bad += place->second ? 0 : 1;
    }
    if (bad != 0)
      report.problems.push_back(store.name() + "/" + base_name(base.id) + ": " +
                                std::to_string(bad) + " of its " +
                                std::to_string(base.chunks.size()) + " chunks can't be read");
    report.backups.push_back(
        {base.id, base.unix_ns, base.chunks.size(), base.bytes, bad == 0, base.id});
  }
  std::optional<Uuid> uuid;
  for (const Base& base : bases) {
    const Uuid its = std::to_array(base.header.uuid);
    if (!uuid) uuid = its;
    if (its != *uuid)
      report.problems.push_back(store.name() + "/" + base_name(base.id) +
                                ": a backup of another pool");
  }
  if (Status s = verify_log(store, report, uuid, passed); !s.ok()) return s;
  for (VerifyReport::Backup& b : report.backups)
    for (const VerifyReport::Run& run : report.runs)
      if (b.whole && run.first <= b.id && b.id <= run.last)
        b.restores_to = std::max(b.restores_to, run.last);
  return report;
}

}  // namespace perdure::backup
