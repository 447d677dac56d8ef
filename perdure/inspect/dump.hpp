// SPDX-License-Identifier: BSD-3-Clause
//
// Dump: writes the content of a pool as JSON, from its layout alone.
//
// How values are written (docs/inspect.md): numbers exactly; numbers of 128 bits as strings; NaN
// and infinities as "NaN", "Infinity", "-Infinity"; times as ISO 8601 where their unit is a second
// or a decimal part of one, otherwise as their count; text that is no UTF-8 as {"$hex": "..."}; a
// variant as {"$index": n, "value": ...}; a map whose keys are text as an object, other maps as an
// array of [key, value]; a table as an array of rows; a pointer as {"$ptr": offset in the data
// region}, and what pointers lead to as members of "$objects"; a type that is not known as
// {"?": type, "bytes": n}.
// The memory that it takes does not depend on the sizes of containers, but on the number of
// objects that pointers lead to.
// Thread safety: that of the transaction behind the walker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "perdure/inspect/json.hpp"
#include "perdure/inspect/layout.hpp"
#include "perdure/inspect/walk.hpp"

namespace perdure::inspect {

class Dump {
 public:
  /// `indexes`: a table is an object of its rows, with their numbers, and its indexes.
  Dump(Walker& walker, JsonWriter& out, bool indexes = false)
      : walker_(walker), out_(out), indexes_(indexes) {}

  /// Writes an object of these parts of an object at `at`, and what their pointers lead to.
  void document(const std::vector<Member>& fields, Address at);
  /// The same as lines, each a document: {"field": ..., "row": ...} for each row of a table,
  /// {"field": ..., "key": ..., "value": ...} for each entry of a map, {"field": ..., "index": ...,
  /// "value": ...} for each element of a vector, list or queue, {"field": ..., "value": ...} for
  /// everything else, {"object": ..., "value": ...} for what pointers lead to.
  void lines(const std::vector<Member>& fields, Address at);
  /// Writes what lies at an address. Throws error(corrupt).
  void value(const Layout& type, Address at, unsigned depth = 0);
  /// Writes a row of a table. Throws error(corrupt).
  void row(const Layout& table, Address block, unsigned depth = 0);

  /// The damage that document() and lines() met, each with its field; the places have "$damaged".
  [[nodiscard]] const std::vector<std::string>& damage() const noexcept { return damage_; }

 private:
  void scalar(const Layout& type, Address at);
  void container(const Layout& type, Address at, unsigned depth);
  void table(const Layout& type, Address at, unsigned depth);
  void part_entries(const Layout& table, std::size_t part, Address at, unsigned depth);
  void members(const Layout& structure, Address at, unsigned depth);
  void map_key(Address at);
  void unknown(const Layout& type, Address at);
  void hook(Address at);
  void pointer(const Layout* target, Address to);
  void objects_as_lines();
  template <class F>
  void guarded(const std::string& field, F&& f);

  friend class DumpEntries;
  Walker& walker_;
  JsonWriter& out_;
  const bool indexes_;
  std::vector<std::pair<Address, const Layout*>> open_;  ///< reached, and not written
  std::unordered_set<Address> reached_;
  std::vector<std::string> damage_;
};

/// Whether lines() writes one line for each element of a field of this type.
[[nodiscard]] bool has_elements(const Layout& type) noexcept;

/// The name of a member in a document: its number where it has no name.
[[nodiscard]] std::string name_of(const Member& member, std::size_t index);

}  // namespace perdure::inspect
