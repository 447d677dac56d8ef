// SPDX-License-Identifier: BSD-3-Clause
//
// DudeTM's variants: how transactions are made durable (the paper's Persist, section 5.1), by an
// instance's name and its options. All of them make pools of one family, `dudetm`, and each opens
// the others' pools (a pool keeps its order).
//
//   dudetm           volatile logs of fixed length, a Persist thread, one record for what there is
//   dudetm-inf       volatile logs without a bound: a transaction never waits for Persist
//   dudetm-sync      the thread that runs a transaction makes it durable too, in a log of its own,
//                    before the transaction ends: the strict order
//   dudetm-combined  log combination in groups, and compression (section 3.3)
// Thread safety: plain functions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "papers/dudetm/options.hpp"
#include "papers/names.hpp"
#include "perdure/engine/engine.hpp"
#include "perdure/engine/engine_info.hpp"

namespace perdure::papers::dudetm {

inline constexpr std::array<InstanceName, 4> dudetm_names = {{{"dudetm", "dudetm"},
                                                              {"dudetm-inf", "dudetm"},
                                                              {"dudetm-sync", "dudetm"},
                                                              {"dudetm-combined", "dudetm"}}};
inline constexpr std::array<InstanceName, 4> dudetm_stm_names = {
    {{"dudetm/stm", "dudetm"},
     {"dudetm-inf/stm", "dudetm"},
     {"dudetm-sync/stm", "dudetm"},
     {"dudetm-combined/stm", "dudetm"}}};

struct Variant {
  pool::CommitOrder order = pool::CommitOrder::pipelined;
  std::uint64_t volatile_words = 1 << 17;  ///< size of a thread's volatile log: 1 MiB
  bool unbounded = false;
  std::uint64_t group = 0;
  bool compress = false;
};

[[nodiscard]] inline Variant variant_of(const Config& config) noexcept {
  Variant variant;
  const std::string_view name = config.instance.substr(0, config.instance.find('/'));
  if (name == "dudetm-sync") variant.order = pool::CommitOrder::strict;
  variant.unbounded = name == "dudetm-inf";
  const bool combined = name == "dudetm-combined";
  const auto& options = config.options.get<papers::DudetmOptions>();
  if (options.volatile_log != 0) variant.volatile_words = options.volatile_log / 8;
  variant.compress = options.compress || combined;
  variant.group = options.persist_group != 0 ? options.persist_group : variant.compress ? 64 : 0;
  return variant;
}

}  // namespace perdure::papers::dudetm
