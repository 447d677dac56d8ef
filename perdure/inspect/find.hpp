// SPDX-License-Identifier: BSD-3-Clause
//
// find: an element of a container by a key that a user typed.
//
// Thread safety: that of the transaction behind the walker.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "perdure/inspect/layout.hpp"
#include "perdure/inspect/walk.hpp"

namespace perdure::inspect {

/// Whether a key is typed as it is: text, a number, a time. Other keys are typed as JSON.
[[nodiscard]] bool is_typed_plainly(const Layout& key) noexcept;

/// The element with a plainly typed key; of a vector, list or queue, the element with this number,
/// counted from 0. Looks it up where the container's order or hashes are known, otherwise visits
/// all elements. Throws error(invalid) where the text is no key of the container's type, and
/// error(corrupt). A table's map is that of first_part(), and its values are addresses of rows.
[[nodiscard]] std::optional<Entry> find(Walker& walker, const Layout& container, Address at,
                                        std::string_view key);

/// The first element for which `is_it` returns true. Throws error(corrupt).
[[nodiscard]] std::optional<Entry> find_if(Walker& walker, const Layout& container, Address at,
                                           const std::function<bool(const Entry&)>& is_it);

}  // namespace perdure::inspect
