// SPDX-License-Identifier: BSD-3-Clause
//
// perform(): one operation of the fuzzer, on a container (ops_containers.hpp), on plain fields or
// on blocks of the heap.
// Thread safety: as the transaction.
#pragma once

#include <algorithm>

#include "tests/fuzz/ops_containers.hpp"

namespace perdure::fuzz {

inline void on_text(Changes& tx, string& c, std::string& m, const Op& op) {
  const std::string value = op.text();
  if (op.kind < 5) {
    c.assign(tx, value), m = value;
  } else if (op.kind < 10) {
    if (m.size() > 30'000) c.clear(tx), m.clear();
    c.append(tx, value), m += value;
  } else if (op.kind < 12) {
    c.reserve(tx, op.x * 16U);
  } else if (op.kind == 12) {
    c.clear(tx), m.clear();
  } else if (op.kind < 16) {
    const std::size_t first = op.key * 8U;
    if (first > m.size())
      return refused([&] { (void)c.substr(tx, first, op.x); }, "substr out of range");
    same(c.substr(tx, first, op.x), m.substr(first, op.x), "substr");
  } else {
    same(c.size(tx), m.size(), "size");
    same(c.str(tx), m, "str");
  }
}

inline void on_fields(Changes& tx, Fields& f, Model& m, const Op& op) {
  const std::size_t b = op.key % m.byte.size(), w = op.key % m.word.size();
  const std::uint64_t n = op.number();
  switch (op.kind) {
    case 0: tx(f.byte[b]) = op.x, m.byte[b] = op.x; break;
    case 1: tx(f.byte[b]) += op.x, m.byte[b] = static_cast<std::uint8_t>(m.byte[b] + op.x); break;
    case 2: {  // at any address, of any length
      const std::size_t count = std::min<std::size_t>(op.y % 11U, m.byte.size() - b);
      for (std::size_t i = 0; i < count; ++i) m.byte[b + i] = static_cast<std::uint8_t>(op.x + i);
      tx.write_bytes(&f.byte[b], &m.byte[b], count);
      break;
    }
    case 3: tx(f.word[w]) = n, m.word[w] = n; break;
    case 4: tx(f.word[w]) *= n, m.word[w] *= n; break;
    case 5: same(tx(f.word[w])++, m.word[w]++, "++"); break;
    case 6: tx(f.word[w]) = tx(f.word[0]), m.word[w] = m.word[0]; break;
    case 7:
      tx(f.half) ^= static_cast<std::uint32_t>(n), m.half ^= static_cast<std::uint32_t>(n);
      break;
    case 8:
      tx(f.quarter) = static_cast<std::int16_t>(n), m.quarter = static_cast<std::int16_t>(n);
      break;
    case 9: {
      const Record r{n, {op.x, op.y, op.key}, -op.x};
      tx(f.record) = r, m.record = r;
      break;
    }
    case 10:
      std::rotate(m.word.begin(), m.word.begin() + 1, m.word.end());
      tx.write_bytes(&f.word, m.word.data(), sizeof m.word);
      break;
    default:
      same(tx.read(f.word[w]), m.word[w], "a word");
      same(tx.read(f.byte[b]), m.byte[b], "a byte");
      same(tx.read(f.record), m.record, "a record");
  }
}

inline void on_blocks(Changes& tx, Root& root, Model& m, const Op& op) {
  static constexpr std::uint64_t sizes[] = {1,     16,    64,    192,    100,    130,   250,
                                            800,   4000,  4096,  9000,   16000,  32768, 40000,
                                            65536, 65537, 72000, 131072, 200000, 400000};
  const std::size_t i = op.key % m.block.size(), j = op.key / 8U % m.block.size();
  auto& slot = root.block[i];
  auto& model = m.block[i];
  std::uint64_t* const block = tx(slot);
  same(block != nullptr, model.size != 0, "a block: whether there is one");
  const auto fill = [&](std::uint64_t* to, std::size_t from, std::size_t n) {
    for (std::size_t at = from; at < from + n; ++at)
      model.bytes[at] = static_cast<char>(op.x + at * 7);
    tx.write_bytes(reinterpret_cast<std::byte*>(to) + from, model.bytes.data() + from, n);
  };
  if (op.kind < 8) {
    if (block != nullptr) {
      tx.free(block);
      tx(slot) = nullptr;
      model = {};
      if (op.kind < 4) return;
    }
    const std::uint64_t size = sizes[op.x % std::size(sizes)];
    std::byte* const fresh = tx.alloc(size);
    same(reinterpret_cast<std::uintptr_t>(fresh) % (size % 64 == 0 ? 64 : 16), 0U,
         "a block's alignment");
    tx(slot) = reinterpret_cast<std::uint64_t*>(fresh);
    model.size = size;
    model.bytes.resize(std::min<std::size_t>(size, op.y >= 240  ? 80'000
                                                   : op.y < 200 ? op.y
                                                                : op.y * 20U));
    fill(reinterpret_cast<std::uint64_t*>(fresh), 0, model.bytes.size());
  } else if (op.kind < 12) {  // a part at any address
    if (model.bytes.empty()) return;
    const std::size_t from = op.x * 5U % model.bytes.size();
    fill(block, from, std::min<std::size_t>(op.y, model.bytes.size() - from));
  } else if (op.kind == 12) {
    std::uint64_t* const other = tx(root.block[j]);
    tx(root.block[j]) = block;
    tx(slot) = other;
    std::swap(m.block[i], m.block[j]);
  } else if (op.kind == 13) {  // not a block: refused
    refused([&] { tx.free(&root.fields.word[1]); }, "free of a field");
    if (block != nullptr) refused([&] { tx.free(block + 1); }, "free of what is inside a block");
  } else if (op.kind == 14) {  // allocated and freed
    std::byte* const passing = tx.alloc(sizes[op.x % std::size(sizes)]);
    tx.write_bytes(passing, "x", 1);
    tx.free(passing);
    if (op.y % 2 != 0) refused([&] { tx.free(passing); }, "free twice");
  } else {
    std::string bytes(model.bytes.size(), '\0');
    if (block != nullptr) tx.read_bytes(bytes.data(), block, bytes.size());
    same(bytes, model.bytes, "a block's bytes");
  }
}

inline void perform(Changes& tx, Root& root, Model& m, const Op& op) {
  switch (op.target) {
    case 0: return on_map(tx, root.by_number, m.by_number, op);
    case 1: return on_map(tx, root.by_text, m.by_text, op);
    case 2: return on_map(tx, root.tree, m.tree, op);
    case 3: return on_map(tx, root.text_tree, m.text_tree, op);
    case 4: return on_map(tx, root.rb, m.rb, op);
    case 5: return on_map(tx, root.text_rb, m.text_rb, op);
    case 6: return on_vector(tx, root.numbers, m.numbers, op);
    case 7: return on_vector(tx, root.texts, m.texts, op);
    case 8: return on_list(tx, root.chain, m.chain, op);
    case 9: return on_queue(tx, root.line, m.line, op);
    case 10: return on_queue(tx, root.number_line, m.number_line, op);
    case 11: return on_text(tx, root.text, m.text, op);
    case 12: return on_fields(tx, root.fields, m, op);
    default: return on_blocks(tx, root, m, op);
  }
}

}  // namespace perdure::fuzz
