// SPDX-License-Identifier: BSD-3-Clause
//
// Splits the type of a root field, given as text, into its parts: the elements of arrays and the
// fields of structs that are held whole.
//
// Thread safety: pure functions over their arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace perdure::detail {

/// Calls f(type, place) for each part of a type that is no array and no struct held whole. Arrays
/// and structs of numbers alone are left out. `at`: the place of the type. The elements of an array
/// that lie at `end` or behind it are left out, except the first one.
void each_type_part(std::string_view type, std::uint64_t at, std::uint64_t end,
                    const std::function<void(std::string_view type, std::uint64_t at)>& f);

/// Whether objects of a type may own heap blocks: a container, a hook, or a type of the program
/// that states its layout as containers do ("name/1").
[[nodiscard]] bool owns_blocks_by_text(std::string_view type);

}  // namespace perdure::detail
