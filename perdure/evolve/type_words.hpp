// SPDX-License-Identifier: BSD-3-Clause
//
// What a root field's type is, by its text.
//
// Thread safety: pure functions over their arguments. Errors: std::bad_alloc.
#pragma once

#include <string>
#include <string_view>

#include "perdure/evolve/layout_lines.hpp"

namespace perdure::detail {

/// Whether a number may become another one by itself.
[[nodiscard]] bool widens(const LayoutLine& from, const LayoutLine& to);
/// A type without the numbers of structs.
[[nodiscard]] std::string without_numbers(std::string_view type);
/// Whether a type is a table.
[[nodiscard]] bool is_table(std::string_view type);
/// The container that is retired; empty for other types.
[[nodiscard]] std::string_view retired_type(std::string_view type);
/// The container that one is rebuilt to, A of "rebuilt<A,B>"; empty for other types.
[[nodiscard]] std::string_view rebuilt_type(std::string_view type);
/// rebuilt_type(), or the type itself: whose elements are there once no work is pending.
[[nodiscard]] std::string_view made_of(std::string_view type);
/// Whether a container has elements that can be copied to another one.
[[nodiscard]] bool can_be_rebuilt(std::string_view type);
/// The struct of a container's records: of the rows of a table, or of values that are records, as
/// those of "map<u64,rec<{...}24>,15>/1" are; of one that is rebuilt, that of what is made. Empty
/// where it has none, or may have several.
[[nodiscard]] std::string_view record_in(std::string_view type);

}  // namespace perdure::detail
