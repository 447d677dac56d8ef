// SPDX-License-Identifier: BSD-3-Clause
//
// The key-value store on the systems of Blurred Persistence's figures: perdure::map, a B+-tree; see perdure.hpp.
#include "bench/systems/perdure.hpp"
#include "bench/workloads/kv_table.hpp"

namespace bench {
namespace {

struct MapCalls {
  struct Root {
    perdure::map<Key, Value> map;
  };
  template <class Tx>
  static void put(Tx& tx, Root& root, const Key& key, const Value& value) {
    root.map.put(tx.tx, key, value);
  }
  template <class Tx>
  static bool erase(Tx& tx, Root& root, const Key& key) {
    return root.map.erase(tx.tx, key);
  }
  template <class Tx>
  static bool contains(Tx& tx, const Root& root, const Key& key) {
    return root.map.contains(tx.tx, key);
  }
  template <class Tx, class F>
  static void for_each(Tx& tx, const Root& root, F f) {
    root.map.for_each(tx.tx, [&](const Key& key, const Value& value) { f(key, value.data(), value.size()); });
  }
};

template <class>
using KvSet = KeySet<KvTable<MapCalls>>;

}  // namespace

std::unique_ptr<Session> open_perdure_kvstore(const Setting& setting, const PerdureChoice& choice) {
  return open_perdure<KvSet, blurred_engines>(setting, choice);
}

}  // namespace bench
