// SPDX-License-Identifier: BSD-3-Clause
//
// TreeReader: the types of numbers, times, texts and addresses.
#include <algorithm>

#include "perdure/inspect/layout_reader.hpp"

namespace perdure::inspect {

Layout* TreeReader::plain(std::string_view word) {
  if (word == "string") return &address(Kind::text);
  if (word == "string/1") return &address(Kind::string);
  if (word == "list_hook/1") {
    Layout& hook = address(Kind::hook);
    hook.size = 24;
    return &hook;
  }
  Layout& type = make(Kind::scalar);
  std::string_view base = word;
  if (base.starts_with("enum:")) base.remove_prefix(5), type.meaning = Meaning::enumerator;
  if (base == "bool" || base == "char" || base == "byte") {
    type.size = type.align = 1;
    if (base == "bool") type.meaning = Meaning::boolean;
    if (base == "char") type.meaning = Meaning::character, type.number = signed_;
    return &type;
  }
  if (base.size() < 2 || base.size() > 4) return nullptr;
  std::uint64_t bits = 0;
  for (const char c : base.substr(1)) {
    if (c < '0' || c > '9') return nullptr;
    bits = bits * 10 + static_cast<std::uint64_t>(c - '0');
  }
  const bool floating = base.front() == 'f';
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64 && bits != 128) return nullptr;
  if (floating && bits < 32) return nullptr;
  if (floating)
    type.number = value::Number::floating;
  else if (base.front() == 'i')
    type.number = signed_;
  else if (base.front() != 'u')
    return nullptr;
  type.size = type.align = bits / 8;
  return &type;
}

Layout& TreeReader::address(Kind kind) {
  Layout& type = make(kind);
  type.size = type.align = 8;
  type.leads = true;
  return type;
}

Layout* TreeReader::time(std::string_view word) {
  const auto n = take_number();
  const auto d = n && take('/') ? take_number() : std::nullopt;
  if (!d || *n == 0 || *d == 0 || !take(',')) return nullptr;
  const auto end = left_.find('>');
  if (end == std::string_view::npos) return nullptr;
  Layout* made = plain(left_.substr(0, end));
  left_.remove_prefix(end + 1);
  if (made == nullptr || made->kind != Kind::scalar) return nullptr;
  made->meaning = word == "time" ? Meaning::time : word == "local" ? Meaning::local : Meaning::span;
  made->numerator = *n, made->denominator = *d;
  return made;
}

Layout* TreeReader::pointer(unsigned depth) {
  Layout& made = address(Kind::pointer);
  if (take('#')) {
    const auto n = take_number();
    if (!n) return nullptr;
    made.parts.push_back({{}, &definition(*n), 0});
  } else if (left_.starts_with("void>")) {
    left_.remove_prefix(4);
  } else {
    made.parts.push_back({{}, &type(depth + 1), 0});
  }
  return take('>') ? &made : nullptr;
}

}  // namespace perdure::inspect
