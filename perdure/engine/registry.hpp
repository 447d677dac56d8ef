// SPDX-License-Identifier: BSD-3-Clause
//
// All engines of the product: any_engine (dynamic_engine.hpp) chooses from them unless more are
// registered. README.md says what adding an engine to the product needs besides its list of
// instances here.
#pragma once

#include "perdure/engine/shadow/instances.hpp"
#include "perdure/engine/undo/instances.hpp"
#include "perdure/engine/volatile/instances.hpp"

namespace perdure {

using product_engines = engine::Joined<shadow_engines, undo_engines, volatile_engines>::type;

}  // namespace perdure
