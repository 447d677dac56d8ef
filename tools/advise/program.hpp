// SPDX-License-Identifier: BSD-3-Clause
//
// ReplayProgram: a stretch of a workload trace, prepared to be replayed many times: every access is
// a block's number and a word in that block, so that the hot loop looks nothing up.
//
// Block 0 is the arena. It stands for all memory that existed before the stretch began: the pages
// of the data region that the stretch accesses, side by side in their order, so that words that
// shared a page or a line still do. A block that is allocated in the stretch and accessed by that
// thread alone is a real block. A block that another thread accesses is allocated and freed as a
// real block, but accessed in the arena, at its old place: the threads of a replay drift apart, and
// none may access what another one has freed. A free of a block that another thread, or no thread,
// allocated in the stretch frees a block that was allocated in advance.
//
// Threads of the program that never overlap are one thread here; a thread with less than a tenth of
// the busiest one's transactions is merged into another one.
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
  alloc_stray,  ///< n bytes that no thread, or another one, frees in the stretch
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
  std::uint32_t blocks = 1;             ///< including the arena
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
  std::uint64_t transactions = 0, first = 0;  ///< counted in the trace, in order
  std::uint64_t arena_bytes = 0;
  bool folded = false;                  ///< more pages were accessed than the arena may have
  std::uint64_t block_bytes = 0;        ///< allocated in one pass
  std::uint64_t largest_log_bytes = 0;  ///< of one transaction, roughly
  /// Blocks that lie in the arena because several threads access them.
  std::uint64_t arena_shared = 0;
};

/// What a trace says about its program.
struct Workload {
  std::uint64_t transactions = 0, updates = 0, views = 0;
  std::uint64_t reads = 0, writes = 0;  ///< words
  std::uint64_t allocs = 0, alloc_bytes = 0, frees = 0;
  std::uint64_t largest_writes = 0;  ///< words of one transaction
  std::uint64_t threads = 0;         ///< that ran any transaction
};
[[nodiscard]] Workload describe_workload(const engine::WorkloadTrace& trace);

inline constexpr std::uint64_t max_arena_bytes = std::uint64_t{1} << 30;
inline constexpr std::size_t max_replay_threads = 16;

/// Transactions [first, first + count) of the trace, counted in their order.
[[nodiscard]] ReplayProgram make_program(const engine::WorkloadTrace& trace, std::uint64_t first,
                                         std::uint64_t count);

}  // namespace perdure::tool
