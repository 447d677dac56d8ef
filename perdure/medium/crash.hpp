// SPDX-License-Identifier: BSD-3-Clause
//
// CrashMedium: a medium in DRAM that writes down all that is asked of it, as a Trace from which the explorer (perdure/crash/) makes
// every image that a power cut could have left. It decides nothing itself: what a store, a flush and a fence promise is
// crash/persistency.hpp's.
// A ring's two addresses are one: events name file offsets. It is also a stand-in for a file: append_unit and fence_is_sync are options.
// Thread safety: everything by any thread, one mutex; the trace's order is the order in which memory changed.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "perdure/medium/mapped.hpp"
#include "perdure/medium/trace.hpp"

namespace perdure::medium {

struct CrashOptions {
  std::uint64_t log_bytes = region_align;
  std::uint64_t home_bytes = region_align;
  std::uint64_t max_home_bytes = 0;
  bool sparse = false;  ///< nothing is allocated (ALLOC-1): whoever stores must have asked
  std::size_t append_unit = line_bytes;
  bool fence_is_sync = false;
  std::string path = "crash";         ///< what errors name
  std::function<void()> before = {};  ///< called before each store, stream, flush and fence: where a scheduler may switch threads
};

class CrashMedium final : public MappedMedium {
 public:
  static Result<std::unique_ptr<CrashMedium>> make(const CrashOptions& options);

  std::string_view kind() const noexcept override { return "crash"; }
  std::string describe() const override { return "recording in DRAM, for crash exploration"; }
  void store(std::uint64_t offset, const void* src, std::size_t n) noexcept override;
  void stream(std::uint64_t offset, const void* src, std::size_t n) noexcept override;
  void flush(std::uint64_t offset, std::size_t n) noexcept override;
  Status fence() noexcept override;
  Status flush_all() noexcept override;
  void append(const RingMap& ring, std::uint64_t pos, const void* src, std::size_t n) noexcept override;

  /// The trace starts here: what the medium holds now is what it is about (words of the file, log then home, home to its largest size).
  std::vector<std::uint64_t> begin_trace();
  /// Step `step` of the test's thread `of` begins; the first `steps` of its steps are acknowledged.
  void begin(std::uint64_t step, std::uint32_t of = 0);
  void done(std::uint64_t steps, std::uint32_t of = 0);
  /// After so many more stores, streams, flushes and fences the process is killed: what it does from then on reaches this medium only, and is not
  /// recorded. 0: at the next one.
  void kill_after(std::uint64_t events);
  /// Takes kill_after back; false: it has happened.
  [[nodiscard]] bool survives();
  /// Kills it now, if that has not happened. Returns a medium that holds what this one held then, as memory does that outlives a process; the
  /// trace goes on there. Once.
  std::unique_ptr<CrashMedium> heir();
  /// What was recorded since begin_trace(); recording ends.
  [[nodiscard]] Trace end_trace();

 private:
  explicit CrashMedium(const CrashOptions& options);
  Status init();
  std::byte* address(std::uint64_t offset) const noexcept { return offset < log_bytes_ ? log_ + offset : home_ + (offset - log_bytes_); }
  void write(TraceEvent::Kind kind, std::uint64_t offset, const void* src, std::size_t n);  // mutex_ held
  void event();                                                                             // mutex_ held: one of kill_after's
  void leave();                                                                             // mutex_ held: the process is killed
  Status give_blocks(std::uint64_t, std::uint64_t) override { return {}; }
  Status extend(std::uint64_t from, std::uint64_t to) override;
  void shrink(std::uint64_t to) noexcept override;

  CrashOptions options_;
  Descriptor memory_;
  mutable std::mutex mutex_;
  bool tracing_ = false;
  Trace trace_;
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  std::uint64_t left_ = never;  // events until it is killed
  std::unique_ptr<CrashMedium> heir_;
};

}  // namespace perdure::medium
