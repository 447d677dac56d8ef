// SPDX-License-Identifier: BSD-3-Clause
//
// The instances of REWIND: one type, whose names are its twelve compositions, under each TM.
#pragma once

#include <array>

#include "papers/rewind/rewind.hpp"
#include "perdure/engine/instance.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"

namespace perdure {

struct rewind : engine::Instance<papers::rewind::Rewind<tm::GlobalLock>> {
  static constexpr auto& names = papers::rewind::names;
};
struct rewind_stm : engine::Instance<papers::rewind::Rewind<tm::Stm>> {
  static constexpr auto& names = papers::rewind::names_stm;
};
struct rewind_none : engine::Instance<papers::rewind::Rewind<tm::None>, Isolation::caller> {
  static constexpr auto& names = papers::rewind::names_none;
};

/// All instances of the family.
using rewind_engines = engines<rewind, rewind_stm, rewind_none>;

// Compiled once, in instances.cpp beside this.
extern template class papers::rewind::Rewind<tm::GlobalLock>;
extern template class papers::rewind::Rewind<tm::Stm>;
extern template class papers::rewind::Rewind<tm::None>;

}  // namespace perdure
