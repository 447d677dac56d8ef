// SPDX-License-Identifier: BSD-3-Clause
//
// hooked_list<T, &T::hook>: a doubly linked list in a pool through a member of its elements: an
// element is removed by its address, in constant time and without a search.
//
//     struct Order { perdure::list_hook hook; perdure::p<std::uint64_t> quantity; };
//     hash_map<std::uint64_t, Order> orders;            // by number; owns them
//     map<std::int64_t, hooked_list<Order, &Order::hook>> levels;  // by price, oldest first
//
// The list owns nothing. An element that is freed by its owner (erased from a container, or by
// destroy()) leaves its list first, because a list_hook is emptied like a container.
// Thread safety: that of the transaction; threads conflict on the list's ends and its size.
// Invariants:
// HOOK-1 x.next.prev is x, the ends have null beyond them, and first is null exactly when last is.
// HOOK-2 A hook's `in` points to the ends of the list that it is in, or is null; size hooks are
// linked.
// HOOK-3 A list's ends lie in a block of their own, not in the list: a list in a root object moves
// with the root object when another version of the program takes the pool over (switch.hpp), while
// the hooks keep their pointers.
// Zero bytes are an empty list, and a hook that is in none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "perdure/api/layout.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/container/live_cursor.hpp"
#include "perdure/container/stored.hpp"

namespace perdure {

class list_hook;

namespace detail {
/// The list's own block, which the first insertion makes and clear() frees.
struct hooked_ends {
  ptr<list_hook> first;   ///< null in an empty list
  ptr<list_hook> last;    ///< null in an empty list
  p<std::uint64_t> size;  ///< how many hooks are linked
};
/// A cursor's place among hooks.
struct hook_cursor : live_cursor {
  /// At a hook of the list, or past its end.
  hook_cursor(const hooked_ends* in, list_hook* at, bool live) : live_cursor(in, live), hook(at) {}
  list_hook* hook;    ///< the element's; or, when it is gone, that of the one after it
  bool gone = false;  ///< the element left the list
};
}  // namespace detail

/// The member by which an object is in a hooked_list: in one list at a time, or in none. 24 bytes.
///
/// Thread safety: the transaction's.
class list_hook {
 public:
  /// Whether the object is in a list.
  template <class Tx>
  [[nodiscard]] bool linked(Tx& tx) const {
    return tx.read(in_) != nullptr;
  }
  /// Takes the object out of its list, if it is in one. In an update().
  template <class Tx>
  void clear(Tx& tx) {
    detail::require_update<Tx>();
    detail::hooked_ends* const in = tx.read(in_);
    if (in == nullptr) return;
    list_hook *const prev = tx.read(prev_), *const next = tx.read(next_);
    if (detail::live_cursor::any()) {
      detail::live_cursor::each(in, [&](detail::live_cursor& live) {
        auto& c = static_cast<detail::hook_cursor&>(live);
        if (c.hook != this) return;
        c.hook = next;
        c.gone = true;
      });
    }
    tx.write(prev == nullptr ? in->first : prev->next_, next);
    tx.write(next == nullptr ? in->last : next->prev_, prev);
    tx.write(in->size, tx.read(in->size) - 1);
    tx.write(prev_, nullptr);
    tx.write(next_, nullptr);
    tx.write(in_, nullptr);
  }
  /// A hook owns no block.
  template <class Tx, class F>
  void each_block(Tx&, F) const {}
  /// Returns what is wrong with the hook's neighbours; empty when nothing is.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const {
    const auto* const in = tx.read(in_);
    const list_hook *const prev = tx.read(prev_), *const next = tx.read(next_);
    if (in == nullptr) {
      if (prev == nullptr && next == nullptr) return {};
      return {"list_hook: it has neighbours, and is in no list"};
    }
    if (tx.read(prev == nullptr ? in->first : prev->next_) != this ||
        tx.read(next == nullptr ? in->last : next->prev_) != this)
      return {"list_hook: a neighbour does not lead to it"};
    return {};
  }
  /// What stands for a hook in the layout text of a root (layout.hpp).
  static std::string layout_text() { return "list_hook/1"; }

 private:
  template <class T, list_hook T::* Hook>
  friend class hooked_list;
  ptr<list_hook> prev_, next_;
  ptr<detail::hooked_ends> in_;
};
static_assert(sizeof(list_hook) == 24);

/// A doubly linked list of objects that have a list_hook and that something else owns: a container
/// of objects, a box, or a ptr that leads to what make() made. An object must not lie in the root
/// object itself: the root object moves when another version of the program takes the pool over,
/// and that version is refused while such an object is in a list.
///
/// Each call takes the transaction first. Calls that change the list need an update()'s `tx` (they
/// do not compile with a view's). The first insertion into a list allocates 24 bytes, which clear()
/// frees. It throws error(full), error(too_big) or std::bad_alloc if memory or log space is
/// lacking. No other call allocates. Thread safety: the transaction's.
template <class T, list_hook T::* Hook>
class hooked_list {
 public:
  /// The type of an element.
  using value_type = T;

  /// A place in the list, for this transaction. Past either end it is false. It stays valid
  /// whatever changes; after its element left the list, only next() and prev() may be called
  /// (live_cursor.hpp).
  class cursor : private detail::hook_cursor {
   public:
    /// Marks a type that must not leave its transaction: update() and view() refuse to return it.
    using transaction_bound = void;
    /// Whether the cursor is at an element, or where one was.
    [[nodiscard]] explicit operator bool() const noexcept {
      return this->hook != nullptr || this->gone;
    }
    /// The cursor's element. Throws error(invalid) if it left the list.
    template <class Tx>
    [[nodiscard]] T* value(Tx&) const {
      if (this->gone) detail::live_cursor::erased();
      return object_of(this->hook);
    }
    /// Goes on to the next element; false behind the last one. REQUIRES: the cursor is true.
    template <class Tx>
    void next(Tx& tx) {
      if (this->gone)
        this->gone = false;
      else
        this->hook = tx.read(this->hook->next_);
    }
    /// Goes back to the element before; from behind the end, to the last one.
    template <class Tx>
    void prev(Tx& tx) {
      if (this->hook == nullptr) {
        *this = in_->last(tx);  // the list may have got its ends since
        return;
      }
      this->hook = tx.read(this->hook->prev_);
      this->gone = false;
    }

   private:
    friend class hooked_list;
    cursor(const hooked_list* in, const detail::hooked_ends* ends, list_hook* at, bool live)
        : detail::hook_cursor(ends, at, live), in_(in) {}
    const hooked_list* in_;
  };

  /// The number of elements.
  template <class Tx>
  [[nodiscard]] std::uint64_t size(Tx& tx) const {
    const detail::hooked_ends* const ends = tx.read(ends_);
    return ends == nullptr ? 0 : tx.read(ends->size);
  }
  /// Whether there is no element.
  template <class Tx>
  [[nodiscard]] bool empty(Tx& tx) const {
    return first_of(tx, tx.read(ends_)) == nullptr;
  }
  /// The first element; null where there is none.
  template <class Tx>
  [[nodiscard]] T* front(Tx& tx) const {
    return object_of(first_of(tx, tx.read(ends_)));
  }
  /// The last element; null where there is none.
  template <class Tx>
  [[nodiscard]] T* back(Tx& tx) const {
    return object_of(last_of(tx, tx.read(ends_)));
  }
  /// Whether the object is in this list.
  template <class Tx>
  [[nodiscard]] bool contains(Tx& tx, const T& object) const {
    const detail::hooked_ends* const in = tx.read((object.*Hook).in_);
    return in != nullptr && in == tx.read(ends_);
  }
  /// Adds the object before the first. Throws error(invalid) if it is in a list.
  template <class Tx>
  void push_front(Tx& tx, T& object) {
    link(tx, first_of(tx, tx.read(ends_)), object.*Hook);
  }
  /// Adds the object after the last. Throws error(invalid) if it is in a list.
  template <class Tx>
  void push_back(Tx& tx, T& object) {
    link(tx, nullptr, object.*Hook);
  }
  /// Adds the object before `where`, which is in this list. Throws error(invalid) if `where` is in
  /// no list or another one, or if the object is in a list.
  template <class Tx>
  void insert(Tx& tx, const T& where, T& object) {
    require(contains(tx, where), "a place that is not in this list", "an element of it");
    link(tx, const_cast<list_hook*>(&(where.*Hook)), object.*Hook);
  }
  /// Takes the object out of this list; nothing is freed. Returns whether it was in it.
  template <class Tx>
  bool erase(Tx& tx, T& object) {
    detail::require_update<Tx>();
    if (!contains(tx, object)) return false;
    (object.*Hook).clear(tx);
    return true;
  }
  /// Takes the first element out of the list. Returns it; null where there is none.
  template <class Tx>
  T* pop_front(Tx& tx) {
    return pop(tx, first_of(tx, tx.read(ends_)));
  }
  /// Takes the last element out of the list. Returns it; null where there is none.
  template <class Tx>
  T* pop_back(Tx& tx) {
    return pop(tx, last_of(tx, tx.read(ends_)));
  }
  /// Takes all elements out of the list, and frees nothing but the list's own block.
  template <class Tx>
  void clear(Tx& tx) {
    std::uint64_t all = ~std::uint64_t{0};
    (void)free_some(tx, all);
  }
  /// Takes up to `blocks` elements out of the list, frees its own block after the last, and lowers
  /// `blocks` by their number. Returns whether nothing is left. For retired.hpp.
  template <class Tx>
  bool free_some(Tx& tx, std::uint64_t& blocks) {
    detail::require_update<Tx>();
    detail::hooked_ends* const ends = tx.read(ends_);
    if (ends == nullptr) return true;
    while (list_hook* const hook = tx.read(ends->first)) {
      if (blocks == 0) return false;
      --blocks;
      hook->clear(tx);
    }
    tx.free(ends);
    tx.write(ends_, nullptr);
    return true;
  }

  /// A cursor at the first element; false where there is none.
  template <class Tx>
  [[nodiscard]] cursor begin(Tx& tx) const {
    const detail::hooked_ends* const ends = tx.read(ends_);
    return cursor(this, ends, first_of(tx, ends), !Tx::read_only);
  }
  /// A cursor at the last element; false where there is none.
  template <class Tx>
  [[nodiscard]] cursor last(Tx& tx) const {
    const detail::hooked_ends* const ends = tx.read(ends_);
    return cursor(this, ends, last_of(tx, ends), !Tx::read_only);
  }
  /// Calls f(const T&), in an update f(T&), for each element in order. A result of false from f
  /// ends the walk. f may take elements out.
  template <class Tx, class F>
  void for_each(Tx& tx, F f) const {
    for (cursor c = begin(tx); c; c.next(tx)) {
      if constexpr (Tx::read_only) {
        if (!detail::go_on(f, static_cast<const T&>(*c.value(tx)))) return;
      } else {
        if (!detail::go_on(f, *c.value(tx))) return;
      }
    }
  }

  /// Calls f(const void*) for the list's own block, if it has one, for Pool::check(). Any
  /// transaction.
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    if (const detail::hooked_ends* const ends = tx.read(ends_)) f(static_cast<const void*>(ends));
  }
  /// Returns what is wrong; empty when nothing is.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const {
    const detail::hooked_ends* const ends = tx.read(ends_);
    if (ends == nullptr) return {};
    const std::uint64_t n = tx.read(ends->size);
    std::uint64_t seen = 0;
    const list_hook* before = nullptr;
    for (const list_hook* hook = tx.read(ends->first); hook != nullptr;
         before = hook, hook = tx.read(hook->next_)) {
      if (tx.read(hook->prev_) != before)
        return {"hooked_list: element " + std::to_string(seen) +
                " does not point back at the one before it"};
      if (tx.read(hook->in_) != ends)
        return {"hooked_list: element " + std::to_string(seen) + " is of another list"};
      if (++seen > n) return {"hooked_list: more elements than its size, " + std::to_string(n)};
    }
    if (tx.read(ends->last) != before)
      return {"hooked_list: its last element is not where the chain ends"};
    if (seen != n)
      return {"hooked_list: found " + std::to_string(seen) + " elements, its size is " +
              std::to_string(n)};
    return {};
  }
  /// What stands for this container in the layout text of a root (layout.hpp).
  static std::string layout_text() {
    return "hooked_list<" + std::to_string(offset()) + "/" + std::to_string(sizeof(T)) + ">/2";
  }

 private:
  /// Where the hook lies in a T. Only addresses in storage that is never read are formed.
  static std::size_t offset() {
    alignas(T) static std::byte storage[sizeof(T)];
    static const auto at = static_cast<std::size_t>(
        reinterpret_cast<const std::byte*>(std::addressof(reinterpret_cast<T*>(storage)->*Hook)) -
        storage);
    return at;
  }
  static T* object_of(list_hook* hook) {
    if (hook == nullptr) return nullptr;
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(hook) - offset());
  }
  template <class Tx>
  static list_hook* first_of(Tx& tx, const detail::hooked_ends* ends) {
    return ends == nullptr ? nullptr : tx.read(ends->first);
  }
  template <class Tx>
  static list_hook* last_of(Tx& tx, const detail::hooked_ends* ends) {
    return ends == nullptr ? nullptr : tx.read(ends->last);
  }
  static void require(bool holds, const char* found, const char* expected) {
    if (holds) return;
    throw error(Status(Code::invalid, std::string("perdure::hooked_list: found ") + found +
                                          ", expected " + expected));
  }
  template <class Tx>
  T* pop(Tx& tx, list_hook* hook) {
    detail::require_update<Tx>();
    if (hook != nullptr) hook->clear(tx);
    return object_of(hook);
  }
  /// Links a hook before `next`, or at the end.
  template <class Tx>
  void link(Tx& tx, list_hook* next, list_hook& hook) {
    detail::require_update<Tx>();
    require(!hook.linked(tx), "an object that is in a list",
            "one that is in none: take it out first");
    detail::hooked_ends* ends = tx.read(ends_);
    if (ends == nullptr) {
      ends = tx.template make<detail::hooked_ends>();
      tx.write(ends_, ends);
    }
    list_hook* const prev = next == nullptr ? tx.read(ends->last) : tx.read(next->prev_);
    tx.write(hook.prev_, prev);
    tx.write(hook.next_, next);
    tx.write(hook.in_, ends);
    tx.write(prev == nullptr ? ends->first : prev->next_, &hook);
    tx.write(next == nullptr ? ends->last : next->prev_, &hook);
    tx.write(ends->size, tx.read(ends->size) + 1);
  }

  ptr<detail::hooked_ends> ends_;
};

}  // namespace perdure
