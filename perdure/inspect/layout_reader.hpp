// SPDX-License-Identifier: BSD-3-Clause
//
// TreeReader, which reads a layout text, and its parts. Not for other files.
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

/// Throws error(corrupt): a layout text with `found` in it.
[[noreturn]] void wrong_layout(std::string_view found, std::string_view expected);
/// A number of a layout text. Throws error(corrupt).
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
  /// Gives a structure the fields of lines whose paths have the same first `depth` numbers. `base`
  /// is where it lies in what the offsets count from.
  void fill(Layout& structure, std::vector<LayoutLine> lines, std::size_t depth,
            std::uint64_t base);
  /// The type of a line, which says its size.
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
  /// The type at the beginning of the text; null where it is none that this build knows.
  Layout* known(unsigned depth);
  Layout* plain(std::string_view word);
  Layout& address(Kind kind);
  /// A structure; null where it is not one of the forms {name:type@n,...}size, {type@n,...}size.
  Layout* structure(unsigned depth);
  Layout* generic(std::string_view word, unsigned depth);
  /// Places what lies behind an optional's or variant's byte.
  Layout* tagged(Layout& type);
  Layout* time(std::string_view word);
  Layout* pointer(unsigned depth);
  Layout* container(std::string_view word, unsigned depth);
  /// A number as the containers' own parts have it.
  Layout& number_type(std::uint64_t bytes, value::Number number = value::Number::unsigned_integer);
  /// The order of a priority_queue; that of other classes, of structs and of floating point, where
  /// std::less does not order NaN, is not known.
  static void priority(Layout& queue, std::string_view order);
  /// multimap.hpp: the next number, and a map of (key, number).
  Layout* multimap(Layout& made);
  /// deque.hpp: begin, end, and a map from blocks' numbers to their addresses.
  Layout* deque(Layout& made);
  /// hooked_list<hook's offset/element's size>/1: its text does not say what its elements are.
  Layout* hooked_list();
  /// A map whose key may be null: one whose place is not certain.
  Layout* map_of(const Layout* key, const Layout& value, std::uint64_t entries,
                 Kind kind = Kind::map);
  /// The image of a tuple of these, `numbered`: and of a number. Null where its places are not
  /// certain: a struct that lies as its bytes may lie in another way in an image.
  Layout* tuple(const std::vector<const Layout*>& types, bool numbered = true);
  /// Whether a type lies in an image as it does as a key of its own: a struct's numbers lie at
  /// their alignment in both.
  static bool same_in_image(const Layout& type);
  /// Gives a container its size and the places in its nodes.
  Layout* settle(Layout& made);
  /// table<{...}n,key name,index name,...>/1: table_parts.hpp.
  Layout* table(unsigned depth);
  /// The types of "a+b": members of a row.
  static bool members_of(const Layout& row, std::string_view names,
                         std::vector<const Layout*>& types);
  /// Replaces members' types by those of a text with marks: that of one member; of several, the
  /// marks of all are given to each, so that none is taken for ordered or hashed by its parts.
  void mark(std::vector<const Layout*>& members, std::string_view text, unsigned depth);
  /// The map of a table's part: of the member, or of a tuple of several; an index's with the row's
  /// number behind them.
  Layout* part_map(std::string_view word, std::vector<const Layout*> members, const Layout& row);

  Tree tree_;
  Names names_;
  std::string_view left_;
  std::vector<Layout*> outer_;
};

}  // namespace perdure::inspect
