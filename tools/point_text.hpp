// SPDX-License-Identifier: BSD-3-Clause
//
// Points in a pool's history as users write and read them.
// Thread safety: functions of their arguments; the local time zone belongs to the process.
#pragma once

#include <cstdint>
#include <string>

#include "perdure/backup/restore.hpp"

namespace perdure::tool {

/// "latest", an id ("1234"), a time ("2026-03-01T12:30:00Z", "2026-03-01 12:30:00" in local time,
/// "@SECONDS" or "@SECONDS.FRACTION" since 1970). Throws UsageError.
[[nodiscard]] RestorePoint parse_point(const std::string& text);
/// "2026-03-01 12:30:00.123" in local time; "unknown" for 0.
[[nodiscard]] std::string time_text(std::uint64_t unix_ns);

/// How the commands show how far they are: on a terminal, a line of bytes that is redrawn.
[[nodiscard]] RestoreProgress show_bytes(const std::string& what);

}  // namespace perdure::tool
