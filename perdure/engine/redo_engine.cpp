// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/redo_engine.hpp"

#include "perdure/log/redo.hpp"

namespace perdure::engine {

Status recover_redo_log(pool::PoolFile& file, Recovery& report) {
  pool::Header& header = file.header();
  report.was_clean = header.clean != 0;
  report.last_id = header.applied;
  if (report.was_clean) return {};
  const auto start = std::chrono::steady_clock::now();
  auto done = log::recover_redo(file.medium(), header, report.plan);
  if (!done) return done.status();
  report.records = done->records;
  report.transactions = done->transactions;
  report.bytes = done->bytes;
  report.last_id = done->last_id;
  header.applied = done->last_id;  // published by start_session, together with the raised epoch
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {};
}

}  // namespace perdure::engine
