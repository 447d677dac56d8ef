// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/shadow/shadow_impl.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"
#include "perdure/tm/rtm.hpp"
#include "perdure/tm/rtm_stand_in.hpp"

namespace perdure::engine::shadow {

template class Shadow<tm::Biased, Reproduce::replay>;
template class Shadow<tm::Stm, Reproduce::replay>;
template class Shadow<tm::GlobalLock, Reproduce::replay>;
template class Shadow<tm::None, Reproduce::replay>;
template class Shadow<tm::Htm<tm::Rtm>, Reproduce::replay>;
template class Shadow<tm::Htm<tm::RtmStandIn>, Reproduce::replay>;

static_assert(Engine<Shadow<tm::None, Reproduce::replay>>);

}  // namespace perdure::engine::shadow
