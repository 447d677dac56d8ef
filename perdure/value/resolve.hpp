// SPDX-License-Identifier: BSD-3-Clause
//
// resolve(): computes the sizes, alignments and offsets of types whose parts are known, for
// parse().
//
// Thread safety: a function over its argument.
#pragma once

#include <deque>
#include <string>

#include "perdure/value/type.hpp"

namespace perdure::value {

/// Sets size, align, owns and the offsets of parts, and compares them with those that the text
/// gives for structures. REQUIRES: a type comes before the types within it, and refers to no others
/// except structures around it. Returns the error as text that can follow "found "; empty if there
/// is none.
[[nodiscard]] std::string resolve(std::deque<Type>& types);

}  // namespace perdure::value
