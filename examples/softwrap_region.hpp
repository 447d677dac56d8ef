// SPDX-License-Identifier: BSD-3-Clause
//
// Algorithm 2 of the SoftWrAP paper (MSST '15), in our words: one atomic region that stores to two
// persistent variables, and to an array that it allocates.
#pragma once

#include <cstdint>
#include <papers/softwrap/wrap_calls.hpp>

namespace softwrap_region {

struct Variables {
  static constexpr const char* layout_id = "softwrap_region::Variables/1";
  static constexpr int elements = 25;
  std::int64_t x;
  std::int32_t* p;  ///< 25 elements of 4 bytes, or null

  /// For check(): the blocks that the variables own.
  template <class Tx, class F>
  void each_block(Tx&, F&& f) const {
    if (p != nullptr) f(p);
  }
};

using Wraps = perdure::papers::softwrap::SoftWrAP<Variables>;

/// Algorithm 2. Not in the paper: the values count on from x, and the array of the previous run is
/// freed.
inline void run(Wraps& sw) {
  Variables& v = sw.root();
  sw.wrapOpen();
  const std::int64_t x = sw.wrapLoad(&v.x) + 1;
  sw.wrapStore(&v.x, x);
  if (auto* const before = sw.wrapLoad(&v.p); before != nullptr) sw.pfree(before);
  auto* const p = static_cast<std::int32_t*>(sw.pmalloc(100));
  sw.wrapStore(&v.p, p);
  for (int i = 0; i < Variables::elements; ++i)
    sw.wrapStore(p + i, static_cast<std::int32_t>(x) * i);
  sw.wrapClose();
}

}  // namespace softwrap_region
