// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/undo/undo_impl.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"

namespace perdure::engine::undo {

template class Undo<tm::GlobalLock>;
template class Undo<tm::Stm>;
template class Undo<tm::None>;

static_assert(Engine<Undo<tm::GlobalLock>>);

}  // namespace perdure::engine::undo
