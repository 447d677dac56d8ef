// SPDX-License-Identifier: BSD-3-Clause
//
// Which process a number means: numbers are used again, and with its start a process has one of its
// own until the machine is restarted.
#pragma once

#include <cstdint>

namespace perdure::base {

/// When the process began: field 22 of /proc/PID/stat, in clock ticks after the boot. 0 where there
/// is no such process, or no /proc. Thread safety: any thread.
[[nodiscard]] std::uint64_t process_start(std::int64_t pid) noexcept;

/// Whether the process `pid` that began at `start` still runs. Where /proc does not show it, the
/// number decides. Thread safety: any thread.
[[nodiscard]] bool process_runs(std::int64_t pid, std::uint64_t start) noexcept;

}  // namespace perdure::base
