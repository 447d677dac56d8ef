// SPDX-License-Identifier: BSD-3-Clause
//
// CrashMedium: a medium in DRAM that records all its calls as a Trace, from which the explorer
// (explorer.hpp) makes every image that a power cut could have left. It decides nothing itself:
// marked.hpp decides which lines are written back when, as on real memory; persistency.hpp decides
// what a store, a write-back and a fence guarantee. As a stand-in for a file (fence_is_sync) it
// stages the log as the file medium does: a killed process leaves those blocks of the log that a
// fence wrote, and all of the data region.
// Thread safety: any thread may make all calls, under one mutex; the trace's order is the order in
// which memory changed.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "testing/call_sites.hpp"
#include "testing/dram_medium.hpp"
#include "testing/trace.hpp"

namespace perdure::medium {

using CrashOptions = DramOptions;

class CrashMedium final : public DramMedium {
 public:
  static Result<std::unique_ptr<CrashMedium>> make(const CrashOptions& options);

  std::string_view kind() const noexcept override { return "crash"; }
  std::string describe() const override { return "recording in DRAM, for crash exploration"; }

  /// Starts the trace. Returns the medium's present contents, to which the trace refers (words of
  /// the file: the log, then the data region up to its largest size).
  std::vector<std::uint64_t> begin_trace();
  /// begin: step `step` of the test's thread `of` begins. done: its first `steps` steps are
  /// acknowledged.
  void begin(std::uint64_t step, std::uint32_t of = 0);
  void done(std::uint64_t steps, std::uint32_t of = 0);
  /// After `events` more stores, streams, write-backs and fences the process is killed: what it
  /// does from then on reaches only this medium, and is not recorded. 0: at the next one. A part of
  /// that event still happens: a store's or stream's first `part` words or, on a stand-in for a
  /// file, a fence's first `part` blocks.
  void kill_after(std::uint64_t events, std::uint64_t part = 0);
  /// Kills the process before a fence takes effect, after `fences` more: what it has appended is
  /// visible then, and not durable.
  void kill_at_fence(std::uint64_t fences);
  /// Cancels them; returns false if the kill has happened.
  [[nodiscard]] bool survives();
  /// Kills the process now, if that has not happened. Returns a medium with the contents that this
  /// one had at the kill, like memory that outlives a process; the trace continues there. Call it
  /// once.
  std::unique_ptr<CrashMedium> heir();
  /// Ends recording and returns what was recorded since begin_trace().
  [[nodiscard]] Trace end_trace();

 private:
  explicit CrashMedium(const CrashOptions& options) : DramMedium(options) {}
  std::size_t storing(std::uint64_t offset, std::size_t n) override;
  void interrupted() override { leave(); }
  void stored(std::uint64_t offset, std::size_t n, bool past_cache) override;
  void flushed(std::uint64_t first, std::uint64_t count) override;
  void fenced(bool everything) override;
  void grown(std::uint64_t data_bytes) override;
  bool leave_out(const char* call, const void* site) noexcept override {
    return CallSites::of_process().skip(call, site);
  }
  // With mutex_ held:
  // One of the events: is it the fatal one?
  [[nodiscard]] bool killed_now(bool fence = false);
  void leave();  // kills the process
  void stage(std::uint64_t offset, std::uint64_t n);
  void write_staged(std::uint64_t most, bool everything);

  bool tracing_ = false;
  Trace trace_;
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  std::uint64_t left_ = never, part_ = 0;  // events until the kill; how much of the last happens
  bool at_fence_ = false;                  // only fences count
  std::vector<std::byte> written_;         // fence_is_sync: the log as it is in the file
  // Per thread slot: the log's blocks that its next fence writes.
  std::map<int, std::set<std::uint64_t>> staged_;
  std::unique_ptr<CrashMedium> heir_;
};

}  // namespace perdure::medium
