// SPDX-License-Identifier: BSD-3-Clause
//
// All instances of `shadow`, the default engine.
#pragma once

#include <array>

#include "perdure/engine/shadow/default_instances.hpp"
#include "perdure/engine/shadow/htm.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/rtm.hpp"
#include "perdure/tm/rtm_stand_in.hpp"

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

/// `shadow/htm`: the default engine with hardware transactions (RTM), whose records become durable
/// after they are visible; for pools of the strict order. Opening is `unsupported` where the
/// processor has none.
struct shadow_htm : engine::Instance<engine::shadow::ShadowHtm<tm::Htm<tm::Rtm>>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {{{"shadow/htm", type::name}}};
};
/// `shadow/htm-stand-in`: `shadow/htm` on a stand-in for the hardware, for tests on any machine.
struct shadow_htm_stand_in : engine::Instance<engine::shadow::ShadowHtm<tm::Htm<tm::RtmStandIn>>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {
      {{"shadow/htm-stand-in", type::name}}};
};

/// All instances of the family.
using shadow_engines =
    engines<shadow, shadow_stm, shadow_global_lock, shadow_htm, shadow_htm_stand_in, shadow_none>;

// Compiled once, in instances.cpp beside this.
extern template class engine::shadow::Shadow<tm::Stm>;
extern template class engine::shadow::Shadow<tm::GlobalLock>;
extern template class engine::shadow::ShadowHtm<tm::Htm<tm::Rtm>>;
extern template class engine::shadow::ShadowHtm<tm::Htm<tm::RtmStandIn>>;

}  // namespace perdure
