// SPDX-License-Identifier: BSD-3-Clause
//
// trim(): gives free chunks of the data region back to the file system while transactions run, on
// every engine. `perdure compact` does it for a pool that is closed (pool/trim.cpp).
//
//   1. Claim free chunks that have blocks in the file: no transaction can reserve them
//      (pool/claim.hpp).
//   2. An update frees the spans among them that have no block in use: the words of all claimed
//      chunks are 0 then. It is an ordinary transaction, so replay mends a torn directory.
//   3. Wait for every transaction that was open: it may read a block that another one has freed, or
//      restore what it has stored there.
//   4. Take a checkpoint: the data region durably holds all that was committed, and no engine has
//      anything left to store to these chunks.
//   5. Give their blocks back, and make that durable; then the chunks may be reserved again, which
//      allocates them first (ALLOC-1).
// Invariants:
//   TRIM-3 In a session a chunk becomes a hole only when its directory word is durably 0, the pool
//          durably has the feature `small logs`, no running transaction began before it was free,
//          and no thread will store to it before it is reserved again.
//   TRIM-4 From the claim to the durable hole no transaction can reserve the chunk. Then it is
//          zeros in the data region and in the view.
// A record that is still in the log, of a transaction that stored to the chunk before it was freed,
// may be replayed into the hole after a crash: recovery allocates what it stores to, and records
// that free the chunk follow.
// The data region's end is not cut off: other threads may be reading how long it is.
// Thread safety: any thread, outside transactions; of two callers one waits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "perdure/base/status.hpp"
#include "perdure/engine/engine_base.hpp"
#include "perdure/engine/stats.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::engine {

/// Gives at most `max_bytes` back, in whole chunks and spans, at least one. Errors: `unsupported`
/// (a medium or a file system without holes; an engine that keeps nothing), `read_only`,
/// `out_of_memory`, what checkpoint() returns, the medium's (`full`: a hole may take a block). The
/// pool is as good as before then.
template <class E>
Result<Trimmed> trim(E& engine, std::uint64_t max_bytes) {
  EngineBase& core = engine.core();
  pool::OpenPool& file = core.file;
  if (file.read_only())
    return failure(Code::read_only, file.path(), "a trim of a pool that is open for reading only",
                   {}, "open it for writing");
  if (core.state() != 0) return core.why();
  if (!core.medium.can_give_back())
    return failure(Code::unsupported, file.path(),
                   "a " + std::string(core.medium.kind()) + " medium without holes",
                   "a pool in a regular file");
  pool::Heap& heap = file.heap();
  struct End {
    pool::Heap& heap;
    ~End() { heap.end_claim(); }
  };
  auto claim = heap.claim_free(std::max<std::uint64_t>(max_bytes / pool::chunk_bytes, 1));
  const End end{heap};
  if (!claim.ok()) return claim.status();
  if (claim->runs.empty()) return Trimmed{0, claim->more};

  // So few that they fit the smallest log. It runs where there are none, too: no update of a TM
  // whose updates exclude each other is older than this one (Domain::wait_for_open).
  constexpr std::size_t at_once = 64;
  std::uint64_t id = 0;
  std::size_t from = 0;
  bool taken_back = false;
  try {
    do {
      const std::size_t to = std::min(from + at_once, claim->spans.size());
      id = run(engine, true, Durability::durable, [&](auto& transaction) {
        taken_back = !heap.begin_clearing();
        if (taken_back) return;
        struct Ended {
          pool::Heap& heap;
          ~Ended() { heap.cleared(); }
        } const ended{heap};
        for (std::size_t i = from; i < to; ++i)
          transaction.free(file.view() + claim->spans[i].first * pool::chunk_bytes);
      });
      from = to;
    } while (from < claim->spans.size() && !taken_back);
  } catch (const error& e) {
    return e.status();
  }
  if (taken_back) return Trimmed{0, true};
  core.wait_for_open_transactions();
  // mutant: trim-after-checkpoint
  if (Status s = engine.checkpoint(); !s.ok()) return s;
  // An engine that keeps nothing (volatile) shows what the data region does not have: a chunk that
  // is free now may be in use there.
  if (engine.durable_id() < id)
    return failure(Code::unsupported, file.path(),
                   "a trim with an engine that makes nothing durable", "a durable engine");
  if (!heap.begin_punching()) return Trimmed{0, true};
  const auto given = file.give_back(claim->runs);
  if (!given.ok()) {
    core.poison_with_medium();  // only if it was the medium that failed: LAW-9
    return given.status();
  }
  return Trimmed{*given, claim->more};
}

}  // namespace perdure::engine
