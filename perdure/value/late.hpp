// SPDX-License-Identifier: BSD-3-Clause
//
// late: steps that make records of the program's version from records of an earlier one each time
// these are read.
//
// A pool that was opened with Migration::lazy has such records until they are written or settled. A
// record's address says which pool it is in, so a reader needs to know nothing of the pool.
// Thread safety: any thread, any time. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
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

/// Records of the pool at [begin, begin + bytes) become objects of `type` by `make`, until the
/// result is destroyed, which must be before something else is mapped there. REQUIRES: the pool has
/// no function for this type.
[[nodiscard]] std::shared_ptr<const void> add(const std::byte* begin, std::uint64_t bytes,
                                              const Type& type, Make make);
/// The function for a record and a type; null where there is none.
[[nodiscard]] std::shared_ptr<const Make> find(const record* from, const Type& type);

}  // namespace late
}  // namespace perdure::value
