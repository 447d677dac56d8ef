// SPDX-License-Identifier: BSD-3-Clause
//
// deque<T>: an array in a pool that grows and shrinks at both ends; no element ever moves.
//
// Positions are signed: the element that was pushed first has position 0, one pushed before it -1.
// Elements lie in blocks of about 1 KiB, of which a map from position / slots holds the addresses:
// a push or a pop looks its block up, and changes the map once per block only.
// Thread safety: that of the transaction. Zero bytes are an empty deque.
// Invariants:
// DEQUE-1 begin_ <= end_, and blocks_ has exactly the blocks of the positions from begin_ to end_.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "perdure/container/compact.hpp"
#include "perdure/container/map.hpp"

namespace perdure {

/// A double-ended queue in a pool, with access by index. T is a value, or an object that the deque
/// owns (docs/values.md).
///
/// Each call takes the transaction first. Calls that change the deque need an update()'s `tx` (they
/// do not compile with a view's) and throw error(full), error(too_big), error(out_of_memory) or
/// std::bad_alloc where memory or log space is lacking; the transaction is then rolled back. An
/// index is counted from 0 at the front; one that is out of range throws error(invalid). Thread
/// safety: the transaction's.
template <class T>
class alignas(64) deque {
  using Stored = stored<T>;
  using Field = typename Stored::field;
  static constexpr unsigned shift =
      sizeof(Field) >= 128 ? 3 : static_cast<unsigned>(std::bit_width(1024 / sizeof(Field))) - 1;
  static constexpr std::int64_t slots = std::int64_t{1} << shift;
  struct Block {
    Field slot[slots];
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
  /// What removing an element returns: it, or nothing; whether there was one, where T is an object
  /// in the pool.
  using popped = std::conditional_t<std::is_same_v<arg, new_object>, bool, std::optional<T>>;

  /// The number of elements.
  template <class Tx>
  [[nodiscard]] std::uint64_t size(Tx& tx) const {
    return static_cast<std::uint64_t>(tx.read(end_) - tx.read(begin_));
  }
  /// Whether there is no element.
  template <class Tx>
  [[nodiscard]] bool empty(Tx& tx) const {
    return size(tx) == 0;
  }
  /// A copy of element `i`, or a pointer to it if it is an object in the pool.
  template <class Tx>
  [[nodiscard]] kept get(Tx& tx, std::uint64_t i) const {
    return Stored::read(tx, field(tx, position(tx, i)));
  }
  /// A copy of the first element; nothing where there is none.
  template <class Tx>
  [[nodiscard]] look_up front(Tx& tx) const {
    if (empty(tx)) return {};
    return Stored::read(tx, field(tx, tx.read(begin_)));
  }
  /// A copy of the last element; nothing where there is none.
  template <class Tx>
  [[nodiscard]] look_up back(Tx& tx) const {
    if (empty(tx)) return {};
    return Stored::read(tx, field(tx, tx.read(end_) - 1));
  }
  /// Gives element `i` a new value.
  template <class Tx>
  void set(Tx& tx, std::uint64_t i, arg value) {
    detail::require_update<Tx>();
    Stored::assign(tx, field(tx, position(tx, i)), value);
  }
  /// Calls f(T&), which changes element `i`. Throws error(invalid) if f removes elements of this
  /// deque.
  template <class Tx, class F>
  void update(Tx& tx, std::uint64_t i, F&& f) {
    detail::require_update<Tx>();
    Field& changed = field(tx, position(tx, i));
    const detail::being_changed changing(this);
    Stored::change(tx, changed, f);
  }

  /// Adds an element at the end.
  template <class Tx>
  void push_back(Tx& tx, arg value) {
    detail::require_update<Tx>();
    const std::int64_t at = tx.read(end_);
    put(tx, at, value);
    tx.write(end_, at + 1);
  }
  /// Adds a new, empty object at the end.
  template <class Tx>
  void push_back(Tx& tx)
    requires std::is_same_v<arg, new_object>
  {
    push_back(tx, arg{});
  }
  /// Adds an element before the first.
  template <class Tx>
  void push_front(Tx& tx, arg value) {
    detail::require_update<Tx>();
    const std::int64_t at = tx.read(begin_) - 1;
    put(tx, at, value);
    tx.write(begin_, at);
  }
  /// Adds a new, empty object before the first.
  template <class Tx>
  void push_front(Tx& tx)
    requires std::is_same_v<arg, new_object>
  {
    push_front(tx, arg{});
  }
  /// Removes the last element and returns it; nothing where there is none.
  template <class Tx>
  popped pop_back(Tx& tx) {
    detail::require_update<Tx>();
    if (empty(tx)) return {};
    const std::int64_t at = tx.read(end_) - 1;
    return take(tx, at, [&] { tx.write(end_, at); });
  }
  /// Removes the first element and returns it; nothing where there is none.
  template <class Tx>
  popped pop_front(Tx& tx) {
    detail::require_update<Tx>();
    if (empty(tx)) return {};
    const std::int64_t at = tx.read(begin_);
    return take(tx, at, [&] { tx.write(begin_, at + 1); });
  }
  /// Removes the elements for which pred(value) is true; the others move up, in their order.
  /// Returns how many it removed. A cursor stays at its position.
  template <class Tx, class F>
  std::uint64_t erase_if(Tx& tx, F pred) {
    detail::require_update<Tx>();
    const std::uint64_t n = size(tx);
    const std::int64_t begin = tx.read(begin_), old = tx.read(end_);
    const std::uint64_t left = detail::compact<Stored>(
        tx, n, this,
        [&](std::uint64_t i) -> Field& { return field(tx, begin + static_cast<std::int64_t>(i)); },
        pred);
    if (left == n) return 0;
    const std::int64_t end = begin + static_cast<std::int64_t>(left);
    tx.write(end_, end);
    const std::int64_t first = left == 0 ? begin >> shift : ((end - 1) >> shift) + 1;
    for (std::int64_t number = first; number <= (old - 1) >> shift; ++number)
      free_block(tx, number);
    return n - left;
  }
  /// Removes all elements and frees their memory, in this transaction.
  template <class Tx>
  void clear(Tx& tx) {
    detail::require_update<Tx>();
    refuse_removal();
    if constexpr (!std::is_same_v<typename Stored::raw, T>) {
      each_field(tx, [&](Field& one) { Stored::drop(tx, tx.read(one)); });
    }
    blocks_.for_each(tx, [&](std::int64_t, Block* block) { tx.free(block); });
    blocks_.clear(tx);
    if (const std::int64_t end = tx.read(end_); tx.read(begin_) != end) tx.write(begin_, end);
  }

  /// Frees up to `blocks` heap blocks of what the deque owns, and lowers `blocks` by their number.
  /// Returns whether nothing is left; until then nothing else may use the deque. For retired.hpp.
  template <class Tx>
  bool free_some(Tx& tx, std::uint64_t& blocks) {
    detail::require_update<Tx>();
    const std::int64_t from = tx.read(begin_), old = tx.read(end_);
    std::int64_t to = old;
    const auto stop = [&] {
      if (to != old) tx.write(end_, to);
      return false;
    };
    while (from < to) {
      if (blocks == 0) return stop();
      const std::int64_t number = (to - 1) >> shift, first = std::max(from, number << shift);
      bool done = true;
      if constexpr (!std::is_same_v<typename Stored::raw, T>) {
        Block* const in = block(tx, number);
        for (; done && to > first; to -= done ? 1 : 0)
          done = Stored::free_some(tx, in->slot[(to - 1) & (slots - 1)], blocks);
      }
      if (!done) return stop();
      blocks -= blocks != 0 ? 1 : 0;  // the block is freed after its last element
      free_block(tx, number);
      to = first;
    }
    if (to != old) tx.write(end_, to);
    blocks_.clear(tx);
    return true;
  }

  /// A place in the deque, for this transaction; false past what was the end when it was made, or
  /// past the end now if elements were removed. It stays valid whatever changes; after its element
  /// was removed, only next() may be called (live_cursor.hpp).
  class cursor {
   public:
    /// Marks a type that must not leave its transaction: update() and view() refuse to return it.
    using transaction_bound = void;
    /// Whether the cursor is before the end.
    [[nodiscard]] explicit operator bool() const noexcept { return at_ < end_; }
    /// A copy of the cursor's element, or a pointer to it if it is an object in the pool. Throws
    /// error(invalid) if it was removed.
    template <class Tx>
    [[nodiscard]] kept value(Tx& tx) const {
      if constexpr (!Tx::read_only) {
        if (at_ < tx.read(in_->begin_) || at_ >= tx.read(in_->end_)) detail::live_cursor::erased();
        return Stored::read(tx, in_->field(tx, at_));
      }
      return Stored::read(tx, block_->slot[at_ & (slots - 1)]);
    }
    /// Goes on to the next element.
    template <class Tx>
    void next(Tx& tx) {
      ++at_;
      if constexpr (!Tx::read_only) {
        at_ = std::max(at_, tx.read(in_->begin_));
        end_ = std::min(end_, tx.read(in_->end_));
      } else {
        if ((at_ & (slots - 1)) == 0) find(tx);
      }
    }

   private:
    friend class deque;
    cursor(const deque* in, std::int64_t at, std::int64_t end) : in_(in), at_(at), end_(end) {}
    template <class Tx>
    void find(Tx& tx) {
      block_ = at_ < end_ ? in_->block(tx, at_ >> shift) : nullptr;
    }
    const deque* in_;
    const Block* block_ = nullptr;  ///< in a view, in which nothing changes
    std::int64_t at_, end_;
  };
  /// A cursor at the first element; false where there is none.
  template <class Tx>
  [[nodiscard]] cursor begin(Tx& tx) const {
    cursor c(this, tx.read(begin_), tx.read(end_));
    if constexpr (Tx::read_only) c.find(tx);
    return c;
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
    each_field(tx, f);
  }
  /// Calls f(const void*) for each heap block that the container owns, for Pool::check(). Any
  /// transaction.
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    blocks_.each_block(tx, f);
    blocks_.for_each(tx,
                     [&](std::int64_t, const Block* block) { f(static_cast<const void*>(block)); });
    if constexpr (!std::is_same_v<typename Stored::raw, T>)
      each_field(tx, [&](const Field& one) { Stored::each_block(tx, tx.read(one), f); });
  }
  /// Calls f(const T&) for each element that is an object in the pool, for Pool::check().
  template <class Tx, class F>
    requires std::is_same_v<arg, new_object>
  void each_object(Tx& tx, F f) const {
    for_each(tx, [&](const T* object) { f(*object); });
  }
  /// Calls f(pointer) for each element that is a pool pointer, for Pool::check().
  template <class Tx, class F>
    requires(std::is_pointer_v<T>)
  void each_pointer(Tx& tx, F f) const {
    for_each(tx, [&](const T& value) { detail::if_pointer(value, f); });
  }

  /// Returns what is wrong; empty when nothing is.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const {
    std::vector<std::string> problems = blocks_.audit(tx);
    if (!problems.empty()) return problems;
    const std::int64_t from = tx.read(begin_), to = tx.read(end_);
    if (from > to)
      return {"deque: it begins at " + std::to_string(from) + ", behind its end, " +
              std::to_string(to)};
    std::int64_t expected = from >> shift;
    blocks_.for_each(tx, [&](std::int64_t number, Block* block) {
      if (number != expected || block == nullptr || from == to || number > (to - 1) >> shift) {
        problems.push_back("deque: found block " + std::to_string(number) + ", expected block " +
                           std::to_string(expected) + " or none");
        return false;
      }
      ++expected;
      return true;
    });
    if (problems.empty() && from != to && expected != ((to - 1) >> shift) + 1)
      problems.push_back("deque: block " + std::to_string(expected) + " is missing");
    return problems;
  }

  /// What stands for this container in the layout text of a root (layout.hpp). `names` collects the
  /// structs that it leads to.
  static std::string layout_text(LayoutNames& names) {
    return "deque<" + stored<T>::name(names) + ">/1";
  }
  /// The same, of the container alone.
  static std::string layout_text() {
    LayoutNames names;
    return layout_text(names);
  }

 private:
  template <class Tx>
  [[nodiscard]] Block* block(Tx& tx, std::int64_t number) const {
    return blocks_.find(tx, number).value_or(nullptr);
  }
  /// REQUIRES: begin_ <= at < end_.
  template <class Tx>
  [[nodiscard]] Field& field(Tx& tx, std::int64_t at) const {
    return block(tx, at >> shift)->slot[at & (slots - 1)];
  }
  template <class Tx>
  [[nodiscard]] std::int64_t position(Tx& tx, std::uint64_t i) const {
    if (const std::uint64_t n = size(tx); i >= n)
      throw error(Status(Code::invalid, "perdure::deque: found index " + std::to_string(i) +
                                            ", expected less than the size, " + std::to_string(n)));
    return tx.read(begin_) + static_cast<std::int64_t>(i);
  }
  template <class Tx, class F>
  void each_field(Tx& tx, F&& f) const {
    Block* in = nullptr;
    for (std::int64_t from = tx.read(begin_), at = from, to = tx.read(end_); at < to; ++at) {
      if (at == from || (at & (slots - 1)) == 0) in = block(tx, at >> shift);
      f(in->slot[at & (slots - 1)]);
    }
  }
  /// Called before elements are removed: the function of an update() must not.
  void refuse_removal() const {
    if (detail::live_cursor::any()) detail::being_changed::refuse(this);
  }
  template <class Tx>
  void put(Tx& tx, std::int64_t at, arg value) {
    Block* to = block(tx, at >> shift);
    if (to == nullptr) {
      // The slots of a new block are undefined until pushed to.
      to = reinterpret_cast<Block*>(tx.alloc(sizeof(Block)));
      blocks_.insert(tx, at >> shift, to);
    }
    tx.write(to->slot[at & (slots - 1)], Stored::make(tx, value));
  }
  template <class Tx>
  void free_block(Tx& tx, std::int64_t number) {
    tx.free(block(tx, number));
    blocks_.erase(tx, number);
  }
  /// Takes the element at an end out; `remove` writes the end.
  template <class Tx, class F>
  popped take(Tx& tx, std::int64_t at, F remove) {
    refuse_removal();
    const auto raw = tx.read(field(tx, at));
    const auto finish = [&] {
      Stored::drop(tx, raw);
      remove();
      const std::int64_t number = at >> shift, from = tx.read(begin_), to = tx.read(end_);
      if (from == to || number < from >> shift || number > (to - 1) >> shift)
        free_block(tx, number);
    };
    if constexpr (std::is_same_v<arg, new_object>) {
      finish();
      return true;
    } else {
      popped value = Stored::value(tx, raw);
      finish();
      return value;
    }
  }

  p<std::int64_t> begin_, end_;
  map<std::int64_t, Block*> blocks_;
};

}  // namespace perdure
