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

/// Counts the objects around the one that is being freed: each takes a part of the stack.
class OwnedChain {
 public:
  OwnedChain() {
    if (++depth <= longest) return;
    --depth;
    throw error(
        Status(Code::too_big,
               "perdure: found objects that own each other in a chain of more than 1000, "
               "expected at most so many: free them from the end of the chain, or link them "
               "by ptr<T>, which owns nothing"));
  }
  OwnedChain(const OwnedChain&) = delete;
  OwnedChain& operator=(const OwnedChain&) = delete;
  ~OwnedChain() { --depth; }

 private:
  static constexpr unsigned longest = 1000;
  static inline constinit thread_local unsigned depth = 0;
};

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
  /// Throws error(too_big) where objects own each other in a chain of more than 1,000.
  template <class Tx>
  static void drop(Tx& tx, raw object) {
    if (object == nullptr) return;  // free_some() freed it
    whole_change(tx, [&] {
      const OwnedChain chain;
      drop_owned(tx, *object);
      tx.free(object);
    });
  }
  template <class Tx>
  static bool free_some(Tx& tx, field& f, std::uint64_t& blocks) {
    const raw object = tx.read(f);
    if (object == nullptr) return true;
    const OwnedChain chain;
    if (!free_some_owned(tx, *object, blocks) || blocks == 0) return false;
    --blocks;
    tx.free(object);
    tx.write(f, nullptr);
    return true;
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
