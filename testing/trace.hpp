// SPDX-License-Identifier: BSD-3-Clause
//
// Trace: the calls that a program made on a medium, in order, as whole words with their values:
// enough to make every image that a power cut could leave (explorer.hpp). CrashMedium records it
// and, in recovery, an Arena's medium.
// Thread safety: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "perdure/medium/words.hpp"

namespace perdure::medium {

struct TraceEvent {
  enum class Kind : std::uint8_t {
    store,   ///< an ordinary store
    stream,  ///< a non-temporal store
    flush,   ///< `count` lines from the one at `offset` on
    fence,   ///< by `thread`
    /// The process was killed, with all its threads. No fence waits any more for what it began to
    /// write back.
    killed,
    /// The `count` words from `offset` on, which the killed process had staged, are as its heir
    /// finds them: later stores never happen.
    lost,
    grow,   ///< the data region is `offset` bytes long now, the new ones zero, durably
    begin,  ///< step number `offset` of the test's thread `count` begins
    /// All steps of the test's thread `count` with a number below `offset` are acknowledged.
    done
  };
  Kind kind = Kind::fence;
  std::uint16_t thread = 0;  ///< base::thread_slot()
  std::uint32_t count = 0;   ///< store, stream, lost: words; flush: lines; begin, done: above
  std::uint64_t offset = 0;  ///< in the file, a multiple of 8 (store, stream, lost) or 64 (flush)
  std::uint64_t data = 0;    ///< store, stream, lost: index of the first value in Trace::words
  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

class Trace {
 public:
  std::vector<TraceEvent> events;
  std::vector<std::uint64_t> words;

  void clear() noexcept {
    events.clear();
    words.clear();
  }
  /// Records the words that [offset, offset + n) touches, as they are in memory now, after the
  /// store (`at` is the address of offset).
  void wrote(TraceEvent::Kind kind, int thread, std::uint64_t offset, std::uint64_t n,
             const std::byte* at) {
    const std::uint64_t first = offset / 8, last = (offset + n - 1) / 8;
    const std::uint64_t data = words.size();
    words.resize(data + (last - first + 1));
    std::memcpy(words.data() + data, at - offset % 8, (last - first + 1) * 8);
    events.push_back({kind, static_cast<std::uint16_t>(thread),
                      static_cast<std::uint32_t>(last - first + 1), first * 8, data});
  }
  void flushed(int thread, std::uint64_t offset, std::uint64_t n) {
    events.push_back({TraceEvent::Kind::flush, static_cast<std::uint16_t>(thread),
                      static_cast<std::uint32_t>(lines_touched(offset, n)),
                      offset / line_bytes * line_bytes, 0});
  }
  void note(TraceEvent::Kind kind, int thread, std::uint64_t value = 0, std::uint32_t count = 0) {
    events.push_back({kind, static_cast<std::uint16_t>(thread), count, value, 0});
  }
};

}  // namespace perdure::medium
