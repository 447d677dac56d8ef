// SPDX-License-Identifier: BSD-3-Clause
//
// in_layout: a root object on the DRAM stand-in, which finds reads of bytes that were never
// written, as its layout text describes it.
// Thread safety: one thread.
#pragma once

#include <utility>

#include "perdure/api/layout.hpp"
#include "perdure/inspect/walk.hpp"
#include "tests/container/dram_tx.hpp"

namespace perdure::test {

/// Calls f(walker, tree, address of the root), with the tree of a pool without a catalog and with
/// that of a catalog's text.
template <class Root, class F>
void in_layout(DramPool<Root>& pool, F f) {
  for (const bool named : {false, true}) {
    const inspect::Tree tree =
        named ? inspect::read_layout(named_layout_of<Root>(), "")
              : inspect::read_layout(layout_of<Root>(), field_names_of<Root>());
    pool.view([&](DramReadTx& tx, const Root& root) {
      value::ReaderOver<DramReadTx> reader(tx);
      inspect::Walker walker(reader, 0, std::uint64_t{1} << 48);
      f(walker, tree, reinterpret_cast<inspect::Address>(&root));
    });
  }
}

}  // namespace perdure::test
