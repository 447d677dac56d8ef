// SPDX-License-Identifier: BSD-3-Clause
//
// trim(): gives free chunks of the data region back to the file system while transactions run, on
// every engine. `perdure compact` does it for a pool that is closed (pool/trim.cpp).
//
//   1. Claim free chunks that have blocks in the file: no transaction can reserve them
//      (pool/claim.hpp).
//   2. An update frees those claimed spans that have no block in use. After that, the directory
//      words of all claimed chunks are 0. It is an ordinary transaction, so replay mends a torn
//      directory.
//   3. Wait for every transaction that was open: it may still read a block that another transaction
//      has freed, or a rollback may still restore what it overwrote there.
//   4. Take a checkpoint. After it, the data region durably holds all that was committed, and no
//      engine has anything left to store to these chunks.
//   5. Give the blocks of the chunks back, and make the holes durable. Only then may a transaction
//      reserve the chunks again, which first allocates file blocks for them (ALLOC-1).
// Invariants:
//   TRIM-3 In a session a chunk becomes a hole only when its directory word is durably 0, the pool
//          durably has the feature `small logs`, no running transaction began before it was free,
//          and no thread will store to it before it is reserved again.
//   TRIM-4 From the claim of a chunk until its hole is durable, no transaction can reserve the
//          chunk. Afterwards the chunk is zeros in the data region and in the mapping.
// After a crash, recovery may replay a record into the hole, if the log still has one from before
// the chunk was freed. That is harmless: recovery allocates the blocks that it stores to, and
// records that free the chunk follow.
// The file is not shortened at its end: other threads may be reading the data region's length.
// Thread safety: any thread, outside transactions; a second caller waits for the first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "perdure/base/status.hpp"
#include "perdure/engine/engine_base.hpp"
#include "perdure/engine/snapshots.hpp"
#include "perdure/engine/stats.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::engine {

/// Gives at most `max_bytes` back, in whole chunks and spans, but at least one. Errors:
/// `unsupported` (a medium or a file system without holes; an engine that makes nothing durable),
/// `read_only`, `out_of_memory`, what checkpoint() returns, and the medium's (`full`: a hole may
/// take a block), and `busy` while a snapshot is open. After an error the pool is as good as
/// before, unless the medium failed.
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
  struct Cleared {
    pool::Heap& heap;
    ~Cleared() { heap.cleared(); }
  };
  auto claim = heap.claim_free(std::max<std::uint64_t>(max_bytes / pool::chunk_bytes, 1));
  const End end{heap};
  if (!claim.ok()) return claim.status();
  if (claim->runs.empty()) return Trimmed{0, claim->more};
  // A snapshot that is opened from here on does not have what was in these chunks.
  // mutant: trim-refuses-beside-snapshots
  if (Snapshots* const snapshots = snapshots_of(engine); snapshots != nullptr && snapshots->any())
    return failure(Code::busy, file.path(), "a trim while a snapshot is open",
                   "none: it may still read what is free by now", "close it first");

  // 64 frees fit the smallest log. The update runs even where there is no span to free: in a TM
  // whose updates exclude each other, it makes sure that no older update is open
  // (Domain::wait_for_open).
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
        const Cleared cleared{heap};
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
  // With an engine that makes nothing durable (volatile), transactions see a state that the data
  // region does not have: a chunk that is free in it may be in use in the data region.
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
