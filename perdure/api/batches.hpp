// SPDX-License-Identifier: BSD-3-Clause
//
// Batches: the work that follows a change of layout, cut into transactions that the pool's log can
// hold.
//
// Rows and elements have no largest size, so a number of them may be too much for one transaction:
// it is rolled back then, and done again with half as many.
// Thread safety: the opening's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "perdure/base/status.hpp"

namespace perdure::detail {

/// How much of the work one transaction does.
class Batches {
 public:
  /// At most `limit` rows, elements or blocks in each; at least 1.
  explicit Batches(std::uint64_t limit) noexcept
      : limit_(std::max<std::uint64_t>(limit, 1)), now_(limit_) {}

  /// Runs f(tx, n), which does the next n parts of the work, by run(). f is called again, with a
  /// smaller n, where that is more than a transaction can log. Throws error(too_big) if one part
  /// is, and what f and run throw.
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
    // Large rows may be few: 8 transactions that fit make the next one larger.
    if (now_ == limit_ || ++fitted_ < 8) return;
    now_ = std::min(limit_, now_ * 2);
    fitted_ = 0;
  }

 private:
  [[noreturn]] static void refuse(const error& e) {
    // What e says names log_size, where that is what is too small.
    throw error(Status(Code::too_big, std::string(e.what()) +
                                          "; found in a transaction that migrate.batch, lowered to "
                                          "1, leaves a single row or element"));
  }

  std::uint64_t limit_, now_;
  unsigned fitted_ = 0;
};

}  // namespace perdure::detail
