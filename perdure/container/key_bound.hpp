// SPDX-License-Identifier: BSD-3-Clause
//
// key_bound<K>: where a range of keys begins or ends: at a key, or, of a pair or tuple, before or
// behind all keys that begin with the same parts.
//
// Thread safety: a plain value.
#pragma once

#include <tuple>
#include <utility>

#include "perdure/value/kinds.hpp"

namespace perdure::detail {

/// Whether a K has parts that a prefix of it may leave out.
template <class K>
inline constexpr bool has_prefixes =
    value::detail::is_a<K, std::pair> || value::detail::is_a<K, std::tuple>;

template <class K>
struct key_bound {
  K key{};
  unsigned parts = 0;   ///< of the key, how many count; 0: all of it
  bool behind = false;  ///< behind the key, or all keys that begin with these parts; not before

  key_bound() = default;
  key_bound(K whole) : key(std::move(whole)) {}  // NOLINT: a key is a bound
  key_bound(K with, unsigned parts_that_count, bool is_behind)
      : key(std::move(with)), parts(parts_that_count), behind(is_behind) {}
};

/// The key that begins with these parts.
template <class K, class... Parts>
K key_beginning_with(const Parts&... parts) {
  K key{};
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((std::get<I>(key) = parts), ...);
  }(std::index_sequence_for<Parts...>{});
  return key;
}

}  // namespace perdure::detail
