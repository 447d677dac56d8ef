// SPDX-License-Identifier: BSD-3-Clause
//
// Tells a system which object a transaction is about to change in more than one field. A system
// that logs stores needs no such call, and it does nothing there. A system whose transactions take
// snapshots (libpmemobj's TX_ADD) takes one of the whole object, where it would otherwise take one
// of each field. An object is what a program would pass to TX_ADD: a node, a row, a bucket.
// Thread safety: that of the transaction.
#pragma once

namespace bench {

/// Call it before the first store to the object. A second call for the same object does no harm.
template <class Tx, class Object>
void snapshot(Tx& tx, Object&& object) {
  if constexpr (requires { tx.snapshot(object); }) tx.snapshot(object);
}

}  // namespace bench
