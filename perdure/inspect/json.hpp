// SPDX-License-Identifier: BSD-3-Clause
//
// JsonWriter: writes JSON piece by piece, so that a document of any size takes little memory.
//
// The outer levels of a document are indented, one member or element per line; what is deeper is on
// its parent's line.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace perdure::inspect {

/// Bytes as hexadecimal digits, two for each.
[[nodiscard]] std::string hex_of(std::string_view bytes);
/// Whether bytes are UTF-8, which is all that a JSON string can hold.
[[nodiscard]] bool is_utf8(std::string_view bytes) noexcept;

class JsonWriter {
 public:
  /// Receives the document in pieces of up to some 64 KiB. It may throw.
  using Sink = std::function<void(std::string_view)>;
  /// `indented`: the number of levels with a line for each member.
  explicit JsonWriter(Sink sink, std::size_t indented = 0)
      : sink_(std::move(sink)), indented_(indented) {}

  void begin_object() { begin('{'); }
  void begin_array() { begin('['); }
  void end();
  /// The name of an object's next member. It must be UTF-8.
  void key(std::string_view name);
  /// A number, true, false or null.
  void token(std::string_view text);
  /// Text that is UTF-8: a string. Other bytes: {"$hex": "..."}.
  void text(std::string_view bytes);

  /// How many objects and arrays are open.
  [[nodiscard]] std::size_t depth() const noexcept { return open_.size(); }
  /// Closes all but `depth` levels, after a member or element "$damaged" with a message.
  void damaged(std::size_t depth, std::string_view message);
  /// Ends a line, if the document has any text since the last one.
  void newline();
  /// Gives the sink what remains.
  void flush();

 private:
  void begin(char bracket);
  void before();
  void quoted(std::string_view text);
  void line();

  Sink sink_;
  std::size_t indented_;
  std::string buffer_;
  struct Level {
    char bracket;
    bool any = false;
  };
  std::vector<Level> open_;
  bool after_key_ = false;
};

}  // namespace perdure::inspect
