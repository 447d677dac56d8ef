// SPDX-License-Identifier: BSD-3-Clause
//
// shared_keys<K>: finds equal keys among all that a container is to get, before it gets them.
//
// Two keys are equal as a container would find them (found_keys.hpp).
// Thread safety: none; an object belongs to one call. Errors: std::bad_alloc. It holds a copy of
// each key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "perdure/container/found_keys.hpp"
#include "perdure/value/describe.hpp"
#include "perdure/value/type_of.hpp"

namespace perdure::detail {

/// Keys that were seen more than once: their number, and the first five of them.
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
 public:
  /// Adds a key. If an equal key was added before, notes it in `met`.
  void add(const K& key) {
    if (!keys_.insert(key)) met.note(value::type_of<K>(), std::addressof(key));
  }
  KeysMet met;  ///< the equal keys so far

 private:
  found_keys<K> keys_;
};

}  // namespace perdure::detail
