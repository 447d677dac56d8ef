// SPDX-License-Identifier: BSD-3-Clause
//
// p<T> and ptr<T>: fields of structs that lie in a pool.
//
// Both have the layout of what they hold (T, T*) and no member that reads or writes it: no copy, no
// assignment, no conversion, so that neither a plain read nor a plain write of pool data compiles,
// in any engine (in some engines the bytes under the field are not the transaction's value). They
// are reached through a transaction: tx(x), tx.read(x), tx.write(x, v). An object that holds them
// is built in DRAM, each field from its value, and stored whole by tx.make<T>(...). Zero bytes are
// the default value.
// Thread safety: that of the transaction.
//
// The deleted members below exist for the compiler's message: it prints the line, and the line says
// what to write.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

#include "perdure/base/status.hpp"

namespace perdure {

struct access;

namespace detail {
/// Returns f(), several changes of one call. If one of them throws, the transaction does not
/// commit, even if the program's lambda catches that (Tx::keep_refusal).
template <class Tx, class F>
decltype(auto) whole_change(Tx& tx, F&& f) {
  try {
    return f();
  } catch (...) {
    if constexpr (requires { tx.keep_refusal(); }) tx.keep_refusal();
    throw;
  }
}
}  // namespace detail

/// A value that consists of its bytes alone, so that a pool can hold a copy of them. GCC 12 calls a
/// type trivially copyable although all its copies are deleted, as those of p<T> and of containers
/// are.
template <class T>
inline constexpr bool plain_value =
    std::is_trivially_copyable_v<T> && std::is_copy_constructible_v<T>;

/// A T that lies in a pool. sizeof(T), alignof(T).
template <class T>
class p {
  static_assert(std::is_object_v<T> && !std::is_const_v<T> && !std::is_volatile_v<T>,
                "perdure::p<T>: T must be a plain object type");
  static_assert(!std::is_array_v<T>,
                "perdure::p<T>: T is an array; write an array of p<E>, or p<std::array<E, N>>");
  static_assert(plain_value<T>,
                "perdure::p<T>: T must be trivially copyable (its bytes are its value); use a "
                "container, or a struct of p<> fields");

 public:
  /// The type of the value.
  using value_type = T;

  /// The value T{}.
  constexpr p() noexcept
    requires std::is_default_constructible_v<T>
      : value_{} {}
  /// A field of an object that is built in DRAM, or the initial value of a root's field.
  constexpr p(const T& value) noexcept
      : value_(value) {}  // NOLINT: implicit, so that an aggregate of fields is built from values

  // clang-format off: what is said of a deleted member is the compiler's message
  p(const p&) = delete;  // a plain copy of pool data: read it with tx(x) or tx.read(x)
  p& operator=(const p&) = delete;  // a plain write of pool data: write tx(x) = value, inside update()
  p& operator=(const T&) = delete;  // a plain write of pool data: write tx(x) = value, inside update()
  operator T() const = delete;  // a plain read of pool data: read it with tx(x) or tx.read(x)
  template <class U>
  p& operator+=(const U&) = delete;  // a plain write of pool data: write tx(x) += value, inside update()
  template <class U>
  p& operator-=(const U&) = delete;  // a plain write of pool data: write tx(x) -= value, inside update()
  p& operator++() = delete;  // a plain write of pool data: write ++tx(x), inside update()
  p& operator--() = delete;  // a plain write of pool data: write --tx(x), inside update()
  // clang-format on

 private:
  friend struct access;
  T value_;
};

/// A T* that lies in a pool and points into it; null by default. T may be incomplete.
///
/// It must lead to a block or into one (made by tx.make, or of an object in a container or box),
/// not into the root object, because another version of the program moves the root object
/// (docs/values.md, "Version 2 of a program"). Another version may also move the objects that T*
/// leads to, if its T differs. It refuses that where it finds a pointer into such an object, or one
/// to a block that tx.make did not make. The program guarantees the rest: no pointer leads to an
/// object that was freed, or to one that a container in such an object owns.
template <class T>
class ptr {
 public:
  /// What the pointer leads to.
  using element_type = T;
  /// The type of the value.
  using value_type = T*;

  /// Null.
  constexpr ptr() noexcept : value_(nullptr) {}
  /// A field of an object that is built in DRAM. `value` is null or points into the pool.
  constexpr ptr(T* value) noexcept : value_(value) {}  // NOLINT: implicit, as p's
  /// Null.
  constexpr ptr(std::nullptr_t) noexcept : value_(nullptr) {}  // NOLINT: implicit, as p's

  // clang-format off: what is said of a deleted member is the compiler's message
  ptr(const ptr&) = delete;  // a plain copy of pool data: read it with tx(x) or tx.read(x)
  ptr& operator=(const ptr&) = delete;  // a plain write of pool data: write tx(x) = pointer, inside update()
  ptr& operator=(T*) = delete;  // a plain write of pool data: write tx(x) = pointer, inside update()
  ptr& operator=(std::nullptr_t) = delete;  // a plain write of pool data: write tx(x) = nullptr, inside update()
  operator T*() const = delete;  // a plain read of pool data: read it with tx(x) or tx.read(x)
  T* operator->() const = delete;  // a plain dereference of a pool pointer: write tx(x)->field
  std::add_lvalue_reference_t<T> operator*() const = delete;  // a plain dereference of a pool pointer: write *tx(x)
  // clang-format on

 private:
  friend struct access;
  T* value_;
};

/// The only access to the bytes of p and ptr, for transactions: their address in the mapping.
struct access {
  template <class T>
  [[nodiscard]] static T* address(p<T>& x) noexcept {
    return std::addressof(x.value_);
  }
  template <class T>
  [[nodiscard]] static const T* address(const p<T>& x) noexcept {
    return std::addressof(x.value_);
  }
  template <class T>
  [[nodiscard]] static T** address(ptr<T>& x) noexcept {
    return std::addressof(x.value_);
  }
  template <class T>
  [[nodiscard]] static T* const* address(const ptr<T>& x) noexcept {
    return std::addressof(x.value_);
  }
};

static_assert(sizeof(p<char>) == 1 && sizeof(p<double>) == sizeof(double) &&
              alignof(p<double>) == alignof(double));
static_assert(sizeof(ptr<int>) == sizeof(int*) && alignof(ptr<int>) == alignof(int*));
static_assert(std::is_standard_layout_v<p<long>> && std::is_trivially_destructible_v<p<long>>);
static_assert(!std::is_copy_constructible_v<p<long>> && !std::is_convertible_v<p<long>, long> &&
              !std::is_assignable_v<p<long>&, long>);
static_assert(!std::is_copy_constructible_v<ptr<long>> && !std::is_convertible_v<ptr<long>, long*>);

}  // namespace perdure
