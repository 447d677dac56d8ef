// SPDX-License-Identifier: BSD-3-Clause
//
// How the example programs on LMDB and SQLite turn numbers and lists of texts into bytes: a number
// is 8 bytes, the highest first, so that keys have the order of their numbers.
// Thread safety: a Writer or Reader belongs to one thread.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bench::apps {

inline void append(std::string& out, std::uint64_t n) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(n >> shift));
}
inline std::string bytes_of(std::uint64_t n) {
  std::string out;
  append(out, n);
  return out;
}
/// A number with a sign, such as a time: its order is that of the bytes, too.
constexpr std::uint64_t unsigned_of(std::int64_t n) {
  return static_cast<std::uint64_t>(n) ^ (std::uint64_t{1} << 63);
}
constexpr std::int64_t signed_of(std::uint64_t n) {
  return static_cast<std::int64_t>(n ^ (std::uint64_t{1} << 63));
}

class Writer {
 public:
  Writer& number(std::uint64_t n) {
    append(out_, n);
    return *this;
  }
  Writer& text(std::string_view s) {
    append(out_, s.size());
    out_ += s;
    return *this;
  }
  Writer& texts(const std::vector<std::string>& list) {
    append(out_, list.size());
    for (const auto& s : list) text(s);
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

/// Reads what a Writer wrote, in the same order. Throws std::runtime_error where bytes are missing.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t number() {
    std::uint64_t n = 0;
    for (const char c : take(8)) n = n << 8 | static_cast<unsigned char>(c);
    return n;
  }
  std::string text() { return std::string(take(number())); }
  std::vector<std::string> texts() {
    std::vector<std::string> list;
    for (std::uint64_t left = number(); left > 0; --left) list.push_back(text());
    return list;
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view take(std::uint64_t n) {
    if (n > rest_.size())
      throw std::runtime_error("found " + std::to_string(rest_.size()) +
                               " bytes at the end of a row, expected " + std::to_string(n));
    const auto found = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return found;
  }
  std::string_view rest_;
};

inline std::uint64_t number_of(std::string_view bytes) { return Reader(bytes).number(); }

}  // namespace bench::apps
