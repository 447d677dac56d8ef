// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/inspect/scalar.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "perdure/api/hash.hpp"
#include "perdure/inspect/json.hpp"
#include "perdure/inspect/json_reader.hpp"
#include "perdure/value/order.hpp"

namespace perdure::inspect {
namespace {

using Wide = __int128;
using UnsignedWide = unsigned __int128;

std::string digits(UnsignedWide value) {
  std::string out;
  do out.insert(out.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
  while ((value /= 10) != 0);
  return out;
}

UnsignedWide bits(const Layout& type, const unsigned char* bytes) {
  UnsignedWide value = 0;
  std::memcpy(&value, bytes, type.size);
  return value;
}
Wide signed_bits(const Layout& type, const unsigned char* bytes) {
  const unsigned unused = static_cast<unsigned>(128 - 8 * type.size);
  return static_cast<Wide>(bits(type, bytes) << unused) >> unused;
}
std::string integer(const Layout& type, const unsigned char* bytes) {
  if (type.number != value::Number::signed_integer) return digits(bits(type, bytes));
  const Wide value = signed_bits(type, bytes);
  return value < 0 ? "-" + digits(UnsignedWide{0} - static_cast<UnsignedWide>(value))
                   : digits(static_cast<UnsignedWide>(value));
}

template <class F>
ScalarText floating(const unsigned char* bytes) {
  F value;
  std::memcpy(&value, bytes, sizeof value);
  if (std::isnan(value)) {
    // There are many NaNs; the bits tell them apart.
    const F usual = std::numeric_limits<F>::quiet_NaN();
    constexpr std::size_t n = sizeof(F) == 16 ? 10 : sizeof(F);  // long double: 10 are used
    if (std::memcmp(&value, &usual, n) == 0) return {"NaN", true};
    std::string text = "NaN:";
    for (std::size_t i = n; i-- > 0;) text += hex_of({reinterpret_cast<const char*>(bytes) + i, 1});
    return {text, true};
  }
  if (std::isinf(value)) return {value < 0 ? "-Infinity" : "Infinity", true};
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {std::string(text, end.ptr), false};
}

/// The number of decimal digits below a second; -1 where the unit is no decimal part of one.
int decimals(const Layout& type) {
  int n = 0;
  std::uint64_t unit = 1;
  while (unit < type.denominator && n < 9) unit *= 10, ++n;
  if (unit != type.denominator || (n != 0 && type.numerator != 1)) return -1;
  return n;
}

constexpr std::int64_t first_second = -62'167'219'200;  // 0000-01-01
constexpr std::int64_t last_second = 253'402'300'799;   // 9999-12-31T23:59:59

std::optional<std::string> iso(const Layout& type, const unsigned char* bytes) {
  const int n = decimals(type);
  if (n < 0 || type.size > 8 || type.number == value::Number::floating) return std::nullopt;
  const Wide count = type.number == value::Number::signed_integer
                         ? signed_bits(type, bytes)
                         : static_cast<Wide>(bits(type, bytes));
  const Wide unit = static_cast<Wide>(type.denominator);
  Wide seconds = n == 0 ? count * static_cast<Wide>(type.numerator) : count / unit;
  Wide part = n == 0 ? 0 : count % unit;
  if (part < 0) part += unit, --seconds;
  if (seconds < first_second || seconds > last_second) return std::nullopt;
  const std::chrono::sys_seconds at{std::chrono::seconds(static_cast<std::int64_t>(seconds))};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(at - day);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  std::string out = text;
  if (n != 0) {
    const std::string below = digits(static_cast<UnsignedWide>(part));
    out += "." + std::string(static_cast<std::size_t>(n) - below.size(), '0') + below;
  }
  return type.meaning == Meaning::time ? out + "Z" : out;
}

std::optional<Wide> parse_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 39) return std::nullopt;
  UnsignedWide value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto more = static_cast<UnsignedWide>(c - '0');
    if (value > (~UnsignedWide{0} - more) / 10) return std::nullopt;
    value = value * 10 + more;
  }
  return static_cast<Wide>(negative ? UnsignedWide{0} - value : value);
}

/// The count of a time that iso() wrote.
std::optional<Wide> parse_iso(const Layout& type, std::string_view text) {
  const int n = decimals(type);
  if (n < 0) return std::nullopt;
  if (text.ends_with('Z')) text.remove_suffix(1);
  int year = 0, hour = 0, minute = 0, second = 0, used = 0;
  unsigned month = 0, day = 0;
  const std::string whole(text);
  if (std::sscanf(whole.c_str(), "%4d-%2u-%2uT%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute,
                  &second, &used) != 6)
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok() || hour > 23 || minute > 59 || second > 59 || hour < 0 || minute < 0 || second < 0)
    return std::nullopt;
  std::string_view below = std::string_view(whole).substr(static_cast<std::size_t>(used));
  std::string part;
  if (below.starts_with('.')) part = below.substr(1), below = {};
  if (!below.empty() || part.size() > static_cast<std::size_t>(n)) return std::nullopt;
  part.resize(static_cast<std::size_t>(n), '0');
  const Wide seconds = std::chrono::sys_days(date).time_since_epoch().count() * Wide{86400} +
                       hour * 3600 + minute * 60 + second;
  if (n == 0) {
    if (seconds % static_cast<Wide>(type.numerator) != 0) return std::nullopt;
    return seconds / static_cast<Wide>(type.numerator);
  }
  const auto rest = parse_integer(part);
  if (!rest) return std::nullopt;
  return seconds * static_cast<Wide>(type.denominator) + *rest;
}

template <class F>
bool parse_floating(std::string_view text, unsigned char* bytes) {
  F value = 0;
  if (text == "NaN") {
    value = std::numeric_limits<F>::quiet_NaN();
  } else if (text.starts_with("NaN:")) {
    constexpr std::size_t n = sizeof(F) == 16 ? 10 : sizeof(F);
    std::string bits;
    if (!bytes_of_hex(text.substr(4), bits) || bits.size() != n) return false;
    std::reverse(bits.begin(), bits.end());
    std::memcpy(&value, bits.data(), n);
    if (!std::isnan(value)) return false;
  } else if (text == "Infinity" || text == "-Infinity") {
    value = text.front() == '-' ? -std::numeric_limits<F>::infinity()
                                : std::numeric_limits<F>::infinity();
  } else {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size()) return false;
  }
  std::memcpy(bytes, &value, sizeof(F) == 16 ? 10 : sizeof value);
  return true;
}

}  // namespace

ScalarText scalar_text(const Layout& type, const unsigned char* bytes) {
  if (type.meaning == Meaning::boolean && bytes[0] <= 1)
    return {bytes[0] != 0 ? "true" : "false", false};
  if (type.number == value::Number::floating) {
    if (type.size == 4) return floating<float>(bytes);
    if (type.size == 8) return floating<double>(bytes);
    ScalarText text = floating<long double>(bytes);
    text.quoted = true;
    return text;
  }
  if (type.meaning == Meaning::time || type.meaning == Meaning::local) {
    if (auto text = iso(type, bytes)) return {std::move(*text), true};
  }
  return {integer(type, bytes), type.size > 8};
}

bool scalar_bytes(const Layout& type, std::string_view text, unsigned char* bytes) {
  if (type.meaning == Meaning::boolean && (text == "true" || text == "false")) {
    bytes[0] = text == "true" ? 1 : 0;
    return true;
  }
  if (type.number == value::Number::floating)
    return type.size == 4   ? parse_floating<float>(text, bytes)
           : type.size == 8 ? parse_floating<double>(text, bytes)
                            : parse_floating<long double>(text, bytes);
  std::optional<Wide> value = parse_integer(text);
  if (!value && (type.meaning == Meaning::time || type.meaning == Meaning::local))
    value = parse_iso(type, text);
  if (!value) return false;
  // Whether it fits: it must read back as the same.
  std::memcpy(bytes, &*value, type.size);
  if (type.size == 16) return true;
  return type.number == value::Number::signed_integer
             ? signed_bits(type, bytes) == *value
             : *value >= 0 && bits(type, bytes) == static_cast<UnsignedWide>(*value);
}

int compare_scalars(const Layout& type, const unsigned char* a, const unsigned char* b) {
  const auto three_way = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  const auto of_floats = [&]<class F>(F) {
    F x, y;
    std::memcpy(&x, a, sizeof x);
    std::memcpy(&y, b, sizeof y);
    return value::number_less(x, y) ? -1 : value::number_less(y, x) ? 1 : 0;
  };
  int found = 0;
  if (type.number != value::Number::floating)
    found = type.number == value::Number::signed_integer
                ? three_way(signed_bits(type, a), signed_bits(type, b))
                : three_way(bits(type, a), bits(type, b));
  else
    found = type.size == 4   ? of_floats(float{})
            : type.size == 8 ? of_floats(double{})
                             : of_floats(static_cast<long double>(0));
  return type.reversed ? -found : found;
}

std::optional<std::uint64_t> scalar_hash(const Layout& type, const unsigned char* bytes) {
  if (type.number == value::Number::floating || type.size > 8 ||
      (type.meaning != Meaning::number && type.meaning != Meaning::character))
    return std::nullopt;
  return hash<std::uint64_t>::of(type.number == value::Number::signed_integer
                                     ? static_cast<std::uint64_t>(signed_bits(type, bytes))
                                     : static_cast<std::uint64_t>(bits(type, bytes)));
}

}  // namespace perdure::inspect
