// SPDX-License-Identifier: BSD-3-Clause
#include "papers/dudetm/dudetm_impl.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"
#include "perdure/tm/rtm.hpp"
#include "perdure/tm/rtm_stand_in.hpp"

namespace perdure {

template class engine::RedoEngine<papers::dudetm::Dudetm<tm::Biased>, tm::Biased,
                                  papers::dudetm::Persister>;
template class engine::RedoEngine<papers::dudetm::Dudetm<tm::Stm>, tm::Stm,
                                  papers::dudetm::Persister>;
template class engine::RedoEngine<papers::dudetm::Dudetm<tm::GlobalLock>, tm::GlobalLock,
                                  papers::dudetm::Persister>;
template class engine::RedoEngine<papers::dudetm::Dudetm<tm::None>, tm::None,
                                  papers::dudetm::Persister>;
template class engine::RedoEngine<papers::dudetm::Dudetm<tm::Htm<tm::Rtm>>, tm::Htm<tm::Rtm>,
                                  papers::dudetm::Persister>;
template class engine::RedoEngine<papers::dudetm::Dudetm<tm::Htm<tm::RtmStandIn>>,
                                  tm::Htm<tm::RtmStandIn>, papers::dudetm::Persister>;

template class papers::dudetm::Dudetm<tm::Biased>;
template class papers::dudetm::Dudetm<tm::Stm>;
template class papers::dudetm::Dudetm<tm::GlobalLock>;
template class papers::dudetm::Dudetm<tm::None>;
template class papers::dudetm::Dudetm<tm::Htm<tm::Rtm>>;
template class papers::dudetm::Dudetm<tm::Htm<tm::RtmStandIn>>;

static_assert(engine::Engine<papers::dudetm::Dudetm<tm::None>>);

}  // namespace perdure
