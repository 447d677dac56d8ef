// SPDX-License-Identifier: BSD-3-Clause
//
// The last step of a checkpoint (checkpoint.hpp, step 5), of every engine that makes them from a
// shadow.
// Thread safety: one checkpoint at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "perdure/engine/thread_logs.hpp"
#include "perdure/log/floors.hpp"
#include "perdure/log/ring.hpp"
#include "perdure/pool/features.hpp"

namespace perdure::engine::shadow {

/// Makes the checkpoint id `x` durable in the header, and truncates the rings to what is above it,
/// or above the lowest of `floors` if that is lower (FLOOR-1). `core` has the header: EngineBase or
/// OpenPool. REQUIRES: the data region holds, durably, every transaction with an id up to x.
/// Returns the medium's failure, with no ring truncated. Throws std::bad_alloc, with nothing done.
template <class Core>
Status publish_checkpoint(Core& core, ThreadLogs<log::Ring>& rings, const log::Floors& floors,
                          std::uint64_t x) {
  std::vector<std::uint64_t> heads(rings.size()), settled(rings.size());
  // mutant: checkpoint-keeps-floor
  const std::uint64_t released = std::min(x, floors.lowest());
  for (std::size_t i = 0; i < heads.size(); ++i) {
    // mutant: checkpoint-truncates-to-id
    settled[i] = rings[i].position_after(x);
    heads[i] = released == x ? settled[i] : rings[i].position_after(released);
  }
  // CKPT-3: the data region is durable (each slice fenced). X and the heads must be durable before
  // a ring is reused: after a crash in between, recovery would find neither the record nor, in the
  // data region, what it wrote.
  // mutant: checkpoint-truncates-before-header
  Status s = core.publish([&](pool::Header& h) {
    h.checkpoint_id = x;
    pool::set_log_from(h, released);
    for (std::size_t i = 0; i < heads.size(); ++i) h.ring_head[i] = heads[i];
  });
  if (!s.ok()) return s;
  // mutant: checkpoint-truncates-before-header-late
  for (std::size_t i = 0; i < heads.size(); ++i) {
    rings[i].release(heads[i]);
    rings[i].settle(settled[i]);
  }
  return {};
}

}  // namespace perdure::engine::shadow
