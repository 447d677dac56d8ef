// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernel says this process caused to be written to devices. Thread safety: any.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace bench {

/// Bytes since the process began (proc(5), /proc/self/io, write_bytes); 0 where the kernel does not
/// count. A file system in memory writes none.
inline double device_bytes() {
  std::ifstream io("/proc/self/io");
  std::string name;
  std::uint64_t value = 0;
  while (io >> name >> value)
    if (name == "write_bytes:") return static_cast<double>(value);
  return 0;
}

}  // namespace bench
