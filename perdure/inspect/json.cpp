// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/inspect/json.hpp"

namespace perdure::inspect {
namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";

}  // namespace

std::string hex_of(std::string_view bytes) {
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const char c : bytes) {
    hex += hex_digits[static_cast<unsigned char>(c) >> 4];
    hex += hex_digits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

bool is_utf8(std::string_view bytes) noexcept {
  for (std::size_t i = 0; i < bytes.size();) {
    const auto lead = static_cast<unsigned char>(bytes[i]);
    std::size_t more = 0;
    char32_t least = 0, code = 0;
    if (lead < 0x80) {
      ++i;
      continue;
    }
    if ((lead & 0xe0) == 0xc0)
      more = 1, least = 0x80, code = lead & 0x1f;
    else if ((lead & 0xf0) == 0xe0)
      more = 2, least = 0x800, code = lead & 0x0f;
    else if ((lead & 0xf8) == 0xf0)
      more = 3, least = 0x10000, code = lead & 0x07;
    else
      return false;
    if (bytes.size() - i <= more) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(bytes[i + k]);
      if ((next & 0xc0) != 0x80) return false;
      code = code << 6 | (next & 0x3fU);
    }
    if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    i += more + 1;
  }
  return true;
}

void JsonWriter::line() {
  buffer_ += '\n';
  buffer_.append(2 * open_.size(), ' ');
}

void JsonWriter::before() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (open_.empty()) return;
  if (open_.back().any) buffer_ += ',';
  if (open_.size() <= indented_)
    line();
  else if (open_.back().any)
    buffer_ += ' ';
  open_.back().any = true;
}

void JsonWriter::begin(char bracket) {
  before();
  buffer_ += bracket;
  open_.push_back({bracket});
}

void JsonWriter::end() {
  const Level level = open_.back();
  const bool lines = level.any && open_.size() <= indented_;
  open_.pop_back();
  if (lines) line();
  buffer_ += level.bracket == '{' ? '}' : ']';
  if (buffer_.size() > 60'000) flush();
}

void JsonWriter::key(std::string_view name) {
  before();
  quoted(name);
  buffer_ += ": ";
  after_key_ = true;
}

void JsonWriter::token(std::string_view text) {
  before();
  buffer_ += text;
  if (buffer_.size() > 60'000) flush();
}

void JsonWriter::text(std::string_view bytes) {
  if (is_utf8(bytes)) {
    before();
    quoted(bytes);
    if (buffer_.size() > 60'000) flush();
    return;
  }
  begin_object();
  key("$hex");
  before();
  quoted(hex_of(bytes));
  end();
}

void JsonWriter::quoted(std::string_view text) {
  buffer_ += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      buffer_ += '\\';
      buffer_ += c;
    } else if (c == '\n') {
      buffer_ += "\\n";
    } else if (c == '\t') {
      buffer_ += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      buffer_ += "\\u00" + hex_of({&c, 1});
    } else {
      buffer_ += c;
    }
  }
  buffer_ += '"';
}

void JsonWriter::damaged(std::size_t depth, std::string_view message) {
  const std::string said = is_utf8(message) ? std::string(message) : "damaged";
  if (!after_key_ && !open_.empty() && open_.back().bracket == '{') {
    key("$damaged");
    text(said);
  } else {
    begin_object();
    key("$damaged");
    text(said);
    end();
  }
  while (open_.size() > depth) end();
}

void JsonWriter::newline() { buffer_ += '\n'; }

void JsonWriter::flush() {
  if (!buffer_.empty()) sink_(buffer_);
  buffer_.clear();
}

}  // namespace perdure::inspect
