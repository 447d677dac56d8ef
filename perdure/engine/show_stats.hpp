// SPDX-License-Identifier: BSD-3-Clause
//
// How statistics get into a pool's live page (stat_page.hpp).
// Thread safety: any thread may make both calls; counters are stored relaxed, as the page says.
#pragma once

#include <cstdint>

#include "perdure/engine/stat_page.hpp"
#include "perdure/engine/stats.hpp"

namespace perdure::engine {

inline void set(StatCounter& counter, std::uint64_t n) noexcept {
  counter.store(n, std::memory_order_relaxed);
}
/// Stores all sections but that of replication, and the time.
void show_stats(StatWriter& writer, const Stats& stats) noexcept;

}  // namespace perdure::engine
