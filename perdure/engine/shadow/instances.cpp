// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/shadow/shadow_impl.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"

namespace perdure::engine {

template class RedoEngine<shadow::Shadow<tm::Biased>, tm::Biased, log::LogWriter>;
template class RedoEngine<shadow::Shadow<tm::Stm>, tm::Stm, log::LogWriter>;
template class RedoEngine<shadow::Shadow<tm::GlobalLock>, tm::GlobalLock, log::LogWriter>;
template class RedoEngine<shadow::Shadow<tm::None>, tm::None, log::LogWriter>;

namespace shadow {

template class Shadow<tm::Biased>;
template class Shadow<tm::Stm>;
template class Shadow<tm::GlobalLock>;
template class Shadow<tm::None>;

static_assert(Engine<Shadow<tm::Biased>>);

}  // namespace shadow
}  // namespace perdure::engine
