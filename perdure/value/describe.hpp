// SPDX-License-Identifier: BSD-3-Clause
//
// describe(): a value as text for a message: 7, 'text', {7, 'text'}.
//
// Thread safety: pure functions over their arguments. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <string>

#include "perdure/value/type.hpp"

namespace perdure::value {

/// Describes an object of the C++ type from which `type` was made, in at most `most` bytes; a
/// longer text is cut and ends with "...". Values other than numbers, texts, optionals and
/// structures are shown as "?".
[[nodiscard]] std::string describe(const Type& type, const void* object, std::size_t most = 60);

}  // namespace perdure::value
