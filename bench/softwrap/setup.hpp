// SPDX-License-Identifier: BSD-3-Clause
//
// The parameters with which a system is opened for SoftWrAP's figures (papers: SoftWrAP, MSST '15,
// section V), and the system's counters.
#pragma once

#include <cstdint>
#include <string>

#include "papers/softwrap/options.hpp"
#include "perdure/medium/medium.hpp"

namespace bench::softwrap {

struct Setup {
  std::string system = "softwrap/none";  ///< non-atomic, undo-log, or an instance of the registry
  std::string directory = "/dev/shm";
  /// V-B: the time that a line takes to leave the write buffer; 0: no delay, DRAM.
  std::uint32_t tw_ns = 1000;
  /// All threads share the write buffer; otherwise each has its own.
  bool one_buffer = false;
  std::uint32_t alias_entries = 8192;  ///< V-B.2: of each of the two alias tables
  /// SoftwrapOptions' of these names.
  bool wait_at_threshold = false, stream_home = false;
  std::uint64_t log_size = std::uint64_t{16} << 20;  ///< bytes of each thread's log
  /// The maximum number of bytes that the workload needs.
  std::uint64_t data_size = std::uint64_t{1} << 30;
  unsigned threads = 1;  ///< the threads that open wraps

  [[nodiscard]] perdure::medium::Delays delays() const {
    perdure::medium::Delays d;
    d.drain_ns = tw_ns;
    d.buffer_each = !one_buffer;
    return d;
  }
  [[nodiscard]] perdure::papers::SoftwrapOptions softwrap() const {
    return {.alias_entries = alias_entries,
            .wait_at_threshold = wait_at_threshold,
            .stream_home = stream_home};
  }
};

/// Counted since a system was opened, over all threads.
struct Counts {
  std::uint64_t fences = 0;    ///< the paper's pcommits
  std::uint64_t streamed = 0;  ///< lines written past the cache
  std::uint64_t flushed = 0;   ///< lines written back
  std::uint64_t rounds = 0;    ///< tables that were checkpointed

  friend Counts operator-(Counts a, const Counts& b) {
    a.fences -= b.fences;
    a.streamed -= b.streamed;
    a.flushed -= b.flushed;
    a.rounds -= b.rounds;
    return a;
  }
};

/// Maps the pages of [at, at + n), so that no page fault is measured.
inline void touch_pages(const std::byte* at, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; i += 4096) (void)*static_cast<const volatile std::byte*>(at + i);
}

}  // namespace bench::softwrap
