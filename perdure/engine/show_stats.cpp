// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/show_stats.hpp"

namespace perdure::engine {

void show_stats(StatWriter& writer, const Stats& s) noexcept {
  StatPage& p = writer.page();
  set(p.transactions.commits, s.commits);
  set(p.transactions.aborts, s.aborts);
  set(p.transactions.last_id, s.last_id);
  set(p.transactions.durable_id, s.durable_id);
  set(p.transactions.checkpoint_id, s.checkpoint_id);
  set(p.log.used_bytes, s.log_used);
  set(p.log.capacity_bytes, s.log_capacity);
  set(p.log.checkpoints, s.checkpoints);
  set(p.heap.used_bytes, s.heap_used);
  set(p.heap.data_bytes, s.data_bytes);
  set(p.medium.fences, s.medium.fences);
  set(p.medium.syncs, s.medium.syncs);
  set(p.medium.written_bytes, s.medium.written_bytes);
  writer.touch();
}

}  // namespace perdure::engine
