// SPDX-License-Identifier: BSD-3-Clause
//
// DudeTM's micro-benchmarks (ASPLOS '17, section 5.1): a transaction inserts a random key and its
// value.
//   ht   the fixed-size table with open addressing (open_table.hpp); keys of a million, in two
//        million buckets
//   bpt  a B+-tree of sorted nodes (bench/softwrap/stx_tree.hpp: 16 pairs of 8-byte words per
//        node); keys of 2^40
// The parameter means nothing (1). Invariant: there are as many keys as were new, each with its
// value.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "bench/harness/timed.hpp"
#include "bench/softwrap/stx_tree.hpp"
#include "bench/workloads/open_table.hpp"

namespace bench {

inline std::uint64_t value_of_key(std::uint64_t key) noexcept { return key * 3 + 1; }

template <class Model>
struct HashInserts {
  struct Root {
    static constexpr const char* layout_id = "bench::HashInserts/1";
    OpenWords<Model> table;
    template <class Tx, class F>
    void each_block(Tx& tx, F&& f) const {
      table.each_block(tx, f);
    }
  };
  static constexpr const char* structure = "ht";
  static constexpr std::uint64_t keys = 1'000'000, buckets = 1 << 21;

  static std::uint64_t draw(Rng& rng) noexcept { return rng.below(keys); }
  template <class Host>
  static void fill(Host& host, const Setting&) {
    OpenWords<Model>::prepare(host, [](auto& root) -> auto& { return root.table; }, buckets);
  }
  static void check_parameter(unsigned) {}
  template <class Host>
  static Step step(Host& host, const Cell&, unsigned, Rng& rng) {
    const std::uint64_t key = draw(rng);
    const int grown = host.update(
        [key](auto& tx, Root& root) { return root.table.put(tx, key, value_of_key(key)) ? 1 : 0; });
    return {.wrote = true, .grown = grown};
  }
  template <class Host>
  static std::vector<std::string> audit(Host& host, std::int64_t grown) {
    std::uint64_t found = 0, wrong = 0;
    host.view([&](auto& tx, const Root& root) {
      found = wrong = 0;  // a view may run again
      root.table.each(tx, [&](std::uint64_t key, std::uint64_t value) {
        ++found;
        wrong += key >= keys || value != value_of_key(key) ? 1 : 0;
      });
      return true;
    });
    std::vector<std::string> problems;
    if (found != static_cast<std::uint64_t>(grown) || wrong != 0)
      problems.push_back("ht: found " + std::to_string(found) + " keys, " + std::to_string(wrong) +
                         " with a wrong value, expected " + std::to_string(grown));
    return problems;
  }
};

template <class Model>
struct TreeInserts {
  using Root = softwrap::StxRoot<softwrap::Slots16, Model>;
  using Tree = softwrap::StxTree<Root>;
  static constexpr const char* structure = "bpt";
  static constexpr std::uint64_t filled = 100'000;

  static std::uint64_t draw(Rng& rng) noexcept { return rng() >> 24; }
  template <class Host>
  static bool insert(Host& host, std::uint64_t key) {
    return host.update(
        [key](auto& tx, Root& root) { return Tree::insert(tx, root, key, value_of_key(key)); });
  }
  template <class Host>
  static void fill(Host& host, const Setting&) {
    Rng rng(7, 7);
    for (std::uint64_t n = 0; n < filled; n += insert(host, draw(rng)) ? 1 : 0) {}
  }
  static void check_parameter(unsigned) {}
  template <class Host>
  static Step step(Host& host, const Cell&, unsigned, Rng& rng) {
    return {.wrote = true, .grown = insert(host, draw(rng)) ? 1 : 0};
  }
  template <class Host>
  static std::vector<std::string> audit(Host& host, std::int64_t grown) {
    const auto expected = static_cast<std::uint64_t>(static_cast<std::int64_t>(filled) + grown);
    std::uint64_t found = 0, wrong = 0, size = 0;
    host.view([&](auto& tx, const Root& root) {
      std::uint64_t before = 0;
      found = wrong = 0;  // a view may run again
      size = tx.get(root.size);
      for (auto* leaf = tx.get(root.first); leaf != nullptr && found <= size;
           leaf = tx.get(leaf->next))
        for (std::uint64_t i = 0, used = tx.get(leaf->used); i < used; ++i) {
          const std::uint64_t key = tx.get(leaf->key[i]);
          std::uint64_t value = 0;
          wrong += (found != 0 && key <= before) || !Tree::find(tx, root, key, value) ||
                           value != value_of_key(key)
                       ? 1
                       : 0;
          before = key;
          ++found;
        }
      return true;
    });
    std::vector<std::string> problems;
    if (found != expected || size != expected || wrong != 0)
      problems.push_back("bpt: found " + std::to_string(found) + " keys, " + std::to_string(wrong) +
                         " out of order, lost or with a wrong value, expected " +
                         std::to_string(expected));
    return problems;
  }
};

}  // namespace bench
