// SPDX-License-Identifier: BSD-3-Clause
//
// Every workload on a Peer: workloads of tables and arrays run as they are, those of nodes run as
// in structures.hpp. Instantiated once, for all peers.
#include "bench/peers/structures.hpp"

namespace bench {
namespace {

template <class Model, class Row>
using Rows = PeerTable<Model, Row>;
using M = PeerModel;

using PeerWorkloads =
    WorkloadList<Sps<M>, KeySet<PeerSet<HashTable<M>, 1>>, KeySet<PeerSet<RbTree<M>, 1>>,
                 KeySet<PeerSet<BplusTree<M>, 3>>, KeySet<PeerSet<BplusTree<M, BtPages>, 1>>,
                 KeySet<KvTable<PeerCalls>>, KvPuts<PeerCalls>, PeerInserts<HashInserts<M>>,
                 PeerInserts<TreeInserts<M>>, NewOrders<M, Rows, true>, NewOrders<M, Rows, false>,
                 UpdateLocation<M, Rows, true>, UpdateLocation<M, Rows, false>,
                 SessionStore<M, Rows, false>, SessionStore<M, Rows, true>, Ycsb<M, Rows>>;

}  // namespace

void add_peer(Systems& systems, const std::string& name, const std::string& about,
              unsigned max_threads, OpenPeer open, Programs programs) {
  auto structures = PeerWorkloads::names();
  for (const Program& program : programs) structures.push_back(program.structure);
  systems.push_back({name, about, std::move(structures), max_threads,
                     [open = std::move(open), programs = std::move(programs)](
                         const Setting& setting) -> std::unique_ptr<Session> {
                       if (auto program = open_program(programs, setting)) return program;
                       return open_listed<PeerHost>(PeerWorkloads{}, setting, open);
                     }});
}

}  // namespace bench
