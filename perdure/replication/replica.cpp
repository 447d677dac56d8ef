// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/replication/replica.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "perdure/backup/history.hpp"
#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/engine/shadow/publish_checkpoint.hpp"
#include "perdure/engine/show_stats.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/pool/allocation.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/copy.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/follow_here.hpp"
#include "perdure/pool/header.hpp"

namespace perdure::replication {
namespace {

using backup::FrameKind;

// Bytes of a record that has several transactions.
constexpr std::uint64_t max_group = 1 << 20;
constexpr std::uint64_t all = ~std::uint64_t{0};

std::string number(std::uint64_t n) { return std::to_string(n); }

// Any root type, and the engine that the pool has.
pool::Identity any_pool() {
  pool::Identity who;
  who.engine_any = who.layout_any = true;
  return who;
}

pool::OpenFile existing(const ReplicaFile& how) {
  pool::OpenFile file;
  file.path = how.path;
  file.create = false;
  file.with_log = true;
  file.medium = how.medium;
  return file;
}

}  // namespace

log::LogCursor Replica::Log::cursor() const {
  log::LogCursor result;
  for (std::size_t i = 0; i < replica_.rings_.size(); ++i)
    result.add(replica_.rings_[i], replica_.rings_[i].head());
  return result;
}

Replica::Replica(std::unique_ptr<pool::OpenPool> file)
    : file_(std::move(file)), strict_(file_->header().order == pool::CommitOrder::strict) {}

Replica::~Replica() = default;

Result<std::unique_ptr<Replica>> Replica::open(const ReplicaFile& how) {
  return begin(pool::OpenPool::open(existing(how), any_pool()), how);
}

Result<std::unique_ptr<Replica>> Replica::open_on(std::unique_ptr<medium::Medium> medium,
                                                  const ReplicaFile& how) {
  return begin(pool::OpenPool::open_on(std::move(medium), false, existing(how), any_pool()), how);
}

Result<std::unique_ptr<Replica>> Replica::begin(Result<std::unique_ptr<pool::OpenPool>> file,
                                                const ReplicaFile& how) {
  if (!file) return file.status();
  const pool::Header& h = (*file)->header();
  const engine::EngineInfo* const engine = engine::find_family("shadow");
  if (pool::engine_name(h) != "shadow" || pool::has_feature(h, pool::Feature::dependent_records) ||
      engine == nullptr)
    return failure(Code::unsupported, how.path,
                   "a pool of engine '" + std::string(pool::engine_name(h)) +
                       "', or one that shadow/htm has written",
                   "one of engine shadow", "only these are replicated");
  if (!pool::is_replicated(h))
    return failure(Code::invalid, how.path, "a pool that is not replicated",
                   "a copy of one that is", "make it with `perdure replicate copy`");
  std::unique_ptr<Replica> replica(new Replica(std::move(*file)));
  if (how.archive.wanted()) {
    auto archive = backup::Archive::open(how.archive, *replica->file_);
    if (!archive) return archive.status();
    replica->archive_ = std::move(*archive);
  }
  engine::Recovery report;
  if (Status s = engine::recover(*engine, *replica->file_, report, {}); !s.ok()) return s;
  if (Status s = replica->begin_session(how); !s.ok()) return s;
  return replica;
}

Status Replica::begin_session(const ReplicaFile& how) {
  pool::OpenPool& file = *file_;
  if (archive_ != nullptr)
    if (Status s = archive_->catch_up(file); !s.ok()) return s;
  page_.emplace(file.header().uuid, file.path(), std::string(pool::engine_name(file.header())));
  if (Status s = file.make_reader_words(); !s.ok()) return s;
  if (Status s = file.start_session(pool::ViewPolicy::none); !s.ok()) return s;
  const pool::Header h = file.header_now();
  for (std::uint32_t i = 0; i < h.ring_count; ++i) {
    auto map = file.medium().map_ring(pool::ring_offset(h, i), h.ring_bytes);
    if (!map) return map.status();
    rings_.add().configure(file.medium(), *map, log::ring_seed(h.uuid, h.epoch, i));
  }
  log::Ring& ring = rings_[0];
  writer_.configure(ring.seed(), ring.max_record(), file.medium().append_unit());
  checkpoint_id_ = h.checkpoint_id;
  last_.store(checkpoint_id_, std::memory_order_relaxed);
  gate_ = engine::shadow::ReaderGate::of_session(file, how.readers.writer_patience, checkpoint_id_,
                                                 strict_ ? 0 : checkpoint_id_);
  if (archive_ != nullptr) {
    if (Status s = archive_->start(log_, file); !s.ok()) return s;
    archive_->keep();
  }
  pool::let_follow_here(file.fd());
  file.serve_readers();
  return {};
}

Status Replica::poisoned() const {
  return failure(Code::poisoned, file_->path(), "a copy that could not be written", {},
                 "open it again");
}

Status Replica::apply(const backup::Frame& frame, const pool::ReplicationWords& words) {
  if (failed_) return poisoned();
  // mutant: replica-notes-before-apply
  Status s = frame.header.kind == FrameKind::header ? apply_header(frame) : apply_group(frame);
  if (!s.ok()) return s;
  // REPLICA-1
  // mutant: replica-notes-after-apply
  file_->note_replication(words);
  return {};
}

Status Replica::note(const pool::ReplicationWords& words) {
  file_->note_replication(words);
  return file_->publish();
}

Status Replica::apply_header(const backup::Frame& frame) {
  const auto theirs = backup::header_of(frame, file_->path());
  if (!theirs) return theirs.status();
  if (Status s = pool::check_features(file_->path(), *theirs, true); !s.ok()) return s;
  pool::Header mine = file_->header_now();
  // mutant: replica-same-places
  if (Status s = pool::same_places(file_->path(), mine, *theirs); !s.ok()) return s;
  if (!pool::adopt_contents(mine, *theirs)) return {};
  if (Status s = file_->hold_readers(); !s.ok()) return s;
  Status s = file_->publish([&](pool::Header& h) { (void)pool::adopt_contents(h, *theirs); });
  if (s.ok()) s = file_->when_header_changes.call();
  file_->serve_readers();
  return s;
}

// REPLICA-2. What gets into the log would be refused at the next opening, together with the pool.
Status Replica::look_at(const backup::Entries& entries, bool& changes_catalog) const {
  const pool::Header h = file_->header_now();
  const pool::Directory directory(h);
  const std::uint64_t bytes = file_->data_bytes();
  const bool has_catalog = pool::has_feature(h, pool::Feature::catalog_root);
  std::optional<log::Entry> strange;
  (void)log::each_entry(entries.words, entries.n, [&](const log::Entry& e) {
    bool possible = false;
    switch (e.kind) {
      case log::EntryKind::words:
        possible = pool::possible_words(e.offset, e.count, bytes, directory);
        // mutant: replica-sees-catalog
        changes_catalog =
            changes_catalog || (has_catalog && e.offset < h.root_offset + sizeof(pool::Catalog) &&
                                e.offset + e.count * 8 > h.root_offset);
        break;
      case log::EntryKind::alloc:
      case log::EntryKind::free: possible = pool::possible(e.heap_op(), bytes, directory); break;
      case log::EntryKind::end:
      case log::EntryKind::note: possible = true; break;
      case log::EntryKind::after:
      case log::EntryKind::before: break;
    }
    if (!possible && !strange) strange = e;
  });
  if (!strange) return {};
  return failure(Code::corrupt, file_->path(),
                 "an entry of the replicated log of kind " +
                     number(static_cast<std::uint64_t>(strange->kind)) + " at offset " +
                     number(strange->offset) + ", which this copy does not have",
                 "entries inside its " + number(bytes) + " bytes",
                 "nothing of it was applied: report this, its check has passed");
}

Status Replica::apply_group(const backup::Frame& frame) {
  const backup::FrameHeader& h = frame.header;
  if (h.last <= last()) return {};
  auto entries = backup::entries_of(frame, last(), all, file_->path());
  if (!entries) return entries.status();
  // mutant: replica-grows-first
  if (entries->n != 0)
    if (Status s = file_->grow(h.data_bytes); !s.ok()) return s;
  bool changes_catalog = false;
  if (Status s = look_at(*entries, changes_catalog); !s.ok()) return s;
  // REPLICA-3
  if (changes_catalog)
    if (Status s = file_->hold_readers(); !s.ok()) return s;
  Status s = append_entries(*entries, h.last);
  if (changes_catalog) file_->serve_readers();
  if (!s.ok()) return s;
  return rings_[0].unsettled() > rings_[0].bytes() / 2 ? checkpoint() : Status();
}

// Records of as many transactions as fit; `last_of_frame` may be above the last of them.
Status Replica::append_entries(const backup::Entries& entries, std::uint64_t last_of_frame) {
  constexpr std::uint64_t mark_words = 2;
  const std::uint64_t most = std::min(max_group, writer_.max_bytes());
  writer_.reset();
  std::uint64_t gathered = 0;  // the last transaction in the writer
  const std::uint64_t* begin = entries.words;
  Status s;
  const auto flush = [&] {
    if (gathered != 0) s = append(gathered);
    gathered = 0;
  };
  const auto transaction = [&](const std::uint64_t* end, std::uint64_t id) {
    const auto n = static_cast<std::uint64_t>(end - begin);
    if (gathered != 0 && writer_.bytes_with(n) > most) flush();
    if (!s.ok()) return;
    // One of the largest size stands alone, without its mark, as it does in the primary's log.
    const bool marked = writer_.bytes_with(n) <= writer_.max_bytes();
    writer_.entries(begin, marked ? n : n - mark_words);
    gathered = id;
    begin = end;
    if (!marked) flush();
  };
  (void)log::each_entry(entries.words, entries.n, [&](const log::Entry& e) {
    if (e.kind == log::EntryKind::end && s.ok()) transaction(e.values + 1, e.values[0]);
  });
  // The ids above the last transaction are in no record of the primary's, either. The next record
  // must not leave them out (pipelined order).
  if (s.ok() && entries.last < last_of_frame) {
    if (gathered != 0 && writer_.bytes_with(mark_words) > most) flush();
    if (s.ok()) {
      writer_.end_of(last_of_frame);
      gathered = last_of_frame;
    }
  }
  if (s.ok()) flush();
  return s;
}

// What was gathered becomes a record that ends with transaction `id`.
Status Replica::append(std::uint64_t id) {
  log::Ring& ring = rings_[0];
  Status s = room_for(writer_.bytes());
  if (!s.ok()) {
    writer_.reset();
    return s;
  }
  s = ring.append_fence(writer_, log::RecordKind::group, id,
                        static_cast<std::uint32_t>(id - last()));
  writer_.reset();
  if (!s.ok()) {
    failed_ = true;
    return s;
  }
  last_.store(id, std::memory_order_release);  // pairs with last()
  // Release: pairs with the readers' acquire (FOLLOW-4): the record is durable.
  if (pool::ReaderWords* const words = file_->reader_words(); words != nullptr && !strict_)
    words->durable_id.store(id, std::memory_order_release);
  ring.prepare_ahead();
  return {};
}

Status Replica::room_for(std::uint64_t bytes) {
  log::Ring& ring = rings_[0];
  if (!ring.fits(bytes))
    if (Status s = checkpoint(); !s.ok()) return s;
  // What is left is what the archive lacks.
  while (!ring.fits(bytes)) {
    // Relaxed: a flag alone.
    const auto stops = [this] { return stop_.load(std::memory_order_relaxed); };
    log_.floors().wait(checkpoint_id_, stops);
    // mutant: replica-waits-on
    if (stops() && log_.floors().lowest() < checkpoint_id_)
      return failure(Code::busy, file_->path(),
                     "a log that is full of what the archive has not taken, while the copy ends",
                     {}, "see why the archive takes nothing, and open the copy again");
    if (Status s = publish(checkpoint_id_); !s.ok()) return s;
  }
  return ring.ready(bytes) ? Status() : ring.prepare(bytes);
}

// The checkpoint id, and that the bytes in blocks are not counted here.
Status Replica::publish(std::uint64_t id) {
  struct Header {
    pool::OpenPool& file;
    Status publish(const std::function<void(pool::Header&)>& change) {
      return file.publish([&](pool::Header& h) {
        change(h);
        // mutant: replica-counts-no-blocks
        h.heap_exact = 0;
      });
    }
  } header{*file_};
  return engine::shadow::publish_checkpoint(header, rings_, log_.floors(), id);
}

Status Replica::checkpoint() {
  const std::uint64_t to = last();
  if (to == checkpoint_id_) return {};
  // READER-1
  // mutant: replica-passes-gate
  if (gate_ != nullptr) gate_->pass(to);
  auto done = log::recover_redo(file_->medium(), file_->header_now());
  Status s = done.status();
  if (s.ok() && done->last_id != to)
    s = failure(Code::corrupt, file_->path(),
                "a log that ends with transaction " + number(done->last_id),
                number(to) + ", which was appended", "keep the file, and report this");
  // CKPT-3
  if (s.ok()) s = publish(to);
  if (!s.ok()) {
    failed_ = failed_ || s.code() != Code::full;
    return s;
  }
  checkpoint_id_ = to;
  ++checkpoints_;
  // Release: pairs with the follower's acquire, which then gives memory back.
  if (pool::ReaderWords* const words = file_->reader_words(); words != nullptr)
    words->checkpoint_id.store(to, std::memory_order_release);
  return {};
}

void Replica::show() {
  engine::Stats s;
  s.last_id = s.durable_id = last();
  s.checkpoint_id = checkpoint_id_;
  for (std::size_t i = 0; i < rings_.size(); ++i) {
    s.log_used += rings_[i].used();
    s.log_capacity += rings_[i].bytes();
  }
  s.checkpoints = checkpoints_;
  s.data_bytes = file_->data_bytes();
  s.medium = file_->medium().counters();
  engine::show_stats(*page_, s);
}

Status Replica::close() {
  if (failed_) return poisoned();
  Status s = checkpoint();
  if (s.ok()) s = log_.before_close.call(last());
  return s.ok() ? file_->close_clean(last()) : s;
}

}  // namespace perdure::replication
