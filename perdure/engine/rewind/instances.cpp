// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/rewind/rewind_impl.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"

namespace perdure::engine::rewind {

using log::LogVersion;

template class Rewind<tm::GlobalLock, Composed<1, false, LogVersion::simple>>;
template class Rewind<tm::GlobalLock, Composed<1, false, LogVersion::optimized>>;
template class Rewind<tm::GlobalLock, Composed<1, false, LogVersion::batch>>;
template class Rewind<tm::GlobalLock, Composed<1, true, LogVersion::simple>>;
template class Rewind<tm::GlobalLock, Composed<1, true, LogVersion::optimized>>;
template class Rewind<tm::GlobalLock, Composed<1, true, LogVersion::batch>>;
template class Rewind<tm::GlobalLock, Composed<2, false, LogVersion::simple>>;
template class Rewind<tm::GlobalLock, Composed<2, false, LogVersion::optimized>>;
template class Rewind<tm::GlobalLock, Composed<2, false, LogVersion::batch>>;
template class Rewind<tm::GlobalLock, Composed<2, true, LogVersion::simple>>;
template class Rewind<tm::GlobalLock, Composed<2, true, LogVersion::optimized>>;
template class Rewind<tm::GlobalLock, Composed<2, true, LogVersion::batch>>;
template class Rewind<tm::None, Composed<1, false, LogVersion::batch>>;

static_assert(Engine<Rewind<tm::GlobalLock, Composed<1, false, LogVersion::batch>>>);

}  // namespace perdure::engine::rewind
