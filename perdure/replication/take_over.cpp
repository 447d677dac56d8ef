// SPDX-License-Identifier: BSD-3-Clause
//
// Primary before its session: it compares what this copy and the log have, claims a term, and
// appends what the log lacks.
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
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

std::string claim_text(std::uint64_t claim) {
  char text[17];
  (void)std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(claim));
  return text;
}

// Never 0.
std::uint64_t random_number() {
  std::uint64_t n = 0;
  while (n == 0)
    if (::getrandom(&n, sizeof n, 0) != static_cast<ssize_t>(sizeof n)) n = 0;
  return n;
}

std::string machine() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace

Result<std::unique_ptr<Primary>> Primary::open(const ReplicateOptions& options,
                                               const pool::OpenPool& file) {
  if (Status s = options.check(file.path()); !s.ok()) return s;
  std::shared_ptr<LogService> service = options.service;
  std::optional<LogTraits> traits;
  Status failed;
  const auto late = Clock::now() + options.patience;
  // A cluster answers when it has chosen its leader.
  while (!traits) {
    if (service == nullptr) {
      auto opened = open_named_log(options.log);
      if (opened.ok())
        service = std::move(*opened);
      else
        failed = opened.status();
    }
    if (service != nullptr) {
      auto described = service->describe();
      if (described.ok())
        traits = *described;
      else
        failed = described.status();
    }
    if (traits) break;
    if (!may_pass(failed)) return failed;
    if (Clock::now() >= late)
      return failure(Code::unavailable, file.path(),
                     "no answer of the replicated log: " + failed.message(), {},
                     "see that its servers run; the pool was not changed");
    std::this_thread::sleep_for(retry_after);
  }
  std::unique_ptr<Primary> primary(new Primary(options, std::move(service)));
  primary->path_ = file.path();
  primary->name_ = (options.name.empty() ? machine() : options.name) + ":" + file.path();
  primary->traits_ = *traits;
  return primary;
}

Status Primary::no_answer(const Status& why) const {
  return failure(Code::unavailable, path_,
                 "no answer of the replicated log " + service_->name() +
                     (why.ok() ? "" : ": " + why.message()),
                 {}, "see that its servers run, and open the pool again");
}

// Before this copy claims a term: a frame that the log has, and whether it may go on after it.
Status Primary::on_frame(const backup::Frame& frame, const StreamPlace& after) {
  const backup::FrameHeader& h = frame.header;
  if (h.kind == FrameKind::term) {
    const std::string text(reinterpret_cast<const char*>(frame.payload), h.payload_bytes);
    const auto begins = [&](std::uint64_t claim) {
      return claim != 0 && text.starts_with(claim_text(claim));
    };
    own_ = begins(words_.claim) || begins(words_.claim_before);
    other_ = text.size() > 17 ? std::string(text.c_str() + 17) : "of an unknown name";
    // mutant: primary-diverged
    if (own_ || last_ <= h.last) return {};
    return failure(
        Code::diverged, path_,
        "transactions " + number(h.last + 1) + " to " + number(last_) + ", which the copy " +
            other_ + " began term " + number(after.term) + " without",
        "none that the replicated log lacks",
        "keep this file, and make the copy anew from a backup; `perdure log` shows these "
        "transactions");
  }
  // A frame without entries says how far a session came that was closed: a crash of this copy may
  // have kept that from its header.
  // mutant: primary-behind
  if (h.kind != FrameKind::group || h.last <= last_ || h.payload_bytes == 0) return {};
  if (own_)
    return failure(Code::incompatible, path_,
                   "transactions up to " + number(last_) + ", an older copy of the file",
                   number(h.last) + " or more, which it has appended to " + service_->name(),
                   "open the right file, or make the copy anew from a backup");
  return failure(Code::deposed, path_,
                 "transactions up to " + number(last_) + "; the copy " + other_ +
                     " is the primary of term " + number(after.term) + ", and has more",
                 "all that the replicated log has", "make this copy anew from a backup");
}

Status Primary::take_over(pool::OpenPool& file) {
  file_ = &file;
  const pool::Header& h = file.header();
  last_ = h.checkpoint_id;  // after recovery: of all that the pool has
  words_ = h.replication;
  if (!pool::is_replicated(h)) {
    auto ends = service_->ends();
    if (!ends) return may_pass(ends.status()) ? no_answer(ends.status()) : ends.status();
    if (ends->last != 0)
      return failure(Code::incompatible, service_->name(),
                     "a log with messages up to " + number(ends->last),
                     "an empty one, for a pool that is not replicated yet", "name another log");
    words_.last = last_;
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
  own_ = words_.own != 0;
  stream_.emplace(service_, h.uuid, place_of(words_));
  if (Status s = claim(); !s.ok()) return s;
  return append_rest();
}

Status Primary::claim() {
  pool::OpenPool& file = *file_;
  const auto late = Clock::now() + options_.patience;
  const Stream::OnFrame f = [this](const backup::Frame& frame, const StreamPlace& after) {
    return on_frame(frame, after);
  };
  bool noted = false;
  for (Status why;;) {
    // What the log has of earlier openings is known by their numbers, which the next one replaces.
    Status s = stream_->read(f);
    if (s.ok() && !noted) {
      // PRIMARY-3
      words_.claim_before = words_.claim;
      words_.claim = random_number();
      note_place();
      // mutant: primary-claim-durable
      if (s = file.replicate(words_); !s.ok()) return s;
      noted = true;
    }
    if (s.ok()) {
      auto claimed = stream_->claim(claim_text(words_.claim) + " " + name_, f);
      if (claimed.ok() && *claimed == Stream::Claim::primary) break;
      s = claimed.status();
      why = claimed.ok() ? stream_->why() : s;
    } else {
      why = s;
    }
    if (!s.ok() && !may_pass(s)) return s;
    if (Clock::now() >= late) return no_answer(why);
    std::this_thread::sleep_for(retry_after);
  }
  own_ = true;
  note_place();
  // STREAM-5: the session's first header has it.
  file.note_replication(words_);
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
