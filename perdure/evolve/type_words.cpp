// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/evolve/type_words.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "perdure/value/parse.hpp"

namespace perdure::detail {
namespace {

constexpr std::string_view retired_word = "retired<", rebuilt_word = "rebuilt<",
                           table_word = "table<", record_word = "rec<";

/// The size of a number of this type; 0 if the type is no number.
std::uint64_t number_bytes(std::string_view type) {
  for (const std::string_view one : {"u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"})
    if (type == one) return std::strtoull(std::string(one.substr(1)).c_str(), nullptr, 10) / 8;
  return type == "f32" ? 4 : type == "f64" ? 8 : 0;
}

/// The struct at the beginning of `text`; empty if it begins with none.
std::string_view struct_at(std::string_view text) {
  std::string_view rest = text;
  if (!value::parse_front(rest)) return {};
  return text.substr(0, text.size() - rest.size());
}

/// By how much a character changes the depth of nesting in a type's text.
int deeper(char c) { return c == '{' || c == '<' ? 1 : c == '}' || c == '>' ? -1 : 0; }

}  // namespace

bool widens(const LayoutLine& from, const LayoutLine& to) {
  const std::uint64_t a = number_bytes(from.type), b = number_bytes(to.type);
  if (a == 0 || b <= a || from.bytes != a || to.bytes != b) return false;
  return from.type[0] == to.type[0] || (from.type[0] == 'u' && to.type[0] == 'i');
}

std::string without_numbers(std::string_view type) {
  std::string out;
  for (std::size_t i = 0; i < type.size(); ++i) {
    out += type[i];
    if (type[i] == '#') i = end_of_number(type, i + 1) - 1;
  }
  return out;
}

bool is_known_type(std::string_view part) {
  constexpr std::string_view numbers[] = {"u8",  "u16",  "u32",  "u64",  "u128", "i8",
                                          "i16", "i32",  "i64",  "i128", "f32",  "f64",
                                          "f80", "f128", "bool", "char", "byte"};
  if (part.starts_with("enum:")) part.remove_prefix(5);
  if (std::find(std::begin(numbers), std::end(numbers), part) != std::end(numbers)) return true;
  constexpr std::string_view words[] = {
      "ptr",      "string",  "list_hook",   "vector",  "list",   "queue",          "map",
      "set",      "rb_tree", "multimap",    "deque",   "box",    "priority_queue", "hash_map",
      "hash_set", "table",   "hooked_list", "retired", "rebuilt"};
  const std::string_view word = part.substr(0, part.find_first_of("</"));
  return word.size() != part.size() &&
         std::find(std::begin(words), std::end(words), word) != std::end(words);
}

bool names_opaque(std::string_view type) {
  const auto in_word = [](char c) {
    return c == '_' || std::isalnum(static_cast<unsigned char>(c));
  };
  for (std::size_t at = type.find('/'); at != std::string_view::npos; at = type.find('/', at + 1)) {
    std::size_t begin = at;
    while (begin != 0 && in_word(type[begin - 1])) --begin;
    const std::string_view word = type.substr(begin, at - begin);
    if (word.empty() && at != 0 && type[at - 1] == '>') continue;  // "vector<u64>/1"
    if (word.find_first_not_of("0123456789") == std::string_view::npos && !word.empty())
      continue;  // a ratio, as in "time<1/1000,i64>"
    if (word != "string" && word != "list_hook") return true;
  }
  return false;
}

std::string_view pointer_value(std::string_view type) {
  const auto begin = type.find('<');
  if (begin == std::string_view::npos || !type.ends_with(">/1")) return {};
  const std::string_view word = type.substr(0, begin);
  const bool map = word == "map" || word == "rb_tree" || word == "hash_map" || word == "multimap";
  if (!map && word != "vector" && word != "deque" && word != "list" && word != "queue") return {};
  std::string_view value = type.substr(begin + 1);
  int depth = 0;
  std::size_t from = 0;
  for (std::size_t i = 0, part = 0; i < value.size(); ++i) {
    if (depth == 0 && (value[i] == ',' || value[i] == '>')) {
      const std::string_view one = value.substr(from, i - from);
      if (part++ == (map ? 1U : 0U)) return one.starts_with("ptr<") ? one : std::string_view();
      if (one.find("ptr<") != std::string_view::npos) return {};  // of the keys
      from = i + 1;
    }
    depth += deeper(value[i]);
  }
  return {};
}

bool is_table(std::string_view type) { return type.starts_with(table_word); }

std::string_view retired_type(std::string_view type) {
  if (!type.starts_with(retired_word) || !type.ends_with('>')) return {};
  return type.substr(retired_word.size(), type.size() - retired_word.size() - 1);
}

std::string_view rebuilt_type(std::string_view type) {
  if (!type.starts_with(rebuilt_word)) return {};
  int depth = 0;
  for (std::size_t i = rebuilt_word.size(); i < type.size(); ++i) {
    if (depth == 0 && type[i] == ',')
      return type.substr(rebuilt_word.size(), i - rebuilt_word.size());
    depth += deeper(type[i]);
  }
  return {};
}

std::string_view made_of(std::string_view type) {
  const std::string_view made = rebuilt_type(type);
  return made.empty() ? type : made;
}

bool can_be_rebuilt(std::string_view type) {
  constexpr std::string_view end = "/1";  // within a type: a container in a container
  return type.find(end) + end.size() == type.size() && type.find('<') != std::string_view::npos &&
         !type.starts_with(retired_word) && !type.starts_with("box<") &&
         !type.starts_with("hooked_list<");
}

std::string_view record_in(std::string_view type) {
  type = made_of(type);
  if (is_table(type)) return struct_at(type.substr(table_word.size()));
  const auto word = type.find('<');
  if (word == std::string_view::npos || !type.ends_with("/1")) return {};
  for (const std::string_view none : {"priority_queue", "box", "hooked_list"})
    if (type.substr(0, word) == none) return {};
  int depth = 0;
  for (std::size_t i = word + 1; i < type.size() && depth >= 0; ++i) {
    if (depth == 0 && (type[i - 1] == '<' || type[i - 1] == ',') &&
        type.substr(i).starts_with(record_word))
      return struct_at(type.substr(i + record_word.size()));
    depth += deeper(type[i]);
  }
  return {};
}

}  // namespace perdure::detail
