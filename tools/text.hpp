// SPDX-License-Identifier: BSD-3-Clause
//
// Formats bytes and numbers for the reader, and reads and writes descriptors completely.
// Thread safety: functions of their arguments alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace perdure::tool {

/// Bytes on one line: \\, \t, \n, \r for these characters, \xHH for other control characters.
[[nodiscard]] std::string escaped(std::string_view bytes);
/// "12.3 MiB", "812 bytes".
[[nodiscard]] std::string human_bytes(std::uint64_t n);
/// "1,234,567"
[[nodiscard]] std::string grouped(std::uint64_t n);
/// "3f0c2a9e-..." of a pool's uuid.
[[nodiscard]] std::string uuid_text(const std::uint8_t (&uuid)[16]);

/// Writes all bytes to a descriptor; throws perdure::error (EPIPE and the like).
void write_all(int fd, std::string_view bytes, std::string_view name);
/// Reads a descriptor to its end; throws perdure::error.
[[nodiscard]] std::string read_all(int fd, std::string_view name);

}  // namespace perdure::tool
