// SPDX-License-Identifier: BSD-3-Clause
//
// SPS, "swap": a transaction exchanges k pairs of random 8-byte words in an array of 1 M of them.
// Parameter: k; 0 is an empty transaction. It is the workload with the least work of its own, so
// that the figures show what a system adds; k x 2 x 8 bytes change.
// Invariant: the words are a permutation of the initial ones.
// models.md beside this file says what a Model and a transaction handle offer to a workload.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/harness/rng.hpp"
#include "bench/harness/timed.hpp"

namespace bench {

template <class Model>
struct SpsRoot {
  static constexpr const char* layout_id = "bench::SpsRoot/1";
  typename Model::template Link<typename Model::template Field<std::uint64_t>> words;

  /// For Perdure's check(): the heap blocks that the root owns.
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    f(tx.read(words));
  }
};

template <class Model>
struct Sps {
  using Root = SpsRoot<Model>;
  using Word = typename Model::template Field<std::uint64_t>;
  static constexpr const char* structure = "sps";
  static constexpr std::uint64_t count = 1 << 20;
  static constexpr unsigned max_swaps = 64;

  template <class Host>
  static void fill(Host& host, const Setting&) {
    host.update([](auto& tx, Root& root) {
      tx.set(root.words, tx.template allocate<Word>(count));
      return true;
    });
    constexpr std::uint64_t a_transaction = 1024;
    for (std::uint64_t from = 0; from < count; from += a_transaction) {
      host.update([from](auto& tx, Root& root) {
        const auto words = tx.get(root.words);
        for (std::uint64_t i = from; i < from + a_transaction; ++i) tx.set(words[i], i);
        return true;
      });
    }
  }

  static void check_parameter(unsigned swaps) {
    if (swaps > max_swaps)
      throw std::invalid_argument("sps: found " + std::to_string(swaps) +
                                  " swaps, expected 0 to 64");
  }

  template <class Host>
  static Step step(Host& host, const Cell&, unsigned swaps, Rng& rng) {
    swap(host, swaps, count, rng);
    return {.wrote = swaps != 0, .grown = 0};
  }
  /// Swaps pairs of the first `among` words.
  template <class Host>
  static void swap(Host& host, unsigned swaps, std::uint64_t among, Rng& rng) {
    std::uint32_t at[2 * max_swaps];  // drawn in advance: a transaction may run again
    for (unsigned i = 0; i < 2 * swaps; ++i) at[i] = static_cast<std::uint32_t>(rng.below(among));
    host.update([&at, swaps](auto& tx, Root& root) {
      const auto words = tx.get(root.words);
      for (unsigned i = 0; i < 2 * swaps; i += 2) {
        const std::uint64_t a = tx.get(words[at[i]]), b = tx.get(words[at[i + 1]]);
        tx.set(words[at[i]], b);
        tx.set(words[at[i + 1]], a);
      }
      return true;
    });
  }

  template <class Host>
  static std::vector<std::string> audit(Host& host, std::int64_t /*grown*/) {
    std::vector<bool> seen(count, false);
    std::uint64_t foreign = 0, twice = 0;
    host.view([&](auto& tx, const Root& root) {
      seen.assign(count, false);  // a view may run again
      foreign = twice = 0;
      const auto words = tx.get(root.words);
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t word = tx.get(words[i]);
        if (word >= count)
          ++foreign;
        else if (seen[word])
          ++twice;
        else
          seen[word] = true;
      }
      return true;
    });
    if (foreign + twice == 0) return {};
    return {"sps: the words are no permutation any more: " + std::to_string(twice) + " twice, " +
            std::to_string(foreign) + " foreign"};
  }
};

}  // namespace bench
