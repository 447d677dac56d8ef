// SPDX-License-Identifier: BSD-3-Clause
//
// What can be chosen for the default engine when a pool is opened (Options::engine_options).
#pragma once

#include <cstdint>
#include <string>

#include "perdure/base/status.hpp"

namespace perdure {

/// Options of the default engine and its variants: `options.engine_options = ShadowOptions{...}`.
/// Thread safety: a value.
struct ShadowOptions {
  /// Which thread makes a pool's checkpoints on memory. (On files it is the pool's own.)
  enum class Helper : std::uint8_t {
    /// The pool's own thread where a processor is idle, which is measured while the pool runs, and
    /// the log has 1 MiB or more for each writer; otherwise the threads that commit.
    automatic,
    off,  ///< the threads that commit; no thread is started for checkpoints
    on    ///< the pool's own thread, if one can be started
  };
  /// Whatever it says, the threads that commit do what has not been done when a log is three
  /// quarters full. The pool's own thread may use the processors of the thread whose commit starts
  /// it. With Options::max_resident, and without isolation by the pool, they do it all.
  Helper helper = Helper::automatic;
  /// Bytes of DRAM, 64 KiB or more, that the old contents of lines may take while snapshots are
  /// open (Pool::snapshot); they are touched as they are needed. Where they do not suffice, the
  /// oldest snapshot expires. Each thread that has saved lines keeps 16 KiB of it. An index takes
  /// 4 bytes per line besides, in pages of 4 KiB, one per 64 KiB of the data that is stored to.
  std::uint64_t snapshot_memory = std::uint64_t{1} << 30;

  /// Returns ok, or `invalid` for a value that is none of Helper, or too little memory.
  [[nodiscard]] Status check(const std::string& path) const {
    if (snapshot_memory < 64 << 10)
      return failure(Code::invalid, path,
                     "ShadowOptions::snapshot_memory " + std::to_string(snapshot_memory),
                     "65536 or more", "leave it as it is");
    if (helper <= Helper::on) return {};
    return failure(Code::invalid, path,
                   "ShadowOptions::helper " + std::to_string(static_cast<unsigned>(helper)),
                   "automatic, off or on", "leave it as it is");
  }
};

}  // namespace perdure
