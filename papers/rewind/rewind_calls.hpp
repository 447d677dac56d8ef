// SPDX-License-Identifier: BSD-3-Clause
//
// REWIND's calls as the paper has them (papers: REWIND, VLDB '15, section 2, Listing 2; 4.2 to
// 4.4): getNextID, log, commit, rollback, beside the program's own plain loads and stores. They are
// for programs that are written, or generated, against the paper; other programs use pool.update.
//
//     perdure::TransactionManager<List> tm(path);
//     List& list = tm.root();
//     const auto tID = tm.getNextID();
//     tm.log(tID, &list.tail, list.tail, n->prv);   // before every store; values are 8-byte words
//     list.tail = n->prv;
//     tm.deallocate(tID, n);                        // the paper's deferred de-allocation: at the
//                                                   // commit, with a DELETE record
//     tm.commit(tID);
//
// log() makes the store itself, once its record is in the log: the program's own store, which
// follows, stores the same value again and may be omitted. So the medium knows which lines differ,
// and with Batch nothing is stored before its group is in the log: there each log() is a group of
// its own, and group() logs several words at the cost of one.
// Crash invariant: REWIND-1 (manager.hpp). A new block's words are logged like all others: a word
// that is only stored may be lost.
// Errors: as in Pool, and the constructor throws std::bad_alloc too. A transaction whose call fails
// stays open: roll it back. A checkpoint frees log space; `full` means that running transactions
// alone need more than there is.
// Thread safety: any thread may make every call; a transaction belongs to the thread that got its
// ID, and a thread may have many. The caller isolates (4.7).
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "papers/names.hpp"
#include "perdure/api/layout.hpp"
#include "perdure/api/options.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::papers::rewind {

/// A transaction's ID. Each is given out once.
using TransactionId = std::uint64_t;

/// A word that group() logs and stores.
struct LoggedWord {
  std::uint64_t* address;
  std::uint64_t new_value;
  template <class T>
  LoggedWord(T* where, std::type_identity_t<T> value)
      : address(reinterpret_cast<std::uint64_t*>(where)),
        new_value(std::bit_cast<std::uint64_t>(value)) {
    static_assert(sizeof(T) == 8 && plain_value<T>,
                  "perdure::paper: a logged value is a word of 8 bytes");
  }
};

/// The part that does not depend on the root's type.
class RewindCalls {
 public:
  RewindCalls(const RewindCalls&) = delete;
  RewindCalls& operator=(const RewindCalls&) = delete;
  /// Rolls back what is running, and closes the pool. A failure then is not reported: the next
  /// opening recovers.
  ~RewindCalls();

  /// Begins a transaction. The name is the paper's.
  TransactionId getNextID();
  /// Changes the word at `address` from `old_value` to `new_value`, which it has when this returns.
  /// Throws `invalid` where it does not hold `old_value`: a store was made before its log().
  template <class T>
  void log(TransactionId tID, T* address, std::type_identity_t<T> old_value,
           std::type_identity_t<T> new_value) {
    log_word(tID, LoggedWord(address, new_value), std::bit_cast<std::uint64_t>(old_value));
  }
  void group(TransactionId tID, std::initializer_list<LoggedWord> updates);
  /// Commits: the transaction is durable when this returns.
  void commit(TransactionId tID);
  /// Rolls back: the words that the transaction logged have their old values.
  void rollback(TransactionId tID);
  /// Returns a block whose contents are undefined; a rollback frees it.
  [[nodiscard]] void* allocate(TransactionId tID, std::uint64_t bytes);
  /// Frees a block, at the commit.
  void deallocate(TransactionId tID, void* block);

  /// No-force: takes a checkpoint, and removes the records of transactions that have ended (section
  /// 4.6).
  void checkpoint();
  [[nodiscard]] engine::Stats stats();
  [[nodiscard]] pool::OpenPool& file() noexcept;
  /// Closes the pool. Throws `invalid` while a transaction runs.
  void close();

 protected:
  RewindCalls(const std::string& path, const Options& options, const detail::RootType& root,
              std::unique_ptr<medium::Medium> medium);
  [[nodiscard]] void* root_address() const noexcept;

 private:
  struct State;
  void log_word(TransactionId tID, const LoggedWord& update, std::uint64_t old_value);
  std::unique_ptr<State> state_;
};

/// One pool with a root of type Root: a plain struct of words and pointers into the pool, with a
/// `layout_id` that names its layout.
template <class Root>
class TransactionManager : public RewindCalls {
  static_assert(plain_value<Root>, "perdure::TransactionManager: a root is a plain struct");

 public:
  /// Opens and recovers the pool, or creates it. `options.engine`: a composition; a new pool has
  /// "rewind-1l-nfp-optimized" unless another is named. `options.creation.threads`: the number of
  /// logs, one per thread (the distributed log); 1 is the shared one. `medium`: a new pool on it
  /// (tests).
  explicit TransactionManager(const std::string& path, const Options& options = {},
                              std::unique_ptr<medium::Medium> medium = nullptr)
      : RewindCalls(path, options, detail::root_type<Root>(), std::move(medium)) {}
  [[nodiscard]] Root& root() const noexcept { return *static_cast<Root*>(root_address()); }
};

}  // namespace perdure::papers::rewind
