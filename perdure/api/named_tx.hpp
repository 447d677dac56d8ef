// SPDX-License-Identifier: BSD-3-Clause
//
// perdure::tx and perdure::rtx: the types of the transactions of a Pool<Root>, for functions that
// are compiled once, in a .cpp file:
//
//     void rename(perdure::tx& tx, Shop& shop, std::string_view name) { shop.name.set(tx, name); }
//     std::uint64_t total(perdure::rtx& tx, const Shop& shop) { return shop.stock.size(tx); }
//
// The engine is behind virtual calls (engine/any_engine.hpp). Loads stay inline wherever the engine
// permits plain ones. The transactions of a pool whose engines are compiled in,
// Pool<Root, engines<...>>, are of other types: functions for both are templates.
// Thread safety: that of Tx.
#pragma once

#include "perdure/api/tx.hpp"
#include "perdure/engine/any_engine.hpp"

namespace perdure {

/// The transaction of a view(): reads pool data. A perdure::tx is one too, so that a function that
/// only reads serves updates as well.
class rtx : public ReadTx<engine::DynamicReads> {
 public:
  using ReadTx::ReadTx;
};

/// The transaction of an update(): reads and changes pool data, allocates and frees blocks.
class tx : public Tx<engine::DynamicTransaction, rtx> {
 public:
  using Tx::Tx;
};

// Compiled once, in named_tx.cpp.
extern template class ReadTx<engine::DynamicReads>;
extern template class Tx<engine::DynamicTransaction, rtx>;

}  // namespace perdure
