// SPDX-License-Identifier: BSD-3-Clause
//
// found_keys<K>: a set of keys in DRAM. Two keys are equal if an ordered container in the pool
// would find them equal: a class with an operator< is compared by it, wherever it is in the key,
// and everything else part by part.
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
  /// Adds a key. Returns false, and does nothing, if the set has an equal key.
  bool insert(const K& key) {
    if (!own_) return parts_.insert(key).second;
    return ordered_.try_emplace(Key(order_, key)).second;
  }
  /// Whether the set has an equal key.
  [[nodiscard]] bool contains(const K& key) const {
    return own_ ? ordered_.contains(Key(order_, key)) : parts_.contains(key);
  }
  /// Whether two keys are equal in this set.
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
