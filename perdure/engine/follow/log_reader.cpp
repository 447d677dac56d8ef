// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/follow/log_reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace perdure::engine::follow {
namespace {

// Where nothing new is expected, and at most.
constexpr std::uint64_t least_at_once = 4096, most_at_once = 256 << 10;

Status read_all(int fd, const std::string& path, std::byte* to, std::uint64_t bytes,
                std::uint64_t offset) {
  while (bytes > 0) {
    const ssize_t n = ::pread(fd, to, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_failure(path, "read of the log", errno);
    if (n == 0) return failure(Code::corrupt, path, "a file that became shorter", {}, "");
    to += n, offset += static_cast<std::uint64_t>(n), bytes -= static_cast<std::uint64_t>(n);
  }
  return {};
}

}  // namespace

void LogReader::start(const pool::Header& h) {
  rings_.clear();
  unit_ = h.append_unit;
  rings_.resize(h.ring_count);
  for (std::uint32_t i = 0; i < h.ring_count; ++i) {
    Ring& ring = rings_[i];
    ring.offset = pool::ring_offset(h, i);
    ring.bytes = h.ring_bytes;
    ring.seed = log::ring_seed(h.uuid, h.epoch, i);
    ring.position = ring.from = ring.to = h.ring_head[i];
    ring.at_once = least_at_once;
  }
}

// Copies `bytes` bytes from the ring's position on.
Status LogReader::fill(Ring& ring, std::uint64_t bytes) {
  bytes = std::min(bytes, ring.bytes);
  if (ring.words.size() * 8 < bytes) ring.words.resize(bytes / 8);
  ring.from = ring.to = ring.position;
  auto* const to = reinterpret_cast<std::byte*>(ring.words.data());
  const std::uint64_t at = ring.position % ring.bytes, first = std::min(bytes, ring.bytes - at);
  if (Status s = read_all(fd_, path_, to, first, ring.offset + at); !s.ok()) return s;
  if (Status s = read_all(fd_, path_, to + first, bytes - first, ring.offset); !s.ok()) return s;
  ring.to = ring.from + bytes;
  return {};
}

bool LogReader::whole(const Ring& ring) const noexcept {
  if (ring.position < ring.from || ring.to - ring.position < log::header_words * 8 ||
      ring.to <= ring.position)
    return false;
  const log::RecordView r = at_position(ring);
  return r.plausible(ring.bytes / 2) && r.bytes(unit_) <= ring.to - ring.position &&
         r.checks(ring.seed);
}

// Sets ring.has to whether a whole record lies at its position, or ring.empty.
Status LogReader::peek(Ring& ring, std::uint64_t after) {
  if (ring.has || ring.empty) return {};
  // Whether what was copied may be the next record at all: ids rise along a ring, so what lies at
  // its end is older, unless it is new. That saves checking a long record of the lap before again
  // and again.
  const auto may_be = [&] {
    return ring.to >= ring.position + log::header_words * 8 && ring.from <= ring.position &&
           (!ring.caught_up || at_position(ring).id() > after);
  };
  if (!may_be() || !whole(ring)) {
    // It may have been written since it was copied.
    if (Status s = fill(ring, ring.at_once); !s.ok()) return s;
    if (may_be() && !whole(ring)) {
      const log::RecordView r = at_position(ring);
      const std::uint64_t bytes = r.plausible(ring.bytes / 2) ? r.bytes(unit_) : 0;
      if (bytes > ring.at_once)
        if (Status s = fill(ring, bytes); !s.ok()) return s;
    }
    const bool found = may_be() && whole(ring);
    ring.at_once = found ? std::min(ring.at_once * 2, most_at_once) : least_at_once;
    if (!found) {
      ring.empty = ring.caught_up = true;
      return {};
    }
  }
  ring.has = true;
  return {};
}

void LogReader::pass(Ring& ring, const log::RecordView& r) noexcept {
  ring.position += r.bytes(unit_);
  ring.has = false;
}

Status LogReader::next(std::uint64_t after, std::uint64_t limit, log::RecordView& r, bool& found) {
  found = false;
  // Those first that are known to have a record: looking costs a system call.
  for (const bool look : {false, true})
    for (Ring& ring : rings_) {
      for (;;) {
        if (look)
          if (Status s = peek(ring, after); !s.ok()) return s;
        if (!ring.has) break;
        r = at_position(ring);
        if (r.id() > after) break;
        pass(ring, r);
      }
      if (!ring.has || r.id() - r.transactions() > after || r.id() > limit) continue;
      place_ = {ring.offset, ring.bytes, ring.position, r.bytes(unit_)};
      found = true;
      return {};
    }
  return {};
}

}  // namespace perdure::engine::follow
