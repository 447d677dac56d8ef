// SPDX-License-Identifier: BSD-3-Clause
//
// Recording a workload: an engine behind dynamic_engine.hpp's virtual calls is wrapped in one that
// records what each committed transaction did, and writes it to a trace file (workload_trace.hpp).
// Only engine::DynamicEngine uses it, so an engine that is compiled in costs nothing more, and
// neither does DynamicEngine itself where nothing is recorded.
//
// Attempts that were rolled back leave only a count. Reads must be seen: while it records, no
// transaction has plain access (direct()). A thread's transactions are written to the file after
// its first transaction, the second, the fourth, ..., at the latest 100 ms later if it runs more;
// and all of them at close or exit(). A recording that can't continue (its limit, a full disk)
// stops; the program does not.
// Thread safety: that of the engine behind it.
#pragma once

#include <memory>

#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/engine/trace_writer.hpp"

namespace perdure::engine {

/// Returns `behind`, recorded until it is closed or destroyed.
[[nodiscard]] std::unique_ptr<DynamicEngine::Implementation> record_workload(
    std::unique_ptr<DynamicEngine::Implementation> behind, std::unique_ptr<TraceWriter> writer);

}  // namespace perdure::engine
