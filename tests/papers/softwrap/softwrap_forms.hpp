// SPDX-License-Identifier: BSD-3-Clause
//
// SoftWrAP's two variants of aliasing as test parameters, on logs that are soon full.
#pragma once

#include <vector>

#include "tests/engine/suite.hpp"

namespace perdure::test {

inline Shape small(std::uint32_t threads = 1) {
  Shape s;
  s.threads = threads;
  s.ring_bytes = 24576;
  return s;
}

inline std::vector<EngineInfo> forms() {
  return engines_that([](const EngineInfo& e) { return is_softwrap(e) && isolates(e); });
}
class SoftWrapForms : public EngineTest {
 protected:
  [[nodiscard]] static bool for_all() { return aliases_for_all(GetParam()); }
};

}  // namespace perdure::test
