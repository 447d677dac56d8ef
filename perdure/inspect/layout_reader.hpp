// SPDX-License-Identifier: BSD-3-Clause
//
// TreeReader, which reads a layout text, and its parts. Only for the files layout_*.cpp.
//
// Thread safety: none; they belong to one call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// Throws error(corrupt) for a layout text with `found` in it.
[[noreturn]] void wrong_layout(std::string_view found, std::string_view expected);
/// Reads a number of a layout text. Throws error(corrupt) if it is none.
[[nodiscard]] std::uint64_t layout_number(std::string_view text);

/// One line of a layout text.
struct LayoutLine {
  std::uint64_t definition = 0;        ///< 0: of the root
  std::vector<std::string_view> path;  ///< names, or numbers in a text without names
  std::string_view type;
  std::uint64_t at = 0, size = 0;
};

/// Reads a layout text once.
class TreeReader {
 public:
  TreeReader(std::string_view names) : names_(names) {}
  Tree read(std::string_view text);

 private:
  static constexpr unsigned deepest = 64;
  static constexpr value::Number signed_ = value::Number::signed_integer;

  Layout& make(Kind kind) {
    Layout& made = tree_.nodes_.emplace_back();
    made.kind = kind;
    return made;
  }
  Layout& definition(std::uint64_t which);
  /// Adds to a structure the fields of `lines`, whose paths have the same first `depth` parts.
  /// `base` is the structure's offset in the object from whose beginning the lines' offsets count.
  void fill(Layout& structure, std::vector<LayoutLine> lines, std::size_t depth,
            std::uint64_t base);
  /// The type of a line, with the size that the line states.
  Layout& field(const LayoutLine& line);
  Layout& whole(std::string_view text);
  Layout& unknown(std::string_view text);
  bool take(char c) {
    if (left_.empty() || left_.front() != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  std::optional<std::uint64_t> take_number() {
    const auto n = std::min(left_.find_first_not_of("0123456789"), left_.size());
    if (n == 0 || n > 14) return std::nullopt;
    const std::uint64_t value = layout_number(left_.substr(0, n));
    left_.remove_prefix(n);
    return value;
  }
  /// Skips to the end of a type that is not known.
  void skip();
  Layout& type(unsigned depth);
  Layout& array(const Layout& element, std::uint64_t n);
  /// The type at the beginning of the text; null if this build does not know it.
  Layout* known(unsigned depth);
  Layout* plain(std::string_view word);
  Layout& address(Kind kind);
  /// A structure; null if it has neither the form {name:type@n,...}size nor {type@n,...}size.
  Layout* structure(unsigned depth);
  Layout* generic(std::string_view word, unsigned depth);
  /// Sets the offsets of the parts behind an optional's or variant's byte.
  Layout* tagged(Layout& type);
  Layout* time(std::string_view word);
  Layout* pointer(unsigned depth);
  Layout* container(std::string_view word, unsigned depth);
  /// The type of a number that is a container's own part.
  Layout& number_type(std::uint64_t bytes, value::Number number = value::Number::unsigned_integer);
  /// Sets the order of a priority_queue, if it is known: not for other classes of order, for
  /// structs, or for floating point, since std::less does not order NaN.
  static void priority(Layout& queue, std::string_view order);
  /// multimap.hpp: the next number, and a map of (key, number).
  Layout* multimap(Layout& made);
  /// deque.hpp: begin, end, and a map from blocks' numbers to their addresses.
  Layout* deque(Layout& made);
  /// hooked_list<hook's offset/element's size>/2: its text does not say what its elements are.
  Layout* hooked_list();
  /// A map. `key` may be null, if its offset is not certain.
  Layout* map_of(const Layout* key, const Layout& value, std::uint64_t entries,
                 Kind kind = Kind::map);
  /// The image of a tuple of these types; `numbered`: with a number behind them. Null if the
  /// offsets are not certain: a struct that is stored as its bytes may have another layout in an
  /// image.
  Layout* tuple(const std::vector<const Layout*>& types, bool numbered = true);
  /// Whether a type has the same layout in an image as on its own as a key: a struct's numbers lie
  /// at their alignment in both.
  static bool same_in_image(const Layout& type);
  /// Sets a container's size and the offsets in its nodes.
  Layout* settle(Layout& made);
  /// table<{...}n,key name,index name,...>/1: table_parts.hpp.
  Layout* table(unsigned depth);
  /// The types of "a+b": members of a row.
  static bool members_of(const Layout& row, std::string_view names,
                         std::vector<const Layout*>& types);
  /// Replaces the types of members by those of a text with marks. If there are several members,
  /// each gets the marks of all, so that none is taken to be ordered or hashed by its parts.
  void mark(std::vector<const Layout*>& members, std::string_view text, unsigned depth);
  /// The map of a table's part. Its key is the member, or a tuple of several; in an index the row's
  /// number follows.
  Layout* part_map(std::string_view word, std::vector<const Layout*> members, const Layout& row);

  Tree tree_;
  Names names_;
  std::string_view left_;
  std::vector<Layout*> outer_;
};

}  // namespace perdure::inspect
