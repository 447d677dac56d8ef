// SPDX-License-Identifier: BSD-3-Clause
//
// read_source: where a pool's root object lies and what its layout is.
//
// Thread safety: that of the transaction behind the walker.
#pragma once

#include "perdure/inspect/layout.hpp"
#include "perdure/inspect/walk.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/format.hpp"

namespace perdure::inspect {

/// A pool's root object.
struct Source {
  Tree tree;
  Address root = 0;  ///< of the object that the tree's root describes
  /// Whether the work of a change to another version of the program is not finished.
  bool unfinished = false;
};

/// Reads the layout text of the catalog, and the records of earlier versions; in a pool without a
/// catalog, the text and the field names in the header. Throws error(corrupt) if the text is no
/// layout text, and error(unsupported) if the header has only a part of it.
[[nodiscard]] Source read_source(Walker& walker, const pool::Header& header,
                                 const pool::CatalogContents& catalog);

}  // namespace perdure::inspect
