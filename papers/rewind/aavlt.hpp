// SPDX-License-Identifier: BSD-3-Clause
//
// AtomicAvlTree: REWIND's upper layer (section 3.4): log records by their LSN, in an AVL tree that
// lies in persistent memory and is itself recoverable. The words that an operation will change are
// logged in the lower layer, a PointerLog, and then changed; recovery undoes an operation that was
// cut short, or finishes the clearing of its records.
//
// A node is a line: key, left, right, height, record. Offsets are file offsets; 0 means none. Each
// word is a value of NvmStore, and a key is below 2^48.
// Crash invariants:
// AAVLT-1 The records of all that an operation changes are in the lower log before the first
// change.
// AAVLT-2 All changes are durable before the operation's END.
// AAVLT-3 Of an operation's records END is removed last; without it each word is given its old
// value, once or again.
// Departures from the paper: an operation's log calls stand together before its stores, whatever
// the version of the lower log (as section 3.3 does for Batch), and share fences: one for the
// records, one for their pointers, one for the removal of all but END. A word is logged once per
// operation, so that undoing needs no CLRs.
// Thread safety: none of its own; the log that uses it has a lock.
#pragma once

#include <cstdint>
#include <vector>

#include "papers/names.hpp"
#include "papers/rewind/aries_record.hpp"
#include "papers/rewind/pointer_log.hpp"

namespace perdure::papers::rewind {

class AtomicAvlTree {
 public:
  /// `root`: the offset of a word that is 0 at first. `seed`: that of the lower log's records.
  AtomicAvlTree(NvmStore& nvm, LogArena& arena, PointerLog& log, std::uint64_t root,
                std::uint64_t seed)
      : nvm_(nvm), arena_(arena), log_(log), root_(root), seed_(seed) {}

  /// Returns how many words an operation on a tree of `size` records may change, and so log: a link
  /// or a height in each node of a path, and in the nodes of the rotations along it.
  [[nodiscard]] static std::uint64_t max_writes(std::uint64_t size) noexcept;
  /// Returns how many lines an operation on a tree of `size` records takes while it lasts: `each`
  /// for a record of its own, and one for a node.
  [[nodiscard]] static std::uint64_t lines_of_operation(std::uint64_t size,
                                                        std::uint64_t each) noexcept {
    return (max_writes(size) + 1) * each + 1;
  }
  /// Returns whether there is space to insert `n` more, each with a line of its caller's.
  [[nodiscard]] bool fits(std::uint64_t n, std::uint64_t each) const noexcept {
    return arena_.free_lines() >= 2 * n + lines_of_operation(size_ + n, each) &&
           log_.fits((max_writes(size_ + n) + 1) * each);
  }

  /// Allocates the memory that operations on a tree of up to `most` records need. Throws
  /// std::bad_alloc.
  void prepare(std::uint64_t most) {
    writes_.reserve(max_writes(most));
    records_.reserve(max_writes(most) + 1);
  }
  /// Inserts a record. `key` is not in the tree.
  void insert(std::uint64_t key, std::uint64_t record) noexcept;
  /// Removes a record. `key` is in the tree.
  void remove(std::uint64_t key) noexcept;
  /// Returns the record with that key, or 0.
  [[nodiscard]] std::uint64_t find(std::uint64_t key) const noexcept;
  /// The record with the greatest key; with the least key above `key`; with the greatest key below
  /// `key`. 0 where there is none.
  [[nodiscard]] std::uint64_t last() const noexcept { return below(~std::uint64_t{0}); }
  [[nodiscard]] std::uint64_t above(std::uint64_t key) const noexcept;
  [[nodiscard]] std::uint64_t below(std::uint64_t key) const noexcept;
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Calls visit(key, record) for each record in the order of keys, until one call returns false.
  /// Returns whether none did.
  template <class F>
  bool for_each(F&& visit) const {
    return visit_below(nvm_.value(root_), visit);
  }

  /// Recovers the tree after a crash, when the lower log has been recovered: undoes or finishes the
  /// last operation, checks the tree, and marks its nodes in the arena, but not the records that it
  /// leads to. Returns `corrupt` where no crash leaves what it finds.
  Status recover();

 private:
  static constexpr std::uint64_t key_word = 0, left_word = 8, right_word = 16, height_word = 24,
                                 record_word = 32;
  struct Write {
    std::uint64_t at, value;
  };
  // The tree as the operation has changed it so far.
  [[nodiscard]] std::uint64_t get(std::uint64_t at) const noexcept;
  void set(std::uint64_t at, std::uint64_t value) noexcept;
  [[nodiscard]] std::uint64_t height(std::uint64_t node) const noexcept {
    return node == 0 ? 0 : get(node + height_word);
  }
  std::uint64_t inserted(std::uint64_t node, std::uint64_t key, std::uint64_t added) noexcept;
  std::uint64_t removed(std::uint64_t node, std::uint64_t key) noexcept;
  std::uint64_t without_least(std::uint64_t node, std::uint64_t& least) noexcept;
  std::uint64_t balanced(std::uint64_t node) noexcept;
  std::uint64_t turned(std::uint64_t node, std::uint64_t up, std::uint64_t down) noexcept;
  void carry_out() noexcept;
  void append_end() noexcept;
  std::uint64_t start(const AriesRecord& record) noexcept;
  void clear() noexcept;
  [[nodiscard]] bool has(std::uint64_t word) const noexcept;
  template <class F>
  bool visit_below(std::uint64_t node, F& visit) const {
    return node == 0 || (visit_below(nvm_.value(node + left_word), visit) &&
                         visit(nvm_.value(node + key_word), nvm_.value(node + record_word)) &&
                         visit_below(nvm_.value(node + right_word), visit));
  }
  Status learn(std::uint64_t node, std::uint64_t from, std::uint64_t to, unsigned depth,
               std::uint64_t& height);

  NvmStore& nvm_;
  LogArena& arena_;
  PointerLog& log_;
  const std::uint64_t root_, seed_;
  std::uint64_t size_ = 0, lsn_ = 0, gone_ = 0;
  std::vector<Write> writes_;
  std::vector<std::uint64_t> records_;  // of the operation, in the log or just removed
};

}  // namespace perdure::papers::rewind
