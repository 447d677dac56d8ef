// SPDX-License-Identifier: BSD-3-Clause
//
// Events: what transactions of a pool emit (Tx::emit), read in the order of transactions: by the
// program itself, by another process while the program runs, or from the archive alone. They come
// from the live log and, where that does not have them any more, from the archive. docs/events.md.
//
//   EVENT-1 An event is returned only when its transaction is durable, in the order of ids, and
//           after every event of the transactions before it: none is left out silently. Where some
//           are gone, next() throws `expired`.
// A consumer keeps the position of the last event that it has dealt with, and begins behind it
// again: so it gets each event at least once. If it stores the position in the transaction that the
// event causes, exactly once.
// Thread safety: an EventStream belongs to one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "perdure/base/status.hpp"

namespace perdure {

/// A place in a pool's events: behind the event with this number of the transaction with this id.
struct EventPosition {
  static constexpr std::uint32_t whole = ~std::uint32_t{0};

  std::uint64_t id = 0;           ///< every transaction before this one is passed
  std::uint32_t ordinal = whole;  ///< of the last event in it that is passed; whole: all are

  /// Before every event that the pool has.
  [[nodiscard]] static constexpr EventPosition start() noexcept { return {}; }
  /// In the order of events.
  friend constexpr auto operator<=>(const EventPosition&, const EventPosition&) = default;
};

/// One event. Thread safety: a value.
struct Event {
  EventPosition position;     ///< its transaction's id, and which of its events it is, from 0 on
  std::uint64_t unix_ns = 0;  ///< when it was emitted
  std::string topic;          ///< as Tx::emit was given it
  std::uint16_t schema = 0;   ///< the same
  std::string bytes;          ///< the same
};

/// What of a pool's events is wanted, and from where on.
struct EventOptions {
  /// Only events of this topic; `orders/*`: of all topics that begin with `orders/`. Empty: all.
  std::string topic = {};
  /// Only events behind it. None: those of transactions that commit from now on, unless `consumer`
  /// has a position.
  std::optional<EventPosition> after = {};
  /// A name of a-z, 0-9 and '-', under which the archive's folder keeps how far this consumer has
  /// come (EventStream::acknowledge). `perdure prune` keeps what it has not had yet. Needs an
  /// archive.
  std::string consumer = {};
  /// The archive's folder. In the program that has the pool open: its own, if it has one. Empty:
  /// only what the log has; a consumer that is too slow is told `expired`.
  std::string archive = {};
};

/// A pool's events, read one after the other.
class EventStream {
 public:
  class Source;  ///< where they come from
  /// Made by Pool::events(), open_events() and open_archived_events().
  explicit EventStream(std::unique_ptr<Source> source) noexcept;
  EventStream(EventStream&&) noexcept;
  EventStream& operator=(EventStream&&) noexcept;
  ~EventStream();

  /// Waits for the next event, up to `timeout`. Returns false if there is none in that time. Throws
  /// perdure::error: `expired` where events behind the position are gone, with the oldest id that
  /// is still there; `corrupt`, `io`, `closed` where the pool was closed in this process, and what
  /// the archive's store says; and std::bad_alloc. The position is then what it was.
  bool next(Event& event, std::chrono::milliseconds timeout);
  /// That of the last event that next() has returned; or where it began.
  [[nodiscard]] EventPosition position() const noexcept;
  /// Keeps the position under the consumer's name, durably: a stream that is opened with the name
  /// begins there. Throws perdure::error: `invalid` without a name, and what the store says.
  void acknowledge();

 private:
  std::unique_ptr<Source> source_;
};

/// The events of the pool at `path`, which another process may have open (docs/readers.md). Throws
/// perdure::error: as opening for reading does, and `unsupported` for an engine that serves no
/// readers.
[[nodiscard]] EventStream open_events(const std::string& path, const EventOptions& options = {});
/// Those in an archive alone, `options.archive`, as far as it has been written.
[[nodiscard]] EventStream open_archived_events(const EventOptions& options);

/// Calls f(event) for each event on a thread of its own, until it is destroyed, f returns false, or
/// a call throws. Pool::follow() returns one.
class Following {
 public:
  using Call = std::function<bool(const Event&)>;
  /// Begins. Throws error(too_many_threads).
  Following(EventStream stream, Call f);
  Following(Following&&) noexcept;
  Following& operator=(Following&&) noexcept;
  /// Ends it, when the call of f in progress has returned.
  ~Following();
  /// Why it has ended by itself; ok while it goes on, and where f has returned false. What f throws
  /// that is no perdure::error is `invalid` here.
  [[nodiscard]] Status status() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perdure
