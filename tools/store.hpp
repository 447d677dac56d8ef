// SPDX-License-Identifier: BSD-3-Clause
//
// Store: the root of the pools that `perdure load` and `perdure put` make. It is plain Perdure,
// which any program could write.
//
// rows: number -> row; numbers rise in the order of the source, then of put. index: key -> number.
// Invariants (audit_store): each key in the index leads to a row with that key, there are as many
// rows as keys, and every number is below next_row. Thread safety and crash invariants: those of
// the transaction; see store_pool.hpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/api/persistent.hpp"
#include "perdure/container/map.hpp"
#include "perdure/container/string.hpp"
#include "tools/store_pool.hpp"

namespace perdure::tool {

/// What is being loaded, and how far the load is. All zero: nothing yet.
struct Source {
  perdure::string path, spec;          ///< spec: Spec::to_json
  perdure::string prologue, epilogue;  ///< bytes before the first and after the last record
  p<std::uint64_t> begun, complete;    ///< 0 or 1
  p<std::uint64_t> size, hash;         ///< of the whole file
  p<std::uint64_t> position, line;     ///< of the first byte not yet loaded
  p<std::uint64_t> rows;               ///< loaded up to now
  p<std::uint64_t> edits;              ///< rows put or deleted by hand
};

struct Store {
  map<std::uint64_t, std::string> rows;  ///< values: RowHead, key, bytes
  map<std::string, std::uint64_t> index;
  p<std::uint64_t> next_row;
  Source source;
};

/// The start of a row's value.
struct RowHead {
  std::uint64_t line;  ///< in the source; 0: put by hand
  std::uint64_t key_bytes;
};

[[nodiscard]] inline std::string encode_row(std::string_view key, std::string_view bytes,
                                            std::uint64_t line) {
  const RowHead head{line, key.size()};
  std::string value(sizeof head, '\0');
  std::memcpy(value.data(), &head, sizeof head);
  value.reserve(sizeof head + key.size() + bytes.size());
  return value.append(key).append(bytes);
}

/// Returns false if no row begins like this.
[[nodiscard]] inline bool decode_row(std::string_view value, std::uint64_t number, StoredRow& row) {
  RowHead head;
  if (value.size() < sizeof head) return false;
  std::memcpy(&head, value.data(), sizeof head);
  if (head.key_bytes > value.size() - sizeof head) return false;
  value.remove_prefix(sizeof head);
  row.number = number;
  row.line = head.line;
  row.key = value.substr(0, head.key_bytes);
  row.bytes = value.substr(head.key_bytes);
  return true;
}

/// Like decode_row, but throws error(corrupt).
[[nodiscard]] inline StoredRow checked_row(std::string_view value, std::uint64_t number) {
  StoredRow row;
  if (decode_row(value, number, row)) return row;
  throw error(failure(Code::corrupt, "", "row " + std::to_string(number) + " is cut short",
                      "its head and its key", "run perdure check"));
}

/// The row with this number, which the index contains.
template <class Tx>
[[nodiscard]] StoredRow row_at(Tx& tx, const Store& store, std::uint64_t number) {
  const auto value = store.rows.find(tx, number);
  if (value) return checked_row(*value, number);
  throw error(failure(Code::corrupt, "",
                      "a key that leads to row " + std::to_string(number) + ", which is not there",
                      "a row for each key", "run perdure check"));
}

template <class Tx>
[[nodiscard]] std::optional<StoredRow> find_row(Tx& tx, const Store& store, std::string_view key) {
  const auto number = store.index.find(tx, key);
  if (!number) return std::nullopt;
  return row_at(tx, store, *number);
}

/// Appends a row; returns false (and changes nothing) if the key exists already.
template <class Tx>
[[nodiscard]] bool append_row(Tx& tx, Store& store, std::string_view key, std::string_view bytes,
                              std::uint64_t line) {
  const std::uint64_t number = tx(store.next_row);
  if (!store.index.insert(tx, key, number)) return false;
  store.rows.insert(tx, number, encode_row(key, bytes, line));
  tx(store.next_row) = number + 1;
  return true;
}

template <class Tx>
[[nodiscard]] bool put_row(Tx& tx, Store& store, std::string_view key, std::string_view bytes) {
  ++tx(store.source.edits);
  const auto number = store.index.find(tx, key);
  if (!number) return append_row(tx, store, key, bytes, 0);
  store.rows.put(tx, *number, encode_row(key, bytes, 0));
  return false;
}

template <class Tx>
[[nodiscard]] bool delete_row(Tx& tx, Store& store, std::string_view key) {
  const auto number = store.index.find(tx, key);
  if (!number) return false;
  ++tx(store.source.edits);
  store.rows.erase(tx, *number);
  return store.index.erase(tx, key);
}

template <class Tx>
[[nodiscard]] SourceState read_source(Tx& tx, const Source& s) {
  SourceState state;
  state.begun = tx(s.begun) != 0;
  state.complete = tx(s.complete) != 0;
  state.path = s.path.str(tx);
  state.spec = s.spec.str(tx);
  state.prologue = s.prologue.str(tx);
  state.epilogue = s.epilogue.str(tx);
  state.identity = {tx(s.size), tx(s.hash)};
  state.position = tx(s.position);
  state.line = tx(s.line);
  state.rows = tx(s.rows);
  state.edits = tx(s.edits);
  return state;
}

template <class Tx>
void write_source(Tx& tx, Source& s, const SourceState& state) {
  s.path.assign(tx, state.path);
  s.spec.assign(tx, state.spec);
  s.prologue.assign(tx, state.prologue);
  s.epilogue.assign(tx, state.epilogue);
  tx(s.begun) = 1;
  tx(s.complete) = 0;
  tx(s.size) = state.identity.size;
  tx(s.hash) = state.identity.hash;
  tx(s.position) = state.position;
  tx(s.line) = state.line;
  tx(s.rows) = 0;
  tx(s.edits) = 0;
}

/// The inconsistencies between rows and index; each of the two is audited by its container.
template <class Tx>
[[nodiscard]] std::vector<std::string> audit_store(Tx& tx, const Store& store) {
  std::vector<std::string> problems;
  const auto problem = [&](std::uint64_t number, const char* what) {
    if (problems.size() < 100) problems.push_back("row " + std::to_string(number) + " " + what);
  };
  const std::uint64_t next = tx(store.next_row);
  StoredRow row;
  store.rows.for_each(tx, [&](std::uint64_t number, const std::string& value) {
    if (number >= next) problem(number, "has a number that was not yet given");
    if (!decode_row(value, number, row))
      problem(number, "is cut short");
    else if (store.index.find(tx, row.key) != number)
      problem(number, "is not what the index has for its key");
    return true;
  });
  if (store.rows.size(tx) != store.index.size(tx)) {
    problems.push_back("there are " + std::to_string(store.rows.size(tx)) + " rows and " +
                       std::to_string(store.index.size(tx)) + " keys");
  }
  return problems;
}

}  // namespace perdure::tool
