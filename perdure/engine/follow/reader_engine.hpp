// SPDX-License-Identifier: BSD-3-Clause
//
// The engine of a pool that follows another process's: views of the state that the Follower has,
// and no updates. DynamicEngine makes it in place of the pool's own.
// Thread safety: that of an engine.
#pragma once

#include <memory>

#include "perdure/engine/dynamic_engine.hpp"

namespace perdure::engine::follow {

/// REQUIRES: config.follower, attached.
std::unique_ptr<DynamicEngine::Implementation> make_reader(pool::OpenPool& file,
                                                           const Config& config,
                                                           const Recovery& recovery);

}  // namespace perdure::engine::follow
