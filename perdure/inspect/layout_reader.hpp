// SPDX-License-Identifier: BSD-3-Clause
//
// Names, Geometry: parts of read_layout. Not for other files.
//
// Thread safety: none; they belong to one call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "perdure/inspect/layout.hpp"

namespace perdure::inspect {

/// The names of fields, taken one by one: "accounts,meta{next,link},#1{key}". A text that is cut or
/// that does not fit gives empty names.
class Names {
 public:
  explicit Names(std::string_view text) noexcept : left_(text) {}

  std::string next() {
    while (!left_.empty() && (left_.front() == ',' || left_.front() == '{')) {
      if (left_.front() == ',')
        left_.remove_prefix(1);
      else
        skip_braces();
    }
    const auto n = std::min(left_.find_first_of(",{}"), left_.size());
    std::string name(left_.substr(0, n));
    left_.remove_prefix(n);
    return name;
  }
  void open() {
    if (!left_.empty() && left_.front() == '{') left_.remove_prefix(1);
  }
  void close() {
    while (!left_.empty() && left_.front() != '}') {
      if (left_.front() == '{')
        skip_braces();
      else
        left_.remove_prefix(1);
    }
    if (!left_.empty()) left_.remove_prefix(1);
  }

 private:
  void skip_braces() {
    std::size_t depth = 0, n = 0;
    for (; n < left_.size(); ++n) {
      if (left_[n] == '{') ++depth;
      if (left_[n] == '}' && --depth == 0) break;
    }
    left_.remove_prefix(std::min(n + 1, left_.size()));
  }
  std::string_view left_;
};

/// Places one part after another, each at its alignment.
class Geometry {
 public:
  /// Returns where a part of `n` bytes lies.
  std::uint64_t add(std::uint64_t n, std::uint64_t align) {
    const std::uint64_t at = (size_ + align - 1) / align * align;
    size_ = at + n;
    align_ = std::max(align_, align);
    return at;
  }
  /// Returns where `count` fields of a type lie. A field of an empty struct is one byte.
  std::uint64_t add(const Layout& type, std::uint64_t count = 1) {
    if (!type.exact && size_ % 16 != 0) certain_ = false;  // its alignment could be another one
    if (type.size == 0 && type.kind == Kind::unknown) certain_ = false;
    return add(std::max<std::uint64_t>(type.size, 1) * count, type.align);
  }
  [[nodiscard]] std::uint64_t bytes() const { return (size_ + align_ - 1) / align_ * align_; }
  [[nodiscard]] std::uint64_t align() const { return align_; }
  [[nodiscard]] bool certain() const { return certain_; }

 private:
  std::uint64_t size_ = 0, align_ = 1;
  bool certain_ = true;
};

/// Computes where keys, values and elements lie in a container's nodes. Returns whether they are
/// certain.
[[nodiscard]] bool place_nodes(Layout& container);

}  // namespace perdure::inspect
