// SPDX-License-Identifier: BSD-3-Clause
//
// Which addresses new pools get.
#include "perdure/pool/address.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace perdure::pool {
namespace {

// A raised pool keeps its address, so the last address that is chosen has room behind it, too.
// ThreadSanitizer leaves few addresses, and AddressSanitizer's allocator is behind them: there,
// some of these pools are near the end.
TEST(AddressRange, EachChosenOneHasRoomBehindIt) {
  for (std::uint64_t i = 0; i < 4096; ++i) {
    std::uint8_t uuid[16] = {};
    std::memcpy(uuid, &i, sizeof i);
    std::uint64_t base = 0;
    {
      const auto chosen = AddressRange::choose(uuid, 8 << 20, "chosen");
      ASSERT_TRUE(chosen.ok()) << chosen.status().message();
      base = chosen.value().base();
    }
    const auto raised = AddressRange::reserve(base, std::uint64_t{32} << 30, "raised");
    ASSERT_TRUE(raised.ok()) << raised.status().message();
  }
}

}  // namespace
}  // namespace perdure::pool
