// SPDX-License-Identifier: BSD-3-Clause
//
// stored_object<C>: a container that is another container's value or element: a pointer to it. It
// is owned: it goes with its element.
//
// It is never copied. Who looks it up gets a pointer to it, valid in the transaction; update()
// changes it in place.
// Thread safety: that of the transaction.
#pragma once

#include <string>

#include "perdure/api/layout.hpp"
#include "perdure/api/persistent.hpp"

namespace perdure {

/// What is passed in for a value that is a container: it begins empty.
struct empty_container {};

namespace detail {

/// A container C that another one owns.
template <class C>
struct stored_object {
  using raw = C*;
  using field = ptr<C>;
  using arg = empty_container;

  template <class Tx>
  static raw make(Tx& tx, arg = {}) {
    return tx.template make<C>();
  }
  template <class Tx>
  static void drop(Tx& tx, raw object) {
    if (object == nullptr) return;
    object->clear(tx);
    tx.free(object);
  }
  template <class Tx>
  static const C* value(Tx&, raw object) {
    return object;
  }
  template <class Tx>
  static const C* read(Tx& tx, const field& f) {
    return tx.read(f);
  }
  /// The container becomes empty.
  template <class Tx>
  static void assign(Tx& tx, field& f, arg) {
    tx.read(f)->clear(tx);
  }
  template <class Tx, class F>
  static void each_block(Tx& tx, raw object, F&& f) {
    if (object == nullptr) return;
    f(static_cast<const void*>(object));
    object->each_block(tx, f);
  }
  static std::string name(LayoutNames& names) { return names.name<C>(); }
};

}  // namespace detail
}  // namespace perdure
