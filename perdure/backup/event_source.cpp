// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/event_source.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "perdure/log/note.hpp"
#include "perdure/pool/features.hpp"

namespace perdure {

using backup::HistoryEnd;

namespace {

// The log has every transaction above this id.
std::uint64_t has_from(const pool::Header& header) {
  return pool::has_feature(header, pool::Feature::archived_log) ? header.log_from_id
                                                                : header.checkpoint_id;
}

}  // namespace

EventStream::Source::Source(std::unique_ptr<backup::EventLog> log,
                            std::shared_ptr<backup::Store> store, EventOptions options)
    : log_(std::move(log)),
      store_(std::move(store)),
      options_(std::move(options)),
      reader_(log_ != nullptr ? log_->fd() : -1, log_ != nullptr ? log_->path() : std::string()) {
  begin();
  // From now on the reader has its place: what a checkpoint releases meanwhile can be read until it
  // is overwritten.
  if (log_ == nullptr || reading_) return;
  const pool::Header header = log_->header().value();
  if (scanned_ < has_from(header)) return;
  reader_.start(header);
  reading_ = true;
  sequence_ = header.sequence;
}

std::string EventStream::Source::name() const {
  return log_ != nullptr ? log_->path() : store_->name();
}

void EventStream::Source::begin() {
  if (!options_.consumer.empty()) {
    if (store_ == nullptr)
      throw error(failure(Code::invalid, name(), "EventOptions::consumer without an archive",
                          "the folder in which its position is kept", "name the archive"));
    if (options_.consumer.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") !=
        std::string::npos)
      throw error(failure(Code::invalid, name(), "the consumer '" + options_.consumer + "'",
                          "a name of a-z, 0-9 and '-'"));
  }
  if (log_ != nullptr) {
    const pool::Header header = log_->header().value();
    std::memcpy(uuid_, header.uuid, sizeof uuid_);
  }
  std::optional<EventPosition> kept = options_.after;
  if (!kept && !options_.consumer.empty())
    kept = backup::consumer_position(*store_, options_.consumer).value();
  if (!kept) {
    begin_at_the_end();
    scanned_ = position_.id;
    if (!options_.consumer.empty()) keep_position();  // what follows is this consumer's
    return;
  }
  position_ = *kept;
  // Ids that the pool has not drawn yet would be passed over when they come.
  const std::uint64_t newest = log_ != nullptr ? log_->newest().value() : backup::EventLog::unknown;
  if (newest != backup::EventLog::unknown && position_.id > newest)
    throw error(failure(Code::incompatible, name(),
                        "a position behind transaction " + std::to_string(position_.id),
                        "at most " + std::to_string(newest) + ", the newest that the pool has",
                        "the pool is older than the consumer: begin at another position"));
  // A transaction of which only some events are passed is read again.
  scanned_ = position_.ordinal == EventPosition::whole || position_.id == 0 ? position_.id
                                                                            : position_.id - 1;
}

void EventStream::Source::begin_at_the_end() {
  if (log_ == nullptr) {
    const auto segments = backup::list_segments(*store_).value();
    position_ = {segments.empty() ? 0 : segments.back().last, EventPosition::whole};
    return;
  }
  const std::uint64_t newest = log_->newest().value();
  if (newest != backup::EventLog::unknown) {
    // Ids that a crash takes back are drawn again: a position is kept only of durable ones.
    while (log_->durable().value() < newest)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    position_ = {newest, EventPosition::whole};
    return;
  }
  // As far as the log can be read.
  for (bool whole = false; !whole;) try {
      scanned_ = has_from(log_->header().value());
      reading_ = false;
      do {
        lacks_ = 0;
        full_ = false;
        (void)fill_from_log();
        ready_.clear();
      } while (full_);
      whole = lacks_ == 0;  // otherwise it was overwritten meanwhile
    } catch (const error& e) {
      if (e.code() != Code::expired) throw;
    }
  position_ = {scanned_, EventPosition::whole};
}

bool EventStream::Source::wanted(std::string_view topic) const noexcept {
  if (options_.topic.empty()) return true;
  std::string_view pattern = options_.topic;
  if (!pattern.ends_with('*')) return topic == pattern;
  pattern.remove_suffix(1);
  return topic.starts_with(pattern);
}

void EventStream::Source::gone(std::uint64_t oldest) const {
  throw error(failure(
      Code::expired, name(),
      "a position behind transaction " + std::to_string(scanned_) + ", whose events are gone",
      oldest != 0 ? "one behind transaction " + std::to_string(oldest) + " or later"
                  : std::string(),
      store_ != nullptr ? "begin there, or at a newer one"
                        : "give the pool an archive (Options::archive), and name it"));
}

bool EventStream::Source::next(Event& event, std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 365);
  const auto end = Clock::now() + std::min(timeout, longest);
  std::chrono::microseconds nap(200);
  while (ready_.empty()) {
    const bool filled = fill();
    if (!ready_.empty()) break;
    // Nothing that is wanted lies up to there.
    position_ = std::max(position_, EventPosition{scanned_, EventPosition::whole});
    const auto now = Clock::now();
    if (now >= end) return false;
    if (filled) continue;
    std::this_thread::sleep_for(std::min<Clock::duration>(nap, end - now));
    nap = std::min(nap * 2, std::chrono::microseconds(5000));
  }
  event = std::move(ready_.front().event);
  position_ = ready_.front().behind;
  ready_.pop_front();
  return true;
}

// Returns whether more may be there.
bool EventStream::Source::fill() {
  lacks_ = 0;
  if (log_ != nullptr) {
    if (fill_from_log()) return true;
    if (lacks_ == 0) return false;
    reading_ = false;
    if (store_ == nullptr) gone(lacks_);
  }
  if (fill_from_archive()) return true;
  // The header was read before the archive was listed: the archive is not behind the log.
  if (lacks_ != 0) gone(lacks_);
  return false;
}

// The entries of one or more transactions, of which the last is `last`.
void EventStream::Source::take_entries(const std::uint64_t* words, std::uint64_t n,
                                       std::uint64_t last) {
  unnumbered_.clear();
  const auto ends = [this](std::uint64_t id) {
    std::uint32_t ordinal = 0;
    const std::size_t before = read_.size();
    for (Event& event : unnumbered_) {
      event.position = {id, ordinal++};
      // Some may have been read before, and not everything is wanted; all are counted.
      if (id > scanned_ && event.position > position_ && wanted(event.topic))
        read_.push_back({std::move(event), {id, ordinal - 1}});
    }
    // Behind the last one that is wanted, all of the transaction is passed.
    if (read_.size() > before) read_.back().behind.ordinal = EventPosition::whole;
    unnumbered_.clear();
  };
  const bool whole = log::each_entry(words, n, [&](const log::Entry& e) {
    if (e.kind == log::EntryKind::end) ends(e.values[0]);
    if (e.kind == log::EntryKind::note) take_note(e);
  });
  ends(last);
  if (whole) return;
  throw error(failure(Code::corrupt, name(), "a record whose entries overrun it", "whole entries"));
}

void EventStream::Source::take_note(const log::Entry& entry) {
  const auto note = log::read_note(entry);
  if (!note)
    throw error(failure(Code::corrupt, name(), "an event that contradicts itself",
                        "lengths of topic and bytes that fit its entry"));
  Event event;
  event.unix_ns = note->unix_ns;
  event.topic = note->topic;
  event.schema = note->schema;
  event.bytes = note->bytes;
  unnumbered_.push_back(std::move(event));
}

// Reads what the log has behind scanned_. Returns whether it has read anything.
bool EventStream::Source::fill_from_log() {
  // EVENT-1: the id comes first, then the records.
  // mutant: events-durable-only
  const std::uint64_t durable = log_->durable().value();
  if (durable <= scanned_) {
    if (Status s = log_->over(); !s.ok()) throw error(s);
    return false;
  }
  const auto from_log = [&] {
    constexpr std::size_t enough = 1000, enough_bytes = 4 << 20;
    std::size_t bytes = 0;
    std::vector<engine::follow::LogReader::Place> places;
    const std::uint64_t before = scanned_;
    struct Unread {  // what is not durable, and what follows an error, is read again
      Source& source;
      std::uint64_t to;
      bool good = false;
      ~Unread() {
        source.read_.clear();
        if (!good) source.scanned_ = to, source.reading_ = false;
      }
    } unread{*this, before};
    reader_.look();
    for (full_ = true; read_.size() < enough && places.size() < enough && bytes < enough_bytes;) {
      log::RecordView r;
      bool found = false;
      if (Status s = reader_.next(scanned_, durable, r, found); !s.ok()) throw error(s);
      if (!found) {
        full_ = false;
        break;
      }
      if (r.kind() != log::RecordKind::commit && r.kind() != log::RecordKind::group)
        throw error(failure(Code::unsupported, name(),
                            "a record of kind " + std::to_string(static_cast<int>(r.kind())),
                            "those of an engine that keeps events"));
      bytes += r.payload_words() * 8;
      take_entries(r.words + log::header_words, r.payload_words(), r.id());
      if (durable == backup::EventLog::unknown) places.push_back(reader_.place());
      scanned_ = r.id();
    }
    if (!places.empty())
      if (Status s = log_->make_durable(places); !s.ok()) throw error(s);
    for (Ready& ready : read_) ready_.push_back(std::move(ready));
    unread.good = true;
    return scanned_ != before;
  };
  if (reading_ && from_log()) return true;
  // It has not begun yet, or the log was overwritten, or another session has begun.
  const pool::Header header = log_->header().value();
  // mutant: events-none-left-out
  if (scanned_ < has_from(header)) {
    lacks_ = has_from(header);
    return false;
  }
  if (reading_ && header.sequence == sequence_) {
    if (Status s = log_->over(); !s.ok()) throw error(s);
    return false;
  }
  reader_.start(header);
  reading_ = true;
  sequence_ = header.sequence;
  return from_log();
}

// Reads the archive's next segment behind scanned_. Returns whether there was one.
bool EventStream::Source::fill_from_archive() {
  const auto segments = backup::list_segments(*store_).value();
  if (segments.empty()) return false;
  const auto next = std::find_if(segments.begin(), segments.end(),
                                 [this](const auto& segment) { return segment.last > scanned_; });
  if (next == segments.end()) return false;
  auto bytes = store_->get(next->text());
  if (bytes.code() == Code::not_found) return true;  // it was pruned just now
  const backup::Segment segment =
      backup::read_segment(*next, std::move(bytes).value(), store_->name()).value();
  if (log_ != nullptr && std::memcmp(segment.header.uuid, uuid_, sizeof uuid_) != 0)
    throw error(failure(Code::incompatible, store_->name(), "the archive of another pool",
                        "that of " + log_->path(), "name the pool's own archive"));
  // The run may begin here: what was before is missing.
  if (next->before > scanned_) gone(next->before);
  HistoryEnd end = segment.begin();
  struct Clear {
    std::vector<Ready>& read;
    ~Clear() { read.clear(); }
  } const clear{read_};
  Status s =
      backup::each_frame(segment.frames(), segment.frames_bytes(),
                         store_->name() + "/" + next->text(), end, [&](const backup::Frame& frame) {
                           if (frame.header.kind != backup::FrameKind::group) return Status();
                           take_entries(reinterpret_cast<const std::uint64_t*>(frame.payload),
                                        frame.header.payload_bytes / 8, frame.header.last);
                           return Status();
                         });
  if (!s.ok()) throw error(s);
  for (Ready& ready : read_) ready_.push_back(std::move(ready));
  scanned_ = next->last;
  return true;
}

// ---- consumers ----------------------------------------------------------------------------------

namespace {

constexpr std::string_view consumer_prefix = "consumer/";

std::string consumer_name(const std::string& name, const EventPosition& at) {
  return std::string(consumer_prefix) + name + "/" + backup::digits_of(at.id) + "-" +
         backup::digits_of(at.ordinal);
}

std::optional<backup::Consumer> parse_consumer(std::string_view text) {
  if (!text.starts_with(consumer_prefix)) return {};
  text.remove_prefix(consumer_prefix.size());
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return {};
  backup::Consumer found;
  found.name = text.substr(0, slash);
  text.remove_prefix(slash + 1);
  std::uint64_t ordinal = 0;
  if (!backup::take_digits(text, found.position.id) || !text.starts_with('-')) return {};
  text.remove_prefix(1);
  if (!backup::take_digits(text, ordinal) || !text.empty()) return {};
  found.position.ordinal = static_cast<std::uint32_t>(ordinal);
  return found;
}

}  // namespace

void EventStream::Source::acknowledge() {
  if (options_.consumer.empty())
    throw error(failure(Code::invalid, name(), "acknowledge() of a stream without a name",
                        "EventOptions::consumer", "open it with one"));
  keep_position();
}

void EventStream::Source::keep_position() {
  // A listing beside this could miss the consumer: prune has the lock alone.
  constexpr int most_tries = 5000;
  Result<std::shared_ptr<void>> lock = store_->lock(backup::Store::Use::chunks);
  for (int tries = 1; lock.code() == Code::busy && tries < most_tries; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock = store_->lock(backup::Store::Use::chunks);
  }
  if (!lock.ok()) throw error(lock.status());
  const std::string own = std::string(consumer_prefix) + options_.consumer + "/";
  (void)store_->put(consumer_name(options_.consumer, position_), "", 0).value();
  // The new position is durable: the older ones may go. A crash before that leaves both, of which
  // the later one counts.
  const auto names = store_->list(own).value();
  for (const std::string& one : names)
    if (const auto consumer = parse_consumer(one); consumer && consumer->position < position_)
      if (Status s = store_->remove(one); !s.ok()) throw error(s);
}

Result<std::uint64_t> backup::durable_of(const pool::OpenPool& followed) {
  using Writer = pool::OpenPool::Writer;
  const auto writer = followed.writer();
  if (!writer.ok()) return writer.status();
  if (*writer == Writer::serves) {
    if (followed.header().order == pool::CommitOrder::strict) return EventLog::unknown;
    // Acquire: pairs with LogWriter's store: the records are in the file.
    return followed.told().durable_id.load(std::memory_order_acquire);
  }
  // It is being opened, or by a program that tells nothing: what is in the data region.
  const auto header = followed.newest_header();
  if (!header.ok()) return header.status();
  if (*writer == Writer::silent || header->clean == 1) return header->checkpoint_id;
  return EventLog::unknown;
}

Result<std::optional<EventPosition>> backup::consumer_position(Store& store,
                                                               const std::string& name) {
  auto names = store.list(std::string(consumer_prefix) + name + "/");
  if (!names.ok()) return names.status();
  std::optional<EventPosition> last;
  for (const std::string& one : *names)
    if (const auto consumer = parse_consumer(one))
      last = std::max(last.value_or(consumer->position), consumer->position);
  return last;
}

Result<std::optional<backup::Consumer>> backup::slowest_consumer(Store& store) {
  auto names = store.list(consumer_prefix);
  if (!names.ok()) return names.status();
  std::optional<Consumer> slowest, one;  // `one`: the last position of a consumer
  const auto compare = [&] {
    if (one && (!slowest || one->position < slowest->position)) slowest = one;
  };
  for (const std::string& name : *names) {  // in order: a consumer's positions follow each other
    auto consumer = parse_consumer(name);
    if (!consumer) continue;
    if (one && one->name != consumer->name) compare();
    one = std::move(consumer);
  }
  compare();
  return slowest;
}

}  // namespace perdure
