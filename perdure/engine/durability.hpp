// SPDX-License-Identifier: BSD-3-Clause
//
// Durability, Isolation: what a program asks of the transactions of a pool.
// Thread safety: values.
#pragma once

#include <cstdint>

namespace perdure {

/// When update() returns, and what its receipt says then.
enum class Durability : std::uint8_t {
  durable,  ///< durable when update() returns
  /// as durable, but commits that wait at the same time share a fence (on a file, durable commits
  /// do so too)
  group,
  /// update() returns at once; its receipt says when it is durable (within 10 ms, even if no
  /// thread waits for it)
  async
};
/// Durability::durable, for `pool.update(perdure::durable, f)`.
inline constexpr Durability durable = Durability::durable;
/// Durability::group, likewise.
inline constexpr Durability group = Durability::group;
/// Durability::async, likewise.
inline constexpr Durability async = Durability::async;

/// What isolates the transactions of different threads from each other.
enum class Isolation : std::uint8_t {
  full,   ///< the pool does (LAW-4)
  caller  ///< the caller does; at the granularity of whole 8-byte words
};

}  // namespace perdure

namespace perdure::engine {

/// The id of an update() that joined an outer one (engine_base.hpp, run()).
inline constexpr std::uint64_t joined = ~std::uint64_t{0};

}  // namespace perdure::engine
