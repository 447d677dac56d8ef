// SPDX-License-Identifier: BSD-3-Clause
//
// The instances of Blurred Persistence's systems: `bppm` and `bppm-xil`, whose write set is the
// log, and the paper's comparisons, which have a write set of their own.
#pragma once

#include <array>

#include "papers/blurred/bppm.hpp"
#include "perdure/engine/instance.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"
#include "perdure/tm/write_set.hpp"

namespace perdure {

struct bppm : engine::Instance<papers::blurred::Bppm<tm::Stm, papers::blurred::LogWrites>> {
  static constexpr auto& names = papers::blurred::names_in_log;
};
struct bppm_none : engine::Instance<papers::blurred::Bppm<tm::None, papers::blurred::LogWrites>,
                                    Isolation::caller> {
  static constexpr auto& names = papers::blurred::names_in_log_none;
};
struct redo : engine::Instance<papers::blurred::Bppm<tm::Stm, tm::PrivateWrites>> {
  static constexpr auto& names = papers::blurred::names_private;
};
struct redo_none
    : engine::Instance<papers::blurred::Bppm<tm::None, tm::PrivateWrites>, Isolation::caller> {
  static constexpr auto& names = papers::blurred::names_private_none;
};

/// All instances of the family.
using blurred_engines = engines<bppm, bppm_none, redo, redo_none>;

// Compiled once, in instances.cpp beside this.
extern template class papers::blurred::Bppm<tm::Stm, papers::blurred::LogWrites>;
extern template class papers::blurred::Bppm<tm::None, papers::blurred::LogWrites>;
extern template class papers::blurred::Bppm<tm::Stm, tm::PrivateWrites>;
extern template class papers::blurred::Bppm<tm::None, tm::PrivateWrites>;

}  // namespace perdure
