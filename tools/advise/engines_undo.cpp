// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/undo/instances.hpp"
#include "tools/advise/replay_over.hpp"

namespace perdure::tool {

template std::unique_ptr<ReplayPool> open_family<undo_engines>(const std::string&, const Options&);

}  // namespace perdure::tool
