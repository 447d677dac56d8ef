// SPDX-License-Identifier: BSD-3-Clause
//
// queue<T>: first in, first out, in a chain of blocks of about 1 KiB.
//
// The end that pushes and the end that pops lie in lines of their own, and a pop reads the pushing
// end only when both are in one block, so that a producer and a consumer seldom conflict. Element i
// (counted since the queue was made) lies in slot i % slots of its block.
// Thread safety: that of the transaction.
// Invariants:
// QUEUE-1 popped_ <= pushed_.
// QUEUE-2 A block is in the chain exactly while it holds an element or the next push goes into it.
// QUEUE-3 A block with a successor is full, and its successor holds an element.
// Zero bytes are an empty queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "perdure/api/layout.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/container/live_cursor.hpp"
#include "perdure/container/record_steps.hpp"
#include "perdure/container/stored.hpp"

namespace perdure {

/// First in, first out, in a pool. T is a value (docs/values.md).
///
/// Each call takes the transaction first. Calls that change the queue need an update()'s `tx` (they
/// do not compile with a view's) and throw error(full), error(too_big), error(out_of_memory) or
/// std::bad_alloc where memory or log space is lacking; the transaction is then rolled back. Thread
/// safety: the transaction's; a pushing and a popping thread seldom conflict.
template <class T>
class queue {
  using Stored = stored<T>;
  static_assert(
      !std::is_same_v<typename Stored::arg, new_object>,
      "perdure::queue: an element is popped by value, so it can't be a container or a struct "
      "of p<> fields: use a plain struct, or perdure::list");
  using Field = typename Stored::field;
  static constexpr std::uint64_t slots = sizeof(Field) >= 128 ? 8 : 1008 / sizeof(Field);
  struct Block {
    ptr<Block> next;
    Field slot[slots];
  };

 public:
  /// The type of an element.
  using value_type = T;
  /// How an element is passed in: const T&, or std::string_view.
  using arg = typename Stored::arg;

  /// The number of elements. Reads both ends, so it conflicts with every push and pop.
  template <class Tx>
  [[nodiscard]] std::uint64_t size(Tx& tx) const {
    return tx.read(back_.pushed) - tx.read(front_.popped);
  }
  /// Whether there is no element. Reads the pushing end only where one block holds all elements.
  template <class Tx>
  [[nodiscard]] bool empty(Tx& tx) const {
    const Block* block = tx.read(front_.block);
    return block == nullptr || (tx.read(block->next) == nullptr && size(tx) == 0);
  }

  /// Adds an element at the end. Never waits: a queue has no bound but the pool's.
  template <class Tx>
  void push(Tx& tx, arg value) {
    detail::require_update<Tx>();
    const std::uint64_t at = tx.read(back_.pushed);
    Block* block = tx.read(back_.block);
    if (block == nullptr || at % slots == 0) {
      // The slots of a new block are undefined until pushed to.
      auto* fresh = reinterpret_cast<Block*>(tx.alloc(sizeof(Block)));
      tx.write(fresh->next, nullptr);
      if (block == nullptr)
        tx.write(front_.block, fresh);
      else
        tx.write(block->next, fresh);
      tx.write(back_.block, fresh);
      block = fresh;
    }
    tx.write(block->slot[at % slots], Stored::make(tx, value));
    tx.write(back_.pushed, at + 1);
  }

  /// Removes and returns the oldest element; nothing when there is none.
  template <class Tx>
  std::optional<T> pop(Tx& tx) {
    detail::require_update<Tx>();
    if (empty(tx)) return std::nullopt;
    const std::uint64_t at = tx.read(front_.popped);
    Block* block = tx.read(front_.block);
    const auto raw = tx.read(block->slot[at % slots]);
    std::optional<T> value = Stored::value(tx, raw);
    Stored::drop(tx, raw);
    tx.write(front_.popped, at + 1);
    if ((at + 1) % slots == 0) {
      Block* next = tx.read(block->next);
      tx.write(front_.block, next);
      if (next == nullptr) tx.write(back_.block, nullptr);
      tx.free(block);
    }
    return value;
  }

  /// Returns the oldest element and leaves it in place.
  template <class Tx>
  [[nodiscard]] std::optional<T> front(Tx& tx) const {
    if (empty(tx)) return std::nullopt;
    return Stored::read(tx, tx.read(front_.block)->slot[tx.read(front_.popped) % slots]);
  }

  /// Removes all elements and frees their memory, in this transaction.
  template <class Tx>
  void clear(Tx& tx) {
    detail::require_update<Tx>();
    if constexpr (!std::is_same_v<typename Stored::raw, T>) {
      for (cursor c = begin(tx); c; c.next(tx))
        Stored::drop(tx, tx.read(c.block_->slot[c.at_ % slots]));
    }
    Block* block = tx.read(front_.block);
    if (block == nullptr) return;
    while (block != nullptr) {
      Block* next = tx.read(block->next);
      tx.free(block);
      block = next;
    }
    tx.write(front_.block, nullptr);
    tx.write(back_.block, nullptr);
    // Counting continues at the next block's beginning: a cursor then sees that its element is
    // gone.
    const std::uint64_t next = (tx.read(back_.pushed) + slots - 1) / slots * slots;
    tx.write(front_.popped, next);
    tx.write(back_.pushed, next);
  }

  /// Frees up to `blocks` heap blocks of what the queue owns, and lowers `blocks` by their number.
  /// Returns whether nothing is left; until then nothing else may use the queue. For retired.hpp.
  template <class Tx>
  bool free_some(Tx& tx, std::uint64_t& blocks) {
    detail::require_update<Tx>();
    const std::uint64_t pushed = tx.read(back_.pushed);
    while (Block* const block = tx.read(front_.block)) {
      if (blocks == 0) return false;
      const std::uint64_t from = tx.read(front_.popped);
      const std::uint64_t behind = (from / slots + 1) * slots, end = std::min(pushed, behind);
      std::uint64_t at = from;
      if constexpr (!std::is_same_v<typename Stored::raw, T>) {
        while (at < end && Stored::free_some(tx, block->slot[at % slots], blocks)) ++at;
      } else {
        at = end;
      }
      if (at != end) {
        if (at != from) tx.write(front_.popped, at);
        return false;
      }
      blocks -= blocks != 0 ? 1 : 0;  // the block is freed after its last element
      Block* const next = tx.read(block->next);
      tx.write(front_.block, next);
      tx.write(front_.popped, behind);
      if (next == nullptr) {
        tx.write(back_.block, nullptr);
        tx.write(back_.pushed, behind);
      }
      tx.free(block);
    }
    return true;
  }

  /// A place in the queue, for this transaction; false past what was the end when it was made. It
  /// stays valid whatever changes; after its element was popped, only next() may be called
  /// (live_cursor.hpp).
  class cursor {
   public:
    /// Marks a type that must not leave its transaction: update() and view() refuse to return it.
    using transaction_bound = void;
    /// Whether the cursor is before the end.
    [[nodiscard]] explicit operator bool() const noexcept { return at_ < end_; }
    /// A copy of the cursor's element. Throws error(invalid) if it was popped.
    template <class Tx>
    [[nodiscard]] T value(Tx& tx) const {
      if constexpr (!Tx::read_only) {
        if (at_ < tx.read(in_->front_.popped)) detail::live_cursor::erased();
      }
      return Stored::read(tx, block_->slot[at_ % slots]);
    }
    /// Goes on to the next element; from one that was popped, to the oldest that is there.
    template <class Tx>
    void next(Tx& tx) {
      ++at_;
      if constexpr (!Tx::read_only) {
        if (const std::uint64_t popped = tx.read(in_->front_.popped); at_ <= popped) {
          at_ = popped;  // block_ may be freed
          block_ = tx.read(in_->front_.block);
          return;
        }
      }
      if (at_ % slots == 0) block_ = tx.read(block_->next);
    }

   private:
    friend class queue;
    cursor(const queue* in, const Block* block, std::uint64_t at, std::uint64_t end)
        : in_(in), block_(block), at_(at), end_(end) {}
    const queue* in_;
    const Block* block_;
    std::uint64_t at_, end_;
  };
  /// A cursor at the oldest element; false where there is none.
  template <class Tx>
  [[nodiscard]] cursor begin(Tx& tx) const {
    return cursor(this, tx.read(front_.block), tx.read(front_.popped), tx.read(back_.pushed));
  }

  /// Calls f(value) for each element, oldest first. A result of false from f ends the walk.
  template <class Tx, class F>
  void for_each(Tx& tx, F f) const {
    for (cursor c = begin(tx); c; c.next(tx)) {
      if (!detail::go_on(f, c.value(tx))) return;
    }
  }

  /// The container has each_place(), for a change of layout (record_steps.hpp).
  static constexpr bool has_places = true;
  /// Calls f(place) for each place of a value, in the order of begin().
  template <class Tx, class F>
  void each_place(Tx& tx, F f) const {
    for (cursor c = begin(tx); c; c.next(tx)) f(c.block_->slot[c.at_ % slots]);
  }
  /// Calls f(const void*) for each heap block that the container owns, for Pool::check(). Any
  /// transaction.
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    for (const Block* block = tx.read(front_.block); block != nullptr; block = tx.read(block->next))
      f(static_cast<const void*>(block));
    if constexpr (!std::is_same_v<typename Stored::raw, T>) {
      for (cursor c = begin(tx); c; c.next(tx))
        Stored::each_block(tx, tx.read(c.block_->slot[c.at_ % slots]), f);
    }
  }
  /// Calls f(pointer) for each key, value or element that is a pool pointer, for Pool::check().
  template <class Tx, class F>
    requires(std::is_pointer_v<T>)
  void each_pointer(Tx& tx, F f) const {
    for_each(tx, [&](const T& value) { detail::if_pointer(value, f); });
  }

  /// Returns what is wrong; empty when nothing is.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const {
    const std::uint64_t from = tx.read(front_.popped), to = tx.read(back_.pushed);
    if (from > to)
      return {"queue: " + std::to_string(from) + " elements popped, " + std::to_string(to) +
              " pushed"};
    const bool any = from != to || to % slots != 0;
    const std::uint64_t expected = any ? (to + slots - 1) / slots - from / slots : 0;
    std::uint64_t found = 0;
    const Block* last = nullptr;
    for (const Block* block = tx.read(front_.block); block != nullptr && found <= expected;
         block = tx.read(block->next)) {
      last = block;
      ++found;
    }
    if (found != expected)
      return {"queue: found " + std::to_string(found) + " blocks, expected " +
              std::to_string(expected)};
    if (last != tx.read(back_.block)) return {"queue: its last block is not where the chain ends"};
    return {};
  }

  /// What stands for this container in the layout text of a root (layout.hpp). `names` collects the
  /// structs that it leads to.
  static std::string layout_text(LayoutNames& names) {
    return "queue<" + stored<T>::name(names) + ">/1";
  }
  /// The same, of the container alone.
  static std::string layout_text() {
    LayoutNames names;
    return layout_text(names);
  }

 private:
  struct alignas(64) Front {
    ptr<Block> block;
    p<std::uint64_t> popped;
  };
  struct alignas(64) Back {
    ptr<Block> block;
    p<std::uint64_t> pushed;
  };
  Front front_;
  Back back_;
};

}  // namespace perdure
