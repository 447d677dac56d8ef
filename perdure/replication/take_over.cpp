// SPDX-License-Identifier: BSD-3-Clause
//
// Primary before its session: it compares what this copy and the log have, claims a term, and
// appends what the log lacks.
#include <algorithm>
#include <utility>

#include "perdure/log/redo.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/replication/logs.hpp"
#include "perdure/replication/primary.hpp"

namespace perdure::replication {
namespace {

using backup::FrameKind;

std::string number(std::uint64_t n) { return std::to_string(n); }

}  // namespace

Result<std::unique_ptr<Primary>> Primary::open(const ReplicateOptions& options,
                                               const pool::OpenPool& file) {
  auto log = connect(options, file.path(), true);
  if (!log) return log.status();
  return std::unique_ptr<Primary>(new Primary(options, file, std::move(*log)));
}

Primary::Primary(const ReplicateOptions& options, const pool::OpenPool& file, OpenedLog log)
    : options_(options),
      service_(std::move(log.service)),
      path_(file.path()),
      name_(copy_name(options, path_)),
      traits_(log.traits),
      standbys_(copies_of(file.header().uuid), copy_id(file.header().uuid, name_)) {}

// Before this copy claims a term: a frame that the log has, and whether it may go on after it.
Status Primary::on_frame(const backup::Frame& frame, const StreamPlace& after) {
  const backup::FrameHeader& h = frame.header;
  if (h.kind == FrameKind::term) return claims_.on_term(frame, after, last_);
  // A frame without entries says how far a session came that was closed: a crash of this copy may
  // have kept that from its header.
  // mutant: primary-behind
  if (h.kind != FrameKind::group || h.last <= last_ || h.payload_bytes == 0) return {};
  if (claims_.own())
    return failure(Code::incompatible, path_,
                   "transactions up to " + number(last_) + ", an older copy of the file",
                   number(h.last) + " or more, which it has appended to " + service_->name(),
                   "open the right file, or make the copy anew from a backup");
  return failure(Code::deposed, path_,
                 "transactions up to " + number(last_) + "; the copy " + claims_.other() +
                     " is the primary of term " + number(after.term) + ", and has more",
                 "all that the replicated log has", "make this copy anew from a backup");
}

Status Primary::take_over(pool::OpenPool& file) {
  file_ = &file;
  const pool::Header& h = file.header();
  last_ = h.checkpoint_id;  // after recovery: of all that the pool has
  pool::ReplicationWords words = h.replication;
  if (!pool::is_replicated(h)) {
    auto ends = service_->ends();
    if (!ends)
      return may_pass(ends.status()) ? no_answer(path_, *service_, ends.status()) : ends.status();
    if (ends->last != 0)
      return failure(Code::incompatible, service_->name(),
                     "a log with messages up to " + number(ends->last),
                     "an empty one, for a pool that is not replicated yet", "name another log");
    words.last = last_;
  }
  // STREAM-6 has a limit, too.
  const std::uint64_t most = std::min<std::uint64_t>(traits_.largest * 0x8000, 0xffffffff);
  if (traits_.largest < 8192 || h.ring_bytes / 2 > most)
    return failure(Code::unsupported, path_,
                   "transactions with up to " + number(h.ring_bytes / 2) +
                       " bytes of log, and a replicated log with messages of " +
                       number(traits_.largest) + " bytes",
                   "at most " + number(most) + ", and 8 KiB for a message",
                   "let the log's servers take larger messages, or make a pool with a smaller log");
  claims_ = Claims(path_, words);
  stream_.emplace(service_, h.uuid, place_of(words));
  stream_->say_beat(options_.beat_every);
  if (Status s = claim(); !s.ok()) return s;
  return append_rest();
}

Status Primary::claim() {
  pool::OpenPool& file = *file_;
  const Status s =
      claim_term(*stream_, claims_, *service_,
                 {path_, name_, Clock::now() + options_.patience,
                  [this](const backup::Frame& frame, const StreamPlace& after) {
                    return on_frame(frame, after);
                  },
                  [&file](const pool::ReplicationWords& words) { return file.replicate(words); }});
  if (!s.ok()) return s;
  // STREAM-5: the session's first header has it.
  note_place();
  const pool::Header& h = file.header();
  const std::uint64_t has = stream_->place().end.last;
  if (pool::has_feature(h, pool::Feature::archived_log) && h.log_from_id > has)
    return failure(Code::incompatible, path_,
                   "a log from transaction " + number(h.log_from_id + 1) + " on",
                   "from " + number(has + 1) + " on, where the replicated log ends",
                   "make this copy anew from a backup");
  shipped_.store(has, std::memory_order_release);  // pairs with the acquire in has()
  // A session that was closed may have got further in the log than in a header.
  if (has > h.checkpoint_id) file.recovered(has);
  return {};
}

// PRIMARY-2: what a crash has kept from the log.
Status Primary::append_rest() {
  const pool::Header& h = file_->header();
  if (h.clean == 1) return {};
  const auto late = Clock::now() + options_.patience;
  Status appended;
  const auto flush = [&] { appended = deliver(append_gathered(h.data_bytes), late); };
  // mutant: primary-appends-rest
  Status s = log::each_record_above(
      file_->medium(), h, stream_->place().end.last, [&](const log::RecordView& record) {
        if (!appended.ok()) return;
        if (record.kind() == log::RecordKind::dependent) {
          appended = failure(Code::unsupported, path_, "a log that shadow/htm has written");
          return;
        }
        entries_.add(record);
        if (entries_.bytes() >= frame_bytes) flush();
      });
  if (s.ok() && appended.ok() && !entries_.empty()) flush();
  return s.ok() ? appended : s;
}

}  // namespace perdure::replication
