// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/shadow/shadow_impl.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"

namespace perdure::engine::shadow {

template class Shadow<tm::Biased, Reproduce::checkpoint>;
template class Shadow<tm::Stm, Reproduce::checkpoint>;
template class Shadow<tm::GlobalLock, Reproduce::checkpoint>;
template class Shadow<tm::None, Reproduce::checkpoint>;

static_assert(Engine<Shadow<tm::Biased, Reproduce::checkpoint>>);

}  // namespace perdure::engine::shadow
