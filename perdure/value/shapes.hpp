// SPDX-License-Identifier: BSD-3-Clause
//
// Shapes: the layouts of records that earlier versions of a program wrote.
//
// A shape is the hash of a layout text, the same in every pool, so the process has one table of
// shapes for all pools. Opening a pool adds the shapes of its catalog, and the type of a record
// whose shape is not the program's is looked up here. Entries are never removed: there is one for
// each version of a struct.
// Thread safety: any thread, any time. Errors: std::bad_alloc.
#pragma once

#include <cstdint>
#include <string_view>

#include "perdure/base/status.hpp"
#include "perdure/value/convert.hpp"
#include "perdure/value/type.hpp"

namespace perdure::value::shapes {

/// Adds the layout text of a struct, unless the table has it. Fails as parse(), with Code::corrupt
/// for a text that does not describe a struct, and with Code::incompatible if another text has the
/// same shape.
[[nodiscard]] Status add(std::string_view text);

/// The type of a shape; null if it was not added. Valid until the process ends.
[[nodiscard]] const Type* find(std::uint64_t shape);

/// The changes between a type that find() returned and one of the program. The first call makes the
/// result, and later calls return the same one. Valid until the process ends.
[[nodiscard]] const Comparison& between(const Type& before, const Type& now);

}  // namespace perdure::value::shapes
