// SPDX-License-Identifier: BSD-3-Clause
//
// The instances that a pool is opened with unless its program lists others: the default engine,
// with its own isolation or the caller's. instances.hpp has the rest of the family.
#pragma once

#include <array>

#include "perdure/engine/instance.hpp"
#include "perdure/engine/shadow/shadow.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"

namespace perdure {

struct shadow : engine::Instance<engine::shadow::Shadow<tm::Biased>> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"shadow", type::name}}};
};
struct shadow_none : engine::Instance<engine::shadow::Shadow<tm::None>, Isolation::caller> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"shadow/none", type::name}}};
};

/// What Pool<Root> is opened with unless told: the default engine, isolating by itself or
/// (isolation::caller) by the caller.
using default_engines = engines<shadow, shadow_none>;

// Compiled once, in instances.cpp beside this.
extern template class engine::shadow::Shadow<tm::Biased>;
extern template class engine::shadow::Shadow<tm::None>;

}  // namespace perdure
