// SPDX-License-Identifier: BSD-3-Clause
//
// A block's loads and stores: those of the pool go through the engine's transaction, all others to
// memory itself, and what these store over is saved (memory_undo.hpp).
// Thread safety: a thread's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "perdure/api/named_tx.hpp"
#include "plain/thread.hpp"

namespace perdure::plain {

/// Copies n bytes of the pool to `to`, through the transaction.
[[gnu::noinline]] void read_pool(void* to, const void* from, std::size_t n) noexcept;
/// Copies n bytes to the pool, through the transaction. An address that is no object's ends the
/// attempt with error(invalid).
[[gnu::noinline]] void write_pool(void* to, const void* from, std::size_t n) noexcept;
/// Saves n bytes outside of the pool that the block will store over, unless it has made them.
[[gnu::noinline]] void save_memory(const void* at, std::size_t n) noexcept;

[[gnu::always_inline]] inline void load(void* to, const void* from, std::size_t n) noexcept {
  if (__builtin_expect(state.mode.direct, 1) || !state.in_pool(from))
    std::memcpy(to, from, n);
  else
    read_pool(to, from, n);
}

[[gnu::always_inline]] inline void store(void* to, const void* from, std::size_t n) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(to);
  if (n == 8 && (at & 7) == 0 && state.of_objects(to, 8) && !state.mode.view) {
    std::uint64_t word;
    std::memcpy(&word, from, 8);
    guarded([&] {
      // mutant: plain-store-is-logged
      state.transaction->write(reinterpret_cast<std::uint64_t*>(at), word);
    });
    return;
  }
  if (state.in_pool(to)) {
    write_pool(to, from, n);
    return;
  }
  save_memory(to, n);
  std::memcpy(to, from, n);
}

}  // namespace perdure::plain
