// SPDX-License-Identifier: BSD-3-Clause
//
// What opening a pool of another version of the program does with a table: its steps, and the
// entries of its indexes. Part of table.hpp, which includes it at its end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/api/batches.hpp"
#include "perdure/container/found_keys.hpp"
#include "perdure/container/table.hpp"
#include "perdure/value/late.hpp"

namespace perdure {

// Rewrites a row of an earlier version of T that needs a step, or that lacks a member of a key,
// index or unique part: the row's entry there must stay right when a later version gives the member
// another initialiser (SETTLE-1). Changes the entries that lead to the row to its new address, and
// returns this address.
template <class T, class Key, class... Others>
template <class Tx>
detail::row* table<T, Key, Others...>::settle(Tx& tx, Row* row, const detail::RowSteps& steps) {
  value::WriterOver<Tx> writer(tx);
  if (value::record::is_of(writer, type(), &row->record)) return row;
  const bool by_step = steps.needed(writer, type(), &row->record);
  bool whole = true;
  parts_.each([&]<class Part>(const Part&) {
    if constexpr (!detail::is_dropped<Part>)
      whole = whole && Part::all_in(writer, type(), &row->record);
  });
  if (whole && !by_step) return row;
  // The existing entries were made from the members' values in `old`.
  T old{}, now{};
  value::record::read_for_step(writer, type(), &row->record, std::addressof(old));
  steps.read(writer, type(), &row->record, std::addressof(now));
  const std::uint64_t number = number_of(tx, row);
  auto* const kept = reinterpret_cast<Row*>(value::record::assign_behind(
      writer, type(), reinterpret_cast<std::byte*>(row), std::addressof(now)));
  parts_.each([&]<class Part>(Part& part) {
    if (!part.holds(old)) return;
    const auto &before = part.key_of(old, number), &after = part.key_of(now, number);
    const auto found = part.rows.find(tx, before);
    if (!found || *found != row) return;  // it gets its entry later
    if (part.holds(now) && detail::same_key(before, after)) {
      part.rows.put(tx, before, kept);
      return;
    }
    part.rows.erase(tx, before);
    if (part.holds(now) && !part.rows.insert(tx, after, kept))
      detail::throw_not_unique(Part::names());
  });
  return kept;
}

// Whether rows may need a step or lack an entry. No entry is lacking if each part has as many
// entries as there are rows. A part over an optional member may have fewer although none is
// lacking.
template <class T, class Key, class... Others>
template <class Tx>
bool table<T, Key, Others...>::rows_pending(Tx& tx, const detail::RowSteps& steps) const {
  const std::uint64_t n = size(tx);
  bool pending = !steps.empty();
  parts_.each([&]<class Part>(const Part& part) {
    if constexpr (!detail::is_dropped<Part>) pending = pending || part.rows.size(tx) != n;
  });
  return pending && n != 0;
}

template <class T, class Key, class... Others>
template <class Tx>
std::vector<detail::row*> table<T, Key, Others...>::rows_by_number(Tx& tx) const {
  std::vector<std::pair<std::uint64_t, Row*>> rows;
  rows.reserve(size(tx));
  for (auto at = parts_.first.rows.begin(tx); at; at.next(tx))
    rows.emplace_back(number_of(tx, at.value(tx)), at.value(tx));
  std::sort(rows.begin(), rows.end());
  std::vector<Row*> out;
  out.reserve(rows.size());
  for (const auto& [number, row] : rows) out.push_back(row);
  return out;
}

template <class T, class Key, class... Others>
template <class Run, class Look, class Done>
void table<T, Key, Others...>::catch_up_rows(Run&& run, Look&& look, std::uint64_t batch,
                                             const detail::RowSteps& steps, Done&& done) {
  detail::Batches batches(batch);
  std::vector<Row*> rows;  // no other thread has the pool yet
  look([&](auto& tx) {
    rows.clear();
    if (!rows_pending(tx, steps)) return;
    rows.reserve(size(tx));
    for (auto at = parts_.first.rows.begin(tx); at; at.next(tx)) rows.push_back(at.value(tx));
  });
  // SETTLE-1: all rows have their parts' members before the first entry is made from them.
  std::vector<Row*> settled;
  for (std::size_t from = 0; from < rows.size();) {
    batches.once(run, [&](auto& tx, std::uint64_t n) {
      settled.clear();  // the transaction may be run again
      const std::size_t to = from + std::min<std::size_t>(rows.size() - from, n);
      for (std::size_t i = from; i < to; ++i) settled.push_back(settle(tx, rows[i], steps));
    });
    std::copy(settled.begin(), settled.end(), rows.begin() + static_cast<std::ptrdiff_t>(from));
    from += settled.size();
    done(from);
  }
  parts_.each([&]<class Part>(Part& part) {
    if constexpr (detail::is_dropped<Part>) {
      bool empty = false;
      while (!empty)
        batches.once(
            run, [&](auto& tx, std::uint64_t blocks) { empty = part.rows.free_some(tx, blocks); });
    } else if constexpr (!std::is_same_v<Part, KeyPart>) {
      std::size_t to = 0;
      for (std::size_t from = 0; from < rows.size(); from = to)
        batches.once(run, [&]<class Tx>(Tx& tx, std::uint64_t n) {
          to = from + std::min<std::size_t>(rows.size() - from, n);
          for (std::size_t i = from; i < to; ++i) {
            const T value = *copy(tx, std::optional(rows[i]));
            const std::uint64_t number = number_of(tx, rows[i]);
            // An entry that exists is from an opening that was cut short, or the part is old.
            if (part.holds(value)) (void)part.rows.insert(tx, part.key_of(value, number), rows[i]);
          }
        });
    }
  });
}

// A step that is applied at reading may not change what entries were made of.
template <class T, class Key, class... Others>
std::shared_ptr<const void> table<T, Key, Others...>::read_late(const std::byte* begin,
                                                                std::uint64_t bytes,
                                                                const detail::RowSteps& steps,
                                                                std::shared_ptr<const void> owner) {
  return value::late::add(
      begin, bytes, type(),
      [steps, owner = std::move(owner)](value::Reader& tx, const value::record* from,
                                        void* object) {
        if (!steps.needed(tx, type(), from)) return false;
        T& now = *static_cast<T*>(object);
        steps.read(tx, type(), from, std::addressof(now));
        T was{};
        value::record::read_for_step(tx, type(), from, std::addressof(was));
        const detail::table_parts<Key, Others...> parts{};
        parts.each([&]<class Part>(const Part&) {
          if constexpr (!detail::is_dropped<Part>)
            if (!Part::same_in(was, now))
              throw error(Status(
                  Code::invalid,
                  "perdure::table: found a step that changes '" + std::string(Part::names()) +
                      "', by which rows are found, expected one that leaves it: open "
                      "the pool without Migration::lazy"));
        });
        return true;
      });
}

template <class T, class Key, class... Others>
template <class Run, class Look>
bool table<T, Key, Others...>::settle_some(Run&& run, Look&& look, std::uint64_t n,
                                           const detail::RowSteps& steps, std::any& keys) {
  using Keys = std::vector<key_type>;
  if (!keys.has_value()) {
    look([&]<class Tx>(Tx& tx) {
      Keys found;
      value::ReaderOver<Tx> reader(tx);
      for (auto at = parts_.first.rows.begin(tx); at; at.next(tx))
        if (steps.needed(reader, type(), &at.value(tx)->record)) found.push_back(at.key(tx));
      keys = std::move(found);
    });
  }
  // A row that was added or changed since then needs no step; one that has another key neither.
  Keys& left = *std::any_cast<Keys>(&keys);
  const std::size_t now = std::min<std::uint64_t>(left.size(), n);
  if (now != 0)
    run([&](auto& tx) {
      for (std::size_t i = left.size() - now; i < left.size(); ++i)
        if (const auto row = parts_.first.rows.find(tx, left[i])) (void)settle(tx, *row, steps);
    });
  left.resize(left.size() - now);
  return left.empty();
}

template <class T, class Key, class... Others>
template <class Tx>
std::uint64_t table<T, Key, Others...>::shared_values(Tx& tx, const std::byte* old,
                                                      std::string_view path,
                                                      const detail::RowSteps& steps) const {
  const std::string_view name = path.substr(path.rfind('.') + 1);
  const auto& rows = reinterpret_cast<const table*>(old)->parts_.first.rows;
  std::uint64_t met = 0;
  parts_.each([&]<class Part>(const Part& part) {
    if constexpr (Part::is_unique && !detail::is_dropped<Part>) {
      if (Part::names() != name) return;
      using Entry = typename Part::entry;
      // A new entry must differ from those that other rows have before their own step, too: rows
      // go through it one after the other.
      detail::found_keys<Entry> before, after;
      value::ReaderOver<Tx> reader(tx);
      for (auto at = rows.begin(tx); at; at.next(tx)) {
        const value::record* const record = &at.value(tx)->record;
        T was{}, now{};
        value::record::read_for_step(reader, type(), record, std::addressof(was));
        steps.read(reader, type(), record, std::addressof(now));
        const bool had = Part::all_in(reader, type(), record) && part.holds(was);
        const bool has = part.holds(now);
        if (has && !after.insert(Part::key_of(now, 0))) ++met;
        if (had && !(has && before.equal(Part::key_of(was, 0), Part::key_of(now, 0))))
          before.insert(Part::key_of(was, 0));
      }
      before.for_each([&](const Entry& one) { met += after.contains(one) ? 1U : 0U; });
    }
  });
  return met;
}

}  // namespace perdure
