// SPDX-License-Identifier: BSD-3-Clause
//
// The contents of the pools of tests/compat: a root with every container, and a numbered sequence
// of transactions on it. The contents after transaction n follow from n alone, so that a pool
// written by an earlier build can be compared in full with a model.
//
// The kept pools depend on this file: a change of Root, of a step or of the digest makes all of
// them unreadable. New contents need a new workload in addition to this one.
// Thread safety: that of the transaction.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "perdure/perdure.hpp"

namespace perdure::compat {

/// Slots lie on cache lines of their own.
struct alignas(64) Slot {
  p<std::uint64_t> value;
};

struct Root {
  p<std::uint64_t> count;  ///< transactions that were committed
  Slot slot[8];
  p<std::uint32_t> half;
  string title;
  map<std::uint64_t, std::string> ordered;
  hash_map<std::uint64_t, std::string> hashed;
  rb_tree<std::uint64_t, std::uint64_t> tree;
  list<std::string> names;
  queue<std::uint64_t> waiting;
  vector<std::uint64_t> numbers;
};

/// Version 2 of Root.
struct LaterRoot {
  p<std::uint64_t> added{5};
  p<std::uint64_t> count;
  p<std::uint32_t> half;
  string title;
  Slot slot[8];
  vector<std::uint64_t> numbers;
  queue<std::uint64_t> waiting;
  list<std::string> names;
  rb_tree<std::uint64_t, std::uint64_t> tree;
  hash_map<std::uint64_t, std::string> hashed;
  map<std::uint64_t, std::string> ordered;
};

/// The same contents in plain memory.
struct Model {
  std::uint64_t count = 0;
  std::array<std::uint64_t, 8> slot{};
  std::uint32_t half = 0;
  std::string title;
  std::map<std::uint64_t, std::string> ordered, hashed;
  std::map<std::uint64_t, std::uint64_t> tree;
  std::deque<std::string> names;
  std::deque<std::uint64_t> waiting;
  std::vector<std::uint64_t> numbers;

  friend bool operator==(const Model&, const Model&) = default;
};

inline std::string text(std::uint64_t n) {
  return std::string(n * 7 % 90, static_cast<char>('a' + n % 26)) + std::to_string(n * n);
}
/// Longer than a chunk: an object of its own in the heap.
inline std::string large_text(std::uint64_t n) {
  return std::string(66'000 + n, static_cast<char>('A' + n % 26));
}

/// Transaction n, on the pool. `large`: with objects of more than 64 KiB.
template <class Tx>
void step(Tx& tx, Root& root, std::uint64_t n, bool large) {
  tx(root.count) = n;
  tx(root.slot[n % 8].value) = n * 3;
  tx(root.slot[n * 5 % 8].value) = n;
  tx(root.half) = static_cast<std::uint32_t>(n << 16 | n);
  root.title.assign(tx, text(n));
  root.ordered.put(tx, n % 23, text(n));
  root.hashed.put(tx, n * 7 % 31, text(n + 1));
  root.tree.put(tx, n * 11 % 29, n);
  if (n % 5 == 0) {
    root.ordered.erase(tx, n % 7);
    root.hashed.erase(tx, n % 9);
    root.tree.erase(tx, n % 11);
  }
  root.names.push_back(tx, text(n));
  if (n > 12) (void)root.names.pop_front(tx);
  root.waiting.push(tx, n);
  if (n % 3 != 0) (void)root.waiting.pop(tx);
  root.numbers.push_back(tx, n * n);
  if (!large) return;
  if (n % 16 == 3) root.hashed.put(tx, 1000 + n % 3, large_text(n));
  if (n % 16 == 11) root.hashed.erase(tx, 1000 + n % 3);
}

/// The same, on the model.
inline void step(Model& m, std::uint64_t n, bool large) {
  m.count = n;
  m.slot[n % 8] = n * 3;
  m.slot[n * 5 % 8] = n;
  m.half = static_cast<std::uint32_t>(n << 16 | n);
  m.title = text(n);
  m.ordered[n % 23] = text(n);
  m.hashed[n * 7 % 31] = text(n + 1);
  m.tree[n * 11 % 29] = n;
  if (n % 5 == 0) {
    m.ordered.erase(n % 7);
    m.hashed.erase(n % 9);
    m.tree.erase(n % 11);
  }
  m.names.push_back(text(n));
  if (n > 12) m.names.pop_front();
  m.waiting.push_back(n);
  if (n % 3 != 0 && !m.waiting.empty()) m.waiting.pop_front();
  m.numbers.push_back(n * n);
  if (!large) return;
  if (n % 16 == 3) m.hashed[1000 + n % 3] = large_text(n);
  if (n % 16 == 11) m.hashed.erase(1000 + n % 3);
}

/// The model after transactions 1 to n.
inline Model model_after(std::uint64_t n, bool large) {
  Model m;
  for (std::uint64_t i = 1; i <= n; ++i) step(m, i, large);
  return m;
}

/// Everything that the pool contains, by every container's own iteration.
template <class Tx, class AnyRoot>
Model contents(Tx& tx, const AnyRoot& root) {
  Model m;
  m.count = tx(root.count);
  for (std::size_t i = 0; i < m.slot.size(); ++i) m.slot[i] = tx(root.slot[i].value);
  m.half = tx(root.half);
  m.title = root.title.str(tx);
  root.ordered.for_each(tx,
                        [&](std::uint64_t k, const std::string& v) { m.ordered.emplace(k, v); });
  root.hashed.for_each(tx, [&](std::uint64_t k, const std::string& v) { m.hashed.emplace(k, v); });
  root.tree.for_each(tx, [&](std::uint64_t k, std::uint64_t v) { m.tree.emplace(k, v); });
  root.names.for_each(tx, [&](const std::string& v) { m.names.push_back(v); });
  root.waiting.for_each(tx, [&](std::uint64_t v) { m.waiting.push_back(v); });
  root.numbers.for_each(tx, [&](std::uint64_t v) { m.numbers.push_back(v); });
  return m;
}

/// FNV-1a (Fowler, Noll, Vo) over everything. The function is a copy: a change of the library's
/// hashes must not change what is expected.
inline std::uint64_t digest(const Model& m) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  const auto add_byte = [&](unsigned char b) { h = (h ^ b) * 0x100000001b3ULL; };
  const auto add = [&](std::uint64_t v) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<unsigned char>(v >> (8 * i)));
  };
  const auto add_text = [&](std::string_view s) {
    add(s.size());
    for (const char c : s) add_byte(static_cast<unsigned char>(c));
  };
  add(m.count);
  for (const std::uint64_t v : m.slot) add(v);
  add(m.half);
  add_text(m.title);
  for (const auto* texts : {&m.ordered, &m.hashed}) {
    add(texts->size());
    for (const auto& [k, v] : *texts) add(k), add_text(v);
  }
  add(m.tree.size());
  for (const auto& [k, v] : m.tree) add(k), add(v);
  add(m.names.size());
  for (const auto& v : m.names) add_text(v);
  add(m.waiting.size());
  for (const std::uint64_t v : m.waiting) add(v);
  add(m.numbers.size());
  for (const std::uint64_t v : m.numbers) add(v);
  return h;
}

/// The first part in which the two differ, in words; empty when they are equal.
inline std::string difference(const Model& found, const Model& expected) {
  const auto sizes = [](const auto& a, const auto& b) {
    return " (" + std::to_string(a.size()) + " elements, expected " + std::to_string(b.size()) +
           ")";
  };
  if (found.count != expected.count)
    return "the count of transactions is " + std::to_string(found.count) + ", expected " +
           std::to_string(expected.count);
  if (found.slot != expected.slot) return "the slots differ";
  if (found.half != expected.half) return "the 32-bit field differs";
  if (found.title != expected.title) return "the string differs";
  if (found.ordered != expected.ordered)
    return "the map differs" + sizes(found.ordered, expected.ordered);
  if (found.hashed != expected.hashed)
    return "the hash map differs" + sizes(found.hashed, expected.hashed);
  if (found.tree != expected.tree)
    return "the red-black tree differs" + sizes(found.tree, expected.tree);
  if (found.names != expected.names) return "the list differs" + sizes(found.names, expected.names);
  if (found.waiting != expected.waiting)
    return "the queue differs" + sizes(found.waiting, expected.waiting);
  if (found.numbers != expected.numbers)
    return "the vector differs" + sizes(found.numbers, expected.numbers);
  return {};
}

}  // namespace perdure::compat
