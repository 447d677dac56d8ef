// SPDX-License-Identifier: BSD-3-Clause
//
// The recommendation of `perdure advise`, from the figures.
// Thread safety: single-threaded.
#pragma once

#include "tools/advise/report.hpp"
#include "tools/json.hpp"

namespace perdure::tool {

/// {"durable": {...}, "async": {...}, "threads": {...}, "notes": [...]}: each member has "text".
[[nodiscard]] Json advice_of(const AdviceInput& input);
/// The code with which a program asks for an engine and a mode.
[[nodiscard]] std::string in_code(const engine::EngineInfo& engine, Durability mode);

}  // namespace perdure::tool
