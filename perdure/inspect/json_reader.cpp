// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/inspect/json_reader.hpp"

#include <utility>

#include "perdure/base/status.hpp"

namespace perdure::inspect {
namespace {

int digit_of(int c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void append_utf8(std::string& to, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { to += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
    }
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

}  // namespace

bool bytes_of_hex(std::string_view hex, std::string& out) {
  out.clear();
  if (hex.size() % 2 != 0) return false;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = digit_of(hex[i]), low = digit_of(hex[i + 1]);
    if (high < 0 || low < 0) return false;
    out += static_cast<char>(high << 4 | low);
  }
  return true;
}

void JsonReader::wrong(const std::string& found, std::string_view expected) const {
  throw error(failure(Code::invalid, name_, "line " + std::to_string(line_) + ": " + found,
                      std::string(expected), "nothing was loaded"));
}

std::string JsonReader::shown() const {
  switch (last_) {
    case Token::begin_object: return "an object";
    case Token::end_object: return "the end of an object";
    case Token::begin_array: return "an array";
    case Token::end_array: return "the end of an array";
    case Token::end: return "the end of the file";
    default: break;
  }
  std::string out = text_.substr(0, 60);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  return (last_ == Token::key ? "the member '" : "'") + out + (text_.size() > 60 ? "...'" : "'");
}

int JsonReader::byte() {
  if (at_ == buffer_.size()) {
    before_ += at_;
    at_ = 0;
    buffer_.resize(std::size_t{1} << 16);
    buffer_.resize(source_(buffer_.data(), buffer_.size()));
    if (buffer_.empty()) return -1;
  }
  return static_cast<unsigned char>(buffer_[at_]);
}

int JsonReader::after_space() {
  for (int c = byte();; c = byte()) {
    if (c == '\n') ++line_;
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return c;
    ++at_;
  }
}

JsonReader::Token JsonReader::next() {
  if (!std::exchange(peeked_, false)) last_ = read();
  return last_;
}

JsonReader::Token JsonReader::peek() {
  if (!std::exchange(peeked_, true)) last_ = read();
  return last_;
}

bool JsonReader::take(Token token) {
  if (peek() != token) return false;
  (void)next();
  return true;
}

bool JsonReader::take_null() {
  return peek() == Token::literal && text_ == "null" && take(Token::literal);
}

void JsonReader::skip() {
  std::size_t depth = 0;
  do {
    switch (next()) {
      case Token::begin_object:
      case Token::begin_array: ++depth; break;
      case Token::end_object:
      case Token::end_array: --depth; break;
      case Token::end: wrong("the end of the file", "a value");
      default: break;
    }
  } while (depth != 0);
}

JsonReader::Token JsonReader::read() {
  int c = after_space();
  if (open_.empty()) return c < 0 ? Token::end : value(c);
  Level& level = open_.back();
  if (level.after_key) {
    if (c != ':') wrong("no ':' behind a member's name", "':'");
    ++at_;
    level.after_key = false;
    return value(after_space());
  }
  if (c == (level.bracket == '{' ? '}' : ']')) return close();
  if (std::exchange(level.any, true)) {
    if (c != ',')
      wrong(c < 0 ? "the end of the file" : "no ','", "',' or the end of the array or object");
    ++at_;
    c = after_space();
  }
  if (level.bracket == '[') return value(c);
  if (c != '"') wrong(c < 0 ? "the end of the file" : "no string", "the name of a member");
  string();
  level.after_key = true;
  return Token::key;
}

JsonReader::Token JsonReader::close() {
  const char bracket = open_.back().bracket;
  ++at_;
  open_.pop_back();
  return bracket == '{' ? Token::end_object : Token::end_array;
}

JsonReader::Token JsonReader::value(int first) {
  switch (first) {
    case '{':
    case '[':
      if (open_.size() == deepest) wrong("arrays and objects nested deeper than 1000", "fewer");
      ++at_;
      open_.push_back({static_cast<char>(first)});
      return first == '{' ? Token::begin_object : Token::begin_array;
    case '"': string(); return Token::string;
    case 't':
    case 'f':
    case 'n': literal(); return Token::literal;
    case -1: wrong("the end of the file", "a value");
    default: number(); return Token::number;
  }
}

void JsonReader::string() {
  text_.clear();
  ++at_;
  for (int c = byte(); c != '"'; c = byte()) {
    if (c < 0x20) wrong(c < 0 ? "the end of the file" : "a control character", "'\"'");
    ++at_;
    if (c == '\\')
      escape();
    else
      text_ += static_cast<char>(c);
  }
  ++at_;
}

unsigned JsonReader::four_digits() {
  unsigned code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const int digit = digit_of(byte());
    if (digit < 0) wrong("\\u in a string", "four hexadecimal digits behind it");
    code = code << 4 | static_cast<unsigned>(digit);
  }
  return code;
}

void JsonReader::escape() {
  const int c = byte();
  ++at_;
  switch (c) {
    case '"':
    case '\\':
    case '/': text_ += static_cast<char>(c); return;
    case 'b': text_ += '\b'; return;
    case 'f': text_ += '\f'; return;
    case 'n': text_ += '\n'; return;
    case 'r': text_ += '\r'; return;
    case 't': text_ += '\t'; return;
    case 'u': break;
    default: wrong("'\\' in a string", "one of \" \\ / b f n r t u behind it");
  }
  std::uint32_t code = four_digits();
  if (code >= 0xd800 && code < 0xdc00) {  // the first half of a pair
    const bool pair = byte() == '\\' && (++at_, byte() == 'u');
    if (pair) ++at_;
    const unsigned low = pair ? four_digits() : 0;
    if (low < 0xdc00 || low > 0xdfff) wrong("half of a pair of \\u", "its other half");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xdc00 && code < 0xe000) {
    wrong("half of a pair of \\u", "its other half before it");
  }
  append_utf8(text_, code);
}

void JsonReader::number() {
  text_.clear();
  for (int c = byte();
       (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
       ++at_, c = byte())
    text_ += static_cast<char>(c);
  if (text_.empty() || text_ == "-") wrong("a character that begins no value", "a value");
}

void JsonReader::literal() {
  text_.clear();
  for (int c = byte(); c >= 'a' && c <= 'z' && text_.size() < 6; ++at_, c = byte())
    text_ += static_cast<char>(c);
  if (text_ != "true" && text_ != "false" && text_ != "null")
    wrong("'" + text_ + "'", "true, false or null");
}

}  // namespace perdure::inspect
