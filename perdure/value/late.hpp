// SPDX-License-Identifier: BSD-3-Clause
//
// late: steps that make records of the program's of those that an earlier version wrote when they
// are read.
//
// A pool that was opened with Migration::lazy has such records until they are written or settled.
// There is one function for a type in the process: the one that was set last.
// Thread safety: any thread, any time. Errors: std::bad_alloc.
#pragma once

#include <functional>
#include <memory>

#include "perdure/value/access.hpp"
#include "perdure/value/type.hpp"

namespace perdure::value {

struct record;

namespace late {

/// Gives a value-initialised object of the type the record's value. Returns false, and does
/// nothing, if no step leads from the record to it.
using Make = std::function<bool(Reader& tx, const record* from, void* object)>;

/// Sets the function of a type of the program.
void set(const Type& type, Make make);
/// The function of a type; null where there is none.
[[nodiscard]] std::shared_ptr<const Make> find(const Type& type);

}  // namespace late
}  // namespace perdure::value
