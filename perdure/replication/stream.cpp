// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/replication/stream.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace perdure::replication {
namespace {

using backup::Frame;
using backup::FrameKind;

constexpr std::uint64_t read_bytes = std::uint64_t{4} << 20;  // at a time
constexpr int most_looks = 100;

}  // namespace

StreamPlace place_of(const pool::ReplicationWords& words) noexcept {
  return {
      words.sequence, words.term, {words.last, words.unix_ns, {words.chain_low, words.chain_high}}};
}

void set_place(pool::ReplicationWords& words, const StreamPlace& place) noexcept {
  words.sequence = place.sequence;
  words.term = place.term;
  words.last = place.end.last;
  words.unix_ns = place.end.unix_ns;
  words.chain_low = place.end.chain.low;
  words.chain_high = place.end.chain.high;
}

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

// The message that was under way is in the log.
void Stream::pass_own() {
  place_ = {place_.sequence + 1, header_.term, after_};
  message_.clear();
  passed_ += piece_;
  ++pieces_;
  asks_ = false;
  if (passed_ < payload_.size()) make_message();
}

// A frame that counts.
Status Stream::pass(const Message& message, Frame& frame, const OnFrame& f) {
  const backup::FrameHeader& h = frame.header;
  const StreamPlace after{message.sequence, h.term, {h.last, h.unix_ns, h.chain}};
  if (h.kind == FrameKind::part) {
    if (h.part != parts_read_)
      return strange(message.sequence, "piece " + std::to_string(h.part) + " after " +
                                           std::to_string(parts_read_) + " pieces");
    parts_.insert(parts_.end(), frame.payload, frame.payload + h.payload_bytes);
    beat_ms_ = h.beat_ms;
    if (parts_read_ == 0) before_parts_ = place_;
    ++parts_read_;
    place_ = after;
    return {};
  }
  const bool ends = h.kind == FrameKind::group && parts_read_ != 0;
  if (h.kind != FrameKind::term && h.parts != parts_read_)
    return strange(message.sequence, "a frame of " + std::to_string(h.parts) + " pieces after " +
                                         std::to_string(parts_read_));
  std::vector<std::byte> whole;
  if (ends) {
    whole.reserve(parts_.size() + h.payload_bytes);
    whole = parts_;
    whole.insert(whole.end(), frame.payload, frame.payload + h.payload_bytes);
    frame.payload = whole.data();
    frame.header.payload_bytes = static_cast<std::uint32_t>(whole.size());
  }
  if (Status s = f(frame, after); !s.ok()) return s;
  // STREAM-6
  // mutant: stream-term-voids-parts
  parts_.clear();
  parts_read_ = 0;
  place_ = after;
  beat_ms_ = h.beat_ms;
  return {};
}

// The log's first message, for one who knows nothing of the pool.
void Stream::begin_at(const Message& message) {
  if (message.sequence != 1 || place_.end.last != 0 || place_.term != 0) return;
  const auto frame = backup::read_frame(message.bytes.data(), message.bytes.size(), log_->name());
  if (frame.ok() && frame->header.kind == FrameKind::term) place_.end.last = frame->header.before;
}

// The frame at the place from which this object goes on: another log may be as long.
Status Stream::see_place() {
  auto messages = log_->read(place_.sequence, 1);
  if (messages.code() == Code::expired) return {};
  if (!messages) return messages.status();
  if (messages->empty()) return {};  // an older state of the log: later
  const Message& message = messages->front();
  const auto frame = backup::read_frame(message.bytes.data(), message.bytes.size(), log_->name());
  if (!frame) return frame.status();
  const backup::FrameHeader& h = frame->header;
  if (std::memcmp(h.uuid, uuid_, sizeof uuid_) != 0)
    return strange(message.sequence, "a frame of another pool");
  // A place may be behind a void frame.
  // mutant: stream-sees-its-place
  if (h.term >= place_.term && h.chain != place_.end.chain)
    return strange(message.sequence, "another frame than was there");
  if (h.chain == place_.end.chain) beat_ms_ = h.beat_ms;
  seen_ = true;
  return {};
}

Status Stream::read(const OnFrame& f) {
  if (!seen_ && place_.sequence != 0)
    if (Status s = see_place(); !s.ok()) return s;
  for (;;) {
    auto messages = log_->read(place_.sequence + 1, read_bytes);
    if (!messages) return messages.status();
    if (messages->empty()) return {};
    for (const Message& message : *messages) {
      begin_at(message);
      Frame frame{};
      auto verdict = judge(message, frame);
      if (!verdict) return verdict.status();
      if (*verdict == Verdict::is_void) {
        pass_void();
        continue;
      }
      if (Status s = pass(message, frame, f); !s.ok()) return s;
    }
  }
}

Result<Stream::Claim> Stream::claim(std::string_view about, const OnFrame& f,
                                    std::uint64_t instead_of) {
  primary_ = false;
  // An append of before may still arrive: then it is read, or refused.
  message_.clear();
  if (Status s = learn_most(); !s.ok()) return s;
  // mutant: stream-claim-reads
  if (Status s = read(f); !s.ok()) return s;
  // mutant: stream-claim-in-place
  if (instead_of != 0 && place_.term != instead_of) {
    why_ = failure(Code::deposed, log_->name(), "term " + std::to_string(place_.term));
    return Claim::lost;
  }
  header_ = {};
  header_.kind = FrameKind::term;
  header_.term = place_.term + 1;
  header_.last = place_.end.last;
  header_.unix_ns = backup::unix_nanoseconds();
  about = about.substr(0, most_);
  payload_.assign((about.size() + 7) / 8 * 8, std::byte{});
  if (!about.empty()) std::memcpy(payload_.data(), about.data(), about.size());
  begin_message();
  AppendAnswer answer = log_->append(place_.sequence + 1, message_.data(), message_.size());
  why_ = std::move(answer.why);
  if (answer.outcome != Append::done) {
    message_.clear();
    return answer.outcome == Append::refused ? Claim::lost : Claim::unknown;
  }
  pass_own();
  parts_.clear();
  parts_read_ = 0;
  primary_ = true;
  return Claim::primary;
}

void Stream::begin_message() {
  passed_ = 0;
  pieces_ = 0;
  make_message();
}

// For the place after the last message that was read: the rest of the payload, or a piece of it.
void Stream::make_message() {
  message_.clear();
  backup::FrameHeader h = header_;
  std::memcpy(h.uuid, uuid_, sizeof uuid_);
  h.sequence = place_.sequence + 1;
  h.beat_ms = own_beat_ms_;
  piece_ = payload_.size() - passed_;
  if (piece_ > most_) {
    piece_ = most_;
    h.kind = FrameKind::part;
    h.part = pieces_;
    h.transactions = 0;
    h.last = place_.end.last;
  } else {
    h.parts = pieces_;
  }
  after_ = place_.end;
  backup::append_frame(message_, h, payload_.data() + passed_, piece_, after_);
}

Status Stream::learn_most() {
  if (most_ != 0) return {};
  const auto traits = log_->describe();
  if (!traits) return traits.status();
  // The payload of a frame consists of words.
  most_ = (traits->largest - sizeof(backup::FrameHeader)) / 8 * 8;
  return {};
}

Result<Stream::State> Stream::append(backup::FrameHeader header, const void* payload,
                                     std::uint64_t bytes) {
  if (Status s = learn_most(); !s.ok()) return s;
  if (bytes / most_ > 0xffff || bytes > 0xffffffff)
    return failure(Code::too_big, log_->name(),
                   "a transaction with " + std::to_string(bytes) + " bytes of log",
                   "at most " + std::to_string(std::min(most_ * 0xffff, std::uint64_t{0xffffffff})),
                   "give the pool a smaller log");
  const auto* const first = static_cast<const std::byte*>(payload);
  payload_.assign(first, first + bytes);
  header_ = header;
  header_.term = place_.term;
  begin_message();
  asks_ = false;
  return settle();
}

Result<Stream::State> Stream::settle() {
  // Reads that go on showing an older log have no end.
  for (int looks = 0; looks < most_looks;) {
    if (asks_) {
      ++looks;
      auto found = look();
      if (!found || *found == State::deposed) return found;
      if (message_.empty()) return State::in_log;
    }
    // STREAM-4
    AppendAnswer answer = log_->append(place_.sequence + 1, message_.data(), message_.size());
    why_ = std::move(answer.why);
    if (answer.outcome == Append::done) {
      pass_own();
      if (message_.empty()) return State::in_log;
      continue;
    }
    asks_ = true;
    if (answer.outcome == Append::unknown) return State::under_way;
  }
  return State::under_way;
}

Result<Stream::State> Stream::watch() {
  const Status s = read([this](const Frame& frame, const StreamPlace& after) {
    if (frame.header.kind == FrameKind::term)
      return failure(Code::deposed, log_->name(), "term " + std::to_string(after.term));
    return strange(after.sequence, "a frame of this copy's term that it did not make");
  });
  if (s.code() != Code::deposed) return s.ok() ? Result<State>(State::in_log) : Result<State>(s);
  primary_ = false;
  return State::deposed;
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
