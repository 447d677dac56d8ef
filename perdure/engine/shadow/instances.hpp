// SPDX-License-Identifier: BSD-3-Clause
//
// The instances of `shadow`, the default engine.
#pragma once

#include <array>

#include "perdure/engine/instance.hpp"
#include "perdure/engine/shadow/shadow.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"

namespace perdure {

/// `shadow`, the default engine: transactions run on a copy in DRAM, their stores are logged, and the
/// data is brought up to date at checkpoints. Software transactional memory, biased towards one
/// thread for as long as one alone uses the pool.
struct shadow
    : engine::Instance<engine::shadow::Shadow<tm::Biased, engine::shadow::Reproduce::checkpoint>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {{{"shadow", type::name}}};
};
/// `shadow/stm`: the default engine with software transactional memory alone, without the bias
/// towards one thread.
struct shadow_stm
    : engine::Instance<engine::shadow::Shadow<tm::Stm, engine::shadow::Reproduce::checkpoint>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {{{"shadow/stm", type::name}}};
};
/// `shadow/global_lock`: the default engine with one lock for all updates.
struct shadow_global_lock
    : engine::Instance<
          engine::shadow::Shadow<tm::GlobalLock, engine::shadow::Reproduce::checkpoint>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {
      {{"shadow/global_lock", type::name}}};
};
/// `shadow/none`: the default engine without isolation; the caller keeps threads out of each
/// other's 8-byte words.
struct shadow_none
    : engine::Instance<engine::shadow::Shadow<tm::None, engine::shadow::Reproduce::checkpoint>,
                       Isolation::caller> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {{{"shadow/none", type::name}}};
};

/// What Pool<Root> is opened with unless told: the default engine, isolating by itself or
/// (isolation::caller) by the caller.
using default_engines = engines<shadow, shadow_none>;

/// All of the family.
using shadow_engines = engines<shadow, shadow_stm, shadow_global_lock, shadow_none>;

// Compiled once, in instances.cpp beside this.
extern template class engine::shadow::Shadow<tm::Biased, engine::shadow::Reproduce::checkpoint>;
extern template class engine::shadow::Shadow<tm::Stm, engine::shadow::Reproduce::checkpoint>;
extern template class engine::shadow::Shadow<tm::GlobalLock, engine::shadow::Reproduce::checkpoint>;
extern template class engine::shadow::Shadow<tm::None, engine::shadow::Reproduce::checkpoint>;

}  // namespace perdure
