// SPDX-License-Identifier: BSD-3-Clause
//
// The product's engines, all of them: what any_engine (any.hpp) chooses from unless more are
// registered. Adding an engine to the product: its folder, and a line here.
#pragma once

#include "perdure/engine/shadow/instances.hpp"
#include "perdure/engine/undo/instances.hpp"
#include "perdure/engine/volatile/instances.hpp"

namespace perdure {

using product_engines = engine::Joined<shadow_engines, undo_engines, volatile_engines>::type;

}  // namespace perdure
