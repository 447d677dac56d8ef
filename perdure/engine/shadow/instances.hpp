// SPDX-License-Identifier: BSD-3-Clause
//
// All instances of `shadow`, the default engine.
#pragma once

#include <array>

#include "perdure/engine/shadow/default_instances.hpp"
#include "perdure/tm/global_lock.hpp"

namespace perdure {

/// `shadow/stm`: the default engine with software transactional memory alone, without the bias
/// towards one thread.
struct shadow_stm : engine::Instance<engine::shadow::Shadow<tm::Stm>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {{{"shadow/stm", type::name}}};
};
/// `shadow/global_lock`: the default engine with one lock for all updates.
struct shadow_global_lock : engine::Instance<engine::shadow::Shadow<tm::GlobalLock>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {
      {{"shadow/global_lock", type::name}}};
};

/// All instances of the family.
using shadow_engines = engines<shadow, shadow_stm, shadow_global_lock, shadow_none>;

// Compiled once, in instances.cpp beside this.
extern template class engine::shadow::Shadow<tm::Stm>;
extern template class engine::shadow::Shadow<tm::GlobalLock>;

}  // namespace perdure
