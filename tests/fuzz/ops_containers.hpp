// SPDX-License-Identifier: BSD-3-Clause
//
// One operation of the fuzzer on pool and model alike; the result of the pool's call is compared at
// once. The exception of a refused operation (an index out of range, a foreign block, a full heap
// asked for one block) is swallowed, as a program may do, and changes nothing.
// Thread safety: as the transaction.
#pragma once

#include <algorithm>
#include <iterator>
#include <optional>

#include "tests/fuzz/ops_model.hpp"
#include "tests/fuzz/ops_program.hpp"

namespace perdure::fuzz {

template <class T>
T value_of(const Op& op) {
  if constexpr (std::is_same_v<T, std::string>)
    return op.text();
  else
    return op.number();
}
/// The n-th key after the operation's own.
template <class K>
K key_of(Op op, unsigned n = 0) {
  op.key = static_cast<std::uint8_t>(op.key + n);
  if constexpr (std::is_same_v<K, std::string>)
    return op.text_key();
  else
    return op.number_key();
}
inline void change(std::string& s) { s.size() > 300 ? s.resize(7) : s.push_back('+'); }
inline void change(std::uint64_t& n) { n += 3; }

/// f() must be refused with `invalid`.
template <class F>
void refused(F&& f, const char* what) {
  try {
    f();
  } catch (const error& e) {
    if (e.code() == Code::invalid) return;
    throw;
  }
  throw Difference(what);
}

template <class C, class M>
void on_map(Changes& tx, C& c, M& m, const Op& op) {
  using K = typename M::key_type;
  using V = typename M::mapped_type;
  const K key = key_of<K>(op);
  const auto value = [&] { return value_of<V>(op); };
  const auto at = m.find(key);
  const bool there = at != m.end();
  switch (op.kind) {
    case 4:
      same(c.insert(tx, key, value()), m.emplace(key, value()).second,
           "insert: whether it was added");
      break;
    case 5:
    case 6: same(c.erase(tx, key), m.erase(key) != 0, "erase: whether it was there"); break;
    case 7:
      same(c.find(tx, key), there ? std::optional<V>(at->second) : std::nullopt, "find");
      break;
    case 8:
      same(c.contains(tx, key), there, "contains");
      same(c.size(tx), m.size(), "size");
      same(c.empty(tx), m.empty(), "empty");
      break;
    case 9:
      same(c.update(tx, key, [](V& v) { change(v); }), there, "update: whether it was there");
      if (there) change(at->second);
      break;
    case 10:
      same(c.upsert(tx, key, [](V& v) { change(v); }), !there, "upsert: whether it was added");
      change(m[key]);
      break;
    case 11:
      if (op.x % 4 != 0) break;
      c.clear(tx);
      m.clear();
      break;
    case 12: {
      // The container chooses which ones it erases: the rest must be a subset of the original.
      const std::size_t n = std::min<std::size_t>(op.x % 16, m.size());
      same(c.clear_some(tx, op.x % 16), n == m.size(), "clear_some: whether it is empty");
      M rest;
      c.for_each(tx, [&](const K& k, const V& v) { rest.emplace(k, v); });
      same(rest.size(), m.size() - n, "clear_some: how many are left");
      for (const auto& [k, v] : rest)
        if (const auto old = m.find(k); old == m.end() || old->second != v)
          throw Difference("clear_some left what was not there");
      m = std::move(rest);
      break;
    }
    case 13:
    case 14:
      for (unsigned n = 0; n < op.x % 40U; ++n)
        same(c.insert(tx, key_of<K>(op, n), V{}), m.emplace(key_of<K>(op, n), V{}).second,
             "insert in a row");
      break;
    case 15:
      for (unsigned n = 0; n < op.x % 40U; ++n)
        same(c.erase(tx, key_of<K>(op, n)), m.erase(key_of<K>(op, n)) != 0, "erase in a row");
      break;
    case 16:
      if constexpr (requires { c.reserve(tx, 1); }) {
        c.reserve(tx, op.x * 2U);
      } else {
        const auto low = m.lower_bound(key), above = m.upper_bound(key);
        const auto found = c.lower_bound(tx, key), next = c.upper_bound(tx, key);
        same(static_cast<bool>(found), low != m.end(), "lower_bound: whether there is one");
        same(static_cast<bool>(next), above != m.end(), "upper_bound: whether there is one");
        if (found) same(found.key(tx), low->first, "lower_bound");
        if (next) same(next.value(tx), above->second, "upper_bound");
      }
      break;
    case 17:
      if constexpr (requires { c.first(tx); }) {
        const auto first = c.first(tx), last = c.last(tx);
        same(first.has_value() && last.has_value(), !m.empty(),
             "first, last: whether there is one");
        if (first) same(first->first, m.begin()->first, "first");
        if (last) same(last->first, m.rbegin()->first, "last");
      }
      break;
    case 18:
      if constexpr (requires { c.first(tx); }) {
        const K to = key_of<K>(op, op.x);
        std::vector<K> found, expected;
        c.scan(tx, key, to, [&](const K& k, const V&) { found.push_back(k); });
        if (key < to)
          std::transform(m.lower_bound(key), m.lower_bound(to), std::back_inserter(expected),
                         [](const auto& e) { return e.first; });
        same(found, expected, "scan");
      }
      break;
    default:
      same(c.put(tx, key, value()), m.insert_or_assign(key, value()).second,
           "put: whether it was added");
      break;
  }
}

template <class T>
void on_vector(Changes& tx, vector<T>& c, std::vector<T>& m, const Op& op) {
  const T value = value_of<T>(op);
  const std::size_t i = op.key % (m.size() + 1);  // one index too many is refused
  const bool there = i < m.size();
  switch (op.kind) {
    case 0:
    case 1:
    case 2: c.push_back(tx, value), m.push_back(value); break;
    case 3:
    case 4:
      if (m.empty()) return refused([&] { (void)c.pop_back(tx); }, "pop_back of an empty vector");
      same(c.pop_back(tx), m.back(), "pop_back");
      m.pop_back();
      break;
    case 5:
    case 6:
      if (!there) return refused([&] { c.set(tx, i, value); }, "set out of range");
      c.set(tx, i, value), m[i] = value;
      break;
    case 7:
      if (!there) return refused([&] { c.update(tx, i, [](T&) {}); }, "update out of range");
      c.update(tx, i, [](T& v) { change(v); }), change(m[i]);
      break;
    case 8:
      if (!there) return refused([&] { (void)c.get(tx, i); }, "get out of range");
      same(c.get(tx, i), m[i], "get");
      break;
    case 9:
    case 10: c.resize(tx, op.key % 90, value), m.resize(op.key % 90, value); break;
    case 11: c.reserve(tx, op.x * 2U); break;
    case 12:
      if (op.x % 4 == 0) c.clear(tx), m.clear();
      break;
    case 13: same(c.size(tx), m.size(), "size"); break;
    default:
      if constexpr (!std::is_same_v<T, std::string>) {
        if (op.kind < 16) {
          std::vector<T> run(op.x);
          for (T& v : run) v = op.number() + op.key + static_cast<T>(&v - run.data());
          c.append(tx, run), m.insert(m.end(), run.begin(), run.end());
        } else {
          std::vector<T> out(op.x);
          if (out.size() > m.size() - std::min(i, m.size()))
            return refused([&] { c.read(tx, i, out); }, "read out of range");
          c.read(tx, i, out);
          same(std::equal(out.begin(), out.end(), m.begin() + static_cast<std::ptrdiff_t>(i)), true,
               "read");
        }
      }
  }
}

inline void on_list(Changes& tx, list<std::string>& c, std::vector<std::string>& m, const Op& op) {
  const std::string value = op.text();
  const std::size_t i = op.key % (m.size() + 1);
  const auto place = m.begin() + static_cast<std::ptrdiff_t>(i);
  auto where = c.begin(tx);
  for (std::size_t n = 0; n < i && where; ++n) where.next(tx);
  switch (op.kind) {
    case 0: c.push_front(tx, value), m.insert(m.begin(), value); break;
    case 1: c.push_back(tx, value), m.push_back(value); break;
    case 2:
      same(c.pop_front(tx), m.empty() ? std::nullopt : std::optional(m.front()), "pop_front");
      break;
    case 3:
      same(c.pop_back(tx), m.empty() ? std::nullopt : std::optional(m.back()), "pop_back");
      break;
    case 4:
    case 5:
    case 6: c.insert(tx, where, value), m.insert(place, value); break;
    case 7:
    case 8:
      same(static_cast<bool>(where), i < m.size(), "a place in the list");
      if (where) c.erase(tx, where), m.erase(place);
      break;
    case 9:
      if (where) c.set(tx, where, value), *place = value;
      break;
    case 10:
      if (op.x % 4 == 0) c.clear(tx), m.clear();
      break;
    default:
      if (where) same(where.value(tx), *place, "an element in the middle");
      same(c.size(tx), m.size(), "size");
  }
  if (op.kind == 2 && !m.empty()) m.erase(m.begin());
  if (op.kind == 3 && !m.empty()) m.pop_back();
}

template <class T>
void on_queue(Changes& tx, queue<T>& c, std::deque<T>& m, const Op& op) {
  const T value = value_of<T>(op);
  const auto oldest = [&] { return m.empty() ? std::nullopt : std::optional<T>(m.front()); };
  const auto pop = [&] {
    same(c.pop(tx), oldest(), "pop");
    if (!m.empty()) m.pop_front();
  };
  if (op.kind < 6) {
    c.push(tx, value), m.push_back(value);
  } else if (op.kind < 10) {
    pop();
  } else if (op.kind < 13) {  // beyond the end of a block
    for (unsigned n = 0; n < op.key; ++n) c.push(tx, T{}), m.emplace_back();
  } else if (op.kind < 16) {
    for (unsigned n = 0; n < op.key; ++n) pop();
  } else if (op.kind == 16 && op.x % 4 == 0) {
    c.clear(tx), m.clear();
  } else {
    same(c.front(tx), oldest(), "front");
    same(c.size(tx), m.size(), "size");
  }
}

}  // namespace perdure::fuzz
