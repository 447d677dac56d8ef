// SPDX-License-Identifier: BSD-3-Clause
//
// The instances of `undo`.
#pragma once

#include <array>

#include "perdure/engine/instance.hpp"
#include "perdure/engine/undo/undo.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"

namespace perdure {

/// `undo`: changes data in place after logging its old value, as PMDK does; one lock for all
/// updates.
struct undo : engine::Instance<engine::undo::Undo<tm::GlobalLock>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {{{"undo", type::name}}};
};
/// `undo/stm`: the same with software transactional memory.
struct undo_stm : engine::Instance<engine::undo::Undo<tm::Stm>> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {{{"undo/stm", type::name}}};
};
/// `undo/none`: the same without isolation; the caller keeps threads out of each other's 8-byte
/// words.
struct undo_none : engine::Instance<engine::undo::Undo<tm::None>, Isolation::caller> {
  /// The instance's name, as Options::engine and a pool's header have it.
  static constexpr std::array<engine::InstanceName, 1> names = {{{"undo/none", type::name}}};
};

/// All instances of the family.
using undo_engines = engines<undo, undo_stm, undo_none>;

// Compiled once, in instances.cpp beside this.
extern template class engine::undo::Undo<tm::GlobalLock>;
extern template class engine::undo::Undo<tm::Stm>;
extern template class engine::undo::Undo<tm::None>;

}  // namespace perdure
