// SPDX-License-Identifier: BSD-3-Clause
//
// The instances of `dudetm` and its variants.
#pragma once

#include <array>

#include "papers/dudetm/dudetm.hpp"
#include "perdure/engine/instance.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"
#include "perdure/tm/rtm.hpp"
#include "perdure/tm/rtm_stand_in.hpp"

namespace perdure {

struct dudetm : engine::Instance<papers::dudetm::Dudetm<tm::Biased>> {
  static constexpr auto& names = papers::dudetm::dudetm_names;
};
struct dudetm_stm : engine::Instance<papers::dudetm::Dudetm<tm::Stm>> {
  static constexpr auto& names = papers::dudetm::dudetm_stm_names;
};
struct dudetm_global_lock : engine::Instance<papers::dudetm::Dudetm<tm::GlobalLock>> {
  static constexpr std::array<engine::InstanceName, 1> names = {
      {{"dudetm/global_lock", type::name}}};
};
struct dudetm_none : engine::Instance<papers::dudetm::Dudetm<tm::None>, Isolation::caller> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"dudetm/none", type::name}}};
};
struct dudetm_htm : engine::Instance<papers::dudetm::Dudetm<tm::Htm<tm::Rtm>>> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"dudetm/htm", type::name}}};
};
struct dudetm_htm_stand_in : engine::Instance<papers::dudetm::Dudetm<tm::Htm<tm::RtmStandIn>>> {
  static constexpr std::array<engine::InstanceName, 1> names = {
      {{"dudetm/htm-stand-in", type::name}}};
};

/// All of the family.
using dudetm_engines =
    engines<dudetm, dudetm_stm, dudetm_global_lock, dudetm_htm, dudetm_htm_stand_in, dudetm_none>;

// Compiled once, in instances.cpp beside this.
extern template class papers::dudetm::Dudetm<tm::Biased>;
extern template class papers::dudetm::Dudetm<tm::Stm>;
extern template class papers::dudetm::Dudetm<tm::GlobalLock>;
extern template class papers::dudetm::Dudetm<tm::None>;
extern template class papers::dudetm::Dudetm<tm::Htm<tm::Rtm>>;
extern template class papers::dudetm::Dudetm<tm::Htm<tm::RtmStandIn>>;

}  // namespace perdure
