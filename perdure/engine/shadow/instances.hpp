// SPDX-License-Identifier: BSD-3-Clause
//
// The instances of `shadow`, the default engine.
#pragma once

#include <array>

#include "perdure/engine/instance.hpp"
#include "perdure/engine/shadow/shadow.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"

namespace perdure {

struct shadow : engine::Instance<engine::shadow::Shadow<tm::Biased>> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"shadow", type::name}}};
};
struct shadow_stm : engine::Instance<engine::shadow::Shadow<tm::Stm>> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"shadow/stm", type::name}}};
};
struct shadow_global_lock : engine::Instance<engine::shadow::Shadow<tm::GlobalLock>> {
  static constexpr std::array<engine::InstanceName, 1> names = {
      {{"shadow/global_lock", type::name}}};
};
struct shadow_none : engine::Instance<engine::shadow::Shadow<tm::None>, Isolation::caller> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"shadow/none", type::name}}};
};

/// What Pool<Root> is opened with unless the program names engines: the default engine, which
/// isolates transactions by itself or, with isolation::caller, relies on the caller.
using default_engines = engines<shadow, shadow_none>;

/// All instances of the family.
using shadow_engines = engines<shadow, shadow_stm, shadow_global_lock, shadow_none>;

// Compiled once, in instances.cpp beside this.
extern template class engine::shadow::Shadow<tm::Biased>;
extern template class engine::shadow::Shadow<tm::Stm>;
extern template class engine::shadow::Shadow<tm::GlobalLock>;
extern template class engine::shadow::Shadow<tm::None>;

}  // namespace perdure
