// SPDX-License-Identifier: BSD-3-Clause
//
// REWIND's calls as the paper has them (papers: REWIND, VLDB '15, section 2, Listing 2; 4.2 to
// 4.4): getNextID, log, commit, rollback, beside plain loads and stores of the program's own. For
// programs that are written, or generated, against the paper; others have pool.update.
//
//     perdure::paper::TransactionManager<List> tm(path);
//     List& list = tm.root();
//     const auto tID = tm.getNextID();
//     tm.log(tID, &list.tail, list.tail, n->prv);   // before every store; the values are words of
//                                                   8 bytes
//     list.tail = n->prv;
//     tm.deallocate(tID, n);                        // the paper's deferred de-allocation: at the
//                                                   commit, with a DELETE record
//     tm.commit(tID);
//
// log() makes the store itself, once its record is in the log: the program's own, which follows,
// stores the same again and may be left out. So the medium knows which lines differ, and with Batch
// nothing is stored before its group is in the log: there each log() is a group of its own, and
// group() logs several words at the price of one.
// Crash invariant: K1 (manager.hpp). A new block's words are logged like all others: what is only
// stored may be lost.
// Errors: as Pool's, and std::bad_alloc from the constructor, too. A transaction whose call fails
// runs on: roll it back. The log's room is made by a checkpoint; what running transactions need
// alone is `full`.
// Thread safety: every call from any thread; a transaction belongs to the thread that got its ID,
// which may have many. Isolation is the caller's (4.7).
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "perdure/api/layout.hpp"
#include "perdure/api/options.hpp"
#include "perdure/pool/pool_file.hpp"

namespace perdure::paper {

/// A transaction's name, given once.
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

/// The part without the root's type.
class RewindCalls {
 public:
  RewindCalls(const RewindCalls&) = delete;
  RewindCalls& operator=(const RewindCalls&) = delete;
  /// Rolls back what is running, and closes in order. What goes wrong then is not told: the next
  /// opening recovers.
  ~RewindCalls();

  /// A transaction begins. The paper's name.
  TransactionId getNextID();
  /// The word at `address` goes from `old_value` to `new_value`, which it has when this returns.
  /// `invalid` where it does not hold `old_value`: a store that was made before its log().
  template <class T>
  void log(TransactionId tID, T* address, std::type_identity_t<T> old_value,
           std::type_identity_t<T> new_value) {
    log_word(tID, LoggedWord(address, new_value), std::bit_cast<std::uint64_t>(old_value));
  }
  void group(TransactionId tID, std::initializer_list<LoggedWord> updates);
  /// Durable when this returns.
  void commit(TransactionId tID);
  /// The words that it logged have their old values.
  void rollback(TransactionId tID);
  /// A block whose contents are undefined; goes back at a rollback.
  [[nodiscard]] void* allocate(TransactionId tID, std::uint64_t bytes);
  /// At the commit.
  void deallocate(TransactionId tID, void* block);

  /// No-force: home is brought up to date, and the records of what has ended are removed (section
  /// 4.6).
  void checkpoint();
  [[nodiscard]] engine::Stats stats();
  [[nodiscard]] pool::PoolFile& file() noexcept;
  /// `invalid` while a transaction runs.
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
  static_assert(plain_value<Root>, "perdure::paper::TransactionManager: a root is a plain struct");

 public:
  /// Opens, and recovers, or creates. `options.engine`: a composition, such as
  /// "rewind-1l-nfp-optimized", which a new pool has unless told. `options.creation.threads`: logs,
  /// one a thread (the distributed log); 1 is the shared one. `medium`: a new pool on it (tests).
  explicit TransactionManager(const std::string& path, const Options& options = {},
                              std::unique_ptr<medium::Medium> medium = nullptr)
      : RewindCalls(path, options, detail::root_type<Root>(), std::move(medium)) {}
  [[nodiscard]] Root& root() const noexcept { return *static_cast<Root*>(root_address()); }
};

}  // namespace perdure::paper
