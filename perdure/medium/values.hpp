// SPDX-License-Identifier: BSD-3-Clause
//
// Counters, Delays: the plain structs of a medium that the options and the statistics of a pool
// have. They are apart from Medium so that a program that opens pools need not compile it.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string_view>

#include "perdure/base/status.hpp"

namespace perdure::medium {

/// Counts of what a medium was asked to do since it was opened. They are exact: tests assert them.
struct Counters {
  std::uint64_t stores = 0;          ///< calls of store()
  std::uint64_t stored_bytes = 0;    ///< bytes given to store()
  std::uint64_t streamed_lines = 0;  ///< 64-byte lines given to stream() and append()
  std::uint64_t flushed_lines = 0;   ///< lines given to flush()
  std::uint64_t fences = 0;          ///< waits for durability
  /// system calls that waited for a device: fsync, msync, O_DSYNC writes
  std::uint64_t syncs = 0;
  /// bytes that those gave to the device (files), or lines x 64 (memory)
  std::uint64_t written_bytes = 0;

  /// Adds another medium's counters, member by member.
  Counters& operator+=(const Counters& o) noexcept;
  /// What was asked between `b` and `a`.
  friend Counters operator-(Counters a, const Counters& b) noexcept;
  /// The sum of everything that changes the medium: 0 over a read-only transaction (LAW-8).
  [[nodiscard]] std::uint64_t writes() const noexcept {
    return stores + streamed_lines + flushed_lines + fences + syncs;
  }
};

/// Each paper's model of slow memory, as its paper states it. All zero: no delay is added.
struct Delays {
  /// REWIND, Blurred Persistence: added per written-back line; consecutive writes to one line count
  /// once
  std::uint32_t write_ns = 0;
  std::uint32_t latency_cycles = 0;  ///< DudeTM: one persist waits max(latency, bytes / bandwidth)
  double bandwidth_gb_s = 0;         ///< DudeTM: 0 = unlimited
  /// SoftWrAP: Tw, the time per line at which an 8-line write buffer drains; a fence waits for that
  std::uint32_t drain_ns = 0;
  /// REWIND, Figure 10: added to each fence, whatever the fence waits for
  std::uint32_t fence_ns = 0;
  /// REWIND: a fence between two writes to one line does not make them count twice
  bool merge_over_fences = false;
  /// SoftWrAP: each thread has its own such buffer, and a fence waits for its own thread's buffer
  bool buffer_each = false;
  /// Blurred Persistence: flush_all, its wbinvd, is one flush operation however many lines it
  /// writes back
  bool flush_all_is_one = false;
  /// Whether no delay is added.
  [[nodiscard]] bool none() const noexcept {
    return write_ns == 0 && latency_cycles == 0 && bandwidth_gb_s <= 0 && drain_ns == 0 &&
           fence_ns == 0;
  }
  /// The papers' own settings by name: "none", "rewind", "blurred", "dudetm", "dudetm-3500",
  /// "softwrap"; the error `invalid` names the choices. Each may be followed by "+fence=NS" and
  /// "+write=NS" (fence_ns, write_ns), at most 1000000, by "+bandwidth=N" (bandwidth_gb_s, N GB/s),
  /// by "+wbinvd" (flush_all_is_one) and by "+each" (buffer_each), each once: "rewind+fence=500".
  static Result<Delays> named(std::string_view name);
};

}  // namespace perdure::medium
