// SPDX-License-Identifier: BSD-3-Clause
//
// The instances of SoftWrAP's two variants: global and local aliasing.
#pragma once

#include <array>

#include "papers/softwrap/local.hpp"
#include "papers/softwrap/softwrap.hpp"
#include "perdure/engine/instance.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"

namespace perdure {

struct softwrap : engine::Instance<papers::softwrap::SoftWrap<tm::GlobalLock>> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"softwrap", type::name}}};
};
struct softwrap_none : engine::Instance<papers::softwrap::SoftWrap<tm::None>, Isolation::caller> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"softwrap/none", type::name}}};
};
struct softwrap_local : engine::Instance<papers::softwrap::SoftWrapLocal<tm::Stm>> {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"softwrap-local", type::name}}};
};
struct softwrap_local_none
    : engine::Instance<papers::softwrap::SoftWrapLocal<tm::None>, Isolation::caller> {
  static constexpr std::array<engine::InstanceName, 1> names = {
      {{"softwrap-local/none", type::name}}};
};

/// All instances of the family.
using softwrap_engines = engines<softwrap, softwrap_none, softwrap_local, softwrap_local_none>;

// Compiled once, in instances.cpp beside this.
extern template class papers::softwrap::SoftWrap<tm::GlobalLock>;
extern template class papers::softwrap::SoftWrap<tm::None>;
extern template class papers::softwrap::SoftWrapLocal<tm::Stm>;
extern template class papers::softwrap::SoftWrapLocal<tm::None>;

}  // namespace perdure
