// SPDX-License-Identifier: BSD-3-Clause
//
// Claims: what a copy of a replicated pool knows of the terms that the log has, which of them are
// its own, and how it claims the next one. The primary and the standby do it in the same way.
//
//   PRIMARY-3 A copy claims a term with a random number that its header has durably. So it knows
//             its own TERM frames from those of other copies, also of copies of its file.
// Thread safety: an object belongs to one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "perdure/backup/frame.hpp"
#include "perdure/base/status.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/replication/options.hpp"
#include "perdure/replication/stream.hpp"

namespace perdure::replication {

class Claims {
 public:
  Claims() = default;
  /// Of the copy with the pool file `path`, whose header has these words.
  Claims(std::string path, const pool::ReplicationWords& words);

  /// A TERM frame that counts: from here on the log has transactions of its copy. `last`: the last
  /// transaction that this copy has. Error: `diverged`, where it is another copy's, and began
  /// without some of those.
  Status on_term(const backup::Frame& frame, const StreamPlace& after, std::uint64_t last);
  /// PRIMARY-3: the next claim has a number of its own. The words are to be durable before it.
  void renew();
  /// The TERM frame's text: the number, and `name`, for people.
  [[nodiscard]] std::string text(const std::string& name) const;
  void won() noexcept { own_ = true; }

  /// Whether the term that was read last is this copy's; otherwise whose it is, for messages.
  [[nodiscard]] bool own() const noexcept { return own_; }
  [[nodiscard]] const std::string& other() const noexcept { return other_; }
  /// The header's words of a copy that has what the log has up to `place`.
  const pool::ReplicationWords& words_at(const StreamPlace& place) noexcept;

 private:
  std::string path_, other_ = "of an unknown name";
  pool::ReplicationWords words_{};
  bool own_ = false;
};

/// How a claim is made.
struct ClaimTerm {
  std::string path;  ///< the pool's, for messages
  std::string name;  ///< this copy's
  std::chrono::steady_clock::time_point late;
  Stream::OnFrame on_frame;  ///< is told what counts in the log before the term
  /// Makes the words durable in the header.
  std::function<Status(const pool::ReplicationWords&)> note;
  /// Only in place of this term; 0: of whatever term.
  std::uint64_t instead_of = 0;
};
/// Reads the log to its end, and makes this copy the primary of a new term there (STREAM-3). Where
/// another copy appends first, or the log does not answer, it tries again until it is too late.
/// Afterwards the words are to be made durable once more, before the first transaction (STREAM-5).
/// Errors: `unavailable`, `deposed` where another copy was faster (ClaimTerm::instead_of), those of
/// Stream::read(), and note's.
Status claim_term(Stream& stream, Claims& claims, const LogService& log, const ClaimTerm& how);

/// The name of the copy with the pool file `path`: NAME:PATH. Without a name it is the machine's.
[[nodiscard]] std::string copy_name(const ReplicateOptions& options, const std::string& path);
/// Stands for the copy of that name of the pool with that uuid: Confirmed::copy. Two copies of one
/// name count as one.
[[nodiscard]] std::string copy_id(const std::uint8_t (&uuid)[16], const std::string& name);
/// What all copies of the pool have their copy_id() begin with.
[[nodiscard]] std::string copies_of(const std::uint8_t (&uuid)[16]);

}  // namespace perdure::replication
