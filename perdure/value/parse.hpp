// SPDX-License-Identifier: BSD-3-Clause
//
// parse(): reads a value's layout text back into a Type.
//
// The texts in a pool say how its values lie, even if the program does not know their types. A Type
// that is made here has no Operations: it can be used to walk, free and convert images, but not to
// make C++ objects.
// The text may come from a damaged or hostile pool: everything that a walk relies on is checked
// (sizes, offsets, alignments, nesting, structs that contain themselves).
// Thread safety: parse() is a pure function; a ParsedType does not change after it was made.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "perdure/base/status.hpp"
#include "perdure/value/type.hpp"

namespace perdure::value {

/// A Type that was read from a layout text, with all types in it. Moving one keeps the addresses of
/// its Types.
class ParsedType {
 public:
  /// The outermost type. Valid as long as this object, or the one to which it was moved.
  [[nodiscard]] const Type& type() const noexcept { return *owned_->root; }

 private:
  friend class Parser;
  struct Owned {
    std::string text;        ///< the types' names and words are parts of it
    std::deque<Type> types;  ///< their addresses stay
    const Type* root = nullptr;
  };
  explicit ParsedType(std::unique_ptr<Owned> owned) noexcept : owned_(std::move(owned)) {}

  std::unique_ptr<Owned> owned_;
};

/// The longest text that is read, in bytes.
inline constexpr std::size_t longest_text = std::size_t{1} << 20;
/// The largest number of types that enclose each other in a text.
inline constexpr unsigned deepest_text = 100;
/// The largest size of an image, in bytes.
inline constexpr std::size_t largest_image = std::size_t{1} << 30;

/// Reads a text that text_of() wrote; text_of() of the result is the same text. Returns
/// Code::corrupt with the position of the error, or Code::too_big for a text beyond the limits
/// above. Throws std::bad_alloc.
[[nodiscard]] Result<ParsedType> parse(std::string_view text);

/// Reads one type at the beginning of a text, such as that of a container, and removes it from
/// there. Otherwise as parse().
[[nodiscard]] Result<ParsedType> parse_front(std::string_view& text);

}  // namespace perdure::value
