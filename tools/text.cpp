// SPDX-License-Identifier: BSD-3-Clause
#include "tools/text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "perdure/base/status.hpp"
#include "perdure/engine/stat_page.hpp"

namespace perdure::tool {

std::string escaped(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    switch (c) {
      case '\\': text += "\\\\"; break;
      case '\t': text += "\\t"; break;
      case '\n': text += "\\n"; break;
      case '\r': text += "\\r"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else
          text += c;
    }
  }
  return text;
}

std::string human_bytes(std::uint64_t n) {
  if (n < 1024) return fmt::format("{} bytes", n);
  double value = static_cast<double>(n);
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (value /= 1024; value >= 1024 && unit < 3; value /= 1024) ++unit;
  return fmt::format("{:.4g} {}", value, units[unit]);
}

std::string grouped(std::uint64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

// The text after "/perdure-".
std::string uuid_text(const std::uint8_t (&uuid)[16]) {
  return engine::stat_page_name(uuid).substr(9);
}

void write_all(int fd, std::string_view bytes, std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw error(system_failure(name, "write", errno));
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string read_all(int fd, std::string_view name) {
  std::string bytes;
  for (;;) {
    const std::size_t had = bytes.size();
    bytes.resize(had + 65536);
    const ssize_t n = ::read(fd, bytes.data() + had, 65536);
    bytes.resize(had + static_cast<std::size_t>(n > 0 ? n : 0));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw error(system_failure(name, "read", errno));
    if (n == 0) return bytes;
  }
}

}  // namespace perdure::tool
