// SPDX-License-Identifier: BSD-3-Clause
//
// EventStream::Source: reads events from a live log and an archive. See events.hpp.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "perdure/backup/events.hpp"
#include "perdure/backup/segment.hpp"
#include "perdure/backup/store.hpp"
#include "perdure/engine/follow/log_reader.hpp"
#include "perdure/log/record.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::backup {

/// A log that may grow, as a source sees it.
class EventLog {
 public:
  virtual ~EventLog() = default;
  /// The pool's file, and its name.
  [[nodiscard]] virtual int fd() const = 0;
  [[nodiscard]] virtual const std::string& path() const = 0;
  /// The header as it is; errors where nothing can be read any more.
  [[nodiscard]] virtual Result<pool::Header> header() const = 0;
  /// Up to which id records may be read; `unknown` if nobody says what is durable.
  [[nodiscard]] virtual Result<std::uint64_t> durable() = 0;
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};
  /// The newest id, durable or not; `unknown` if nobody says it.
  [[nodiscard]] virtual Result<std::uint64_t> newest() = 0;
  /// Why no record will follow those up to durable(); ok while some may.
  [[nodiscard]] virtual Status over() { return {}; }
  /// Makes records durable that lie there, where durable() was `unknown`.
  virtual Status make_durable(const std::vector<engine::follow::LogReader::Place>& places) = 0;
};

}  // namespace perdure::backup

namespace perdure {

class EventStream::Source {
 public:
  /// `log`: null without one; `store`: null without an archive. Throws perdure::error.
  Source(std::unique_ptr<backup::EventLog> log, std::shared_ptr<backup::Store> store,
         EventOptions options);
  bool next(Event& event, std::chrono::milliseconds timeout);
  [[nodiscard]] EventPosition position() const noexcept { return position_; }
  void acknowledge();

 private:
  using Clock = std::chrono::steady_clock;
  struct Ready {
    Event event;
    EventPosition behind;  // the position when it was returned
  };
  void begin();
  void begin_at_the_end();
  void keep_position();
  bool fill();
  bool fill_from_log();
  bool fill_from_archive();
  void take_entries(const std::uint64_t* words, std::uint64_t n, std::uint64_t last);
  void take_note(const log::Entry& entry);
  [[nodiscard]] bool wanted(std::string_view topic) const noexcept;
  [[noreturn]] void gone(std::uint64_t oldest) const;
  [[nodiscard]] std::string name() const;

  const std::unique_ptr<backup::EventLog> log_;
  const std::shared_ptr<backup::Store> store_;
  const EventOptions options_;
  std::uint8_t uuid_[16] = {};
  EventPosition position_;
  std::uint64_t scanned_ = 0;      // every transaction up to it was read
  std::uint32_t ordinal_ = 0;      // of the next event of the transaction that is read
  std::vector<Event> unnumbered_;  // of a transaction whose end has not been read
  std::vector<Ready> read_;        // from records of which it is not known that they are durable
  std::deque<Ready> ready_;
  std::uint64_t lacks_ = 0;  // the log has nothing up to this id, of which something is wanted
  engine::follow::LogReader reader_;
  bool reading_ = false;  // reader_ was started, with the header of this sequence
  std::uint64_t sequence_ = 0;
  bool full_ = false;  // there may be more than was read at once
};

namespace backup {
/// durable() of a pool that this process follows.
[[nodiscard]] Result<std::uint64_t> durable_of(const pool::OpenPool& followed);
/// The position that a consumer has kept; nothing if it has none.
[[nodiscard]] Result<std::optional<EventPosition>> consumer_position(Store& store,
                                                                     const std::string& name);
/// The consumer that has come least far, and its position; nothing if there is none.
struct Consumer {
  std::string name;
  EventPosition position;
};
[[nodiscard]] Result<std::optional<Consumer>> slowest_consumer(Store& store);
}  // namespace backup

}  // namespace perdure
