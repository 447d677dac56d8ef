// SPDX-License-Identifier: BSD-3-Clause
//
// describe(): a value for a message to a person: 7, 'text', {7, 'text'}.
//
// Thread safety: pure functions over their arguments. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <string>

#include "perdure/value/type.hpp"

namespace perdure::value {

/// An object of the C++ type that `type` was made from, in at most `most` bytes, of which the last
/// are "..." where it is longer. What is no number, text, optional or structure is "?".
[[nodiscard]] std::string describe(const Type& type, const void* object, std::size_t most = 60);

}  // namespace perdure::value
