// SPDX-License-Identifier: BSD-3-Clause
//
// ordered_range: a part of an ordered map as a C++20 range of pairs, in both directions.
//
// It is a view and a common, bidirectional range: it can be piped through std::views. Its elements
// are made when they are read, so they are values and not references. It belongs to its
// transaction, and must not leave it.
// Thread safety: that of the transaction.
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>

namespace perdure::detail {

/// An element of a range is its key and its value: copies, or a pointer to an object in the pool.
struct pair_of {
  template <class Tx, class Cursor>
  static auto at(Tx& tx, const Cursor& cursor) {
    return std::pair(cursor.key(tx), cursor.value(tx));
  }
};

/// `Element`: what is made of a cursor when it is read.
///
/// In an update the map may change during a loop, so both ends are told by their keys there: what
/// is added behind the end is not visited, and a loop backwards ends although the first element was
/// erased. (A std::reverse_iterator is at the element behind its own: where its own is erased, it
/// passes over the one before.)
template <class Tx, class Cursor, class Element = pair_of>
class ordered_range : public std::ranges::view_interface<ordered_range<Tx, Cursor, Element>> {
 public:
  /// Marks a type that must not leave its transaction: update() and view() refuse to return it.
  using transaction_bound = void;
  /// Where a range begins or ends; nothing: with the map.
  using Bound = std::optional<typename Cursor::bound_type>;

  class iterator {
   public:
    using transaction_bound = void;
    using value_type = decltype(Element::at(std::declval<Tx&>(), std::declval<const Cursor&>()));
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::bidirectional_iterator_tag;
    using iterator_category = std::input_iterator_tag;  // what it gives is no reference

    iterator() = default;
    [[nodiscard]] value_type operator*() const { return Element::at(*tx_, at_); }
    iterator& operator++() {
      moves();
      at_.next(*tx_);
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++*this;
      return old;
    }
    iterator& operator--() {
      // The end is where its key belongs now.
      if (mark_ == Mark::end && bound_) at_.seek(*tx_, *bound_);
      moves();
      at_.prev(*tx_);
      before_ = !at_;
      return *this;
    }
    iterator operator--(int) {
      iterator old = *this;
      --*this;
      return old;
    }
    friend bool operator==(const iterator& a, const iterator& b) {
      if (a.tx_ == nullptr || b.tx_ == nullptr) return a.tx_ == b.tx_;
      if (a.mark_ == b.mark_ && a.mark_ != Mark::none) return true;
      if (a.mark_ == Mark::end) return b.passed(a);
      if (b.mark_ == Mark::end) return a.passed(b);
      if (a.mark_ == Mark::begin) return b.returned(a);
      if (b.mark_ == Mark::begin) return a.returned(b);
      return a.before_ == b.before_ && a.at_.is(*a.tx_, b.at_);
    }

   private:
    friend class ordered_range;
    enum class Mark : unsigned char { none, begin, end };
    iterator(Tx& tx, Cursor at, Mark mark, Bound bound)
        : tx_(&tx), at_(std::move(at)), mark_(mark), bound_(std::move(bound)) {}

    void moves() {
      mark_ = Mark::none;
      bound_.reset();
      before_ = false;
    }
    /// Whether this is at or behind the end.
    [[nodiscard]] bool passed(const iterator& end) const {
      if (before_) return false;
      if constexpr (Tx::read_only) return at_.is(*tx_, end.at_);
      return !at_.there_now(*tx_) || (end.bound_ && !at_.below_now(*tx_, *end.bound_));
    }
    /// Whether this is at or before the beginning.
    [[nodiscard]] bool returned(const iterator& begin) const {
      if (before_ || at_.is(*tx_, begin.at_)) return true;
      return begin.bound_ && at_.there_now(*tx_) && at_.below_now(*tx_, *begin.bound_);
    }

    Tx* tx_ = nullptr;
    Cursor at_;
    Mark mark_ = Mark::none;
    bool before_ = false;  ///< it went back from the first element
    Bound bound_;          ///< of an iterator with a mark, in an update
  };

  /// The elements from `first` to `last`, which lie where the bounds say.
  ordered_range(Tx& tx, Cursor first, Cursor last, Bound from = {}, Bound to = {})
      : first_(tx, std::move(first), iterator::Mark::begin, kept(std::move(from))),
        last_(tx, std::move(last), iterator::Mark::end, kept(std::move(to))) {}
  [[nodiscard]] iterator begin() const { return first_; }
  [[nodiscard]] iterator end() const { return last_; }

 private:
  /// A view changes nothing: there the cursors are enough.
  static Bound kept(Bound bound) { return Tx::read_only ? Bound() : std::move(bound); }
  iterator first_, last_;
};

}  // namespace perdure::detail

/// It refers to its container by the transaction, and holds no element.
template <class Tx, class Cursor, class Element>
inline constexpr bool
    std::ranges::enable_borrowed_range<perdure::detail::ordered_range<Tx, Cursor, Element>> = true;
