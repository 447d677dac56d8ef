// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/redo_engine.hpp"

#include "perdure/log/redo.hpp"

namespace perdure::engine {

Status recover_redo_log(pool::OpenPool& file, Recovery& report) {
  auto done = log::recover_redo(file.medium(), file.header(), report.plan);
  if (!done) return done.status();
  report.records = done->records;
  report.transactions = done->transactions;
  report.bytes = done->bytes;
  report.last_id = done->last_id;
  return {};
}

}  // namespace perdure::engine
