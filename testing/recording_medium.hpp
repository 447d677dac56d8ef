// SPDX-License-Identifier: BSD-3-Clause
//
// RecordingMedium: a medium in DRAM that records its calls in order, and knows what a power cut
// could not destroy.
//
// marked.hpp decides which lines are written back when, as on real memory; persistency.hpp (px86)
// decides what is durable then, as for the crash explorer. A file promises no less.
// Thread safety: any thread may make all calls, under one mutex; hooks run outside it and may
// block.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "testing/dram_medium.hpp"
#include "testing/persistency.hpp"

namespace perdure::medium {

struct Event {
  enum class Kind : std::uint8_t { store, stream, flush, fence, flush_all, grow, mark };
  Kind kind = Kind::mark;
  int thread = 0;  ///< base::thread_slot()
  /// store, stream, append (split where a ring wraps), flush (whole lines): file offset; mark: id
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;      ///< store, stream, flush: length; grow: the data region's new size
  std::string label;            ///< mark: what happened, "acknowledge"
  std::vector<std::byte> data;  ///< store, stream: the bytes, if keep_bytes is set
};
[[nodiscard]] std::string_view name(Event::Kind kind) noexcept;

using RecordingOptions = DramOptions;

class RecordingMedium final : public DramMedium {
 public:
  /// A medium with the contents `image` (the log, then the data region; zeros follow a shorter
  /// image), all of it durable.
  static Result<std::unique_ptr<RecordingMedium>> make(const RecordingOptions& options,
                                                       std::span<const std::byte> image = {});

  std::string_view kind() const noexcept override { return "recording"; }
  std::string describe() const override { return "recording in DRAM"; }

  /// Adds an event of the test's own to the list: mark("acknowledge", 7).
  void mark(std::string_view label, std::uint64_t id);
  [[nodiscard]] std::vector<Event> events() const;
  void forget_events();

  /// What is surely there after a power cut now: the log, then the data region.
  [[nodiscard]] std::vector<std::byte> durable_image() const;
  /// What the program sees now, which is what a killed process leaves.
  [[nodiscard]] std::vector<std::byte> current_image() const;
  /// Are the present bytes of [offset, offset + n) surely durable?
  [[nodiscard]] bool is_durable(std::uint64_t offset, std::uint64_t n) const;

  /// Each fence's thread calls `before` before the fence takes effect, and `after` after it.
  /// Returns when no thread is in the old hooks any more: never call this from a hook.
  void set_fence_hooks(std::function<void()> before, std::function<void()> after);

 private:
  explicit RecordingMedium(const RecordingOptions& options) : DramMedium(options) {}
  void stored(std::uint64_t offset, std::size_t n, bool past_cache) override;
  void flushed(std::uint64_t first, std::uint64_t count) override;
  void fenced(bool everything) override;
  void grown(std::uint64_t data_bytes) override;
  void fence_now(bool everything) override;
  void must_record(const char* call) const;  // aborts if nothing is recorded
  void happened(const Event& event);         // mutex_ is held; trace_ has what the model must apply

  Trace trace_;
  std::unique_ptr<Image> image_;  // what is surely durable
  std::unique_ptr<Persistency> pending_;
  std::vector<Event> events_;
  struct Hooks {
    std::function<void()> before, after;
    unsigned running = 0;
  };
  std::mutex hooks_mutex_;
  std::condition_variable hooks_idle_;
  std::shared_ptr<Hooks> hooks_;  // null if there are none
};

}  // namespace perdure::medium
