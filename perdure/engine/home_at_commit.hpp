// SPDX-License-Identifier: BSD-3-Clause
//
// The part that engines share whose commits are synchronous: the committing thread makes its log
// durable within its TM's commit. An id is returned only after its record is durable (the strict
// order, `held`), so wait() does nothing. Each thread has its own log; threads beyond the
// configured number share the last one. README.md says what an engine adds.
// Thread safety: any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "perdure/engine/core.hpp"

namespace perdure::engine {

template <class Tm>
class HomeAtCommit {
 public:
  static constexpr const char* tm_name = Tm::name;
  static constexpr pool::ViewPolicy view_policy = pool::ViewPolicy::shared;

  Status wait(std::uint64_t) { return {}; }
  [[nodiscard]] std::uint64_t durable_id() const noexcept {
    // Read first: an id is marked as lost before its slot stops being pending.
    const std::uint64_t quiet = tm_.domain.quiet_id();
    return std::min(quiet, core_.first_lost() - 1);
  }
  [[nodiscard]] static constexpr bool held() noexcept { return true; }
  [[nodiscard]] Core& core() noexcept { return core_; }

 protected:
  HomeAtCommit(pool::PoolFile& file, const Config& config, const Recovery& recovery)
      : core_(file, config, recovery), tm_(file.header().applied) {}
  ~HomeAtCommit() = default;

  /// Implements checkpoint(), given `home_has(id)`, which checkpoints up to an id.
  template <class HomeHas>
  Status checkpoint(HomeHas&& home_has) {
    if ((core_.state() & ~Core::read_only_bit) != 0) return core_.why();
    if (core_.file.read_only()) return {};
    Status s = home_has(tm_.domain.quiet_id());
    if (!s.ok()) core_.poison(s);
    return s;
  }

  static pool::Identity a_log_each(const Config& config) {
    pool::Identity who;
    who.order = pool::Order::held;
    who.rings = std::max<std::uint32_t>(config.threads, 1);
    return who;
  }

  Core core_;
  typename Tm::Shared tm_;
  // Held by a commit while it applies its heap ops to the data region, because transactions share
  // bitmap words.
  std::mutex heap_bits_;
};

}  // namespace perdure::engine
