// SPDX-License-Identifier: BSD-3-Clause
//
// The instances of shadow/htm, apart from instances.cpp, which has the default engine.
#include "perdure/engine/shadow/htm_impl.hpp"
#include "perdure/tm/rtm.hpp"
#include "perdure/tm/rtm_stand_in.hpp"

namespace perdure::engine {

template class RedoEngine<shadow::ShadowHtm<tm::Htm<tm::Rtm>>, tm::Htm<tm::Rtm>, log::LogWriter>;
template class RedoEngine<shadow::ShadowHtm<tm::Htm<tm::RtmStandIn>>, tm::Htm<tm::RtmStandIn>,
                          log::LogWriter>;

namespace shadow {

template class ShadowHtm<tm::Htm<tm::Rtm>>;
template class ShadowHtm<tm::Htm<tm::RtmStandIn>>;

static_assert(Engine<ShadowHtm<tm::Htm<tm::Rtm>>>);

}  // namespace shadow
}  // namespace perdure::engine
