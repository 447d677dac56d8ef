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
  if (kept) {
    position_ = *kept;
  } else if (log_ != nullptr) {
    position_ = {log_->newest().value(), EventPosition::whole};
    if (position_.id == backup::EventLog::unknown) {  // as far as the log can be read
      const pool::Header header = log_->header().value();
      scanned_ = position_.id = has_from(header);
      while (fill_from_log()) ready_.clear();
      position_.id = scanned_;
    }
  } else {
    const auto segments = backup::list_segments(*store_).value();
    position_ = {segments.empty() ? 0 : segments.back().last, EventPosition::whole};
  }
  // A transaction of which only some events are passed is read again.
  scanned_ = position_.ordinal == EventPosition::whole || position_.id == 0 ? position_.id
                                                                            : position_.id - 1;
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
  const auto end = Clock::now() + timeout;
  std::chrono::microseconds nap(200);
  while (ready_.empty()) {
    if (fill()) continue;
    if (!ready_.empty()) break;
    const auto now = Clock::now();
    if (now >= end) return false;
    std::this_thread::sleep_for(std::min<Clock::duration>(nap, end - now));
    nap = std::min(nap * 2, std::chrono::microseconds(5000));
  }
  event = std::move(ready_.front());
  ready_.pop_front();
  position_ = event.position;
  return true;
}

// Returns whether more may be there.
bool EventStream::Source::fill() {
  if (log_ != nullptr && fill_from_log()) return true;
  return store_ != nullptr && fill_from_archive();
}

// The entries of one or more transactions, of which the last is `last`.
void EventStream::Source::take_entries(const std::uint64_t* words, std::uint64_t n,
                                       std::uint64_t last) {
  unnumbered_.clear();
  const auto ends = [this](std::uint64_t id) {
    std::uint32_t ordinal = 0;
    for (Event& event : unnumbered_) {
      event.position = {id, ordinal++};
      // Some may have been read before, and not everything is wanted; all are counted.
      if (id > scanned_ && event.position > position_ && wanted(event.topic))
        read_.push_back(std::move(event));
    }
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
  if (durable <= scanned_) return false;
  const auto from_log = [&] {
    constexpr std::size_t enough = 1000;
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
    while (read_.size() < enough && places.size() < enough) {
      log::RecordView r;
      bool found = false;
      if (Status s = reader_.next(scanned_, durable, r, found); !s.ok()) throw error(s);
      if (!found) break;
      take_entries(r.words + log::header_words, r.payload_words(), r.id());
      if (durable == backup::EventLog::unknown) places.push_back(reader_.place());
      scanned_ = r.id();
    }
    if (!places.empty())
      if (Status s = log_->make_durable(places); !s.ok()) throw error(s);
    for (Event& event : read_) ready_.push_back(std::move(event));
    unread.good = true;
    return scanned_ != before;
  };
  if (reading_ && from_log()) return true;
  // It has not begun yet, or the log was overwritten, or another session has begun.
  const pool::Header header = log_->header().value();
  // mutant: events-none-left-out
  if (scanned_ < has_from(header)) {
    reading_ = false;
    if (store_ == nullptr) gone(has_from(header));
    return false;
  }
  if (reading_ && header.epoch == epoch_ && header.checkpoint_id == checkpoint_id_) return false;
  reader_.start(header);
  reading_ = true;
  epoch_ = header.epoch, checkpoint_id_ = header.checkpoint_id;
  return from_log();
}

// Reads the archive's next segment behind scanned_. Returns whether there was one.
bool EventStream::Source::fill_from_archive() {
  const auto segments = backup::list_segments(*store_).value();
  if (segments.empty()) return false;
  const auto next = std::find_if(segments.begin(), segments.end(), [this](const auto& segment) {
    return segment.last > scanned_;
  });
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
  Status s = backup::each_frame(segment.frames(), segment.frames_bytes(),
                                store_->name() + "/" + next->text(), end,
                                [&](const backup::Frame& frame) {
                                  if (frame.header.kind != backup::FrameKind::group) return Status();
                                  take_entries(
                                      reinterpret_cast<const std::uint64_t*>(frame.payload),
                                      frame.header.payload_bytes / 8, frame.header.last);
                                  return Status();
                                });
  if (!s.ok()) {
    read_.clear();
    throw error(s);
  }
  for (Event& event : read_) ready_.push_back(std::move(event));
  read_.clear();
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
  const std::string own = std::string(consumer_prefix) + options_.consumer + "/";
  (void)store_->put(consumer_name(options_.consumer, position_), "", 0).value();
  // The new position is durable: the older ones may go. A crash before that leaves both, of which
  // the later one counts.
  const auto names = store_->list(own).value();
  for (const std::string& one : names)
    if (const auto consumer = parse_consumer(one); consumer && consumer->position < position_)
      if (Status s = store_->remove(one); !s.ok()) throw error(s);
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
