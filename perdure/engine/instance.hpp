// SPDX-License-Identifier: BSD-3-Clause
//
// Instances: the tags by which a program chooses an engine. An instance is a tag type with the
// engine type and its names: one name, or one for each variant that the type has at run time. A
// pool is opened with a list of tags, Pool<Root, engines<...>>; each engine's instances.hpp has its
// tags, and code that lists a tag includes that header.
#pragma once

#include <cstddef>
#include <string_view>

#include "perdure/engine/durability.hpp"

namespace perdure {

/// A list of instances that a pool may be opened with.
template <class... Instances>
struct engines {
  /// How many there are.
  static constexpr std::size_t size = sizeof...(Instances);
};

namespace engine {

/// An instance's name, and the name of its engine in a pool's header. Instances of a family differ
/// in their concurrency control only.
struct InstanceName {
  std::string_view name;    ///< "shadow/stm"
  std::string_view family;  ///< "shadow"
};

/// What an instance's tag states about its type. In addition a tag has
/// `static constexpr std::array<InstanceName, N> names`.
template <class E, Isolation by = Isolation::full>
struct Instance {
  /// The engine.
  using type = E;
  /// Who isolates its transactions from each other.
  static constexpr Isolation isolation = by;
};

/// The instances of all lists, in their order.
template <class... Lists>
struct Joined;
/// The instances of one list.
template <class... Instances>
struct Joined<engines<Instances...>> {
  /// One list of all.
  using type = engines<Instances...>;
};
template <class... First, class... Second, class... Lists>
struct Joined<engines<First...>, engines<Second...>, Lists...>
    : Joined<engines<First..., Second...>, Lists...> {};

}  // namespace engine
}  // namespace perdure
