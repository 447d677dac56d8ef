// SPDX-License-Identifier: BSD-3-Clause
//
// Which addresses new pools get.
#include "perdure/pool/address.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

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

// A pool that is created while another one is closed must be unlikely to get that one's address:
// the two could not be open in one process. ThreadSanitizer leaves 3,072 slots of this size.
TEST(AddressRange, NoAddressIsChosenMuchOftenerThanOthers) {
  std::map<std::uint64_t, int> chosen_there;
  for (std::uint64_t i = 0; i < 4096; ++i) {
    std::uint8_t uuid[16] = {};
    std::memcpy(uuid, &i, sizeof i);
    const auto chosen = AddressRange::choose(uuid, 8 << 20, "chosen");
    ASSERT_TRUE(chosen.ok()) << chosen.status().message();
    ++chosen_there[chosen.value().base()];
  }
  const auto often = std::max_element(chosen_there.begin(), chosen_there.end(),
                                      [](auto& a, auto& b) { return a.second < b.second; });
  EXPECT_LE(often->second, 16) << "at " << often->first;
}

}  // namespace
}  // namespace perdure::pool
