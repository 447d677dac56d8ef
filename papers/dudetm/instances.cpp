// SPDX-License-Identifier: BSD-3-Clause
#include "papers/dudetm/dudetm_impl.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"
#include "perdure/tm/rtm.hpp"
#include "perdure/tm/rtm_stand_in.hpp"

namespace perdure::engine {

template class RedoEngine<dudetm::Dudetm<tm::Biased>, tm::Biased, log::Persister>;
template class RedoEngine<dudetm::Dudetm<tm::Stm>, tm::Stm, log::Persister>;
template class RedoEngine<dudetm::Dudetm<tm::GlobalLock>, tm::GlobalLock, log::Persister>;
template class RedoEngine<dudetm::Dudetm<tm::None>, tm::None, log::Persister>;
template class RedoEngine<dudetm::Dudetm<tm::Htm<tm::Rtm>>, tm::Htm<tm::Rtm>, log::Persister>;
template class RedoEngine<dudetm::Dudetm<tm::Htm<tm::RtmStandIn>>, tm::Htm<tm::RtmStandIn>,
                          log::Persister>;

namespace dudetm {

template class Dudetm<tm::Biased>;
template class Dudetm<tm::Stm>;
template class Dudetm<tm::GlobalLock>;
template class Dudetm<tm::None>;
template class Dudetm<tm::Htm<tm::Rtm>>;
template class Dudetm<tm::Htm<tm::RtmStandIn>>;

static_assert(Engine<Dudetm<tm::None>>);

}  // namespace dudetm
}  // namespace perdure::engine
