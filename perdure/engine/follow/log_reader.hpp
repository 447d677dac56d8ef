// SPDX-License-Identifier: BSD-3-Clause
//
// LogReader: reads the records of a pool's rings from its file, while another process appends to
// them. It copies the bytes before it looks at them, and a record counts when its checksum is right
// over the copy: the checksum covers the record's position, so neither a record that is being
// written nor one of another generation passes for the next one.
//
// Bytes come by pread, whatever the medium is: a mapping of the file would show the same, and would
// take a page on tmpfs where the log has a hole. A file's log is written past the page cache
// (O_DIRECT); what pread returns after such a write has returned is what was written.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/log/record.hpp"
#include "perdure/pool/format.hpp"

namespace perdure::engine::follow {

class LogReader {
 public:
  /// `fd`: the pool's file, open for reading as long as this object is used.
  LogReader(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  /// Begins at the heads of this header's rings. Throws std::bad_alloc.
  void start(const pool::Header& header);
  /// Call it before a series of next(): rings that had nothing are looked at again.
  void look() noexcept {
    for (Ring& ring : rings_) ring.empty = false;
  }
  /// Sets `r` to the record that begins with transaction `after` + 1 and ends with `limit` at most;
  /// records up to `after` are passed. Sets `found` to whether there is one; it may have been
  /// overwritten by now, or be not yet written. `r` is valid until the next call, which returns it
  /// again unless `after` has it. Errors: the file can't be read. Throws std::bad_alloc.
  Status next(std::uint64_t after, std::uint64_t limit, log::RecordView& r, bool& found);
  /// Where the record that next() has returned lies in the file: [first, first + bytes), which may
  /// wrap around its ring.
  struct Place {
    std::uint64_t ring_offset, ring_bytes, position, bytes;
  };
  [[nodiscard]] const Place& place() const noexcept { return place_; }

 private:
  struct Ring {
    std::uint64_t offset = 0, bytes = 0, seed = 0;  // in the file; of its records' checksums
    std::uint64_t position = 0;                     // of the next record
    std::vector<std::uint64_t> words;               // a copy of bytes [from, to) of the log
    std::uint64_t from = 0, to = 0;
    std::uint64_t at_once = 0;  // bytes that are read together
    bool has = false;           // a whole record lies at `position`
    bool empty = false;         // until look()
    bool caught_up = false;     // it was empty once: what lies there is new, or of a lap before
  };
  [[nodiscard]] log::RecordView at_position(const Ring& ring) const noexcept {
    return {ring.words.data() + (ring.position - ring.from) / 8, ring.position};
  }
  [[nodiscard]] bool whole(const Ring& ring) const noexcept;
  Status fill(Ring& ring, std::uint64_t bytes);
  Status peek(Ring& ring, std::uint64_t after);
  void pass(Ring& ring, const log::RecordView& r) noexcept;

  const int fd_;
  const std::string path_;
  std::size_t unit_ = 64;
  std::vector<Ring> rings_;
  Place place_{};
};

}  // namespace perdure::engine::follow
