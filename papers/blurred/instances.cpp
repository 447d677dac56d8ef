// SPDX-License-Identifier: BSD-3-Clause
#include "papers/blurred/bppm_impl.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"

namespace perdure::papers::blurred {

template class Bppm<tm::Stm, LogWrites>;
template class Bppm<tm::None, LogWrites>;
template class Bppm<tm::Stm, tm::PrivateWrites>;
template class Bppm<tm::None, tm::PrivateWrites>;

static_assert(Engine<Bppm<tm::Stm, LogWrites>>);

}  // namespace perdure::papers::blurred
