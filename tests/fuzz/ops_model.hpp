// SPDX-License-Identifier: BSD-3-Clause
//
// The root of the fuzzer of operations, the model with which it is compared, and the full
// comparison. Engines appear here as Words only, so that the containers are compiled once and not
// for each engine.
// Thread safety: as the transaction.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "perdure/perdure.hpp"

namespace perdure::fuzz {

/// The pool and its model did different things.
struct Difference : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class A, class B>
void same(const A& found, const B& expected, const char* what) {
  if (!(found == expected)) throw Difference(what);
}

/// A transaction of any engine, as a perdure::Tx calls it. It counts, so that a wrong `full`
/// or `too_big` can be found.
class Words {
 public:
  Words() = default;
  Words(const Words&) = delete;
  virtual ~Words() = default;
  virtual std::uint64_t read(const std::uint64_t* a) = 0;
  virtual void write(std::uint64_t* a, std::uint64_t v) = 0;
  virtual void write_words(std::uint64_t* a, const std::uint64_t* from, std::uint64_t n) = 0;
  virtual std::byte* alloc(std::uint64_t n) = 0;
  virtual void free(void* block) = 0;
  virtual void expect(const void* a, std::uint64_t n) = 0;
  [[nodiscard]] bool direct() const noexcept { return false; }
};
struct Counts {
  std::uint64_t words = 0, heap_ops = 0, allocated = 0;
};
template <class Typed>
class WordsOf final : public Words {
 public:
  WordsOf(Typed& tx, Counts& counts) : tx_(tx), counts_(counts) {}
  std::uint64_t read(const std::uint64_t* a) override {
    return tx_.read(*reinterpret_cast<const p<std::uint64_t>*>(a));
  }
  void expect(const void* a, std::uint64_t n) override { tx_.expect(a, n); }
  void write(std::uint64_t* a, std::uint64_t v) override {
    ++counts_.words;
    if constexpr (!Typed::read_only) tx_.write(*reinterpret_cast<p<std::uint64_t>*>(a), v);
  }
  void write_words(std::uint64_t* a, const std::uint64_t* from, std::uint64_t n) override {
    counts_.words += n;
    if constexpr (!Typed::read_only) tx_.write_bytes(a, from, n * 8);
  }
  std::byte* alloc(std::uint64_t n) override {
    ++counts_.heap_ops;
    counts_.allocated += n;
    std::byte* block = nullptr;
    if constexpr (!Typed::read_only) block = tx_.alloc(n);
    return block;
  }
  void free(void* block) override {
    ++counts_.heap_ops;
    if constexpr (!Typed::read_only) tx_.free(block);
  }

 private:
  Typed& tx_;
  Counts& counts_;
};
using Changes = Tx<Words>;
using Reads = ReadTx<Words>;

struct Record {
  std::uint64_t a;
  std::uint32_t b[3];
  std::int32_t c;
  friend bool operator==(const Record&, const Record&) = default;
};
struct Fields {
  std::array<p<std::uint8_t>, 11> byte;
  std::array<p<std::uint64_t>, 6> word;
  p<std::uint32_t> half;
  p<std::int16_t> quarter;
  p<Record> record;
};

/// Small nodes and tables, so that few elements split, merge and grow them.
struct Root {
  hash_map<std::uint64_t, std::string> by_number;
  hash_map<std::string, std::uint64_t, 4> by_text;
  map<std::uint64_t, std::string, 4> tree;
  map<std::string, std::uint64_t, 20> text_tree;
  rb_tree<std::uint64_t, std::uint64_t> rb;
  rb_tree<std::string, std::string> text_rb;
  vector<std::uint64_t> numbers;
  vector<std::string> texts;
  list<std::string> chain;
  queue<std::string> line;
  queue<std::uint64_t> number_line;
  string text;
  Fields fields;
  std::array<ptr<std::uint64_t>, 8> block;
};

struct Model {
  std::map<std::uint64_t, std::string> by_number;
  std::map<std::string, std::uint64_t> by_text;
  std::map<std::uint64_t, std::string> tree;
  std::map<std::string, std::uint64_t> text_tree;
  std::map<std::uint64_t, std::uint64_t> rb;
  std::map<std::string, std::string> text_rb;
  std::vector<std::uint64_t> numbers;
  std::vector<std::string> texts;
  std::vector<std::string> chain;
  std::deque<std::string> line;
  std::deque<std::uint64_t> number_line;
  std::string text;
  std::array<std::uint8_t, 11> byte{};
  std::array<std::uint64_t, 6> word{};
  std::uint32_t half = 0;
  std::int16_t quarter = 0;
  Record record{};
  struct Block {
    std::uint64_t size = 0;  ///< 0: none
    std::string bytes;       ///< the written ones, from the start
    friend bool operator==(const Block&, const Block&) = default;
  };
  std::array<Block, 8> block;
  friend bool operator==(const Model&, const Model&) = default;
};

template <class C, class M>
std::string map_difference(Reads& tx, const C& c, const M& m, const char* name) {
  const auto differs = [&](const std::string& how) { return std::string(name) + ": " + how; };
  if (c.size(tx) != m.size())
    return differs("size " + std::to_string(c.size(tx)) + ", expected " + std::to_string(m.size()));
  M found;
  std::uint64_t n = 0;
  bool in_order = true;
  c.for_each(tx, [&](const auto& k, const auto& v) {
    if (n != 0 && !(found.rbegin()->first < k)) in_order = false;
    found.emplace(k, v);
    return ++n <= m.size();
  });
  if (n != m.size() || found != m) return differs("other elements than expected");
  if constexpr (requires { c.lower_bound(tx, m.begin()->first); }) {
    if (!in_order) return differs("out of order");
  }
  for (const auto& [k, v] : m)
    if (c.find(tx, k) != v) return differs("an element that is there is not found");
  return {};
}
template <class C, class M>
std::string row_difference(Reads& tx, const C& c, const M& m, const char* name) {
  M found;
  c.for_each(tx, [&](const auto& v) {
    found.push_back(v);
    return found.size() <= m.size();
  });
  if (found == m && c.size(tx) == m.size()) return {};
  return std::string(name) + ": " + std::to_string(found.size()) + " elements, expected " +
         std::to_string(m.size()) + ", or other ones";
}

/// The differences between pool and model; empty when there are none.
inline std::string difference(Reads& tx, const Root& r, const Model& m) {
  std::string s;
  const auto none = [&s](std::string found) { return (s = std::move(found)).empty(); };
  if (!none(map_difference(tx, r.by_number, m.by_number, "by_number"))) return s;
  if (!none(map_difference(tx, r.by_text, m.by_text, "by_text"))) return s;
  if (!none(map_difference(tx, r.tree, m.tree, "tree"))) return s;
  if (!none(map_difference(tx, r.text_tree, m.text_tree, "text_tree"))) return s;
  if (!none(map_difference(tx, r.rb, m.rb, "rb"))) return s;
  if (!none(map_difference(tx, r.text_rb, m.text_rb, "text_rb"))) return s;
  if (!none(row_difference(tx, r.numbers, m.numbers, "numbers"))) return s;
  if (!none(row_difference(tx, r.texts, m.texts, "texts"))) return s;
  if (!none(row_difference(tx, r.chain, m.chain, "chain"))) return s;
  if (!none(row_difference(tx, r.line, m.line, "line"))) return s;
  if (!none(row_difference(tx, r.number_line, m.number_line, "number_line"))) return s;
  if (r.text.str(tx) != m.text) return "text: another one than expected";
  for (std::size_t i = 0; i < m.byte.size(); ++i)
    if (tx(r.fields.byte[i]) != m.byte[i]) return "fields.byte: another value than expected";
  for (std::size_t i = 0; i < m.word.size(); ++i)
    if (tx(r.fields.word[i]) != m.word[i]) return "fields.word: another value than expected";
  if (tx(r.fields.half) != m.half || tx(r.fields.quarter) != m.quarter ||
      tx(r.fields.record) != m.record)
    return "fields: another value";
  for (std::size_t i = 0; i < m.block.size(); ++i) {
    const std::uint64_t* const block = tx(r.block[i]);
    if ((block != nullptr) != (m.block[i].size != 0))
      return "block " + std::to_string(i) + ": there, or missing, where not expected";
    if (block == nullptr) continue;
    std::string bytes(m.block[i].bytes.size(), '\0');
    tx.read_bytes(bytes.data(), block, bytes.size());
    if (bytes != m.block[i].bytes)
      return "block " + std::to_string(i) + ": other bytes than were written";
  }
  return {};
}

}  // namespace perdure::fuzz
