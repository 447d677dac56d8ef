// SPDX-License-Identifier: BSD-3-Clause
//
// found_keys<K>: a set of keys in DRAM, in which two are equal as an ordered container of the pool
// would find them: by the operator< of a class that has one, wherever in the key it is, otherwise
// part by part.
//
// Thread safety: none; an object belongs to one call. Errors: std::bad_alloc. It holds a copy of
// each key.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

#include "perdure/value/key_order.hpp"
#include "perdure/value/order.hpp"
#include "perdure/value/type_of.hpp"

namespace perdure::detail {

template <class K>
class found_keys {
 public:
  /// Adds a key. Returns false, and does nothing, if one that is equal is there.
  bool insert(const K& key) {
    if (!own_) return parts_.insert(key).second;
    return ordered_.try_emplace(Key(order_, key)).second;
  }
  /// Whether a key that is equal is there.
  [[nodiscard]] bool contains(const K& key) const {
    return own_ ? ordered_.contains(Key(order_, key)) : parts_.contains(key);
  }
  /// Whether two keys are equal here.
  [[nodiscard]] bool equal(const K& a, const K& b) const {
    if (!own_) return same()(a, b);
    const Key x(order_, a), y(order_, b);
    return !(x < y) && !(y < x);
  }
  /// Calls f(key) for each.
  template <class F>
  void for_each(F&& f) const {
    for (const K& key : parts_) f(key);
    for (const auto& [key, none] : ordered_) f(*key.object);
  }

 private:
  static const value::Type& type() { return value::type_of<K>(); }
  struct hash {
    std::size_t operator()(const K& key) const {
      return value::hash_of(type(), std::addressof(key));
    }
  };
  struct same {
    bool operator()(const K& a, const K& b) const {
      return value::same(type(), std::addressof(a), std::addressof(b));
    }
  };
  struct Key {
    Key(const value::KeyOrder& by, const K& key)
        : order(&by), object(std::make_shared<const K>(key)), image(by.image(object.get())) {}
    bool operator<(const Key& other) const { return order->less(image.get(), other.object.get()); }
    const value::KeyOrder* order;
    std::shared_ptr<const K> object;
    std::shared_ptr<const std::byte> image;
  };

  const value::KeyOrder order_{type()};
  const bool own_ = value::KeyOrder::own(type());
  std::unordered_set<K, hash, same> parts_;
  std::map<Key, char> ordered_;
};

}  // namespace perdure::detail
