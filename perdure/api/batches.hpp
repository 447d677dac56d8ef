// SPDX-License-Identifier: BSD-3-Clause
//
// Batches: the work that follows a change of layout, cut into transactions that the pool's log can
// hold.
//
// Rows and elements have no largest size, so a batch may be too large for one transaction. Such a
// transaction is rolled back, and the batch is done again with half as many rows or elements.
// Thread safety: only the thread that opens the pool.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "perdure/base/status.hpp"

namespace perdure::detail {

/// How many rows, elements or blocks one transaction handles.
class Batches {
 public:
  /// At most `limit` rows, elements or blocks in each; at least 1.
  explicit Batches(std::uint64_t limit) noexcept
      : limit_(std::max<std::uint64_t>(limit, 1)), now_(limit_) {}

  /// Calls run() to run f(tx, n), which does the next n parts of the work, in a transaction. If n
  /// parts are more than a transaction can log, f is called again with a smaller n. Throws
  /// error(too_big) if a single part is too large, and what f and run throw.
  template <class Run, class F>
  void once(Run& run, F&& f) {
    for (;;) {
      try {
        run([&](auto& tx) { f(tx, now_); });
        break;
      } catch (const error& e) {
        if (e.code() != Code::too_big) throw;
        if (now_ == 1) refuse(e);
        now_ /= 2;
        fitted_ = 0;
      }
    }
    // Perhaps only a few rows are large, so after 8 transactions that fit, n is doubled.
    if (now_ == limit_ || ++fitted_ < 8) return;
    now_ = std::min(limit_, now_ * 2);
    fitted_ = 0;
  }

 private:
  [[noreturn]] static void refuse(const error& e) {
    // e's message names log_size if a larger log would help.
    throw error(
        Status(Code::too_big, std::string(e.what()) +
                                  "; migrate.batch was lowered to 1, so the transaction had "
                                  "a single row or element"));
  }

  std::uint64_t limit_, now_;
  unsigned fitted_ = 0;
};

}  // namespace perdure::detail
