// SPDX-License-Identifier: BSD-3-Clause
#include "papers/softwrap/local_impl.hpp"
#include "papers/softwrap/softwrap_impl.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"

namespace perdure::papers::softwrap {

template class SoftWrap<tm::GlobalLock>;
template class SoftWrap<tm::None>;
template class SoftWrapLocal<tm::Stm>;
template class SoftWrapLocal<tm::None>;

}  // namespace perdure::papers::softwrap
