// SPDX-License-Identifier: BSD-3-Clause
//
// The instances of `volatile`, which promises no durability.
#pragma once

#include <array>

#include "perdure/engine/instance.hpp"
#include "perdure/engine/volatile/volatile.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"
#include "perdure/tm/rtm.hpp"
#include "perdure/tm/rtm_stand_in.hpp"

namespace perdure {

/// `volatile`: isolation without any durability, to measure what durability costs; software
/// transactional memory, biased towards one thread.
struct volatile_ : engine::Instance<engine::volatile_memory::Volatile<tm::Biased>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {{{"volatile", type::name}}};
};
/// `volatile/stm`: the same without the bias.
struct volatile_stm : engine::Instance<engine::volatile_memory::Volatile<tm::Stm>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {{{"volatile/stm", type::name}}};
};
/// `volatile/global_lock`: the same with one lock for all updates.
struct volatile_global_lock : engine::Instance<engine::volatile_memory::Volatile<tm::GlobalLock>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {
      {{"volatile/global_lock", type::name}}};
};
/// `volatile/htm`: the same with hardware transactions (RTM); opening is `unsupported` where the
/// processor has none.
struct volatile_htm : engine::Instance<engine::volatile_memory::Volatile<tm::Htm<tm::Rtm>>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {{{"volatile/htm", type::name}}};
};
/// `volatile/htm-stand-in`: `volatile/htm` on a stand-in for the hardware, for tests on any
/// machine.
struct volatile_htm_stand_in
    : engine::Instance<engine::volatile_memory::Volatile<tm::Htm<tm::RtmStandIn>>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {
      {{"volatile/htm-stand-in", type::name}}};
};
/// `volatile/none`: the same without isolation; the caller keeps threads out of each other's 8-byte
/// words.
struct volatile_none
    : engine::Instance<engine::volatile_memory::Volatile<tm::None>, Isolation::caller> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {{{"volatile/none", type::name}}};
};

/// All instances of the family.
using volatile_engines = engines<volatile_, volatile_stm, volatile_global_lock, volatile_htm,
                                 volatile_htm_stand_in, volatile_none>;

}  // namespace perdure
