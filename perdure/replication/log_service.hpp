// SPDX-License-Identifier: BSD-3-Clause
//
// LogService: a log that several machines share: messages 1, 2, 3, ..., each of which is appended
// at the place that its writer names, or refused. Stream (stream.hpp) builds on this alone who may
// write a replicated pool, and what of the log counts.
//
//   SERVICE-1 Message n is appended only behind message n - 1, and only if there is none of that
//             number. What was appended never changes. It is removed by trim() alone, from the
//             front on.
// The frames' chain shows a reader what breaks this (STREAM-2).
// Thread safety: any thread may make all calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "perdure/base/status.hpp"

namespace perdure::replication {

/// One message of a log.
struct Message {
  std::uint64_t sequence = 0;  ///< its number, from 1 on
  std::vector<std::byte> bytes;
};

/// What has come of an append.
enum class Append : std::uint8_t {
  done,     ///< the message is in the log
  refused,  ///< it is not, and never will be: its place is taken, or not the log's next one
  unknown   ///< no answer: it is in the log, or may get there later, or never
};
struct AppendAnswer {
  Append outcome = Append::unknown;
  Status why;  ///< of `refused` and `unknown`, for people
};

/// Which messages a log has: `first` to `last`. None: last is first - 1.
struct LogEnds {
  std::uint64_t first = 1, last = 0;
};

/// What a service promises of a message that was appended.
struct LogTraits {
  unsigned replicas = 1;      ///< machines that have it
  bool synced = false;        ///< whether it is on their disks
  std::uint64_t largest = 0;  ///< bytes of a message, at most
  bool confirms = false;      ///< confirm() and confirmed() work
};

/// How far a standby has the log's transactions on its disk.
struct Confirmed {
  std::string copy;      ///< copy_id() of it
  std::uint64_t id = 0;  ///< it has every transaction up to it
};

class LogService {
 public:
  virtual ~LogService() = default;
  LogService(const LogService&) = delete;
  LogService& operator=(const LogService&) = delete;

  /// Appends n bytes as message `sequence`, which is at least 1.
  virtual AppendAnswer append(std::uint64_t sequence, const void* bytes, std::uint64_t n) = 0;
  /// The messages from `from` on, in order: as many as have `bytes` bytes together, at least one if
  /// there is one; none at the log's end. `expired` where `from` was trimmed; `not_found` where the
  /// log has no message `from` - 1 either, and did not trim it: it has lost its end. After other
  /// errors a later call can succeed.
  virtual Result<std::vector<Message>> read(std::uint64_t from, std::uint64_t bytes) = 0;
  virtual Result<LogEnds> ends() = 0;
  /// Waits until the log may have message `from`, and returns true; false when `at_most` is over.
  /// A backend that is not told of new messages waits that long each time, and returns false.
  virtual bool wait(std::uint64_t from, std::chrono::microseconds at_most);
  /// Removes the messages below `below`; the last one stays.
  virtual Status trim(std::uint64_t below) = 0;
  virtual Result<LogTraits> describe() = 0;
  /// Says to the log's other users how far a standby is. What was said may be lost: it is said
  /// again, from time to time, with the same id or a higher one.
  virtual Status confirm(const Confirmed& standby);
  /// What each standby has said last, of what has come here since the first call, or before it.
  virtual Result<std::vector<Confirmed>> confirmed();
  /// For messages to people: where the log is.
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;

 protected:
  LogService() = default;
};

/// For backends, where a read has found no message `from`: what that means in a log with these
/// ends. Returns true at the log's end, false where the message has come since, and the errors of
/// LogService::read().
[[nodiscard]] Result<bool> at_end(const LogEnds& ends, std::uint64_t from, const std::string& name);

}  // namespace perdure::replication
