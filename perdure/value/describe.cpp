// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/describe.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace perdure::value {
namespace {

std::string scalar(const Type& type, const void* object) {
  std::uint64_t bits = 0;
  if (type.size > sizeof bits) return "?";
  std::memcpy(&bits, object, type.size);
  switch (type.number) {
    case Number::unsigned_integer:
      return type.word == "bool" ? (bits != 0 ? "true" : "false") : std::to_string(bits);
    case Number::signed_integer: {
      const unsigned unused = 64 - type.size * 8;
      return std::to_string(static_cast<std::int64_t>(bits << unused) >> unused);
    }
    case Number::floating: {
      double number = 0;
      float narrow = 0;
      std::memcpy(&narrow, object, sizeof narrow);
      if (type.size == sizeof number)
        std::memcpy(&number, object, sizeof number);
      else
        number = static_cast<double>(narrow);
      char text[32];
      std::snprintf(text, sizeof text, "%.10g", number);
      return text;
    }
    case Number::opaque: break;
  }
  return "?";
}

void append(const Type& type, const void* object, std::size_t most, std::string& out) {
  if (out.size() > most) return;
  const auto* const at = static_cast<const std::byte*>(object);
  switch (type.kind) {
    case Kind::scalar: out += scalar(type, object); return;
    case Kind::text: {
      const auto& text = *static_cast<const std::string*>(object);
      out += '\'' + text.substr(0, most) + '\'';
      return;
    }
    case Kind::optional:
      if (type.operations->count(object) == 0)
        out += "nothing";
      else
        append(type.element(), type.operations->get(object), most, out);
      return;
    case Kind::structure:
      for (const Part& part : type.parts) {
        out += &part == type.parts.data() ? "{" : ", ";
        append(*part.type, at + part.in_object, most, out);
      }
      out += '}';
      return;
    default: out += '?'; return;
  }
}

}  // namespace

std::string describe(const Type& type, const void* object, std::size_t most) {
  std::string out;
  append(type, object, most, out);
  if (out.size() > most) out = out.substr(0, most - 3) + "...";
  return out;
}

}  // namespace perdure::value
