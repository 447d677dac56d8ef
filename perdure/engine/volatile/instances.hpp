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

struct volatile_ : engine::Instance<engine::volatile_memory::Volatile<tm::Biased>> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"volatile", type::name}}};
};
struct volatile_stm : engine::Instance<engine::volatile_memory::Volatile<tm::Stm>> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"volatile/stm", type::name}}};
};
struct volatile_global_lock : engine::Instance<engine::volatile_memory::Volatile<tm::GlobalLock>> {
  static constexpr std::array<engine::InstanceName, 1> names = {
      {{"volatile/global_lock", type::name}}};
};
struct volatile_htm : engine::Instance<engine::volatile_memory::Volatile<tm::Htm<tm::Rtm>>> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"volatile/htm", type::name}}};
};
struct volatile_htm_stand_in
    : engine::Instance<engine::volatile_memory::Volatile<tm::Htm<tm::RtmStandIn>>> {
  static constexpr std::array<engine::InstanceName, 1> names = {
      {{"volatile/htm-stand-in", type::name}}};
};
struct volatile_none
    : engine::Instance<engine::volatile_memory::Volatile<tm::None>, Isolation::caller> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"volatile/none", type::name}}};
};

/// All instances of the family.
using volatile_engines = engines<volatile_, volatile_stm, volatile_global_lock, volatile_htm,
                                 volatile_htm_stand_in, volatile_none>;

}  // namespace perdure
