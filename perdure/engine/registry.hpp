// SPDX-License-Identifier: BSD-3-Clause
//
// The registry: the one list of engine instances. An instance is a tag type with the engine type
// behind it and its names: one, or one for each form that the type takes at run time (REWIND's
// compositions). A pool is opened with a list of tags (perdure::engines<...>), tools and tests with
// all of them (any.hpp). Adding an engine: its folder, and a line here.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "perdure/engine/bppm/bppm.hpp"
#include "perdure/engine/entry.hpp"
#include "perdure/engine/rewind/rewind.hpp"
#include "perdure/engine/shadow/shadow.hpp"
#include "perdure/engine/softwrap/local.hpp"
#include "perdure/engine/softwrap/softwrap.hpp"
#include "perdure/engine/undo/undo.hpp"
#include "perdure/engine/volatile/volatile.hpp"
#include "perdure/tm/global_lock.hpp"
#include "perdure/tm/none.hpp"
#include "perdure/tm/orec_tm.hpp"
#include "perdure/tm/rtm.hpp"
#include "perdure/tm/rtm_stand_in.hpp"

namespace perdure {

/// A list of instances that a pool may be opened with.
template <class... Instances>
struct engines {
  static constexpr std::size_t size = sizeof...(Instances);
};

// clang-format off
#define PERDURE_INSTANCE(tag, text, isolates_by, ...)                                        \
  struct tag {                                                                               \
    static constexpr Isolation isolation = Isolation::isolates_by;                           \
    using type = __VA_ARGS__;                                                                \
    static constexpr std::array<engine::InstanceName, 1> names = {{{text, type::name}}};     \
  }
//               tag                    name                    isolation  type
PERDURE_INSTANCE(shadow,                "shadow",               full,   engine::shadow::Shadow<tm::Biased, engine::shadow::Reproduce::checkpoint>);
PERDURE_INSTANCE(shadow_stm,            "shadow/stm",           full,   engine::shadow::Shadow<tm::Stm, engine::shadow::Reproduce::checkpoint>);
PERDURE_INSTANCE(shadow_global_lock,    "shadow/global_lock",   full,   engine::shadow::Shadow<tm::GlobalLock, engine::shadow::Reproduce::checkpoint>);
PERDURE_INSTANCE(shadow_none,           "shadow/none",          caller, engine::shadow::Shadow<tm::None, engine::shadow::Reproduce::checkpoint>);
PERDURE_INSTANCE(dudetm_global_lock,    "dudetm/global_lock",   full,   engine::shadow::Shadow<tm::GlobalLock, engine::shadow::Reproduce::replay>);
PERDURE_INSTANCE(dudetm_none,           "dudetm/none",          caller, engine::shadow::Shadow<tm::None, engine::shadow::Reproduce::replay>);
PERDURE_INSTANCE(dudetm_htm,            "dudetm/htm",           full,   engine::shadow::Shadow<tm::Htm<tm::Rtm>, engine::shadow::Reproduce::replay>);
PERDURE_INSTANCE(dudetm_htm_stand_in,   "dudetm/htm-stand-in",  full,   engine::shadow::Shadow<tm::Htm<tm::RtmStandIn>, engine::shadow::Reproduce::replay>);
PERDURE_INSTANCE(undo,                  "undo",                 full,   engine::undo::Undo<tm::GlobalLock>);
PERDURE_INSTANCE(undo_stm,              "undo/stm",             full,   engine::undo::Undo<tm::Stm>);
PERDURE_INSTANCE(undo_none,             "undo/none",            caller, engine::undo::Undo<tm::None>);
PERDURE_INSTANCE(softwrap,              "softwrap",             full,   engine::softwrap::SoftWrap<tm::GlobalLock>);
PERDURE_INSTANCE(softwrap_none,         "softwrap/none",        caller, engine::softwrap::SoftWrap<tm::None>);
PERDURE_INSTANCE(softwrap_local,        "softwrap-local",       full,   engine::softwrap::SoftWrapLocal<tm::Stm>);
PERDURE_INSTANCE(softwrap_local_none,   "softwrap-local/none",  caller, engine::softwrap::SoftWrapLocal<tm::None>);
PERDURE_INSTANCE(volatile_,             "volatile",             full,   engine::volatile_memory::Volatile<tm::Biased>);
PERDURE_INSTANCE(volatile_stm,          "volatile/stm",         full,   engine::volatile_memory::Volatile<tm::Stm>);
PERDURE_INSTANCE(volatile_global_lock,  "volatile/global_lock", full,   engine::volatile_memory::Volatile<tm::GlobalLock>);
PERDURE_INSTANCE(volatile_htm,          "volatile/htm",         full,   engine::volatile_memory::Volatile<tm::Htm<tm::Rtm>>);
PERDURE_INSTANCE(volatile_htm_stand_in, "volatile/htm-stand-in", full,  engine::volatile_memory::Volatile<tm::Htm<tm::RtmStandIn>>);
PERDURE_INSTANCE(volatile_none,         "volatile/none",        caller, engine::volatile_memory::Volatile<tm::None>);
#undef PERDURE_INSTANCE
struct dudetm {
  static constexpr Isolation isolation = Isolation::full;
  using type = engine::shadow::Shadow<tm::Biased, engine::shadow::Reproduce::replay>;
  static constexpr auto& names = engine::shadow::dudetm_names;
};
struct dudetm_stm {
  static constexpr Isolation isolation = Isolation::full;
  using type = engine::shadow::Shadow<tm::Stm, engine::shadow::Reproduce::replay>;
  static constexpr auto& names = engine::shadow::dudetm_stm_names;
};
struct rewind {
  static constexpr Isolation isolation = Isolation::full;
  using type = engine::rewind::Rewind<tm::GlobalLock>;
  static constexpr auto& names = engine::rewind::names;
};
struct rewind_none {
  static constexpr Isolation isolation = Isolation::caller;
  using type = engine::rewind::Rewind<tm::None>;
  static constexpr auto& names = engine::rewind::names_none;
};
struct bppm {
  static constexpr Isolation isolation = Isolation::full;
  using type = engine::bppm::Bppm<tm::Stm, engine::bppm::LogWrites>;
  static constexpr auto& names = engine::bppm::names_in_log;
};
struct bppm_none {
  static constexpr Isolation isolation = Isolation::caller;
  using type = engine::bppm::Bppm<tm::None, engine::bppm::LogWrites>;
  static constexpr auto& names = engine::bppm::names_in_log_none;
};
struct redo {
  static constexpr Isolation isolation = Isolation::full;
  using type = engine::bppm::Bppm<tm::Stm, tm::PrivateWrites>;
  static constexpr auto& names = engine::bppm::names_private;
};
struct redo_none {
  static constexpr Isolation isolation = Isolation::caller;
  using type = engine::bppm::Bppm<tm::None, tm::PrivateWrites>;
  static constexpr auto& names = engine::bppm::names_private_none;
};
// clang-format on

/// Every instance, for tools, tests and benchmarks.
using all_engines =
    engines<shadow, shadow_stm, shadow_global_lock, shadow_none, dudetm, dudetm_stm,
            dudetm_global_lock, dudetm_htm, dudetm_htm_stand_in, dudetm_none, undo, undo_stm,
            undo_none, rewind, rewind_none, bppm, bppm_none, redo, redo_none, softwrap,
            softwrap_none, softwrap_local, softwrap_local_none, volatile_, volatile_stm,
            volatile_global_lock, volatile_htm, volatile_htm_stand_in, volatile_none>;
/// What Pool<Root> is opened with unless told: the default engine, isolating by itself or
/// (isolation::caller) by the caller.
using default_engines = engines<shadow, shadow_none>;

// Compiled once, in each engine's instances.cpp.
extern template class engine::shadow::Shadow<tm::Biased, engine::shadow::Reproduce::checkpoint>;
extern template class engine::shadow::Shadow<tm::Stm, engine::shadow::Reproduce::checkpoint>;
extern template class engine::shadow::Shadow<tm::GlobalLock, engine::shadow::Reproduce::checkpoint>;
extern template class engine::shadow::Shadow<tm::None, engine::shadow::Reproduce::checkpoint>;
extern template class engine::shadow::Shadow<tm::Biased, engine::shadow::Reproduce::replay>;
extern template class engine::shadow::Shadow<tm::Stm, engine::shadow::Reproduce::replay>;
extern template class engine::shadow::Shadow<tm::GlobalLock, engine::shadow::Reproduce::replay>;
extern template class engine::shadow::Shadow<tm::None, engine::shadow::Reproduce::replay>;
extern template class engine::shadow::Shadow<tm::Htm<tm::Rtm>, engine::shadow::Reproduce::replay>;
extern template class engine::shadow::Shadow<tm::Htm<tm::RtmStandIn>,
                                             engine::shadow::Reproduce::replay>;
extern template class engine::undo::Undo<tm::GlobalLock>;
extern template class engine::undo::Undo<tm::Stm>;
extern template class engine::undo::Undo<tm::None>;
extern template class engine::rewind::Rewind<tm::GlobalLock>;
extern template class engine::rewind::Rewind<tm::None>;
extern template class engine::bppm::Bppm<tm::Stm, engine::bppm::LogWrites>;
extern template class engine::bppm::Bppm<tm::None, engine::bppm::LogWrites>;
extern template class engine::bppm::Bppm<tm::Stm, tm::PrivateWrites>;
extern template class engine::bppm::Bppm<tm::None, tm::PrivateWrites>;
extern template class engine::softwrap::SoftWrap<tm::GlobalLock>;
extern template class engine::softwrap::SoftWrap<tm::None>;
extern template class engine::softwrap::SoftWrapLocal<tm::Stm>;
extern template class engine::softwrap::SoftWrapLocal<tm::None>;

}  // namespace perdure
