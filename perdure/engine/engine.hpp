// SPDX-License-Identifier: BSD-3-Clause
//
// Engine: the concept, and the laws that every engine obeys. An engine combines five choices: where
// stores go, which log it has, when it persists, when the data region is written, and what isolates
// transactions. Each engine lies in a folder of its own; registry.hpp lists the instances of the
// product.
//
// Laws (conformance tests run on every registered engine and medium):
//   LAW-1  After any crash the recovered state is the result of a set S of committed transactions,
//          closed under what its members read or overwrote; where recovery takes a prefix, a prefix
//          without a hole.
//   LAW-2  What was acknowledged as durable is in S; a receipt covers all that its transaction
//          read, and that holds for views too.
//   LAW-3  What aborted is never seen.
//   LAW-4  With isolation, transactions are opaque and serializable.
//   LAW-5  Recovery is idempotent.
//   LAW-6  The blocks allocated after recovery are those that S allocated and did not free.
//   LAW-7  A log has a bound: a full one makes transactions wait, then a checkpoint truncates it; a
//          transaction that can never fit fails and is rolled back.
//   LAW-8  A read-only transaction writes nothing to the medium.
//   LAW-9  After the medium fails nothing more is acknowledged; updates and views fail; reopening
//          recovers.
//   LAW-10 Damage is reported, never skipped; opening a foreign, newer or truncated pool writes no
//          byte.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "perdure/base/status.hpp"
#include "perdure/engine/engine_options.hpp"
#include "perdure/log/progress.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure {

/// When update() returns, and what its receipt says then.
enum class Durability : std::uint8_t {
  durable,  ///< durable when update() returns
  /// as durable, but commits that wait at the same time share a fence (on a file, durable commits
  /// do so too)
  group,
  /// update() returns at once; its receipt says when it is durable (within 10 ms, even if no
  /// thread waits for it)
  async
};
/// Durability::durable, for `pool.update(perdure::durable, f)`.
inline constexpr Durability durable = Durability::durable;
/// Durability::group, likewise.
inline constexpr Durability group = Durability::group;
/// Durability::async, likewise.
inline constexpr Durability async = Durability::async;

/// What isolates the transactions of different threads from each other.
enum class Isolation : std::uint8_t {
  full,   ///< the pool does (LAW-4)
  caller  ///< the caller does; at the granularity of whole 8-byte words
};

}  // namespace perdure

namespace perdure::engine {

/// What was chosen at opening.
struct Config {
  std::string_view instance;  ///< its registered name: a literal
  Durability durability = Durability::durable;
  Isolation isolation = Isolation::full;
  /// Strict order: the number of writers with a ring of their own; others share one.
  std::uint32_t threads = 8;
  bool fence_is_sync = false;  ///< of the medium
  /// Bytes that a copy of the data in DRAM may take; 0: no limit.
  std::uint64_t max_resident = 0;
  EngineOptions options;  ///< options of single engines
  std::string trace;      ///< dynamic_engine.hpp: record the workload to this file
};

/// The result of recovery.
struct Recovery {
  /// The pool was closed in order: there was nothing to recover.
  bool was_clean = true;
  /// Records of the log, transactions in them and their bytes that were replayed (or rolled back).
  std::uint64_t records = 0, transactions = 0, bytes = 0;
  std::uint64_t rolled_back = 0;  ///< transactions undone (undo logs)
  /// The newest transaction that the pool holds.
  std::uint64_t last_id = 0;
  /// How long recovery took.
  double seconds = 0;
  /// During recovery: the plan that was asked for (engine/engine_info.hpp, recover()).
  const log::RecoveryPlan* plan = nullptr;
};

/// Counters of an open pool.
struct Stats {
  /// The name of the engine instance.
  std::string engine;
  std::uint64_t commits = 0;  ///< transactions that changed something
  std::uint64_t reads = 0;    ///< transactions that changed nothing
  std::uint64_t aborts = 0;   ///< restarts after a conflict
  /// `htm`: transactions that the hardware (or its stand-in) committed; the others ran under the
  /// lock.
  std::uint64_t without_lock = 0;
  /// The newest id, the id up to which all are durable, and the checkpoint id. Those of `htm` are
  /// commit timestamps, as in receipts, whereas the header and the log count transactions.
  std::uint64_t last_id = 0, durable_id = 0, checkpoint_id = 0;
  std::uint64_t log_bytes = 0;  ///< appended since opening
  /// Bytes of the log that hold records still needed, and bytes that it has in all.
  std::uint64_t log_used = 0, log_capacity = 0;
  /// Checkpoints since opening, and the 64-byte lines that they wrote.
  std::uint64_t checkpoints = 0, checkpoint_lines = 0;
  /// Of the checkpoints on memory: those that the pool's own thread made (ShadowOptions::helper).
  std::uint64_t helped_checkpoints = 0;
  /// Bytes in allocated blocks, and bytes that the data region has on the medium.
  std::uint64_t heap_used = 0, data_bytes = 0;
  /// Where the copy in DRAM has a limit (Options::max_resident; DudeTM, paged): pages of 4 KiB that
  /// it takes, and how many were given back since opening.
  std::uint64_t shadow_pages = 0, evictions = 0;
  /// DudeTM, paged: each access asks a table for its page.
  bool paged_by_software = false;
  /// DudeTM: payload bytes before combination, after it, and written to the log.
  std::uint64_t log_bytes_in = 0, log_bytes_combined = 0, log_bytes_out = 0;
  /// How often one thread was given the pool for itself, without locks, and how often another took
  /// that back.
  std::uint64_t bias_grants = 0, bias_revocations = 0;
  /// What the pool asked of its medium since it was opened.
  medium::Counters medium;
  /// What opening had to recover.
  Recovery recovery;
};

/// An engine instance E. It is built after recovery and start_session and destroyed before the
/// OpenPool. Transaction: one thread's transaction. The concept below checks the calls that a
/// user's transaction makes; opening, the retry loop and the registry need the other members of
/// this list. Those marked (kit) come from TransactionBase, DataAtCommit or RedoEngine: README.md
/// says which.
///   E::name                          what the tags give as the family, 1 to 31 bytes
///   E::tm_name                       (kit) the name of its concurrency control; the registry has
///                                    the instance's names
///   E::identity(config)              what creation writes in the header (order, rings)
///   E::recover(file, report)         called for a pool that was not closed in order: makes the
///                                    data region the state of set S, and says in report.last_id up
///                                    to which id; a plain function of the medium; leaves the
///                                    header alone
///   E::prepare_log(file)             optional: allocates what a session needs of the log before
///                                    its first transaction (ALLOC-1)
///   E::view_policy                   (kit) how the data is mapped
///   E::ring_records                  its rings hold the records of log/record.hpp; other engines
///                                    have their own logs
///   E::supported()                   optional: whether this machine can run it
///   E::pipelined_only, strict_only   optional: it can't open a pool of the other order
///   E(file, config, recovery)        OpenPool&, const Config&, const Recovery&
///   core()                           (kit) its EngineBase
///   transaction()                        the calling thread's transaction, from Transactions::get
///   transaction.inside(), in_view(), begin(update), read(a), direct(), backoff(), mine(exception)
///                                    (kit)
///   transaction.write(a, v), write_words(a, src, n), alloc(n), free(p), commit(d), rollback()
///   wait_for_log_space(transaction, needed)
///                                    called by run() after a transaction threw LogFull and was
///                                    rolled back; returns when another run may succeed
///   wait(id), durable_id()           (kit)
///   strict()                         (kit) a commit that has returned is durable (strict order)
///   checkpoint(), close(), stats()
// clang-format off
template <class E>
concept Engine =
    requires(E& e, typename E::Transaction& c, std::uint64_t* a, const std::uint64_t* s,
             std::uint64_t n, Durability d, bool b) {
  { E::tm_name } -> std::convertible_to<const char*>;
  { E::identity(Config{}) } -> std::same_as<pool::Identity>;
  { e.transaction() } -> std::same_as<typename E::Transaction&>;
  { c.begin(b) };
  { c.read(s) } -> std::same_as<std::uint64_t>;
  { c.write(a, n) };
  { c.write_words(a, s, n) };
  { c.alloc(n) } -> std::same_as<std::byte*>;
  { c.free(static_cast<void*>(a)) };
  { c.direct() } -> std::same_as<bool>;
  { c.commit(d) } -> std::same_as<std::uint64_t>;
  { c.rollback() };
  { e.wait(n) } -> std::same_as<Status>;
  { e.durable_id() } -> std::same_as<std::uint64_t>;
  { e.strict() } -> std::same_as<bool>;
  { e.checkpoint() } -> std::same_as<Status>;
  { e.close() } -> std::same_as<Status>;
  { e.stats() } -> std::same_as<Stats>;
};
// clang-format on

}  // namespace perdure::engine
