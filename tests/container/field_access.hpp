// SPDX-License-Identifier: BSD-3-Clause
//
// FieldReads, FieldWrites: what a stand-in for a transaction does with fields and objects, in terms
// of its read_bytes(), write_bytes() and alloc().
//
// Thread safety: the stand-in's.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "perdure/api/persistent.hpp"

namespace perdure::test {

template <class Tx>
class FieldReads {
 public:
  template <class T>
  T read(const p<T>& x) {
    T value;
    static_cast<Tx*>(this)->read_bytes(&value, access::address(x), sizeof value);
    return value;
  }
  template <class T>
  T* read(const ptr<T>& x) {
    T* value;
    static_cast<Tx*>(this)->read_bytes(&value, access::address(x), sizeof value);
    return value;
  }
};

template <class Tx>
class FieldWrites {
 public:
  template <class T>
  void write(p<T>& x, const std::type_identity_t<T>& value) {
    static_cast<Tx*>(this)->write_bytes(access::address(x), &value, sizeof value);
  }
  template <class T>
  void write(ptr<T>& x, std::type_identity_t<T>* value) {
    static_cast<Tx*>(this)->write_bytes(access::address(x), &value, sizeof value);
  }
  /// As Tx::make.
  template <class T, class... Args>
  T* make(Args&&... args) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
    const T built{std::forward<Args>(args)...};
#pragma GCC diagnostic pop
    auto* const to = reinterpret_cast<T*>(static_cast<Tx*>(this)->alloc(sizeof(T)));
    static_cast<Tx*>(this)->write_bytes(to, &built, sizeof(T));
    return to;
  }
};

}  // namespace perdure::test
