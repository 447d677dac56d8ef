// SPDX-License-Identifier: BSD-3-Clause
//
// Converts a reference to one of another type: for nodes whose type follows from their place
// (bplus_tree.hpp, tpcc_tree.hpp). A system whose Ref is not a pointer has an overload beside its
// Ref (systems/pmemobj.hpp), found by argument-dependent lookup.
#pragma once

namespace bench {

template <class To, class From>
To* recast(From* from) noexcept {
  return reinterpret_cast<To*>(from);
}

}  // namespace bench
