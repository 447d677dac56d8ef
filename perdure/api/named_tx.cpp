// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/api/named_tx.hpp"

namespace perdure {

template class ReadTx<engine::DynamicReads>;
template class Tx<engine::DynamicTransaction, rtx>;

}  // namespace perdure
