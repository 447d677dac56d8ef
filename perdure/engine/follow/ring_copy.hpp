// SPDX-License-Identifier: BSD-3-Clause
//
// RingCopy: a ring of a pool that nobody writes, copied from its file into memory that is mapped
// twice in a row, as a medium maps rings. So the functions of recovery (log::scan_ring) read it.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>

#include "perdure/base/status.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::engine::follow {

class RingCopy {
 public:
  RingCopy() = default;
  RingCopy(RingCopy&& other) noexcept;
  RingCopy& operator=(RingCopy&&) = delete;
  ~RingCopy();
  /// Copies `bytes` bytes at `offset` of the file; holes of the file take no memory.
  static Result<RingCopy> make(int fd, const std::string& path, std::uint64_t offset,
                               std::uint64_t bytes);
  [[nodiscard]] const medium::RingMap& map() const noexcept { return map_; }

 private:
  medium::RingMap map_{};
};

}  // namespace perdure::engine::follow
