// SPDX-License-Identifier: BSD-3-Clause
//
// shared_keys<K>: finds equal keys among many, before a container gets them.
//
// Two keys are equal as a container would find them: by the operator< of their class if it has one,
// otherwise part by part.
// Thread safety: none; an object belongs to one call. Errors: std::bad_alloc. It holds a copy of
// each key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>

#include "perdure/value/describe.hpp"
#include "perdure/value/order.hpp"
#include "perdure/value/type_of.hpp"

namespace perdure::detail {

/// Keys that were met more than once: how many, and the first of them.
struct KeysMet {
  static constexpr std::size_t listed = 5;
  std::uint64_t shared = 0;
  std::string examples;

  void note(const value::Type& type, const void* key) {
    if (shared++ < listed)
      examples += (examples.empty() ? "" : ", ") + value::describe(type, key);
    else if (shared == listed + 1)
      examples += ", ...";
  }
  /// "3 rows share their 'users.mail' with an earlier row: 'a', 'b', 'c'"; empty for none.
  [[nodiscard]] std::string text(std::string_view what, std::string_view path) const {
    if (shared == 0) return {};
    const std::string one(what);
    return std::to_string(shared) + " " + one +
           (shared == 1 ? " shares its '" : "s share their '") + std::string(path) +
           "' with an earlier " + one + ": " + examples;
  }
};

template <class K>
class shared_keys {
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
  static consteval bool ordered_by_its_class() {
    if constexpr (value::plain_struct<K> || value::detail::opaque<K>)
      return value::detail::has_order<K>;
    else
      return false;
  }

 public:
  /// Notes the key if it was added before.
  void add(const K& key) {
    if (!keys_.insert(key).second) met.note(type(), std::addressof(key));
  }
  KeysMet met;  ///< so far

 private:
  std::conditional_t<ordered_by_its_class(), std::set<K, std::less<>>,
                     std::unordered_set<K, hash, same>>
      keys_;
};

}  // namespace perdure::detail
