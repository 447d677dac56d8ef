// SPDX-License-Identifier: BSD-3-Clause
//
// Stand-ins for structures of nodes on a store that has a structure of its own: the same keys and
// values and the same operations, on the store's own tree. `Like` is the workload that a stand-in
// replaces. Thread safety: as PeerTx.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/peers/model.hpp"
#include "bench/workloads/kv_puts.hpp"
#include "bench/workloads/kv_table.hpp"
#include "bench/workloads/list.hpp"

namespace bench {

template <unsigned words>
struct PeerValue {
  PeerModel::Field<std::array<std::uint64_t, words>> words_of;
  explicit PeerValue(std::uint64_t first) {
    for (unsigned i = 0; i < words; ++i) words_of.value[i] = first + i;
  }
  [[nodiscard]] bool is(std::uint64_t first) const {
    return words_of.value == PeerValue(first).words_of.value;
  }
};

/// Replaces a set of keys (key_set.hpp): values of `words` words.
template <class Like, unsigned words>
struct PeerSet {
  struct Root {
    PeerTable<PeerModel, PeerValue<words>> table;
  };
  static constexpr const char* structure = Like::structure;
  static constexpr std::uint64_t keys = KeySet<Like>::keys;

  template <class Host>
  static void prepare(Host&, const Setting&) {}
  template <class Tx>
  static bool contains(Tx& tx, const Root& root, std::uint64_t key) {
    const auto* row = root.table.find(tx, key);
    return row != nullptr && row->is(key + 1);
  }
  template <class Tx>
  static int toggle(Tx& tx, Root& root, std::uint64_t key, std::uint64_t value) {
    if (root.table.erase(tx, key)) return -1;
    root.table.insert(tx, key, tx.template make<PeerValue<words>>(value));
    return 1;
  }
  template <class Host>
  static std::uint64_t audit(Host& host, std::vector<std::string>& problems) {
    std::uint64_t found = 0, wrong = 0;
    host.view([&](auto& tx, const Root& root) {
      root.table.audit(tx, structure, problems);
      root.table.each(tx, [&](std::uint64_t key, const auto* row) {
        ++found;
        wrong += row->is(key + 1) ? 0 : 1;
      });
      return true;
    });
    if (wrong != 0)
      problems.push_back(std::string(structure) + ": " + std::to_string(wrong) +
                         " values are wrong");
    return found;
  }
};

/// Replaces DudeTM's insertions (dude_inserts.hpp): puts a key and its value.
template <class Like>
struct PeerInserts {
  struct Root {
    PeerTable<PeerModel, PeerValue<1>> table;
  };
  static constexpr const char* structure = Like::structure;

  template <class Host>
  static void fill(Host& host, const Setting&) {
    if constexpr (requires { Like::filled; }) {
      Rng rng(7, 7);
      for (std::uint64_t n = 0; n < Like::filled; n += put(host, Like::draw(rng)) ? 1 : 0) {}
    }
  }
  static void check_parameter(unsigned) {}
  template <class Host>
  static Step step(Host& host, const Cell&, unsigned, Rng& rng) {
    return {.wrote = true, .grown = put(host, Like::draw(rng)) ? 1 : 0};
  }
  template <class Host>
  static std::vector<std::string> audit(Host& host, std::int64_t grown) {
    std::uint64_t found = 0, wrong = 0, expected = static_cast<std::uint64_t>(grown);
    if constexpr (requires { Like::filled; }) expected += Like::filled;
    host.view([&](auto& tx, const Root& root) {
      root.table.each(tx, [&](std::uint64_t key, const auto* row) {
        ++found;
        wrong += row->is(value_of_key(key)) ? 0 : 1;
      });
      return true;
    });
    if (found == expected && wrong == 0) return {};
    return {std::string(structure) + ": found " + std::to_string(found) + " keys, " +
            std::to_string(wrong) + " with a wrong value, expected " + std::to_string(expected)};
  }

 private:
  /// Returns whether the key is new; the value is put in any case, because the table that this
  /// replaces stores it in any case.
  template <class Host>
  static bool put(Host& host, std::uint64_t key) {
    return host.update([key](auto& tx, Root& root) {
      auto* const row = root.table.find(tx, key);
      if (row != nullptr)
        tx.set(row->words_of, PeerValue<1>(value_of_key(key)).words_of.value);
      else
        root.table.insert(tx, key, tx.template make<PeerValue<1>>(value_of_key(key)));
      return row == nullptr;
    });
  }
};

/// Replaces the library's containers (kv_table.hpp).
struct PeerCalls {
  struct Root {
    char place = 0;
  };
  static std::string bytes_of(const Key& key) { return "k" + std::string(key.data(), key.size()); }

  template <class Tx>
  static void put(Tx& tx, Root&, const Key& key, const Value& value) {
    tx.records().put(bytes_of(key), {value.data(), value.size()});
  }
  template <class Tx>
  static bool erase(Tx& tx, Root&, const Key& key) {
    return tx.records().erase(bytes_of(key));
  }
  template <class Tx>
  static bool contains(Tx& tx, const Root&, const Key& key) {
    std::string value;
    return tx.records().get(bytes_of(key), value);
  }
  template <class Tx, class F>
  static void for_each(Tx& tx, const Root&, F f) {
    tx.records().scan("k", [&](std::string_view bytes, std::string_view value) {
      if (bytes[0] != 'k') return false;
      Key key{};
      std::memcpy(key.data(), bytes.data() + 1, std::min(bytes.size() - 1, key.size()));
      f(key, value.data(), value.size());
      return true;
    });
  }
};

}  // namespace bench
