// SPDX-License-Identifier: BSD-3-Clause
//
// The part that engines share whose commits are synchronous: the committing thread makes its log
// durable within its TM's commit. An id is returned only after its record is durable (the strict
// order), so wait() does nothing. The data region is mapped itself, without a DRAM copy: an engine
// stores to it through the medium. The logs are the engine's own, in a ThreadLogs with one for each
// of the rings that a_log_each() asks for. README.md says what an engine adds.
// Thread safety: any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "perdure/engine/engine_base.hpp"

namespace perdure::engine {

template <class Tm>
class DataAtCommit {
 public:
  static constexpr const char* tm_name = Tm::name;
  static constexpr pool::ViewPolicy view_policy = pool::ViewPolicy::shared;

  Status wait(std::uint64_t) { return {}; }
  [[nodiscard]] std::uint64_t durable_id() const noexcept {
    // Read first: an id is marked as lost before its slot stops being pending.
    const std::uint64_t watermark = tm_.domain.low_watermark();
    return std::min(watermark, core_.first_lost() - 1);
  }
  [[nodiscard]] static constexpr bool strict() noexcept { return true; }
  [[nodiscard]] EngineBase& core() noexcept { return core_; }

 protected:
  DataAtCommit(pool::OpenPool& file, const Config& config, const Recovery& recovery)
      : core_(file, config, recovery), tm_(file.header().checkpoint_id) {
    core_.views_in(tm_.domain);
  }
  ~DataAtCommit() = default;

  /// Implements checkpoint(), given `checkpoint_up_to(id)`, which checkpoints up to an id.
  template <class CheckpointUpTo>
  Status checkpoint(CheckpointUpTo&& checkpoint_up_to) {
    if ((core_.state() & ~EngineBase::read_only_bit) != 0) return core_.why();
    if (core_.file.read_only()) return {};
    Status s = checkpoint_up_to(tm_.domain.low_watermark());
    if (!s.ok()) core_.poison(s);
    return s;
  }

  /// For E::identity: the strict order, and one ring for each configured thread.
  static pool::Identity a_log_each(const Config& config) {
    pool::Identity who;
    who.order = pool::CommitOrder::strict;
    who.rings = std::max<std::uint32_t>(config.threads, 1);
    return who;
  }

  EngineBase core_;
  typename Tm::Shared tm_;
  // Held by a commit while it applies its heap ops to the data region, because transactions share
  // bitmap words.
  std::mutex heap_bits_;
};

}  // namespace perdure::engine
