// SPDX-License-Identifier: BSD-3-Clause
//
// Loader: reads the entries of containers as a dump writes them.
#include "perdure/inspect/load.hpp"
#include "perdure/inspect/load_entries.hpp"

namespace perdure::inspect {

using Token = JsonReader::Token;

void Loader::container(const Layout& type, std::byte* image, bool open) {
  const std::unique_ptr<LoadEntries> entries = entries_of(type);
  if (type.kind == Kind::table) {
    table(type, static_cast<TableEntries&>(*entries), open);
  } else if (type.is_named_map()) {
    if (!open) expect(Token::begin_object, "an object of keys and values");
    while (!in_.take(Token::end_object)) {
      expect(Token::key, "a key");
      map_key(entries->key());
      value(type.mapped(), entries->value());
      entries->add();
      count_entry();
    }
  } else {
    expect(Token::begin_array, "an array");
    while (!in_.take(Token::end_array)) {
      if (type.is_set()) {
        value(type.element(), entries->key());
      } else if (type.is_map()) {
        expect(Token::begin_array, "[key, value]");
        value(type.element(), entries->key());
        value(type.mapped(), entries->value());
        expect(Token::end_array, "the end of [key, value]");
      } else {
        value(type.element(), entries->value());
      }
      entries->add();
      count_entry();
    }
  }
  entries->finish(image);
}

void Loader::map_key(std::byte* image) {
  // "$$" begins a text that begins with "$"; "$hex:" begins one that is not valid UTF-8.
  std::string key = in_.text();
  constexpr std::string_view hex = "$hex:";
  std::string bytes;
  if (key.starts_with("$$"))
    key.erase(0, 1);
  else if (key.starts_with(hex) && bytes_of_hex(std::string_view(key).substr(hex.size()), bytes))
    key = bytes;
  else if (key.starts_with("$"))
    wrong(in_.shown(), "a key; one that begins with $ has another $ before it");
  put(image, text_block(key));
}

void Loader::table(const Layout& type, TableEntries& rows, bool open) {
  const auto each = [&] {
    while (!in_.take(Token::end_array)) {
      members(type.element(), rows.value(), false, rows.number());
      rows.add();
      count_entry();
    }
  };
  if (!open && in_.take(Token::begin_array)) return each();
  constexpr std::string_view expected =
      "an array of rows, or {\"next\": ..., \"rows\": ..., \"indexes\": ...} of `perdure dump "
      "--indexes`";
  if (!open) expect(Token::begin_object, expected);
  while (!in_.take(Token::end_object)) {
    expect(Token::key, expected);
    if (in_.text() == "next") {
      rows.next(unsigned_number("the number that the next row will have"));
      continue;
    }
    if (in_.text() == "rows") {
      expect(Token::begin_array, "an array of rows");
      each();
      continue;
    }
    if (in_.text() != "indexes") wrong(in_.shown(), expected);
    expect(Token::begin_object, "an object of indexes");
    while (!in_.take(Token::end_object)) {
      expect(Token::key, "the name of an index");
      const std::string name = in_.text();
      std::vector<std::uint64_t> numbers;
      expect(Token::begin_array, "an array of [key, number]");
      while (!in_.take(Token::end_array)) {
        expect(Token::begin_array, "[key, number]");
        in_.skip();
        numbers.push_back(unsigned_number("the number of a row"));
        expect(Token::end_array, "the end of [key, number]");
      }
      rows.order(name, std::move(numbers));
    }
  }
}

}  // namespace perdure::inspect
