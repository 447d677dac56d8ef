// SPDX-License-Identifier: BSD-3-Clause
//
// The tables of `perdure advise` as bars, in an SVG file: one panel per mode, one bar per engine. A
// bar is the median of the rounds, its whisker reaches from the slowest to the fastest round.
// Thread safety: single-threaded.
#pragma once

#include <string>

#include "tools/json.hpp"

namespace perdure::tool {

/// Throws perdure::error if no picture could be written to `path`: its name does not end in .svg,
/// or its folder does not exist or cannot be written to. Called before the minutes of measuring.
void check_picture(const std::string& path);

/// `document` (describe() of advise/report.hpp) as SVG.
[[nodiscard]] std::string picture_of(const Json& document);

/// Writes picture_of() to `path`: the file is either whole or absent. Throws perdure::error.
void draw_picture(const Json& document, const std::string& path);

}  // namespace perdure::tool
