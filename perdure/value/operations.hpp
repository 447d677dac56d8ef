// SPDX-License-Identifier: BSD-3-Clause
//
// operations_of<T>: what the functions that walk values call for a type's own (type.hpp).
//
// Thread safety: pure functions over their arguments.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "perdure/api/hash.hpp"
#include "perdure/value/image.hpp"
#include "perdure/value/kinds.hpp"
#include "perdure/value/type.hpp"

namespace perdure::value::detail {

template <class T>
struct SequenceOperations {
  static std::size_t count(const void* object) { return static_cast<const T*>(object)->size(); }
  static const void* get(const void* object) { return static_cast<const T*>(object)->data(); }
  static void* make(void* object, std::size_t n) {
    static_cast<T*>(object)->resize(n);
    return static_cast<T*>(object)->data();
  }
};

template <class T>
struct OptionalOperations {
  static std::size_t count(const void* object) {
    return static_cast<const T*>(object)->has_value() ? 1 : 0;
  }
  static const void* get(const void* object) {
    const T& optional = *static_cast<const T*>(object);
    return optional ? std::addressof(*optional) : nullptr;
  }
  static void* make(void* object, std::size_t n) {
    T& optional = *static_cast<T*>(object);
    if (n == 0) {
      optional.reset();
      return nullptr;
    }
    if (!optional) optional.emplace();
    return std::addressof(*optional);
  }
};

template <class T>
struct VariantOperations {
  static std::size_t count(const void* object) { return static_cast<const T*>(object)->index(); }
  static const void* get(const void* object) {
    return std::visit(
        [](const auto& held) { return static_cast<const void*>(std::addressof(held)); },
        *static_cast<const T*>(object));
  }
  static void* make(void* object, std::size_t n) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      void* to = nullptr;
      ((I == n ? (to = put<I>(*static_cast<T*>(object)), void()) : void()), ...);
      return to;
    }(std::make_index_sequence<std::variant_size_v<T>>{});
  }

 private:
  template <std::size_t I>
  static void* put(T& variant) {
    variant.template emplace<I>();  // removes what an initialiser put there
    return std::addressof(std::get<I>(variant));
  }
};

/// A type whose objects say themselves which is less.
template <class T>
concept has_order = requires(const T& a, const T& b) {
  { a < b } -> std::convertible_to<bool>;
};

template <class T>
int order(Reader& reader, const Type& type, const std::byte* image, const void* object) {
  T mine{};
  decode(reader, type, image, &mine);
  const T& other = *static_cast<const T*>(object);
  return mine < other ? -1 : other < mine ? 1 : 0;
}

template <class T>
std::uint64_t hash(const void* object) {
  return perdure::hash<T>::of(*static_cast<const T*>(object));
}
/// The specialised perdure::hash of a struct or class; null where there is none.
template <class T>
consteval auto own_hash() -> std::uint64_t (*)(const void*) {
  if constexpr (plain_struct<T> || opaque<T>) {
    if constexpr (!requires { typename perdure::hash<T>::by_its_bytes; }) return &hash<T>;
  }
  return nullptr;
}

template <class T>
consteval Operations make_operations() {
  if constexpr (is_a<T, std::vector>) {
    using O = SequenceOperations<T>;
    return {&O::count, &O::get, &O::make, nullptr, nullptr};
  } else if constexpr (is_a<T, std::optional>) {
    using O = OptionalOperations<T>;
    return {&O::count, &O::get, &O::make, nullptr, nullptr};
  } else if constexpr (is_a<T, std::variant>) {
    using O = VariantOperations<T>;
    return {&O::count, &O::get, &O::make, nullptr, nullptr};
  } else if constexpr ((plain_struct<T> || opaque<T>) && has_order<T>) {
    return {nullptr, nullptr, nullptr, &order<T>, own_hash<T>()};
  } else {
    return {nullptr, nullptr, nullptr, nullptr, own_hash<T>()};
  }
}

template <class T>
inline constexpr Operations operations_of = make_operations<T>();

}  // namespace perdure::value::detail
