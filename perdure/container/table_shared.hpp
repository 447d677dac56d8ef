// SPDX-License-Identifier: BSD-3-Clause
//
// shared_rows: finds rows with the same key or the same unique member, before a table gets them.
//
// Thread safety: none; an object belongs to one call. Errors: std::bad_alloc. It holds a copy of
// each key and of each unique member.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "perdure/container/shared_keys.hpp"
#include "perdure/container/table_parts.hpp"

namespace perdure::detail {

template <class T, class... Declared>
class shared_rows {
 public:
  void add(const T& row) {
    each([&]<class Part>(auto& keys, std::type_identity<Part>) {
      if (Part::holds(row)) keys.add(Part::key_of(row, 0));
    });
  }
  /// A text for a message about the rows that add() got; empty if none share a key or a unique
  /// member. `path`: that of the table.
  [[nodiscard]] std::string text(const std::string& path) {
    std::string out;
    each([&]<class Part>(auto& keys, std::type_identity<Part>) {
      const std::string one = keys.met.text("row", path + "." + Part::names());
      out += (out.empty() || one.empty() ? "" : "; ") + one;
    });
    return out;
  }

 private:
  template <class F>
  void each(F&& f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (one<table_part<Declared>>(std::get<I>(keys_), f), ...);
    }(std::index_sequence_for<Declared...>{});
  }
  template <class Part, class Keys, class F>
  static void one(Keys& keys, F& f) {
    if constexpr (Part::is_unique) f(keys, std::type_identity<Part>{});
  }
  std::tuple<shared_keys<typename table_part<Declared>::entry>...> keys_;
};

}  // namespace perdure::detail
