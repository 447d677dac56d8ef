// SPDX-License-Identifier: BSD-3-Clause
//
// The default engine's two instances for hot loops, Pool<Root, engines<shadow>>: with its own
// isolation or the caller's. instances.hpp has the rest of the family.
#pragma once

#include <array>

#include "perdure/engine/instance.hpp"
#include "perdure/engine/shadow/shadow.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"

namespace perdure {

/// `shadow`, the default engine: transactions run on a copy in DRAM, their stores are logged, and
/// the data is brought up to date at checkpoints. Software transactional memory, biased towards one
/// thread for as long as one alone uses the pool.
struct shadow : engine::Instance<engine::shadow::Shadow<tm::Biased>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {{{"shadow", type::name}}};
};
/// `shadow/none`: the default engine without isolation; the caller keeps threads out of each
/// other's 8-byte words.
struct shadow_none : engine::Instance<engine::shadow::Shadow<tm::None>, Isolation::caller> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {{{"shadow/none", type::name}}};
};

// Compiled once, in instances.cpp beside this.
extern template class engine::shadow::Shadow<tm::Biased>;
extern template class engine::shadow::Shadow<tm::None>;

}  // namespace perdure
