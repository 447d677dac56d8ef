// SPDX-License-Identifier: BSD-3-Clause
//
// RecordingMedium: a medium in DRAM that remembers what was asked of it, in order, and knows what a power cut could not take.
//
// Durability follows Px86 (Raad et al., POPL'20; Khyzha & Lahav, POPL'21), kept for each 8-byte word of a line:
//   R1 a flush captures the line as it is then (a prefix of its stores); the capture is durable after the next fence of that thread;
//   R2 a streamed word is durable after the next fence of the thread that streamed it; another thread's flush does not capture it;
//   R3 nothing else is surely durable; what is never goes back (an older capture that is fenced later changes nothing).
// A ring's two addresses are one line. It is also a stand-in for a file: append_unit and fence_is_sync are options (a file promises no
// less). Thread safety: everything by any thread, one mutex; hooks run outside it and may block.
#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "perdure/medium/mapped.hpp"

namespace perdure::medium {

struct Event {
  enum class Kind : std::uint8_t { store, stream, flush, fence, flush_all, grow, mark };
  Kind kind = Kind::mark;
  int thread = 0;               ///< base::thread_slot()
  std::uint64_t offset = 0;     ///< store, stream (append too, split where a ring wraps), flush: file offset; mark: the id
  std::uint64_t bytes = 0;      ///< store, stream, flush: how many; grow: home's new size
  std::string label;            ///< mark: what happened, "acknowledge"
  std::vector<std::byte> data;  ///< store, stream: the bytes, when asked for
};
[[nodiscard]] std::string_view name(Event::Kind kind) noexcept;

struct RecordingOptions {
  std::uint64_t log_bytes = region_align;
  std::uint64_t home_bytes = region_align;
  std::uint64_t max_home_bytes = 0;
  bool sparse = false;  ///< nothing is allocated (ALLOC-1) but the image's pages that are not zero: whoever stores must have asked
  std::size_t append_unit = line_bytes;
  bool fence_is_sync = false;
  bool keep_bytes = false;  ///< events hold the bytes stored
  bool read_only = false;
  std::string path = "recording";  ///< what errors name
};

class RecordingMedium final : public MappedMedium {
 public:
  /// A medium that holds `image` (log, then home; shorter: zeros follow), all of it durable.
  static Result<std::unique_ptr<RecordingMedium>> make(const RecordingOptions& options, std::span<const std::byte> image = {});
  ~RecordingMedium() override;

  std::string_view kind() const noexcept override { return "recording"; }
  std::string describe() const override { return "recording in DRAM"; }
  void store(std::uint64_t offset, const void* src, std::size_t n) noexcept override;
  void stream(std::uint64_t offset, const void* src, std::size_t n) noexcept override;
  void flush(std::uint64_t offset, std::size_t n) noexcept override;
  Status fence() noexcept override;
  Status flush_all() noexcept override;
  void append(const RingMap& ring, std::uint64_t pos, const void* src, std::size_t n) noexcept override;

  /// Notes something of the test's in the list of events: mark("acknowledge", 7).
  void mark(std::string_view label, std::uint64_t id);
  [[nodiscard]] std::vector<Event> events() const;
  void forget_events();

  /// What is surely there after a power cut now: log, then home.
  [[nodiscard]] std::vector<std::byte> durable_image() const;
  /// What the program sees now: what a killed process leaves.
  [[nodiscard]] std::vector<std::byte> current_image() const;
  /// Are the present bytes of [offset, offset + n) surely durable?
  [[nodiscard]] bool is_durable(std::uint64_t offset, std::uint64_t n) const;

  /// Called by each fence's thread before it takes effect, and after. Returns when no thread is in the old ones any more: never call
  /// this from a hook.
  void set_fence_hooks(std::function<void()> before, std::function<void()> after);

 private:
  static constexpr std::size_t words = line_bytes / 8;
  struct Line {
    std::array<std::uint64_t, words> version{}, durable{};  // 0: as in the image the medium began with
    std::array<int, words> streamed_by{};                   // thread slot + 1; 0: an ordinary store
  };
  struct Capture {
    std::array<std::uint64_t, words> version{}, value{};  // version 0: not captured
  };
  using Captures = std::unordered_map<std::uint64_t, Capture>;

  explicit RecordingMedium(const RecordingOptions& options);
  Status init(std::span<const std::byte> image);
  std::byte* address(std::uint64_t offset) const noexcept { return offset < log_bytes_ ? log_ + offset : home_ + (offset - log_bytes_); }
  void write(Event::Kind kind, std::uint64_t offset, const void* src, std::size_t n);  // mutex_ held
  void capture(int thread, std::uint64_t line);                                        // mutex_ held
  void settle(int thread);                                                             // mutex_ held: a fence's effect
  void set_durable(std::uint64_t line, std::size_t word, std::uint64_t value) noexcept;
  Status give_blocks(std::uint64_t, std::uint64_t) override { return {}; }
  Status extend(std::uint64_t from, std::uint64_t to) override;
  void shrink(std::uint64_t to) noexcept override;

  RecordingOptions options_;
  Descriptor memory_;
  std::byte* durable_ = nullptr;  // the durable image, address space for the largest size
  std::uint64_t durable_bytes_ = 0;

  mutable std::mutex mutex_;
  std::uint64_t clock_ = 0;
  std::unordered_map<std::uint64_t, Line> lines_;
  std::unordered_map<int, Captures> pending_;
  std::vector<Event> events_;
  struct Hooks {
    std::function<void()> before, after;
    unsigned running = 0;
  };
  std::mutex hooks_mutex_;
  std::condition_variable hooks_idle_;
  std::shared_ptr<Hooks> hooks_;  // null: none
};

}  // namespace perdure::medium
