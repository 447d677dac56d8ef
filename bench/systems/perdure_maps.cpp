// SPDX-License-Identifier: BSD-3-Clause
//
// Key-value workloads over the library's own containers: perdure::map, a B+-tree, and
// perdure::hash_map; see perdure.hpp.
#include "bench/systems/perdure.hpp"
#include "bench/workloads/kv_puts.hpp"
#include "bench/workloads/kv_table.hpp"
#include "perdure/api/compiled_pool.hpp"

namespace bench {
namespace {

template <class Map>
struct MapCalls {
  struct Root {
    Map map;
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
    root.map.for_each(
        tx.tx, [&](const Key& key, const Value& value) { f(key, value.data(), value.size()); });
  }
};

using Maps = WorkloadList<KeySet<KvTable<MapCalls<perdure::map<Key, Value>>>>,
                          KvPuts<MapCalls<perdure::hash_map<Key, Value>>>>;

// The figures of Blurred Persistence also have engines that do not isolate.
using Engines =
    perdure::engines<perdure::shadow, perdure::shadow_stm, perdure::dudetm, perdure::dudetm_stm,
                     perdure::dudetm_htm, perdure::undo, perdure::undo_stm, perdure::rewind,
                     perdure::bppm, perdure::bppm_none, perdure::redo, perdure::redo_none,
                     perdure::softwrap, perdure::softwrap_local, perdure::volatile_,
                     perdure::volatile_stm, perdure::volatile_htm, perdure::volatile_none>;

}  // namespace

PerdureStructures perdure_maps() { return perdure_structures<Maps, Engines>(); }

}  // namespace bench
