// SPDX-License-Identifier: BSD-3-Clause
//
// scalar_text: a number of a pool as text, exactly, and back.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "perdure/inspect/layout.hpp"

namespace perdure::inspect {

/// A number as JSON has it.
struct ScalarText {
  std::string text;
  bool quoted = false;  ///< a JSON string
};

/// `bytes`: as many as the type has. REQUIRES: type.kind is scalar.
[[nodiscard]] ScalarText scalar_text(const Layout& type, const unsigned char* bytes);

/// Reads what scalar_text() writes into as many bytes as the type has; returns whether it could.
[[nodiscard]] bool scalar_bytes(const Layout& type, std::string_view text, unsigned char* bytes);

/// Returns a negative value, zero or a positive value: a is below, equal to or above b, in the
/// order of a container's keys.
[[nodiscard]] int compare_scalars(const Layout& type, const unsigned char* a,
                                  const unsigned char* b);

/// The hash of a number as a hash_map's key; nothing where the layout does not tell it: of floating
/// point, times, and other types that may have a perdure::hash of their own.
[[nodiscard]] std::optional<std::uint64_t> scalar_hash(const Layout& type,
                                                       const unsigned char* bytes);

}  // namespace perdure::inspect
