// SPDX-License-Identifier: BSD-3-Clause
//
// LayoutLines: a root object's layout text, cut into its lines.
//
// Thread safety: pure functions over their arguments. Errors: std::bad_alloc. Lines that are not
// lines of a layout text are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace perdure::detail {

/// One line of a layout text: "limits.low: u32 @64 4".
struct LayoutLine {
  std::string path, type;
  std::uint64_t at = 0, bytes = 0;
};

/// The lines of a layout text: those of the root object, and apart from them those of the structs
/// that pointers lead to.
struct LayoutLines {
  std::vector<LayoutLine> root;
  std::map<std::string, std::vector<LayoutLine>, std::less<>> behind;  ///< keys: "#1", "#2"

  explicit LayoutLines(std::string_view text);
  /// The lines of a struct that pointers lead to; none if it has no fields.
  [[nodiscard]] const std::vector<LayoutLine>& lines_of(std::string_view number) const;
};

/// The fields of the struct at the beginning of a text, "{name:type@offset,...}size", and of
/// structs in it by path, as the lines of a layout text have them. Their sizes are left 0.
[[nodiscard]] std::vector<LayoutLine> fields_of_text(std::string_view text);

/// The position behind the digits that begin at `at`.
[[nodiscard]] std::size_t end_of_number(std::string_view text, std::size_t at) noexcept;

/// The text of a table: "table<{...},key id,index due>/1".
struct TableText {
  std::string row;                 ///< the row's layout text
  std::vector<std::string> parts;  ///< "key id", "unique name+mail", "index due:less<{...}8>"

  /// Reads a table's text at the beginning of a type, and removes it from there. Returns false, and
  /// does nothing, if the type does not begin with a table.
  bool take(std::string_view& type);
};

}  // namespace perdure::detail
