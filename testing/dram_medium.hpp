// SPDX-License-Identifier: BSD-3-Clause
//
// DramMedium: the simulated hardware of the media that tests record with (CrashMedium,
// RecordingMedium): a memory file, and a report of each store, write-back and fence in the order in
// which memory changed. The code above it, which marks lines and decides what is written back, is
// that of real memory (marked.hpp), and a test's scheduler may switch threads between any two of
// its steps. A ring's two addresses are one: reports give file offsets. It is also a stand-in for a
// file: append_unit and fence_is_sync are options.
// Thread safety: any thread may make all calls, under one mutex for memory and reports.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <string>

#include "perdure/medium/marked.hpp"

namespace perdure::medium {

struct DramOptions {
  std::uint64_t log_bytes = region_align;
  std::uint64_t data_bytes = region_align;
  std::uint64_t max_data_bytes = 0;
  bool sparse = false;  ///< only the image's nonzero pages are allocated (ALLOC-1)
  std::size_t append_unit = line_bytes;
  bool fence_is_sync = false;
  bool keep_bytes = false;  ///< RecordingMedium: events contain the stored bytes
  /// RecordingMedium: false: it keeps no events and does not know what is durable, which takes much
  /// less time. It is for pools that are only opened and looked at.
  bool record = true;
  bool read_only = false;
  std::string path = {};  ///< the name in errors; empty: the medium's kind
  /// Called before each step, without a lock: a scheduler may switch threads there. If it is set,
  /// stores of more than a line are made in two parts.
  std::function<void(Step)> step = {};
};

class DramMedium : public MarkedMedium<DramMedium> {
 public:
  ~DramMedium() override;
  [[nodiscard]] bool drop_copies(std::byte* address, std::uint64_t n) noexcept override {
    step(Step::drop);
    return MarkedMedium::drop_copies(address, n);
  }

 protected:
  explicit DramMedium(const DramOptions& options);

  /// Makes the memory, with the contents `image` (the log, then the data region; zeros follow).
  /// `name` is the memory file's.
  Status init(const char* name, std::span<const std::byte> image);

  // Reports, made with mutex_ held.
  /// At most `n` bytes are about to be stored. Returns the number of bytes after which the report
  /// ends and interrupted() is called; `n` means after all of them.
  virtual std::size_t storing(std::uint64_t /*offset*/, std::size_t n) { return n; }
  virtual void interrupted() {}
  /// Memory holds these bytes now.
  virtual void stored(std::uint64_t offset, std::size_t n, bool past_cache) = 0;
  virtual void flushed(std::uint64_t first, std::uint64_t count) = 0;
  virtual void fenced(bool everything) = 0;
  virtual void grown(std::uint64_t data_bytes) = 0;
  // Reports made without mutex_.
  /// A fence, or the one that ends a flush_all (`everything`), takes effect: it calls fenced().
  virtual void fence_now(bool everything);
  virtual bool leave_out(const char* /*call*/, const void* /*site*/) noexcept { return false; }

  DramOptions options_;
  mutable std::mutex mutex_;

 private:
  friend MarkedMedium<DramMedium>;

  void put(std::uint64_t offset, const void* src, std::size_t n) noexcept {
    put(offset, src, n, false);
  }
  void put_past(std::uint64_t offset, const void* src, std::size_t n) noexcept {
    put(offset, src, n, true);
  }
  void put_past_ring(const RingMap& ring, std::uint64_t at, const void* src,
                     std::size_t n) noexcept;
  void put(std::uint64_t offset, const void* src, std::size_t n, bool past_cache) noexcept;
  void put_part(std::uint64_t offset, const std::byte* src, std::size_t n, bool past_cache);
  void write_back(std::uint64_t first, std::uint64_t count) noexcept;
  void write_back_ring(const RingMap& ring, std::uint64_t at, std::uint64_t count) noexcept;
  static void charge(std::uint64_t, std::uint64_t) noexcept {}
  Status wait(bool everything) noexcept {
    fence_now(everything);
    return {};
  }
  static constexpr bool flush_all_is_one() noexcept { return false; }
  static Status sync_metadata() noexcept { return {}; }
  void step(Step step) noexcept {
    if (options_.step) options_.step(step);
  }
  static void covered(std::uint64_t, std::uint64_t) noexcept {}

  Status give_blocks(std::uint64_t, std::uint64_t) override { return {}; }
  Status extend(std::uint64_t from, std::uint64_t to) override;
  Status make_hole(std::uint64_t from, std::uint64_t to) override;
  void shrink(std::uint64_t to) noexcept override;

  Descriptor memory_;
};

}  // namespace perdure::medium
