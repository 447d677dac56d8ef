// SPDX-License-Identifier: BSD-3-Clause
//
// Loader::lines(): reads the output of Dump::lines(), in which the entries of one field follow each
// other.
#include <memory>
#include <utility>

#include "perdure/inspect/dump.hpp"
#include "perdure/inspect/load.hpp"
#include "perdure/inspect/load_entries.hpp"

namespace perdure::inspect {

using Token = JsonReader::Token;

void Loader::lines(Address root) {
  constexpr std::string_view expected =
      "lines that `perdure dump --jsonl` wrote: {\"field\": ...} or {\"object\": ...}";
  const Layout& type = tree_.root();
  std::vector<bool> found(type.parts.size());
  std::size_t field = found.size();
  std::unique_ptr<LoadEntries> entries;  // of the field
  const auto close = [&] {
    if (entries != nullptr) entries->finish(root_.data() + type.parts[field].at);
    entries.reset();
    path_.clear();
    field = found.size();
  };
  while (!in_.take(Token::end)) {
    expect(Token::begin_object, expected);
    expect(Token::key, expected);
    if (in_.text() == "object") {
      close();
      const std::uint64_t number = unsigned_number("the number of an object");
      expect(Token::key, expected);
      if (in_.text() != "value") wrong(in_.shown(), "\"value\"");
      object(number);
      expect(Token::end_object, "the end of the line");
      continue;
    }
    if (in_.text() != "field") wrong(in_.shown(), expected);
    expect(Token::string, "the name of a field");
    if (field == found.size() || name_of(type.parts[field], field) != in_.text()) {
      close();
      std::size_t i = 0;
      while (i < found.size() && name_of(type.parts[i], i) != in_.text()) ++i;
      if (i == found.size()) wrong(in_.shown(), "a field of the schema");
      if (found[i]) wrong(in_.shown() + " again", "all lines of a field together");
      found[i] = true;
      field = i;
      path_.push_back(in_.text());
      const Layout& its = *type.parts[i].type;
      if (has_elements(its) && its.kind != Kind::hooked_list) entries = entries_of(its);
    } else if (entries == nullptr && type.parts[field].type->kind != Kind::hooked_list) {
      wrong("a second line of this field", "one");
    }
    line(type.parts[field], entries.get());
  }
  close();
  // A container without elements has no line.
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!found[i] && !has_elements(*type.parts[i].type))
      wrong("no line of field '" + name_of(type.parts[i], i) + "'",
            "a dump of all fields of the schema");
  write_root(root);
}

void Loader::line(const Member& field, LoadEntries* entries) {
  const Layout& type = *field.type;
  bool any = false;
  while (!in_.take(Token::end_object)) {
    expect(Token::key, "a member");
    if (in_.text() == "index") {
      in_.skip();
      continue;
    }
    any = true;
    if (entries == nullptr && type.kind == Kind::hooked_list) {
      expect(Token::begin_object, "{\"$ptr\": number}");
      add_to_hooked_list(type, root_.data() + field.at, reference());
    } else if (entries == nullptr) {
      value(type, root_.data() + field.at);
    } else if (type.kind == Kind::table) {
      auto* const rows = static_cast<TableEntries*>(entries);
      members(type.element(), entries->value(), false, rows->number());
    } else if (in_.text() == "key") {
      value(type.element(), entries->key());
    } else {
      value(type.is_map() ? type.mapped() : type.element(), entries->value());
    }
  }
  if (!any) wrong("a line without a value", "one");
  if (entries == nullptr) return;
  entries->add();
  count_entry();
}

}  // namespace perdure::inspect
