// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/follow/log_durable.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "perdure/base/cpu.hpp"

namespace perdure::engine::follow {

Status make_log_durable(const pool::OpenPool& file, const std::vector<LogReader::Place>& places) {
  if (file.medium().fence_is_sync()) {
    while (::fdatasync(file.fd()) != 0)
      if (errno != EINTR) return system_failure(file.path(), "fdatasync", errno);
    return {};
  }
  // Memory: a line that a store has left in a cache is written back from there, whoever stored it.
  const pool::Header& h = file.header();
  const auto flush = base::flush_lines(base::best_flush());
  void* const log = ::mmap(nullptr, h.log_bytes, PROT_READ, MAP_SHARED, file.fd(), 0);
  if (log == MAP_FAILED) return system_failure(file.path(), "mmap of the log", errno);
  const auto* const bytes = static_cast<const std::byte*>(log);
  for (const LogReader::Place& p : places) {
    const std::uint64_t at = p.position % p.ring_bytes;
    const std::uint64_t first = std::min(p.bytes, p.ring_bytes - at);
    flush(bytes + p.ring_offset + at, first / 64);
    flush(bytes + p.ring_offset, (p.bytes - first) / 64);
  }
  base::store_fence();
  ::munmap(log, h.log_bytes);
  return {};
}

}  // namespace perdure::engine::follow
