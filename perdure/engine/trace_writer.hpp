// SPDX-License-Identifier: BSD-3-Clause
//
// TraceWriter: a workload trace while it is written: its file, its limit, and the numbers that
// order the transactions of different threads. workload_recorder.hpp says what it contains.
//
// A chunk's head is written after its words: a program that is killed leaves a head with its words,
// or none.
// Thread safety: any thread may make all calls.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "perdure/base/thread_slot.hpp"
#include "perdure/engine/workload_trace.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::engine {

class TraceWriter {
 public:
  /// Makes the writer for the pool that is being opened with `config`. Returns null where no
  /// recording is asked for: neither Config::trace nor the environment variable PERDURE_TRACE names
  /// a file. `%p` in the name is replaced by the process's number. If the process has recorded to
  /// this name before, the next pools go to NAME.2, NAME.3, ... Throws perdure::error: the file
  /// can't be created, or (busy) another process is recording to it.
  static std::unique_ptr<TraceWriter> for_pool(pool::OpenPool& file, const Config& config);
  TraceWriter(const std::string& name, pool::OpenPool& file, const Config& config);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // Relaxed: a flag without a partner.
  [[nodiscard]] bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
  [[nodiscard]] pool::OpenPool& file() noexcept { return file_; }
  [[nodiscard]] std::uint64_t limit() const noexcept { return header_.limit_bytes; }
  /// Reserves space for `bytes` more of ops. Returns false and ends the recording if they exceed
  /// the limit.
  [[nodiscard]] bool take_room(std::uint64_t bytes) noexcept;
  /// Draws a number of the causal order: a transaction draws it before its commit can be seen, so
  /// any transaction that has seen it draws a higher one.
  [[nodiscard]] std::uint64_t draw() noexcept {
    return sequence_.fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t number_thread() noexcept {
    return threads_.fetch_add(1, std::memory_order_relaxed);
  }

  /// Appends a chunk, of which the caller sets thread, words, transactions, retried, rolled_back.
  void append(TraceChunk& chunk, const std::uint64_t* words) noexcept;
  void stop(TraceEnd why) noexcept;
  /// Writes the final header: what ended the recording, unless something had ended it before.
  void finish(TraceEnd why) noexcept;
  /// Returns whether this is a forked child's copy: the file is the parent's.
  [[nodiscard]] bool in_child() const noexcept { return owner_.is_parent(); }

 private:
  using Clock = std::chrono::steady_clock;
  bool write_header() noexcept;

  pool::OpenPool& file_;
  int fd_ = -1;
  const base::Owner owner_;
  const Clock::time_point begun_ = Clock::now();
  std::atomic<bool> on_{true};
  std::atomic<std::uint64_t> room_used_{0}, sequence_{0};
  std::atomic<std::uint32_t> threads_{0};
  std::mutex mutex_;  // guards the file and the members below
  TraceHeader header_{};
  off_t end_ = sizeof(TraceHeader);
  bool failed_ = false;
};

}  // namespace perdure::engine
