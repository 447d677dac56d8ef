// SPDX-License-Identifier: BSD-3-Clause
#include "tools/point_text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <ctime>
#include <memory>

#include "tools/command.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

constexpr std::uint64_t second = 1'000'000'000;

bool all_digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}
bool number(const std::string& text, std::uint64_t& n) {
  const char* const end = text.data() + text.size();
  const auto r = std::from_chars(text.data(), end, n);
  return all_digits(text) && r.ec == std::errc() && r.ptr == end;
}

}  // namespace

RestorePoint parse_point(const std::string& text) {
  RestorePoint point;
  std::uint64_t n = 0;
  if (text == "latest") return point;
  if (number(text, n)) {
    point.id = n;
    return point;
  }
  // A time names the whole second.
  if (text.size() > 1 && text[0] == '@') {
    const std::size_t dot = text.find('.');
    std::string fraction = dot == std::string::npos ? "" : text.substr(dot + 1);
    std::uint64_t ns = second - 1;
    const bool whole = dot == std::string::npos, given = whole || !fraction.empty();
    fraction.resize(9, '0');
    if (given && number(text.substr(1, dot - 1), n) && n < ~std::uint64_t{0} / second - 1 &&
        (whole || number(fraction, ns))) {
      point.unix_ns = n * second + ns;
      return point;
    }
  }
  for (const char* const format : {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S",
                                   "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"}) {
    std::tm when{};
    const char* const end = ::strptime(text.c_str(), format, &when);
    if (end == nullptr || *end != 0) continue;
    when.tm_isdst = -1;
    const bool utc = format[std::char_traits<char>::length(format) - 1] == 'Z';
    const std::time_t seconds = utc ? ::timegm(&when) : std::mktime(&when);
    if (seconds < 0) break;
    point.unix_ns = (static_cast<std::uint64_t>(seconds) + 1) * second - 1;
    return point;
  }
  throw UsageError(
      fmt::format("found the point '{}', expected latest, a transaction's id, a time such as "
                  "2026-03-01T12:30:00Z "
                  "or '2026-03-01 12:30' (local), or @SECONDS or @SECONDS.FRACTION since 1970",
                  text));
}

std::string time_text(std::uint64_t unix_ns) {
  if (unix_ns == 0) return "unknown";
  const auto seconds = static_cast<std::time_t>(unix_ns / second);
  std::tm when{};
  char text[32];
  if (::localtime_r(&seconds, &when) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &when) == 0)
    return "unknown";
  return fmt::format("{}.{:03}", text, unix_ns / 1'000'000 % 1000);
}

RestoreProgress show_bytes(const std::string& what) {
  if (::isatty(STDERR_FILENO) == 0) return {};
  using Clock = std::chrono::steady_clock;
  const auto last = std::make_shared<Clock::time_point>(Clock::now());
  return [what, last](std::uint64_t done, std::uint64_t bytes) {
    const bool over = done >= bytes;
    if (!over && Clock::now() - *last < std::chrono::milliseconds(200)) return;
    *last = Clock::now();
    fmt::print(stderr, "\r{}: {} of {}{}", what, human_bytes(done), human_bytes(bytes),
               over ? "\r\x1b[K" : "\x1b[K");
  };
}

}  // namespace perdure::tool
