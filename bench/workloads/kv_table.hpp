// SPDX-License-Identifier: BSD-3-Clause
//
// A key-value store under the operations of key_set.hpp: 16-byte keys and 100-byte values
// (kv_record.hpp). An insertion and a removal begin with erase(), which finds the key or not. A
// `Calls` says how a system does it: put(tx, root, key, value), erase(tx, root, key) -> bool,
// contains(tx, root, key) and for_each(tx, root, f). It may have prepare(host), audit(host,
// problems) and a structure's name of its own. Blurred Persistence's KVStore is the one of
// tc_table.hpp; "kvstore" is an ordered map, which every store has.
#pragma once

#include <string>
#include <vector>

#include "bench/workloads/key_set.hpp"
#include "bench/workloads/kv_record.hpp"

namespace bench {

template <class Calls>
struct KvTable {
  using Root = typename Calls::Root;
  static constexpr const char* structure = [] {
    if constexpr (requires { Calls::structure; }) return Calls::structure;
    return "kvstore";
  }();
  static constexpr std::uint64_t keys = 200'000;

  template <class Host>
  static void prepare([[maybe_unused]] Host& host, const Setting&) {
    if constexpr (requires { Calls::prepare(host); }) Calls::prepare(host);
  }
  template <class Tx>
  static bool contains(Tx& tx, const Root& root, std::uint64_t key) {
    return Calls::contains(tx, root, key_of(key));
  }
  template <class Tx>
  static int toggle(Tx& tx, Root& root, std::uint64_t key, std::uint64_t value) {
    const Key k = key_of(key);
    if (Calls::erase(tx, root, k)) return -1;
    Calls::put(tx, root, k, value_of(k, value));
    return 1;
  }
  /// Checks that every value belongs to its key, and what the Calls checks.
  template <class Host>
  static std::uint64_t audit(Host& host, std::vector<std::string>& problems) {
    std::uint64_t found = 0, broken = 0;
    host.view([&](auto& tx, const Root& root) {
      found = broken = 0;  // a view may run again
      Calls::for_each(tx, root, [&](const Key& key, const char* value, std::size_t bytes) {
        ++found;
        if (!is_value_of(key, value, bytes)) ++broken;
      });
      return true;
    });
    if (broken != 0)
      problems.push_back(std::string(structure) + ": " + std::to_string(broken) +
                         " values are broken");
    if constexpr (requires { Calls::audit(host, problems); }) Calls::audit(host, problems);
    return found;
  }
};

}  // namespace bench
