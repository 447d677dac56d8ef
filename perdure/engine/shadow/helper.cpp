// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/shadow/helper.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <charconv>
#include <limits>
#include <optional>

#include "perdure/base/descriptor.hpp"

namespace perdure::engine::shadow {
namespace {

constexpr int for_ever = std::numeric_limits<int>::max();

bool has_one_processor() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  // The kernel refuses a set that is too small for its processors: then there are many.
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < 2;
}

}  // namespace

std::optional<std::chrono::nanoseconds> Helper::waited() noexcept {
  const int file = base::open_file("/proc/thread-self/schedstat", O_RDONLY);
  if (file < 0) return {};
  char text[96];
  const ssize_t n = read(file, text, sizeof text);
  close(file);
  if (n <= 0) return {};
  const char* const end = text + n;
  std::uint64_t ran = 0, ready = 0;
  const auto first = std::from_chars(text, end, ran);
  if (first.ec != std::errc() || first.ptr == end) return {};
  if (std::from_chars(first.ptr + 1, end, ready).ec != std::errc()) return {};
  return std::chrono::nanoseconds(ready);
}

Helper::Helper(ShadowOptions::Helper use, Waited* measure) noexcept
    : measure_(use == ShadowOptions::Helper::automatic ? measure : nullptr) {
  // Then no thread is started.
  if (measure_ != nullptr && has_one_processor())
    resting_.store(for_ever, std::memory_order_relaxed);
}

void Helper::one_less_to_rest() noexcept {
  const int left = resting_.load(std::memory_order_relaxed);
  if (left > 0 && left != for_ever) resting_.store(left - 1, std::memory_order_relaxed);
}

void Helper::begin() noexcept {
  asked_.store(false, std::memory_order_relaxed);
  if (measure_ == nullptr) return;
  const auto before = measure_();
  // The thread has the processors of the one that has woken it first.
  if (!before || has_one_processor()) return resting_.store(for_ever, std::memory_order_relaxed);
  waited_ = *before;
  begun_ = std::chrono::steady_clock::now();
}

void Helper::end(bool worked, bool finished) noexcept {
  // The release pairs with checkpoints(): finish_checkpoint() has counted this one, too.
  if (finished) checkpoints_.fetch_add(1, std::memory_order_release);
  if (measure_ == nullptr || !worked || !wanted()) return;
  const auto took = std::chrono::steady_clock::now() - begun_;
  const auto after = measure_();
  if (after && *after - waited_ > took / 8) resting_.store(rest, std::memory_order_relaxed);
}

}  // namespace perdure::engine::shadow
