// SPDX-License-Identifier: BSD-3-Clause
//
// The list of all workloads, over the Models of models.md: to add a workload, add a name here. A
// session fills a structure; its workloads are "<structure>-<parameter>". The workloads of stores
// with structures of their own (LMDB, SQLite, ...) are the list in bench/peers/workloads.cpp.
#pragma once

#include <string>
#include <vector>

#include "bench/workloads/bplus_tree.hpp"
#include "bench/workloads/dude_inserts.hpp"
#include "bench/workloads/dude_session.hpp"
#include "bench/workloads/dude_tables.hpp"
#include "bench/workloads/hash.hpp"
#include "bench/workloads/hash_values.hpp"
#include "bench/workloads/key_set.hpp"
#include "bench/workloads/kv_table.hpp"
#include "bench/workloads/rb_tree.hpp"
#include "bench/workloads/sps.hpp"
#include "bench/workloads/tc_table.hpp"
#include "bench/workloads/ycsb.hpp"

namespace bench {

/// A subset of the workloads: those that one source instantiates.
template <class... Workloads>
struct WorkloadList {
  static std::vector<std::string> names() { return {Workloads::structure...}; }
};

// Sets of keys, and swaps of words.
template <class Model>
using SwapList = WorkloadList<Sps<Model>>;
template <class Model>
using HashList = WorkloadList<KeySet<HashTable<Model>>>;
template <class Model>
using RbList = WorkloadList<KeySet<RbTree<Model>>>;
template <class Model>
using BtList = WorkloadList<KeySet<BplusTree<Model>>>;
template <class Model>
using BpList = WorkloadList<KeySet<BplusTree<Model, BtPages>>>;  ///< nodes of 4 KiB
template <class Model>
using HashValueList = WorkloadList<KeySet<HashValues<Model>>>;
template <class Model>
using TcHashList = WorkloadList<KeySet<KvTable<TcCalls<Model>>>>;
// The workloads of DudeTM, and of YCSB.
template <class Model>
using HashInsertList = WorkloadList<HashInserts<Model>>;
template <class Model>
using TreeInsertList = WorkloadList<TreeInserts<Model>>;
template <class Model>
using NewOrderList =
    WorkloadList<NewOrders<Model, OpenTable, true>, NewOrders<Model, tpcc::Tree, false>>;
template <class Model>
using LocationList =
    WorkloadList<UpdateLocation<Model, OpenTable, true>, UpdateLocation<Model, tpcc::Tree, false>>;
template <class Model>
using StoreList =
    WorkloadList<SessionStore<Model, tpcc::Tree, false>, SessionStore<Model, tpcc::Tree, true>>;
template <class Model>
using YcsbList = WorkloadList<Ycsb<Model, tpcc::Tree>>;

/// Concatenates lists.
template <class... Lists>
struct Joined;
template <class... W>
struct Joined<WorkloadList<W...>> {
  using type = WorkloadList<W...>;
};
template <class... A, class... B, class... More>
struct Joined<WorkloadList<A...>, WorkloadList<B...>, More...>
    : Joined<WorkloadList<A..., B...>, More...> {};
template <class... Lists>
using JoinedLists = typename Joined<Lists...>::type;

}  // namespace bench
