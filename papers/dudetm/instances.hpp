// SPDX-License-Identifier: BSD-3-Clause
//
// The instances of `dudetm` and its forms.
#pragma once

#include <array>

#include "perdure/engine/instance.hpp"
#include "perdure/engine/shadow/shadow.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"
#include "perdure/tm/rtm.hpp"
#include "perdure/tm/rtm_stand_in.hpp"

namespace perdure {

struct dudetm
    : engine::Instance<engine::shadow::Shadow<tm::Biased, engine::shadow::Reproduce::replay>> {
  static constexpr auto& names = engine::shadow::dudetm_names;
};
struct dudetm_stm
    : engine::Instance<engine::shadow::Shadow<tm::Stm, engine::shadow::Reproduce::replay>> {
  static constexpr auto& names = engine::shadow::dudetm_stm_names;
};
struct dudetm_global_lock
    : engine::Instance<engine::shadow::Shadow<tm::GlobalLock, engine::shadow::Reproduce::replay>> {
  static constexpr std::array<engine::InstanceName, 1> names = {
      {{"dudetm/global_lock", type::name}}};
};
struct dudetm_none
    : engine::Instance<engine::shadow::Shadow<tm::None, engine::shadow::Reproduce::replay>,
                       Isolation::caller> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"dudetm/none", type::name}}};
};
struct dudetm_htm
    : engine::Instance<
          engine::shadow::Shadow<tm::Htm<tm::Rtm>, engine::shadow::Reproduce::replay>> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"dudetm/htm", type::name}}};
};
struct dudetm_htm_stand_in
    : engine::Instance<
          engine::shadow::Shadow<tm::Htm<tm::RtmStandIn>, engine::shadow::Reproduce::replay>> {
  static constexpr std::array<engine::InstanceName, 1> names = {
      {{"dudetm/htm-stand-in", type::name}}};
};

/// All of the family.
using dudetm_engines =
    engines<dudetm, dudetm_stm, dudetm_global_lock, dudetm_htm, dudetm_htm_stand_in, dudetm_none>;

// Compiled once, in instances.cpp beside this.
extern template class engine::shadow::Shadow<tm::Biased, engine::shadow::Reproduce::replay>;
extern template class engine::shadow::Shadow<tm::Stm, engine::shadow::Reproduce::replay>;
extern template class engine::shadow::Shadow<tm::GlobalLock, engine::shadow::Reproduce::replay>;
extern template class engine::shadow::Shadow<tm::None, engine::shadow::Reproduce::replay>;
extern template class engine::shadow::Shadow<tm::Htm<tm::Rtm>, engine::shadow::Reproduce::replay>;
extern template class engine::shadow::Shadow<tm::Htm<tm::RtmStandIn>,
                                             engine::shadow::Reproduce::replay>;

}  // namespace perdure
