// SPDX-License-Identifier: BSD-3-Clause
//
// Recording a workload: an engine behind any.hpp's virtual calls is wrapped in one that notes what
// each committed transaction did, and writes it to a trace file (workload_trace.hpp). Only
// engine::Any asks for it, so that an engine that is compiled in costs nothing more, and neither
// does Any itself where nothing is recorded.
//
// Attempts that were rolled back leave a count only. Reads must be seen: while it records, no
// transaction is direct(). What a program has done is in the file after its first transaction, the
// second, the fourth, ... of a thread, at the latest 100 ms later if it does more; and all of it at
// close or exit(). A recording that can't go on (its bound, a full disk) stops; the program does
// not.
// Thread safety: as the engine's behind it.
#pragma once

#include <memory>

#include "perdure/engine/any.hpp"
#include "perdure/engine/trace_writer.hpp"

namespace perdure::engine {

/// `behind`, recorded until it is closed or destroyed.
[[nodiscard]] std::unique_ptr<Any::Behind> record_workload(std::unique_ptr<Any::Behind> behind,
                                                           std::unique_ptr<TraceWriter> writer);

}  // namespace perdure::engine
