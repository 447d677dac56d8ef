// SPDX-License-Identifier: BSD-3-Clause
//
// The workloads' model of ordinary memory: a field is its value, a link is a pointer, and loads are
// plain.
// Thread safety: none.
#pragma once

#include <type_traits>

namespace bench {

struct PlainModel {
  template <class T>
  struct Field {
    Field(T v = {}) : value(v) {}  // NOLINT(google-explicit-constructor): stands where a T would
    T value;
  };
  template <class T>
  using Ref = T*;
  template <class T>
  struct Link {
    Link(T* t = nullptr) : target(t) {}  // NOLINT(google-explicit-constructor)
    T* target;
  };
};

/// How a transaction handle over it loads.
struct PlainLoads {
  template <class T>
  using Field = PlainModel::Field<T>;
  template <class T>
  using Link = PlainModel::Link<T>;

  template <class T>
  T get(const Field<T>& field) const {
    return field.value;
  }
  template <class T>
  T* get(const Link<T>& link) const {
    return link.target;
  }
};

}  // namespace bench
