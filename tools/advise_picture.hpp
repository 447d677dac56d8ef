// SPDX-License-Identifier: BSD-3-Clause
//
// The tables of `perdure advise` as bars, drawn by python3 with matplotlib, as all pictures here are.
// Thread safety: single-threaded.
#pragma once

#include <string>

#include "tools/command.hpp"

namespace perdure::tool {

/// Throws perdure::error: no python3 with matplotlib, or a name that is neither .png nor .svg.
void check_picture(const std::string& path);
void draw_picture(const Json& document, const std::string& path);

}  // namespace perdure::tool
