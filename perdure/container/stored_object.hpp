// SPDX-License-Identifier: BSD-3-Clause
//
// stored_object<T>: a container, or a struct of p<> fields and containers, that is a value or an
// element of a container: a pointer to it. The container owns it.
//
// It is never copied: a look-up returns a pointer to it, valid in the transaction, and update()
// changes it where it lies.
// Thread safety: that of the transaction.
#pragma once

#include <string>

#include "perdure/api/layout.hpp"
#include "perdure/api/owned.hpp"
#include "perdure/api/persistent.hpp"

namespace perdure {

/// What is passed in for a value that is an object in the pool: it begins as T{} does.
struct new_object {};

namespace detail {

/// An object that a container owns.
template <class T>
struct stored_object {
  using raw = T*;
  using field = ptr<T>;
  using arg = new_object;
  using kept = const T*;

  template <class Tx>
  static raw make(Tx& tx, arg = {}) {
    return tx.template make<T>();
  }
  template <class Tx>
  static void drop(Tx& tx, raw object) {
    drop_owned(tx, *object);
    tx.free(object);
  }
  template <class Tx>
  static kept read(Tx& tx, const field& f) {
    return tx.read(f);
  }
  /// A new object takes the old one's place.
  template <class Tx>
  static void assign(Tx& tx, field& f, arg) {
    drop(tx, tx.read(f));
    tx.write(f, make(tx));
  }
  template <class Tx, class F>
  static void change(Tx& tx, field& f, F& by) {
    by(*tx.read(f));
  }
  /// The object's block alone: the walk enters the object (api/walk.hpp).
  template <class Tx, class F>
  static void each_block(Tx&, raw object, F&& f) {
    f(static_cast<const void*>(object));
  }
  static std::string name(LayoutNames& names) { return "own<" + names.name<T>() + ">"; }
};

}  // namespace detail
}  // namespace perdure
