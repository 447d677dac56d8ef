// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/replication/stream.hpp"

#include <cstring>
#include <utility>

namespace perdure::replication {
namespace {

using backup::Frame;
using backup::FrameKind;

constexpr std::uint64_t read_bytes = std::uint64_t{4} << 20;  // at a time

}  // namespace

Stream::Stream(std::shared_ptr<LogService> log, const std::uint8_t (&uuid)[16],
               const StreamPlace& place)
    : log_(std::move(log)), place_(place) {
  std::memcpy(uuid_, uuid, sizeof uuid_);
}

Status Stream::strange(std::uint64_t sequence, const std::string& what) const {
  return failure(Code::corrupt, log_->name(), "message " + std::to_string(sequence) + ": " + what,
                 "a frame that continues term " + std::to_string(place_.term) +
                     " after transaction " + std::to_string(place_.end.last),
                 "the log has lost or changed a message, or is another pool's: keep this copy, and "
                 "compare it with the others");
}

// STREAM-2
Result<Stream::Verdict> Stream::judge(const Message& message, Frame& frame) const {
  const std::string where = log_->name() + ", message " + std::to_string(message.sequence);
  auto read = backup::read_frame(message.bytes.data(), message.bytes.size(), where);
  if (!read) return read.status();
  frame = *read;
  const backup::FrameHeader& h = frame.header;
  if (std::memcmp(h.uuid, uuid_, sizeof uuid_) != 0)
    return strange(message.sequence, "a frame of another pool");
  if (h.sequence != message.sequence)
    return strange(message.sequence, "a frame for place " + std::to_string(h.sequence));
  const bool newer = h.kind == FrameKind::term && h.term > place_.term;
  const bool same = h.kind != FrameKind::term && h.term == place_.term;
  // mutant: stream-counts-chained
  const bool chained = backup::continues(frame, place_.end);
  // mutant: stream-counts-term
  if ((newer || same) && chained) {
    if (Status s = backup::known_kind(frame, where); !s.ok()) return s;
    return Verdict::counts;
  }
  // mutant: stream-void-older
  if (h.term < place_.term) return Verdict::is_void;
  return strange(message.sequence, chained ? "a frame of term " + std::to_string(h.term)
                                           : "a frame of term " + std::to_string(h.term) +
                                                 " whose check or predecessor is another one");
}

void Stream::pass_void() {
  ++place_.sequence;
  ++voids_;
}

// The frame that was under way is in the log.
void Stream::pass_own() {
  place_ = {header_.sequence, header_.term, after_};
  message_.clear();
}

Status Stream::read(const OnFrame& f) {
  for (;;) {
    auto messages = log_->read(place_.sequence + 1, read_bytes);
    if (!messages) return messages.status();
    if (messages->empty()) return {};
    for (const Message& message : *messages) {
      Frame frame{};
      auto verdict = judge(message, frame);
      if (!verdict) return verdict.status();
      if (*verdict == Verdict::is_void) {
        pass_void();
        continue;
      }
      const backup::FrameHeader& h = frame.header;
      const StreamPlace after{message.sequence, h.term, {h.last, h.unix_ns, h.chain}};
      if (Status s = f(frame, after); !s.ok()) return s;
      place_ = after;
    }
  }
}

Result<Stream::Claim> Stream::claim(std::string_view about, const OnFrame& f) {
  primary_ = false;
  // An append of before may still arrive: then it is read, or refused.
  message_.clear();
  // mutant: stream-claim-reads
  if (Status s = read(f); !s.ok()) return s;
  header_ = {};
  header_.kind = FrameKind::term;
  header_.term = place_.term + 1;
  header_.last = place_.end.last;
  header_.unix_ns = backup::unix_nanoseconds();
  // The payload of a frame consists of words.
  payload_.assign((about.size() + 7) / 8 * 8, std::byte{});
  if (!about.empty()) std::memcpy(payload_.data(), about.data(), about.size());
  make_message();
  AppendAnswer answer = log_->append(place_.sequence + 1, message_.data(), message_.size());
  why_ = std::move(answer.why);
  if (answer.outcome != Append::done) {
    message_.clear();
    return answer.outcome == Append::refused ? Claim::lost : Claim::unknown;
  }
  pass_own();
  primary_ = true;
  return Claim::primary;
}

// For the place after the last message that was read.
void Stream::make_message() {
  message_.clear();
  std::memcpy(header_.uuid, uuid_, sizeof uuid_);
  header_.sequence = place_.sequence + 1;
  after_ = place_.end;
  backup::append_frame(message_, header_, payload_.data(), payload_.size(), after_);
}

Result<Stream::State> Stream::append(backup::FrameHeader header, const void* payload,
                                     std::uint64_t bytes) {
  const auto* const first = static_cast<const std::byte*>(payload);
  payload_.assign(first, first + bytes);
  header_ = header;
  header_.term = place_.term;
  make_message();
  asks_ = false;
  return settle();
}

Result<Stream::State> Stream::settle() {
  for (;;) {
    if (asks_) {
      auto found = look();
      if (!found || *found != State::under_way) return found;
    }
    // STREAM-4
    AppendAnswer answer = log_->append(place_.sequence + 1, message_.data(), message_.size());
    why_ = std::move(answer.why);
    if (answer.outcome == Append::done) {
      pass_own();
      return State::in_log;
    }
    asks_ = true;
    if (answer.outcome == Append::unknown) return State::under_way;
  }
}

// What is at the frame's place. `under_way`: nothing yet, so that it can be appended there. A void
// frame moves the place on.
Result<Stream::State> Stream::look() {
  for (;;) {
    auto messages = log_->read(place_.sequence + 1, 1);
    if (!messages) return messages.status();
    if (messages->empty()) {
      asks_ = false;
      return State::under_way;
    }
    Frame frame{};
    auto verdict = judge(messages->front(), frame);
    if (!verdict) return verdict.status();
    if (*verdict == Verdict::is_void) {
      pass_void();
      make_message();
      continue;
    }
    if (frame.header.kind == FrameKind::term) {
      // What follows is for a reader: the place stays before it.
      primary_ = false;
      message_.clear();
      return State::deposed;
    }
    // mutant: stream-look-compares
    if (frame.header.chain != after_.chain)
      return strange(messages->front().sequence,
                     "a frame of this copy's term that it did not make");
    pass_own();
    return State::in_log;
  }
}

}  // namespace perdure::replication
