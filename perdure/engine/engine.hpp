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
#include <memory>
#include <string>
#include <string_view>

#include "perdure/base/status.hpp"
#include "perdure/engine/durability.hpp"
#include "perdure/engine/engine_options.hpp"
#include "perdure/engine/reader_options.hpp"
#include "perdure/engine/stats.hpp"
#include "perdure/log/progress.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::engine {

namespace follow {
class Follower;
}

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
  ReaderOptions readers;
  /// Of a pool that follows another process's: what follows it.
  std::shared_ptr<follow::Follower> follower;
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
