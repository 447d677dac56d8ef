// SPDX-License-Identifier: BSD-3-Clause
//
// The four papers' engines: their list, and the call that makes them known to any_engine. Adding an
// engine: its folder, and a line here.
#pragma once

#include "papers/blurred/instances.hpp"
#include "papers/dudetm/instances.hpp"
#include "papers/rewind/instances.hpp"
#include "papers/softwrap/instances.hpp"
#include "perdure/engine/registry.hpp"

namespace perdure {

using papers_engines =
    engine::Joined<dudetm_engines, rewind_engines, blurred_engines, softwrap_engines>::type;

/// The product's and the papers', for tools, tests and benchmarks.
using all_engines = engine::Joined<product_engines, papers_engines>::type;

namespace papers {

/// any_engine, perdure.h and the lists of engines know the papers' engines from here on. Call it at
/// the program's beginning; a second call does nothing. Any thread. Throws nothing.
void register_engines() noexcept;

}  // namespace papers
}  // namespace perdure
