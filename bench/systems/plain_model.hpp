// SPDX-License-Identifier: BSD-3-Clause
//
// The workloads' model of ordinary memory: a field is its value, a link is a pointer, and loads are
// plain.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
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

/// A transaction handle over it that stores plainly, too.
struct PlainTx : PlainLoads {
  template <class T>
  void set(Field<T>& field, std::type_identity_t<T> value) const {
    field.value = value;
  }
  template <class T>
  void set(Link<T>& link, std::type_identity_t<T>* target) const {
    link.target = target;
  }
  template <class T, class... Args>
  T* make(Args... args) const {
    return new T(args...);
  }
  template <class T>
  void destroy(T* t) const {
    // Without the size: it may be an allocate()d block of more bytes.
    std::destroy_at(t);
    ::operator delete(t);
  }
  template <class T>
  T* allocate(std::size_t n) const {
    // Uninitialised: the workload stores before it reads.
    return static_cast<T*>(::operator new(n * sizeof(T)));
  }
};

}  // namespace bench
