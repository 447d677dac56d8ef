// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure log POOL`: the records in a pool's log, which recovery would replay. Read-only.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "perdure/log/note.hpp"
#include "perdure/log/packed.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/raw_pool.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

const char* kind_name(log::RecordKind kind) {
  switch (kind) {
    case log::RecordKind::commit: return "commit";
    case log::RecordKind::group: return "group";
    case log::RecordKind::undo: return "undo";
    case log::RecordKind::combined: return "combined";
    case log::RecordKind::packed: return "packed";
    case log::RecordKind::dependent: return "dependent";
  }
  return "?";
}

const char* kind_name(log::EntryKind kind) {
  switch (kind) {
    case log::EntryKind::words: return "words";
    case log::EntryKind::alloc: return "alloc";
    case log::EntryKind::free: return "free";
    case log::EntryKind::end: return "end";
    case log::EntryKind::before: return "before";
    case log::EntryKind::after: return "after";
    case log::EntryKind::note: return "note";
  }
  return "?";
}

Json describe(const log::Entry& entry) {
  Json j;
  j["entry"] = kind_name(entry.kind);
  switch (entry.kind) {
    case log::EntryKind::words:
    case log::EntryKind::before:
      j["offset"] = entry.offset;
      j["values"] = Json::array();
      for (std::uint64_t i = 0; i < entry.count; ++i)
        j["values"].push_back(fmt::format("{:016x}", entry.values[i]));
      break;
    case log::EntryKind::alloc:
    case log::EntryKind::free: {
      const pool::HeapOp op = entry.heap_op();
      j["offset"] = op.offset;
      if (op.cls == pool::HeapOp::large_class)
        j["chunks"] = op.chunks;
      else
        j["bytes"] = pool::class_bytes(op.cls);
      break;
    }
    case log::EntryKind::end: j["id"] = entry.values[0]; break;
    case log::EntryKind::note:
      if (const auto note = log::read_note(entry)) {
        j["topic"] = escaped(std::string(note->topic));
        j["schema"] = note->schema;
        j["event_bytes"] = note->bytes.size();
      }
      break;
    case log::EntryKind::after:
      j["ring"] = entry.count;
      j["timestamp"] = entry.values[0];
      break;
  }
  return j;
}

std::string line_of(const log::Entry& entry) {
  const Json j = describe(entry);
  std::string text = fmt::format("    {:<6}", kind_name(entry.kind));
  if (j.contains("offset")) text += fmt::format(" offset {:#x}", entry.offset);
  if (j.contains("bytes")) text += fmt::format(" {} bytes", j["bytes"].get<std::uint64_t>());
  if (j.contains("chunks")) text += fmt::format(" {} chunks", j["chunks"].get<std::uint64_t>());
  if (j.contains("ring")) text += fmt::format(" ring {}", j["ring"].get<std::uint64_t>());
  if (j.contains("timestamp"))
    text += fmt::format(" timestamp {}", j["timestamp"].get<std::uint64_t>());
  if (j.contains("topic"))
    text += fmt::format(" topic {}, {} bytes", j["topic"].get<std::string>(),
                        j["event_bytes"].get<std::uint64_t>());
  if (j.contains("id")) text += fmt::format(" id {}", j["id"].get<std::uint64_t>());
  constexpr std::size_t shown = 6;  // values per line
  if (j.contains("values")) {
    text += fmt::format(" {} x 8 =", entry.count);
    for (std::size_t i = 0; i < entry.count && i < shown; ++i)
      text += fmt::format(" {:016x}", entry.values[i]);
    if (entry.count > shown) text += " ...";
  }
  return text;
}

/// Calls f(entry) for each entry of a record; a packed record is unpacked first.
template <class F>
void entries_of(const log::RecordView& record, std::uint64_t ring_bytes, F f) {
  std::vector<std::uint64_t> unpacked;
  const log::Payload payload = log::payload_of(record, ring_bytes / 16, unpacked);
  if (payload.words != nullptr) log::each_entry(payload.words, payload.n, f);
}

Json describe(const log::RecordView& record, const pool::Header& header, std::uint32_t ring,
              std::uint64_t bytes, bool with_entries) {
  Json j;
  j["id"] = record.id();
  j["kind"] = kind_name(record.kind());
  j["ring"] = ring;
  j["position"] = record.position;
  j["bytes"] = bytes;
  j["transactions"] = record.transactions();
  if (record.kind() == log::RecordKind::dependent) j["timestamp"] = record.timestamp();
  if (!with_entries) return j;
  j["entries"] = Json::array();
  entries_of(record, header.ring_bytes,
             [&](const log::Entry& e) { j["entries"].push_back(describe(e)); });
  return j;
}

struct Arguments {
  PoolArguments pool;
  std::uint64_t limit = 0;
  bool entries = false;
} arguments;

int run(App& app) {
  RawPool pool(arguments.pool);
  pool.require_readable();
  if (!pool.has_records())
    throw error(failure(
        Code::unsupported, arguments.pool.path,
        "a pool of engine '" + pool.engine() + "', whose log holds no records of this kind",
        "a pool of shadow, dudetm or undo", "'perdure recover' says what its log comes to"));
  const pool::Header& h = pool.header();
  Json document;
  document["pool"] = arguments.pool.path;
  document["epoch"] = h.epoch;
  document["checkpoint_id"] = h.checkpoint_id;
  document["records"] = Json::array();
  std::uint64_t shown = 0;
  const auto reports = pool.scan_rings([&](std::uint32_t ring, const log::RecordView& record) {
    if (arguments.limit != 0 && shown >= arguments.limit) return;
    ++shown;
    const std::uint64_t bytes = record.bytes(h.append_unit);
    if (app.json) {
      document["records"].push_back(describe(record, h, ring, bytes, arguments.entries));
      return;
    }
    fmt::print("id {:<10} {} ring {} position {} bytes {} transactions {}{}\n", record.id(),
               kind_name(record.kind()), ring, record.position, bytes, record.transactions(),
               record.id() <= h.checkpoint_id ? " (applied)" : "");
    if (arguments.entries)
      entries_of(record, h.ring_bytes, [](const log::Entry& e) { fmt::print("{}\n", line_of(e)); });
  });
  bool damaged = false;
  std::uint64_t total = 0, bytes = 0;
  document["rings"] = Json::array();
  for (const RingReport& r : reports) {
    total += r.scan.records;
    bytes += r.scan.bytes;
    Json ring = {{"ring", r.ring},
                 {"head", r.head},
                 {"end", r.scan.end},
                 {"records", r.scan.records},
                 {"bytes", r.scan.bytes}};
    if (!r.scan.damage.ok()) {
      damaged = true;
      ring["damage"] = r.scan.damage.message();
      fmt::print(stderr, "perdure: {}\n", r.scan.damage.message());
    }
    document["rings"].push_back(std::move(ring));
  }
  document["total_records"] = total;
  document["total_bytes"] = bytes;
  document["shown"] = shown;
  if (app.json)
    print_json(document);
  else
    fmt::print(
        "{} records, {} in {} rings; {} shown; the data region holds every transaction up to id "
        "{}\n",
        grouped(total), human_bytes(bytes), h.ring_count, grouped(shown), h.checkpoint_id);
  return damaged ? exit_problem : exit_ok;
}

}  // namespace

void add_log(App& app) {
  auto sub = app.add("log", "print the records in a pool's log: what recovery would replay",
                     "perdure log --entries --limit 10 bank.perdure");
  arguments.pool.add_to(sub);
  sub.option("--limit", arguments.limit, "print at most so many records (0: all)").show_default();
  sub.flag("--entries", arguments.entries, "print what each record holds, too");
  sub.runs(run);
}

}  // namespace perdure::tool
