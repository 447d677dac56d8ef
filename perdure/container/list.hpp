// SPDX-License-Identifier: BSD-3-Clause
//
// list<T>: a doubly linked list in a pool: insertion and removal anywhere at constant cost,
// iteration both ways.
//
// Thread safety: that of the transaction; threads conflict on the list's ends and its size.
// Invariants:
// LIST-1 first_ is null exactly when last_ is.
// LIST-2 x.next.prev is x, and the ends have null beyond them.
// LIST-3 size_ nodes are linked.
// Zero bytes are an empty list.
#pragma once

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

/// A doubly linked list in a pool. T is a value, or an object that the list
/// owns (docs/values.md).
///
/// Each call takes the transaction first. Calls that change the list need an update()'s `tx` (they
/// do not compile with a view's) and throw error(full), error(too_big), error(out_of_memory) or
/// std::bad_alloc where memory or log space is lacking; the transaction is then rolled back. Thread
/// safety: the transaction's.
template <class T>
class list {
  using Stored = stored<T>;
  struct Node {
    ptr<Node> prev, next;
    typename Stored::field value;
  };

 public:
  /// The type of an element.
  using value_type = T;
  /// How an element is passed in: const T&, or std::string_view.
  using arg = typename Stored::arg;
  /// What reading returns: a copy; where T is an object in the pool, a pointer to it.
  using kept = typename Stored::kept;
  /// The same, or nothing (null).
  using look_up = std::conditional_t<std::is_same_v<arg, new_object>, kept, std::optional<T>>;
  /// What removing an element at an end returns: it, or nothing; whether there was one, where T is
  /// an object in the pool.
  using popped = std::conditional_t<std::is_same_v<arg, new_object>, bool, std::optional<T>>;

  /// A place in the list, for this transaction. Past either end it is false. It stays valid
  /// whatever changes; after its element was erased it stands between the two neighbours: next()
  /// and prev() lead to them, insert() puts a value there (live_cursor.hpp).
  class cursor : private detail::live_cursor {
   public:
    /// Marks a type that must not leave its transaction: update() and view() refuse to return it.
    using transaction_bound = void;
    /// Whether the cursor is at an element, or where one was erased.
    [[nodiscard]] explicit operator bool() const noexcept { return node_ != nullptr || gone_; }
    /// A copy of the cursor's element, or a pointer to it if it is an object in the pool. Throws
    /// error(invalid) if it was erased.
    template <class Tx>
    [[nodiscard]] kept value(Tx& tx) const {
      return Stored::read(tx, element()->value);
    }
    /// Goes on to the next element; false behind the last one. REQUIRES: the cursor is true.
    template <class Tx>
    void next(Tx& tx) {
      if (gone_)
        gone_ = false;
      else
        node_ = tx.read(node_->next);
    }
    /// Goes back to the element before; from behind the end, to the last one.
    template <class Tx>
    void prev(Tx& tx) {
      node_ = node_ == nullptr ? tx.read(static_cast<const list*>(this->container())->last_)
                               : tx.read(node_->prev);
      gone_ = false;
    }

   private:
    friend class list;
    cursor(const list* in, Node* node, bool live) : detail::live_cursor(in, live), node_(node) {}
    [[nodiscard]] Node* element() const {
      if (gone_) detail::live_cursor::erased();
      return node_;
    }
    Node* node_;  ///< the element; or, when it is gone, the one after it
    bool gone_ = false;
  };

  /// The number of elements.
  template <class Tx>
  [[nodiscard]] std::uint64_t size(Tx& tx) const {
    return tx.read(size_);
  }
  /// Whether there is no element.
  template <class Tx>
  [[nodiscard]] bool empty(Tx& tx) const {
    return tx.read(first_) == nullptr;
  }
  /// A cursor at the first element; false where there is none.
  template <class Tx>
  [[nodiscard]] cursor begin(Tx& tx) const {
    return cursor(this, tx.read(first_), !Tx::read_only);
  }
  /// A cursor at the last element; false where there is none.
  template <class Tx>
  [[nodiscard]] cursor last(Tx& tx) const {
    return cursor(this, tx.read(last_), !Tx::read_only);
  }
  /// A copy of the first element; nothing where there is none.
  template <class Tx>
  [[nodiscard]] look_up front(Tx& tx) const {
    return value_of(tx, tx.read(first_));
  }
  /// A copy of the last element; nothing where there is none.
  template <class Tx>
  [[nodiscard]] look_up back(Tx& tx) const {
    return value_of(tx, tx.read(last_));
  }

  /// Adds an element before the first.
  template <class Tx>
  void push_front(Tx& tx, arg value) {
    link(tx, tx.read(first_), value);
  }
  /// Adds an element after the last.
  template <class Tx>
  void push_back(Tx& tx, arg value) {
    link(tx, nullptr, value);
  }

  /// Inserts `value` before `where` (at the end when `where` is false). Returns its place.
  template <class Tx>
  cursor insert(Tx& tx, cursor where, arg value) {
    return cursor(this, link(tx, where.node_, value), true);
  }

  /// Removes the element at `where` (REQUIRES: `where` is true). Returns the place after it.
  template <class Tx>
  cursor erase(Tx& tx, const cursor& where) {
    return cursor(this, unlink(tx, where.element()), true);
  }

  /// Gives the element at `where` a new value. REQUIRES: `where` is true. Throws error(invalid) if
  /// its element was erased.
  template <class Tx>
  void set(Tx& tx, const cursor& where, arg value) {
    detail::require_update<Tx>();
    Stored::assign(tx, where.element()->value, value);
  }

  /// Calls f(T&), which changes the element at `where`. REQUIRES: `where` is true. Throws
  /// error(invalid) if its element was erased, or if f erases it.
  template <class Tx, class F>
  void update(Tx& tx, const cursor& where, F&& f) {
    detail::require_update<Tx>();
    Node* const node = where.element();
    const detail::being_changed changing(node);
    Stored::change(tx, node->value, f);
  }

  /// Removes the first element and returns it; nothing where there is none. An object in the pool
  /// is only removed; then it returns whether there was one.
  template <class Tx>
  popped pop_front(Tx& tx) {
    return pop(tx, tx.read(first_));
  }
  /// Removes the last element, as pop_front() the first.
  template <class Tx>
  popped pop_back(Tx& tx) {
    return pop(tx, tx.read(last_));
  }

  /// Removes all elements and frees their memory, in this transaction.
  template <class Tx>
  void clear(Tx& tx) {
    detail::require_update<Tx>();
    for (Node* node = tx.read(first_); node != nullptr;) {
      Node* next = tx.read(node->next);
      leave(node, next);
      Stored::drop(tx, tx.read(node->value));
      tx.free(node);
      node = next;
    }
    if (empty(tx)) return;
    tx.write(first_, nullptr);
    tx.write(last_, nullptr);
    tx.write(size_, 0);
  }

  /// Frees up to `blocks` heap blocks of what the list owns, and lowers `blocks` by their number.
  /// Returns whether nothing is left; until then nothing else may use the list. For retired.hpp.
  template <class Tx>
  bool free_some(Tx& tx, std::uint64_t& blocks) {
    detail::require_update<Tx>();
    while (Node* const node = tx.read(first_)) {
      if (blocks == 0 || !Stored::free_some(tx, node->value, blocks)) return false;
      blocks -= blocks != 0 ? 1 : 0;  // the node is freed after its value
      (void)unlink(tx, node);
    }
    return true;
  }

  /// Calls f(value) for each element in order. A result of false from f ends the walk.
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
    for (Node* node = tx.read(first_); node != nullptr; node = tx.read(node->next)) f(node->value);
  }
  /// Calls f(const void*) for each heap block that the container owns, for Pool::check(). Any
  /// transaction.
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    for (Node* node = tx.read(first_); node != nullptr; node = tx.read(node->next)) {
      f(static_cast<const void*>(node));
      Stored::each_block(tx, tx.read(node->value), f);
    }
  }
  /// Calls f(const T&) for each element that is an object in the pool, for Pool::check().
  template <class Tx, class F>
    requires std::is_same_v<arg, new_object>
  void each_object(Tx& tx, F f) const {
    for (cursor c = begin(tx); c; c.next(tx)) f(*c.value(tx));
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
    const std::uint64_t n = size(tx);
    std::uint64_t seen = 0;
    Node* before = nullptr;
    for (Node* node = tx.read(first_); node != nullptr; before = node, node = tx.read(node->next)) {
      if (tx.read(node->prev) != before)
        return {"list: node " + std::to_string(seen) + " does not point back at the one before it"};
      if (++seen > n) return {"list: more nodes than its size, " + std::to_string(n)};
    }
    if (tx.read(last_) != before) return {"list: its last node is not where the chain ends"};
    if (seen != n)
      return {"list: found " + std::to_string(seen) + " nodes, its size is " + std::to_string(n)};
    return {};
  }

  /// What stands for this container in the layout text of a root (layout.hpp). `names` collects the
  /// structs that it leads to.
  static std::string layout_text(LayoutNames& names) {
    return "list<" + stored<T>::name(names) + ">/1";
  }
  /// The same, of the container alone.
  static std::string layout_text() {
    LayoutNames names;
    return layout_text(names);
  }

 private:
  template <class Tx>
  look_up value_of(Tx& tx, const Node* node) const {
    if (node == nullptr) return {};
    return Stored::read(tx, node->value);
  }
  template <class Tx>
  popped pop(Tx& tx, Node* node) {
    detail::require_update<Tx>();
    if constexpr (std::is_same_v<arg, new_object>) {
      if (node != nullptr) unlink(tx, node);
      return node != nullptr;
    } else {
      std::optional<T> value = value_of(tx, node);
      if (value) unlink(tx, node);
      return value;
    }
  }
  /// Links a new node before `next`, or at the end.
  template <class Tx>
  Node* link(Tx& tx, Node* next, arg value) {
    detail::require_update<Tx>();
    Node* prev = next == nullptr ? tx.read(last_) : tx.read(next->prev);
    Node* node = tx.template make<Node>(prev, next, Stored::make(tx, value));
    tx.write(prev == nullptr ? first_ : prev->next, node);
    tx.write(next == nullptr ? last_ : next->prev, node);
    tx.write(size_, tx.read(size_) + 1);
    return node;
  }
  /// Removes the node. Returns the one after it.
  template <class Tx>
  Node* unlink(Tx& tx, Node* node) {
    detail::require_update<Tx>();
    Node* prev = tx.read(node->prev);
    Node* next = tx.read(node->next);
    leave(node, next);
    tx.write(prev == nullptr ? first_ : prev->next, next);
    tx.write(next == nullptr ? last_ : next->prev, prev);
    tx.write(size_, tx.read(size_) - 1);
    Stored::drop(tx, tx.read(node->value));
    tx.free(node);
    return next;
  }
  /// Updates the cursors at `node`, before it is dropped.
  void leave(const Node* node, Node* next) const {
    if (!detail::live_cursor::any()) return;
    detail::being_changed::refuse(node);
    detail::live_cursor::each(this, [&](detail::live_cursor& live) {
      auto& c = static_cast<cursor&>(live);
      if (c.node_ != node) return;
      c.node_ = next;
      c.gone_ = true;
    });
  }

  ptr<Node> first_, last_;
  p<std::uint64_t> size_;
};

}  // namespace perdure
