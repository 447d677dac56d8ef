// SPDX-License-Identifier: BSD-3-Clause
//
// Shapes: the layouts of records that earlier versions of a program wrote.
//
// A shape is the hash of a layout text, the same in every pool, so the process has one book of
// them: a pool adds those of its catalog when it is opened, and a record whose shape is not the
// program's is looked up here. Entries are never removed: there is one for each version of a
// struct.
// Thread safety: any thread, any time. Errors: std::bad_alloc.
#pragma once

#include <cstdint>
#include <string_view>

#include "perdure/base/status.hpp"
#include "perdure/value/convert.hpp"
#include "perdure/value/type.hpp"

namespace perdure::value::shapes {

/// Adds the layout text of a struct. Does nothing if it is there. Fails as parse(), with
/// Code::corrupt for a text that is not of a struct, and with Code::incompatible if another text
/// has the same shape.
[[nodiscard]] Status add(std::string_view text);

/// The type of a shape; null if it was not added. Valid for ever.
[[nodiscard]] const Type* find(std::uint64_t shape);

/// What changed between a type that find() returned and one of the program; made at the first call
/// and kept. Valid for ever.
[[nodiscard]] const Comparison& between(const Type& before, const Type& now);

}  // namespace perdure::value::shapes
