// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/type.hpp"

#include <algorithm>
#include <mutex>

#include "perdure/base/checksum.hpp"
#include "perdure/value/type_of.hpp"

namespace perdure::value {
namespace {

void append_bare(std::string& out, const Type& type, TextVersion version,
                 std::vector<const Type*>& outer);

/// Appends the text of a type. `outer` are the structures around it: one that contains itself is
/// named by how many structures lie between.
void append(std::string& out, const Type& type, TextVersion version,
            std::vector<const Type*>& outer) {
  if (type.reversed) {
    Type inner = type;
    inner.reversed = false;
    out += "desc<";
    append(out, inner, version, outer);
    out += '>';
    return;
  }
  if (version == TextVersion::marked && (type.own_order || type.own_hash) &&
      std::find(outer.begin(), outer.end(), &type) == outer.end()) {
    out += type.own_order ? type.own_hash ? "less<hash<" : "less<" : "hash<";
    append_bare(out, type, version, outer);
    out += type.own_order && type.own_hash ? ">>" : ">";
    return;
  }
  append_bare(out, type, version, outer);
}

void append_bare(std::string& out, const Type& type, TextVersion version,
                 std::vector<const Type*>& outer) {
  const auto in_brackets = [&](const char* word) {
    out += word;
    out += '<';
    for (std::size_t i = 0; i < type.parts.size(); ++i) {
      if (i != 0) out += ',';
      append(out, *type.parts[i].type, version, outer);
    }
    if (type.kind == Kind::array) out += "," + std::to_string(type.count);
    out += '>';
  };
  switch (type.kind) {
    case Kind::scalar:
      out += type.word;
      if (type.number == Number::opaque) {
        out += "!" + std::to_string(type.size);
        if (type.align != natural_align(type.size)) out += "/" + std::to_string(type.align);
      }
      return;
    case Kind::text: out += "string"; return;
    case Kind::sequence: return in_brackets("vec");
    case Kind::optional: return in_brackets("opt");
    case Kind::variant: return in_brackets("var");
    case Kind::array: return in_brackets("arr");
    case Kind::structure: break;
  }
  for (std::size_t up = outer.size(); up > 0; --up) {
    if (outer[up - 1] == &type) {
      out += "^" + std::to_string(outer.size() - up + 1);
      return;
    }
  }
  outer.push_back(&type);
  out += '{';
  for (const Part& part : type.parts) {
    if (out.back() != '{') out += ',';
    out.append(part.name) += ':';
    append(out, *part.type, version, outer);
    out += "@" + std::to_string(part.at);
  }
  out += "}" + std::to_string(type.size);
  outer.pop_back();
}

}  // namespace

std::string text_of(const Type& type, TextVersion version) {
  std::string out;
  std::vector<const Type*> outer;
  append(out, type, version, outer);
  return out;
}

std::uint64_t shape_of(std::string_view text) noexcept {
  return base::hash_bytes(text.data(), text.size(), 0);
}

namespace detail {

void while_making_types(void (*f)()) {
  static constinit std::mutex making;
  const std::lock_guard lock(making);
  f();
}

bool lies_as_image(const Type& type) {
  if (type.size != type.object_bytes) return false;
  for (const Part& part : type.parts) {
    if (!part.type->plain || part.at != part.in_object) return false;
  }
  return true;
}

}  // namespace detail
}  // namespace perdure::value
