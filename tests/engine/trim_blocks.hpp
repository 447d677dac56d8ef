// SPDX-License-Identifier: BSD-3-Clause
//
// A root with blocks of many sizes, whose words say which block they are of: for tests of
// Pool::trim(), alone (trim_test.cpp) and beside other threads (trim_threads_test.cpp).
#pragma once

#include <array>

#include "perdure/pool/heap.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {

inline constexpr std::size_t slots = 24;
using Words = p<std::uint64_t>;

struct Slot {
  ptr<Words> at;
  p<std::uint64_t> bytes, stamp;
};
struct Blocks {
  std::array<Slot, slots> slot;
  p<std::uint64_t> version;

  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    for (const Slot& s : slot)
      if (auto* const one = tx.read(s.at)) f(one);
  }
};
struct PlainSlot {
  std::uint64_t at, bytes, stamp;
};
static_assert(sizeof(Blocks) == sizeof(PlainSlot) * slots + 8);

// A word of each page, and the last one.
template <class F>
void each_word(std::uint64_t bytes, F&& f) {
  for (std::uint64_t i = 0; i < bytes / 8; i += 512) f(i);
  f(bytes / 8 - 1);
}

template <class Tx>
void make(Tx& tx, Slot& s, std::uint64_t bytes, std::uint64_t stamp) {
  auto* const words = static_cast<Words*>(static_cast<void*>(tx.alloc(bytes)));
  each_word(bytes, [&](std::uint64_t i) { tx(words[i]) = stamp + i; });
  tx(s.at) = words;
  tx(s.bytes) = bytes;
  tx(s.stamp) = stamp;
}
template <class Tx>
void drop(Tx& tx, Slot& s) {
  tx.free(static_cast<void*>(tx.read(s.at)));
  tx(s.at) = nullptr;
  tx(s.stamp) = 0;
}
/// Whether the slot is empty or has a block with its contents.
template <class Tx>
bool sound(Tx& tx, const Slot& s) {
  const Words* const words = tx.read(s.at);
  if (words == nullptr) return tx(s.stamp) == 0;
  const std::uint64_t stamp = tx(s.stamp);
  bool good = true;
  each_word(tx(s.bytes), [&](std::uint64_t i) { good &= tx(words[i]) == stamp + i; });
  return good;
}

template <class P>
std::uint64_t trim_all(P& pool) {
  std::uint64_t bytes = 0;
  for (Trimmed t{0, true}; t.more; bytes += t.bytes) t = pool.trim(5 * pool::chunk_bytes);
  return bytes;
}

/// The pool of `rig`, which is closed, as a power cut leaves it, opened again.
inline Rig<Blocks> opened_again(Rig<Blocks>& rig, const EngineInfo& engine, Shape shape) {
  const auto image = rig.medium->durable_image();
  shape.data_bytes = image.size() - shape.medium().log_bytes;
  { auto gone = std::move(rig.pool); }
  return open_rig<Blocks>(engine, shape, image);
}

}  // namespace perdure::test
