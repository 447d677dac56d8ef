// SPDX-License-Identifier: BSD-3-Clause
//
// The bytes that this process caused to be written to devices, as the kernel counts them. Thread
// safety: any thread.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace bench {

/// Bytes since the process began (proc(5), /proc/self/io, write_bytes); 0 if the kernel does not
/// count them. A file system in memory writes none.
inline double device_bytes() {
  std::ifstream io("/proc/self/io");
  std::string name;
  std::uint64_t value = 0;
  while (io >> name >> value)
    if (name == "write_bytes:") return static_cast<double>(value);
  return 0;
}

}  // namespace bench
