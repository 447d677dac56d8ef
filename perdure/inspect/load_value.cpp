// SPDX-License-Identifier: BSD-3-Clause
//
// Loader: reads values as Dump::value() writes them.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "perdure/base/status.hpp"
#include "perdure/inspect/dump.hpp"
#include "perdure/inspect/load.hpp"
#include "perdure/inspect/load_entries.hpp"
#include "perdure/inspect/scalar.hpp"

namespace perdure::inspect {

using Token = JsonReader::Token;

namespace {

constexpr std::uint64_t longest_block = 0xffffffffULL - 64;

/// Makes the bytes of a block of text or of a sequence: [n u32][capacity u32][bytes].
std::string block_of(std::uint64_t n, std::uint64_t element, std::string_view bytes) {
  const std::uint64_t size = (8 + bytes.size() + 15) & ~std::uint64_t{15};
  const std::uint32_t head[2] = {static_cast<std::uint32_t>(n),
                                 static_cast<std::uint32_t>((size - 8) / element)};
  std::string block(reinterpret_cast<const char*>(head), sizeof head);
  block += bytes;
  block.resize(size);
  return block;
}

}  // namespace

std::uint64_t Loader::unsigned_number(std::string_view what) {
  expect(Token::number, what);
  const std::string& text = in_.text();
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) wrong(in_.shown(), what);
  return value;
}

void Loader::value(const Layout& type, std::byte* image, bool open) {
  if (++depth_ > 200) wrong("values nested deeper than 200", "fewer");
  switch (type.kind) {
    case Kind::unknown: unknown(type, image, open); break;
    case Kind::scalar: scalar(type, image); break;
    case Kind::text:
    case Kind::string: put(image, text_block(text(open))); break;
    case Kind::sequence: sequence(type, image); break;
    case Kind::optional: optional(type, image, open); break;
    case Kind::variant: variant(type, image, open); break;
    case Kind::array: array(type, image, open); break;
    case Kind::structure: members(type, image, open); break;
    case Kind::record: record(type, image, open); break;
    case Kind::owned: owned(type, image, open); break;
    case Kind::hook: hook(image, open); break;
    case Kind::hooked_list: hooked_list(type, image); break;
    case Kind::elsewhere: wrong("an object without a layout", "none"); break;
    case Kind::pointer:
      if (in_.take_null()) break;
      expect(Token::begin_object, "null or {\"$ptr\": number}");
      put(image, target(reference(), type.element()));
      break;
    case Kind::box: value(type.element(), image, open); break;
    default: container(type, image, open); break;
  }
  --depth_;
}

void Loader::scalar(const Layout& type, std::byte* image) {
  const Token token = in_.next();
  const bool simple = token == Token::number || token == Token::string || token == Token::literal;
  if (!simple || !scalar_bytes(type, in_.text(), reinterpret_cast<unsigned char*>(image)))
    wrong(in_.shown(), "a value of type " + type.text);
}

std::string Loader::text(bool open) {
  constexpr std::string_view expected = "a string or {\"$hex\": digits}";
  if (!open && in_.take(Token::string)) return in_.text();
  if (!open) expect(Token::begin_object, expected);
  expect(Token::key, expected);
  if (in_.text() != "$hex") wrong(in_.shown(), expected);
  expect(Token::string, "hexadecimal digits");
  std::string bytes;
  if (!bytes_of_hex(in_.text(), bytes)) wrong(in_.shown(), "hexadecimal digits, two per byte");
  expect(Token::end_object, "the end of {\"$hex\": digits}");
  return bytes;
}

Address Loader::text_block(std::string_view text) {
  if (text.empty()) return 0;
  if (text.size() > longest_block) wrong("a text of more than 4 GiB", "a shorter one");
  const std::string block = block_of(text.size(), 1, text);
  return store_.add(block.data(), block.size());
}

void Loader::unknown(const Layout& type, std::byte* image, bool open) {
  // {"?": type, "bytes": n, "$hex": digits}
  if (!open) expect(Token::begin_object, "the bytes of a " + type.text);
  bool found = false;
  std::string bytes;
  while (!in_.take(Token::end_object)) {
    expect(Token::key, "a member");
    if (in_.text() != "$hex") {
      in_.skip();
      continue;
    }
    expect(Token::string, "hexadecimal digits");
    found = bytes_of_hex(in_.text(), bytes);
  }
  if (!found || bytes.size() != type.size)
    wrong(found ? std::to_string(bytes.size()) + " bytes" : "no \"$hex\"",
          std::to_string(type.size) + " bytes of a " + type.text + " in \"$hex\"");
  std::memcpy(image, bytes.data(), bytes.size());
}

void Loader::array(const Layout& type, std::byte* image, bool open) {
  const Layout& element = type.element();
  if (element.kind == Kind::scalar && element.meaning == Meaning::character) {
    const std::string bytes = text(open);
    if (bytes.size() > type.count)
      wrong("a text of " + std::to_string(bytes.size()) + " bytes",
            "one of up to " + std::to_string(type.count));
    std::memcpy(image, bytes.data(), bytes.size());
    return;
  }
  const std::string expected = "an array of " + std::to_string(type.count) + " elements";
  expect(Token::begin_array, expected);
  for (std::uint64_t i = 0; i < type.count; ++i) {
    if (in_.peek() == Token::end_array)
      wrong("an array of " + std::to_string(i) + " elements", expected);
    value(element, image + i * element.size);
  }
  expect(Token::end_array, expected);
}

void Loader::optional(const Layout& type, std::byte* image, bool open) {
  if (!open && in_.take_null()) return;
  *image = std::byte{1};
  std::byte* const inside = image + type.parts.front().at;
  if (type.element().kind != Kind::optional) return value(type.element(), inside, open);
  if (!open) expect(Token::begin_object, "null or {\"$some\": value}");
  expect(Token::key, "\"$some\"");
  if (in_.text() != "$some") wrong(in_.shown(), "\"$some\"");
  value(type.element(), inside);
  expect(Token::end_object, "the end of {\"$some\": value}");
}

void Loader::variant(const Layout& type, std::byte* image, bool open) {
  constexpr std::string_view expected = "{\"$index\": number, \"value\": value}";
  if (!open) expect(Token::begin_object, expected);
  expect(Token::key, expected);
  if (in_.text() != "$index") wrong(in_.shown(), expected);
  const std::uint64_t index = unsigned_number(expected);
  if (index >= type.parts.size())
    wrong("alternative " + std::to_string(index) + " of a variant",
          "one of " + std::to_string(type.parts.size()));
  expect(Token::key, expected);
  if (in_.text() != "value") wrong(in_.shown(), expected);
  *image = static_cast<std::byte>(index);
  value(*type.parts[index].type, image + type.parts[index].at);
  expect(Token::end_object, expected);
}

void Loader::sequence(const Layout& type, std::byte* image) {
  const Layout& element = type.element();
  expect(Token::begin_array, "an array");
  std::string bytes;
  std::uint64_t n = 0;
  for (; !in_.take(Token::end_array); ++n) {
    if (bytes.size() + element.size > longest_block)
      wrong("a std::vector of more than 4 GiB", "a shorter one");
    bytes.resize(bytes.size() + element.size);
    value(element, reinterpret_cast<std::byte*>(bytes.data()) + n * element.size);
  }
  if (n == 0) return;
  const std::string block = block_of(n, stride(element), bytes);
  put(image, store_.add(block.data(), block.size()));
}

void Loader::members(const Layout& structure, std::byte* image, bool open,
                     std::uint64_t* row_number) {
  if (!open) expect(Token::begin_object, "an object");
  std::vector<bool> found(structure.parts.size());
  std::size_t next = 0;  // members come in their order, mostly
  while (!in_.take(Token::end_object)) {
    expect(Token::key, "a member");
    if (row_number != nullptr && in_.text() == "$row") {
      *row_number = unsigned_number("the row's number");
      continue;
    }
    const auto is_it = [&](std::size_t i) {
      const std::string name = name_of(structure.parts[i], i);
      return in_.text() == (is_utf8(name) ? name : std::to_string(i));
    };
    if (next >= found.size() || !is_it(next))
      for (next = 0; next < found.size() && !is_it(next);) ++next;
    if (next == found.size())
      wrong(in_.shown(),
            "a field of the struct in the schema; a pool of another version of the "
            "program needs its own schema");
    if (found[next]) wrong(in_.shown() + " twice", "once");
    found[next] = true;
    path_.push_back(in_.text());
    const std::uint64_t before = entries_;
    value(*structure.parts[next].type, image + structure.parts[next].at);
    if (next == 1 && entries_ != before && structure.text.starts_with("rebuilt<"))
      wrong("elements that are still to be moved to the new container",
            "none: open the pool once with its program, and dump it again");
    path_.pop_back();
    ++next;
  }
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!found[i])
      wrong("a struct without its field '" + name_of(structure.parts[i], i) + "'",
            "all fields: let the program rewrite records of an earlier version before the dump, by "
            "an "
            "update of each that changes nothing (docs/inspect.md)");
}

void Loader::record(const Layout& type, std::byte* image, bool open) {
  if (!open && in_.take_null()) return;
  std::vector<std::byte> block(8 + type.element().size);
  put(block.data(), type.shape);
  value(type.element(), block.data() + 8, open);
  put(image, store_.add(block.data(), block.size()));
}

void Loader::owned(const Layout& type, std::byte* image, bool open) {
  if (!open && in_.take_null()) return;
  const Layout& element = type.element();
  // An object that is owned deep within others was dumped as an object of its own.
  if (!open && in_.peek() == Token::begin_object) {
    open = in_.take(Token::begin_object);
    if (in_.peek() == Token::key && in_.text() == "$ptr")
      return put(image, target(reference(), element));
  }
  std::vector<std::byte> object(element.size);
  value(element, object.data(), open);
  put(image, block(object.data(), object.size()));
}

std::uint64_t Loader::reference() {
  expect(Token::key, "\"$ptr\"");
  if (in_.text() != "$ptr") wrong(in_.shown(), "\"$ptr\"");
  const std::uint64_t number = unsigned_number("the number of an object");
  expect(Token::end_object, "the end of {\"$ptr\": number}");
  return number;
}

Address Loader::target(std::uint64_t number, const Layout& type) {
  Target& target = targets_[number];
  if (target.type == nullptr) {
    target.at = store_.alloc(stride(type));
    target.type = &type;
  }
  if (target.type != &type && target.type->text != type.text)
    wrong("a pointer to object " + std::to_string(number) + " as " + type.text,
          "as " + target.type->text + ", as a pointer before it");
  return target.at;
}

}  // namespace perdure::inspect
