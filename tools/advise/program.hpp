// SPDX-License-Identifier: BSD-3-Clause
//
// ReplayProgram: a stretch of a workload trace made ready to be replayed over and over: every
// access is a block's number and a word in it, so that the hot loop looks nothing up.
//
// Block 0 is the arena. It stands for all memory that was there before the stretch began: the pages
// of home that are touched, side by side in their order, so what shared a page or a line still
// does. A block that is allocated in the stretch and accessed by that thread alone is a real block.
// One that another thread accesses is allocated and freed for real, but accessed in the arena, at
// its old place: threads of a replay drift apart, and none must touch what another has freed. A
// free of a block that another thread, or nobody, allocated in the stretch frees one that was made
// ready.
//
// Threads of the program that never overlap are one thread here; one with less than a tenth of the
// busiest one's transactions goes to another's.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perdure/engine/workload_trace.hpp"

namespace perdure::tool {

enum class ReplayKind : std::uint8_t {
  read,
  read_words,  ///< n words
  write,
  write_words,  ///< n words
  alloc,        ///< n bytes: base[block]
  alloc_stray,  ///< n bytes, freed by nobody in the stretch, or by another thread
  free,         ///< base[block]
  free_ready    ///< block: the index in ReplayThread::ready
};
struct ReplayOp {
  ReplayKind kind;
  std::uint32_t n, block, word;
};

struct ReplayTransaction {
  std::uint32_t first, count;  ///< of ops
  bool update;
  bool durable_view;  ///< view(durable, ...)
};

struct ReplayThread {
  std::vector<ReplayOp> ops;
  std::vector<ReplayTransaction> transactions;
  std::uint32_t blocks = 1;             ///< with the arena
  std::vector<std::uint32_t> leftover;  ///< blocks that a pass leaves allocated
  std::uint64_t leftover_bytes = 0;
  struct Ready {
    std::uint64_t bytes;
    std::uint32_t each_pass;
  };
  std::vector<Ready> ready;
};

struct ReplayProgram {
  std::vector<ReplayThread> threads;
  std::uint64_t transactions = 0, first = 0;  ///< of the trace's, in order
  std::uint64_t arena_bytes = 0;
  bool folded = false;                  ///< more pages were touched than the arena may have
  std::uint64_t block_bytes = 0;        ///< allocated in a pass
  std::uint64_t largest_log_bytes = 0;  ///< of a transaction, roughly
  /// blocks that lie in the arena because several threads access them
  std::uint64_t arena_shared = 0;
};

/// What a trace says of its program.
struct Workload {
  std::uint64_t transactions = 0, updates = 0, views = 0;
  std::uint64_t reads = 0, writes = 0;  ///< words
  std::uint64_t allocs = 0, alloc_bytes = 0, frees = 0;
  std::uint64_t largest_writes = 0;  ///< words of one transaction
  std::uint64_t threads = 0;         ///< that ran any
};
[[nodiscard]] Workload describe_workload(const engine::WorkloadTrace& trace);

inline constexpr std::uint64_t most_arena_bytes = std::uint64_t{1} << 30;
inline constexpr std::size_t most_replay_threads = 16;

/// Transactions [first, first + count) of the trace, counted in their order.
[[nodiscard]] ReplayProgram make_program(const engine::WorkloadTrace& trace, std::uint64_t first,
                                         std::uint64_t count);

}  // namespace perdure::tool
