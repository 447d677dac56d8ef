// SPDX-License-Identifier: BSD-3-Clause
//
// JsonReader: reads JSON token by token, so that the memory it takes does not depend on the
// document's size.
//
// Numbers stay text, so that no digit is lost: the caller converts them to the type that it needs.
// Documents may follow each other, as in JSON lines.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace perdure::inspect {

/// Converts hexadecimal digits to bytes. Returns false if `hex` is not such digits; `out` is then
/// undefined.
[[nodiscard]] bool bytes_of_hex(std::string_view hex, std::string& out);

class JsonReader {
 public:
  /// Writes up to n bytes of the document to `to` and returns how many; 0 at its end. It may throw.
  using Source = std::function<std::size_t(char* to, std::size_t n)>;
  enum class Token : std::uint8_t {
    begin_object,
    end_object,
    begin_array,
    end_array,
    key,  ///< the name of an object's next member
    string,
    number,   ///< text() has it as it stands in the document
    literal,  ///< true, false or null
    end,      ///< the end of all documents
  };

  /// `name`: the name of the document, for messages.
  JsonReader(Source source, std::string name)
      : source_(std::move(source)), name_(std::move(name)) {}

  /// Reads the next token. Throws error(invalid) if the text is not JSON, and what the source
  /// throws.
  Token next();
  /// The token that next() will return.
  [[nodiscard]] Token peek();
  /// The text of the last token: a key's or string's bytes, a number, a literal.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

  /// Returns whether the next token is this one, and reads it if so.
  [[nodiscard]] bool take(Token token);
  /// Returns whether the next token is null, and reads it if so.
  [[nodiscard]] bool take_null();
  /// Skips the next value.
  void skip();

  /// Throws error(invalid) with the line, and with what was found there and what was expected.
  [[noreturn]] void wrong(const std::string& found, std::string_view expected) const;
  /// Describes the last token, for a message.
  [[nodiscard]] std::string shown() const;
  /// How many bytes were read.
  [[nodiscard]] std::uint64_t position() const noexcept { return before_ + at_; }

 private:
  static constexpr std::size_t deepest = 1000;
  [[nodiscard]] int byte();  ///< the next byte, without reading it; -1 at the end
  int after_space();
  Token read();
  Token value(int first);
  void string();
  void escape();
  [[nodiscard]] unsigned four_digits();
  void number();
  void literal();
  Token close();

  Source source_;
  std::string name_, buffer_, text_;
  std::size_t at_ = 0;
  std::uint64_t before_ = 0, line_ = 1;
  struct Level {
    char bracket;
    bool any = false, after_key = false;
  };
  std::vector<Level> open_;
  Token last_ = Token::end;
  bool peeked_ = false;
};

}  // namespace perdure::inspect
