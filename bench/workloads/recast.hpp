// SPDX-License-Identifier: BSD-3-Clause
//
// A reference in hand as one to another type: for nodes whose type their place tells
// (bplus_tree.hpp, tpcc_tree.hpp). A system whose Ref is no pointer has an overload beside its Ref
// (systems/pmemobj.hpp), which its arguments find.
#pragma once

namespace bench {

template <class To, class From>
To* recast(From* from) noexcept {
  return reinterpret_cast<To*>(from);
}

}  // namespace bench
