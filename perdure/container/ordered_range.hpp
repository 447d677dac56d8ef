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
template <class Tx, class Cursor, class Element = pair_of>
class ordered_range : public std::ranges::view_interface<ordered_range<Tx, Cursor, Element>> {
 public:
  /// Marks a type that must not leave its transaction: update() and view() refuse to return it.
  using transaction_bound = void;

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
      at_.next(*tx_);
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++*this;
      return old;
    }
    iterator& operator--() {
      at_.prev(*tx_);
      return *this;
    }
    iterator operator--(int) {
      iterator old = *this;
      --*this;
      return old;
    }
    friend bool operator==(const iterator& a, const iterator& b) {
      return a.tx_ == nullptr || b.tx_ == nullptr ? a.tx_ == b.tx_ : a.at_.is(*a.tx_, b.at_);
    }

   private:
    friend class ordered_range;
    iterator(Tx& tx, Cursor at) : tx_(&tx), at_(std::move(at)) {}
    Tx* tx_ = nullptr;
    Cursor at_;
  };

  ordered_range(Tx& tx, Cursor first, Cursor last)
      : first_(tx, std::move(first)), last_(tx, std::move(last)) {}
  [[nodiscard]] iterator begin() const { return first_; }
  [[nodiscard]] iterator end() const { return last_; }

 private:
  iterator first_, last_;
};

}  // namespace perdure::detail

/// It refers to its container by the transaction, and holds no element.
template <class Tx, class Cursor, class Element>
inline constexpr bool
    std::ranges::enable_borrowed_range<perdure::detail::ordered_range<Tx, Cursor, Element>> = true;
