// SPDX-License-Identifier: BSD-3-Clause
//
// Answers questions about the type of a root field, given as text.
//
// Thread safety: pure functions over their arguments. Errors: std::bad_alloc.
#pragma once

#include <string>
#include <string_view>

#include "perdure/evolve/layout_lines.hpp"

namespace perdure::detail {

/// Whether one number type is converted to another without a step.
[[nodiscard]] bool widens(const LayoutLine& from, const LayoutLine& to);
/// The text of a type without the numbers of structs ("#1").
[[nodiscard]] std::string without_numbers(std::string_view type);
/// Whether a part of a type, which is no array and no struct held whole, is a number, a pointer or
/// a container of the library.
[[nodiscard]] bool is_known_type(std::string_view part);
/// Whether a type names, at any depth, a class that only states its layout: "money/1".
[[nodiscard]] bool names_opaque(std::string_view type);
/// The type of the values of a container, if they are pointers and its keys are none: "ptr<#1>".
/// Empty for other types, and for containers that order their values.
[[nodiscard]] std::string_view pointer_value(std::string_view type);
/// Whether a type is a table.
[[nodiscard]] bool is_table(std::string_view type);
/// The container in "retired<...>"; empty for other types.
[[nodiscard]] std::string_view retired_type(std::string_view type);
/// The new container, A of "rebuilt<A,B>"; empty for other types.
[[nodiscard]] std::string_view rebuilt_type(std::string_view type);
/// rebuilt_type(), or the type itself if it is not rebuilt: the container that has the elements
/// once no work is pending.
[[nodiscard]] std::string_view made_of(std::string_view type);
/// Whether a container has elements that can be copied to another one.
[[nodiscard]] bool can_be_rebuilt(std::string_view type);
/// The struct of a container's records: the rows of a table, or values that are records, as in
/// "map<u64,rec<{...}24>,15>/1". For a container that is rebuilt, that of the new container. Empty
/// if there is none, or may be several.
[[nodiscard]] std::string_view record_in(std::string_view type);

}  // namespace perdure::detail
