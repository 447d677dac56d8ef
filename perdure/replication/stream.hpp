// SPDX-License-Identifier: BSD-3-Clause
//
// Stream: a pool's history as frames (perdure/backup/frame.hpp) in a LogService, one in each
// message: who may append to it, which of its frames count, and what came of an append.
//
//   STREAM-1 One frame of a writer is under way at a time, and no other is made before it is known
//            to be in the log, or never to get there. So transactions are acknowledged in order.
//   STREAM-2 A frame counts if it chains to the last one that counted and has that one's term, or
//            is a TERM frame of a higher term. A frame of an older term that does not count is
//            void: its writer did not know of the new term. Any other frame means that the log has
//            lost or changed something, and no copy reads past it.
//   STREAM-3 To write, a copy reads the log to its end and appends a TERM frame right there. If
//            that is appended, the copy is the primary of a new term, with exactly the history that
//            it has read; no frame of an older term counts from there on. No clock is involved.
//   STREAM-4 A frame whose append had no answer is in the log if it is found at its place. If the
//            place is free, the same bytes are appended to the same place again.
//   STREAM-5 A primary makes its place behind its TERM frame durable before its first transaction.
//            A copy that reads another one's TERM frame makes the place behind it durable before it
//            applies what follows. So it is known of each transaction that a copy has above its
//            durable place, also after a crash, whether it is the copy's own. An own one that is
//            not in the log before another one's TERM frame never gets there: the copy has
//            diverged.
//   STREAM-6 What is larger than the log's largest message is appended in pieces: frames of kind
//            part, which count as any other, and then the frame itself with the rest. Until that
//            one counts, nothing of it does; the next TERM frame makes the pieces before it void.
// STREAM-5 is the duty of who uses a Stream.
// tests/models/replicated.pml is a model of these rules.
// Thread safety: an object belongs to one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/backup/frame.hpp"
#include "perdure/base/status.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/replication/log_service.hpp"

namespace perdure::replication {

/// How far a copy has read a log. All 0: it has read nothing, and learns from the first frame with
/// which transaction the pool began to be replicated.
struct StreamPlace {
  std::uint64_t sequence = 0;  ///< its last message that was read
  std::uint64_t term = 0;      ///< of the last frame that counted; 0: none
  backup::HistoryEnd end;      ///< what that frame left
};

/// The place that a pool's header has, and the words of one.
[[nodiscard]] StreamPlace place_of(const pool::ReplicationWords& words) noexcept;
void set_place(pool::ReplicationWords& words, const StreamPlace& place) noexcept;

class Stream {
 public:
  /// Told each frame that counts, with the place after it; of what came in pieces, the whole. A
  /// failure ends the reading before the frame.
  using OnFrame = std::function<Status(const backup::Frame&, const StreamPlace& after)>;

  Stream(std::shared_ptr<LogService> log, const std::uint8_t (&uuid)[16], const StreamPlace& place);

  /// Reads from the place on, to the log's end. Errors: `corrupt` (STREAM-2), with the place before
  /// the frame; `not_found`, where the log has lost its end; `expired`; the service's; f's. Throws
  /// what f throws, and std::bad_alloc.
  Status read(const OnFrame& f);

  /// What has come of a claim.
  enum class Claim : std::uint8_t {
    primary,  ///< this copy may append
    lost,     ///< another one has appended first: read on
    unknown   ///< no answer; a later claim is right, whatever has come of this one
  };
  /// STREAM-3: reads to the end and appends a TERM frame with the text `about` (who, where, why;
  /// for people). Nothing of an earlier append is under way for this object afterwards. Errors:
  /// those of read().
  /// `instead_of`: claims only in place of that term; `lost` where the log has a later one. 0: of
  /// whatever term.
  Result<Claim> claim(std::string_view about, const OnFrame& f, std::uint64_t instead_of = 0);

  /// What is known of a frame.
  enum class State : std::uint8_t {
    in_log,     ///< it counts: what it has is acknowledged
    under_way,  ///< not known: settle() finds out
    deposed     ///< another term has begun, and the frame never counts
  };
  /// Appends a frame: `header` has kind, last, transactions, data_bytes and unix_ns. Only a primary
  /// appends, while nothing is under way. Errors: those of read(), and `too_big` for what has more
  /// than 65,535 pieces, which nothing was appended of. Throws std::bad_alloc.
  Result<State> append(backup::FrameHeader header, const void* payload, std::uint64_t bytes);
  /// Asks what has come of the frame that is under way, and appends it again if it is not in the
  /// log. why() says what is in the way. Errors: those of read(); the frame stays under way.
  Result<State> settle();
  /// Of a primary with nothing under way: looks whether another term has begun (`deposed`), and
  /// otherwise returns `in_log`. Errors: those of read().
  Result<State> watch();

  /// Behind the last frame that counts and was read, or appended.
  [[nodiscard]] const StreamPlace& place() const noexcept { return place_; }
  /// The last place from which another object can go on: not one in the middle of pieces that were
  /// read. REQUIRES: nothing is under way.
  [[nodiscard]] const StreamPlace& resume_place() const noexcept {
    return parts_read_ == 0 ? place_ : before_parts_;
  }
  /// What every frame says that this object makes from now on: FrameHeader::beat_ms.
  void say_beat(std::chrono::milliseconds every) noexcept {
    own_beat_ms_ = static_cast<std::uint16_t>(every.count());
  }
  /// What the last frame that counted says; 0 before one was read.
  [[nodiscard]] std::uint16_t beat_ms() const noexcept { return beat_ms_; }
  [[nodiscard]] bool primary() const noexcept { return primary_; }
  [[nodiscard]] bool under_way() const noexcept { return !message_.empty(); }
  [[nodiscard]] const Status& why() const noexcept { return why_; }
  [[nodiscard]] std::uint64_t voids() const noexcept { return voids_; }  ///< frames, read so far

 private:
  enum class Verdict : std::uint8_t { counts, is_void };
  void begin_at(const Message& message);
  Status see_place();
  Result<Verdict> judge(const Message& message, backup::Frame& frame) const;
  void pass_void();
  void pass_own();
  Status learn_most();
  void begin_message();
  void make_message();
  Status pass(const Message& message, backup::Frame& frame, const OnFrame& f);
  Result<State> look();
  [[nodiscard]] Status strange(std::uint64_t sequence, const std::string& what) const;

  const std::shared_ptr<LogService> log_;
  std::uint8_t uuid_[16] = {};
  StreamPlace place_;
  bool primary_ = false, seen_ = false;  // seen: the log has at the place what it says
  std::uint64_t voids_ = 0;
  std::uint16_t own_beat_ms_ = 0, beat_ms_ = 0;

  // The frame that is under way, how much of it is in the log, and the message that is next.
  backup::FrameHeader header_{};
  std::vector<std::byte> payload_, message_;
  std::uint64_t passed_ = 0, piece_ = 0;  // bytes of payload_: in the log; in this message
  std::uint16_t pieces_ = 0;              // that are in the log
  backup::HistoryEnd after_;              // the message
  std::uint64_t most_ = 0;                // bytes of payload in a message
  // Pieces that were read, of the frame that comes next.
  std::vector<std::byte> parts_;
  std::uint16_t parts_read_ = 0;
  StreamPlace before_parts_;
  bool asks_ = false;  // what is at its place, before it is appended again
  Status why_;
};

}  // namespace perdure::replication
