// SPDX-License-Identifier: BSD-3-Clause
#include "papers/engines.hpp"

#include "papers/papers.h"
#include "perdure/engine/dynamic_engine_over.hpp"

namespace perdure::papers {

void register_engines() noexcept { engine::register_engines(papers_engines()); }

}  // namespace perdure::papers

extern "C" void perdure_papers_register(void) { perdure::papers::register_engines(); }
