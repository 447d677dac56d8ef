// SPDX-License-Identifier: BSD-3-Clause
//
// Note: an event that a transaction has emitted, as an entry of its record. Recovery passes over
// it; whoever follows the log reads it (backup/events.hpp). A pool whose log may have notes has the
// feature note entries.
// Thread safety: values; functions over their arguments.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "perdure/base/status.hpp"
#include "perdure/log/record.hpp"
#include "perdure/log/record_writer.hpp"

namespace perdure::log {

struct Note {
  std::string_view topic;     ///< 1 to 255 bytes
  std::string_view bytes;     ///< up to max_bytes
  std::uint16_t schema = 0;   ///< the program's
  std::uint64_t unix_ns = 0;  ///< when it was emitted

  static constexpr std::uint64_t head_words = 2;
  /// Of an entry's words, which are counted in 20 bits.
  static constexpr std::uint64_t max_bytes = (max_count - head_words) * 8 - 256;
};

/// Throws error(invalid) for a topic, and error(too_big) for bytes, that a note can't have.
inline void check_note(const Note& note) {
  if (note.topic.empty() || note.topic.size() > 255)
    throw error(failure(Code::invalid, "",
                        "an event's topic of " + std::to_string(note.topic.size()) + " bytes",
                        "1 to 255"));
  if (note.bytes.size() > Note::max_bytes)
    throw error(failure(Code::too_big, "",
                        "an event of " + std::to_string(note.bytes.size()) + " bytes",
                        "at most " + std::to_string(Note::max_bytes)));
}

/// Adds the note to a record. REQUIRES: check_note(). Throws error(too_big) and std::bad_alloc,
/// with nothing added.
inline void add_note(RecordWriter& record, const Note& note) {
  const std::uint64_t text = note.topic.size() + note.bytes.size();
  const std::uint64_t n = Note::head_words + (text + 7) / 8;
  std::uint64_t* const words = record.entry_of(EntryKind::note, n);
  words[0] =
      note.bytes.size() | std::uint64_t{note.schema} << 32 | std::uint64_t{note.topic.size()} << 48;
  words[1] = note.unix_ns;
  if (n > Note::head_words) words[n - 1] = 0;
  auto* const to = reinterpret_cast<char*>(words + Note::head_words);
  std::memcpy(to, note.topic.data(), note.topic.size());
  if (!note.bytes.empty())
    std::memcpy(to + note.topic.size(), note.bytes.data(), note.bytes.size());
}

/// Reads an entry of kind note; nothing where its lengths contradict each other. The result points
/// into the entry.
[[nodiscard]] inline std::optional<Note> read_note(const Entry& entry) noexcept {
  if (entry.kind != EntryKind::note || entry.count < Note::head_words) return {};
  const std::uint64_t head = entry.values[0];
  const std::uint64_t bytes = head & 0xffffffff, topic = head >> 48 & 0xff;
  if (topic == 0 || Note::head_words + (topic + bytes + 7) / 8 != entry.count) return {};
  const auto* const text = reinterpret_cast<const char*>(entry.values + Note::head_words);
  return Note{{text, topic},
              {text + topic, bytes},
              static_cast<std::uint16_t>(head >> 32),
              entry.values[1]};
}

}  // namespace perdure::log
