// SPDX-License-Identifier: BSD-3-Clause
//
// resolve(): sizes, alignments and places of types whose parts are known, for parse().
//
// Thread safety: a function over its argument.
#pragma once

#include <deque>
#include <string>

#include "perdure/value/type.hpp"

namespace perdure::value {

/// Fills in size, align, owns, and where parts lie, and checks what structures state of it.
/// REQUIRES: a type stands before those within it, and refers to no other but to structures around
/// it. Returns what is wrong ("found ..." goes on with it); empty if nothing is.
[[nodiscard]] std::string resolve(std::deque<Type>& types);

}  // namespace perdure::value
