// SPDX-License-Identifier: BSD-3-Clause
//
// type_of<T>(): the Type of a C++ type, made once per process.
//
// A struct's fields and their names come from fields.hpp and field_name.hpp. Types are made before
// main() (type_of's variable `early` is initialised there), so that a forked child does not wait
// for a thread of its parent that was making one. They are never destroyed: a pool with static
// storage duration may be closed after other such objects are gone.
// Thread safety: any thread, any time.
#pragma once

#include <atomic>
#include <iterator>
#include <memory>
#include <string>

#include "perdure/api/field_name.hpp"
#include "perdure/value/kinds.hpp"
#include "perdure/value/operations.hpp"
#include "perdure/value/type.hpp"

namespace perdure::value {

/// The Type of T.
template <class T>
[[nodiscard]] const Type& type_of();

namespace detail {

/// Calls f() while no other thread makes a Type.
void while_making_types(void (*f)());

/// The Type of T once declare<T>() has begun to make it.
template <class T>
inline constinit Type* made = nullptr;
/// The same, when it and all types in it are whole.
template <class T>
inline constinit std::atomic<const Type*> whole = nullptr;

template <class T>
const Type* declare();

/// The word of a scalar in a layout text.
template <class T>
std::string word_of() {
  if constexpr (is_duration<T> || is_time_point<T>) {
    using Period = typename T::period;
    const std::string per = std::to_string(Period::num) + "/" + std::to_string(Period::den) + "," +
                            word_of<typename T::rep>() + ">";
    if constexpr (is_duration<T>) {
      return "span<" + per;
    } else {
      static_assert(std::is_same_v<typename T::clock, std::chrono::system_clock> ||
                        std::is_same_v<typename T::clock, std::chrono::local_t>,
                    "perdure: a time in a pool is one of std::chrono::system_clock (or local "
                    "time): other clocks may start anew with the machine");
      return (std::is_same_v<typename T::clock, std::chrono::local_t> ? "local<" : "time<") + per;
    }
  } else {
    LayoutNames names;
    return names.name<T, true>();
  }
}

template <class T>
constexpr Number number_of() {
  if constexpr (is_duration<T> || is_time_point<T>)
    return number_of<typename T::rep>();
  else if constexpr (std::is_enum_v<T>)
    return number_of<std::underlying_type_t<T>>();
  else if constexpr (opaque<T>)
    return Number::opaque;
  else if constexpr (std::is_floating_point_v<T>)
    return Number::floating;
  else
    return std::is_signed_v<T> ? Number::signed_integer : Number::unsigned_integer;
}

/// Whether a T contains text or a sequence.
template <class T>
consteval bool owns_blocks();

template <class... A>
consteval bool any_owns_blocks(types<A...>) {
  return (owns_blocks<A>() || ...);
}

template <class T>
consteval bool owns_blocks() {
  if constexpr (turned<T>)
    return owns_blocks<decltype(T::value)>();
  else if constexpr (std::is_same_v<T, std::string> || is_a<T, std::vector>)
    return true;
  else if constexpr (is_array<T>)
    return owns_blocks<typename elements_of<T>::type>();
  else if constexpr (is_a<T, std::optional>)
    return owns_blocks<typename T::value_type>();
  else if constexpr (scalar<T> || !storable<T>)
    return false;
  else
    return any_owns_blocks(typename parts_of<T>::type{});
}

/// Appends the fields of an object of T that is never constructed: only addresses are formed.
template <class T>
void add_fields(Type& type) {
  union Storage {
    Storage() {}
    ~Storage() {}
    std::byte bytes;
    T object;
  };
  const auto storage = std::make_unique<Storage>();
  Extent extent;
  const auto add = [&]<class F>(F& field, std::string_view name) {
    const auto at = extent.add(extent_of<std::remove_const_t<F>>());
    type.parts.push_back(
        {name, declare<std::remove_const_t<F>>(), static_cast<std::uint32_t>(at),
         static_cast<std::uint32_t>(reinterpret_cast<const std::byte*>(std::addressof(field)) -
                                    &storage->bytes)});
  };
  if constexpr (is_a<T, std::pair>) {
    add(storage->object.first, "first");
    add(storage->object.second, "second");
  } else if constexpr (is_a<T, std::tuple>) {
    static constexpr std::string_view digits = "0123456789";
    static_assert(std::tuple_size_v<T> <= 10,
                  "perdure: a std::tuple in a pool has at most 10 "
                  "elements: a struct gives them names");
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (add(std::get<I>(storage->object), digits.substr(I, 1)), ...);
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    constexpr auto names = perdure::detail::field_names<T>();
    std::size_t index = 0;
    for_each_field(storage->object, [&](auto& field) { add(field, names[index++]); });
  }
}

template <class... A>
void add_alternatives(Type& type, std::uint32_t at, types<A...>) {
  (type.parts.push_back({{}, declare<A>(), at, 0}), ...);
}

/// Whether objects of a structure have their parts where the image has them.
bool lies_as_image(const Type& type);

template <class T>
void fill(Type& type) {
  constexpr Extent extent = extent_of<T>();
  type.size = static_cast<std::uint32_t>(extent.size);
  type.align = static_cast<std::uint32_t>(extent.align);
  type.object_bytes = sizeof(T);
  type.operations = &operations_of<T>;
  if constexpr (turned<T>) {
    // An object of T is one of what it turns.
    static_assert(sizeof(T) == sizeof(decltype(T::value)));
    type = *declare<decltype(T::value)>();
    type.reversed = true;
  } else if constexpr (scalar<T>) {
    type.kind = Kind::scalar;
    type.number = number_of<T>();
    type.word = word_of<T>();
    type.plain = true;
    type.own_order = opaque<T> && has_order<T>;
  } else if constexpr (std::is_same_v<T, std::string>) {
    type.kind = Kind::text;
    type.owns = true;
  } else if constexpr (is_a<T, std::vector>) {
    static_assert(!std::is_same_v<typename T::value_type, bool>,
                  "perdure: a std::vector<bool> has no elements that can be pointed to: use "
                  "std::vector<std::uint8_t>");
    type.kind = Kind::sequence;
    type.owns = true;
    type.parts.push_back({{}, declare<typename T::value_type>(), 0, 0});
  } else if constexpr (is_a<T, std::optional>) {
    type.kind = Kind::optional;
    type.parts.push_back({{},
                          declare<typename T::value_type>(),
                          static_cast<std::uint32_t>(extent_of<typename T::value_type>().align),
                          0});
  } else if constexpr (is_a<T, std::variant>) {
    type.kind = Kind::variant;
    add_alternatives(type, type.align, typename parts_of<T>::type{});
  } else if constexpr (is_array<T>) {
    type.kind = Kind::array;
    type.count = elements_of<T>::count;
    type.parts.push_back({{}, declare<typename elements_of<T>::type>(), 0, 0});
    type.plain = type.element().plain && type.size == type.object_bytes;
  } else {
    type.kind = Kind::structure;
    // Set before the fields are visited: a field may contain this type (in a vector).
    type.owns = owns_blocks<T>();
    type.own_order = plain_struct<T> && has_order<T>;
    if constexpr (requires { T::perdure_renamed; })
      type.renamed.assign(std::begin(T::perdure_renamed), std::end(T::perdure_renamed));
    if constexpr (requires { T::perdure_removed; })
      type.removed.assign(std::begin(T::perdure_removed), std::end(T::perdure_removed));
    add_fields<T>(type);
    type.plain = lies_as_image(type);
  }
  type.owns = owns_blocks<T>();
  type.own_hash = type.own_hash || (type.operations->hash != nullptr && !type.reversed);
}

/// Returns the Type of T, which may still be unfinished: a struct may contain a vector of itself.
template <class T>
const Type* declare() {
  if (made<T> == nullptr) {
    made<T> = new Type;
    fill<T>(*made<T>);
  }
  return made<T>;
}

template <class T>
void make_whole() {
  while_making_types([] {
    const Type* type = declare<T>();
    if (type->kind == Kind::structure) made<T>->shape = shape_of(text_of(*type));
    // Release: pairs with the load in type_of().
    whole<T>.store(type, std::memory_order_release);
  });
}

/// Initialised before main().
template <class T>
inline const bool early = (make_whole<T>(), true);

}  // namespace detail

template <class T>
const Type& type_of() {
  (void)&detail::early<T>;
  // Acquire: pairs with the release in make_whole().
  const Type* type = detail::whole<T>.load(std::memory_order_acquire);
  if (__builtin_expect(type == nullptr, 0)) {
    detail::make_whole<T>();
    type = detail::whole<T>.load(std::memory_order_acquire);
  }
  return *type;
}

}  // namespace perdure::value
