// SPDX-License-Identifier: BSD-3-Clause
//
// counter: the number of elements of a container that several threads change concurrently.
//
// One word would be a point of contention: every insertion writes it, so no two transactions could
// run concurrently. A counter starts as one word and, past `spread_at`, spreads over 64 words in
// lines of their own; a transaction adds to the one that its key or node picks. Each word is a
// difference and may wrap below zero; only the sum (modulo 2^64) has a meaning.
// Thread safety: that of the transaction. Zero bytes are a counter of 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perdure/api/persistent.hpp"

namespace perdure::detail {

class counter {
 public:
  static constexpr std::uint64_t spread_at = 256;
  static constexpr unsigned stripes = 64;

  /// Adds `delta` (modulo 2^64) to the word picked by `which`. Returns an estimate of the total
  /// from that word alone.
  template <class Tx>
  std::uint64_t add(Tx& tx, std::uint64_t delta, std::uint64_t which) {
    Spread* spread = tx.read(spread_);
    if (spread == nullptr) {
      const std::uint64_t now = tx.read(base_) + delta;
      tx.write(base_, now);
      if (now >= spread_at) this->spread(tx);
      return now;
    }
    p<std::uint64_t>& word = spread->line[which * 0x9e3779b97f4a7c15ULL >> 58].word;
    const std::uint64_t now = tx.read(word) + delta;
    tx.write(word, now);
    const std::uint64_t estimate = tx.read(base_) + now * stripes;
    return estimate >> 63 != 0 ? 0 : estimate;
  }

  template <class Tx>
  [[nodiscard]] std::uint64_t total(Tx& tx) const {
    std::uint64_t sum = tx.read(base_);
    if (const Spread* spread = tx.read(spread_)) {
      for (const Line& line : spread->line) sum += tx.read(line.word);
    }
    return sum;
  }

  /// Spreads now, before many threads use the counter.
  template <class Tx>
  void spread(Tx& tx) {
    if (tx.read(spread_) != nullptr) return;
    static constexpr std::byte zeros[sizeof(Spread)] = {};
    auto* block = reinterpret_cast<Spread*>(tx.alloc(sizeof(Spread)));
    tx.write_bytes(block, zeros, sizeof zeros);
    tx.write(spread_, block);
  }

  template <class Tx>
  void clear(Tx& tx) {
    if (Spread* spread = tx.read(spread_)) {
      tx.free(spread);
      tx.write(spread_, nullptr);
    }
    if (tx.read(base_) != 0) tx.write(base_, 0);
  }

  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    if (const Spread* spread = tx.read(spread_)) f(static_cast<const void*>(spread));
  }

 private:
  struct alignas(64) Line {
    p<std::uint64_t> word;
  };
  struct Spread {
    Line line[stripes];
  };
  static_assert(sizeof(Spread) == 64 * stripes);

  p<std::uint64_t> base_;
  ptr<Spread> spread_;
};
static_assert(sizeof(counter) == 16);

}  // namespace perdure::detail
