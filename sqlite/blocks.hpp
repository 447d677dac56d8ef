// SPDX-License-Identifier: BSD-3-Clause
//
// How a file's bytes lie in a pool, in both designs: in blocks of 4 KiB, whatever SQLite's page
// size is, found through two levels of tables.
// Thread safety: that of a transaction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "perdure/api/pool.hpp"

namespace perdure::sqlite {

inline constexpr std::uint64_t block_bytes = 4096, blocks_in_table = 512, tables_in_file = 16384;
/// The maximum size of a file: 32 GiB.
inline constexpr std::uint64_t max_bytes = block_bytes * blocks_in_table * tables_in_file;

constexpr std::uint64_t blocks_of(std::uint64_t bytes) {
  return (bytes + block_bytes - 1) / block_bytes;
}

struct Block {
  std::array<p<std::uint64_t>, block_bytes / 8> word;
};
struct Table {
  std::array<ptr<Block>, blocks_in_table> block;
};

struct Blocks {
  std::array<ptr<Table>, tables_in_file> table;

  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    for (const auto& t : table)
      if (const Table* const at = tx(t); at != nullptr) {
        f(at);
        for (const auto& b : at->block)
          if (const Block* const block = tx(b); block != nullptr) f(block);
      }
  }
  /// The place of a block in its table; null if there is no table.
  template <class Tx>
  const ptr<Block>* find(Tx& tx, std::uint64_t number) const {
    const Table* const at = tx(table[number / blocks_in_table]);
    return at == nullptr ? nullptr : &at->block[number % blocks_in_table];
  }
  /// The same, but it makes the table if there is none.
  template <class Tx>
  ptr<Block>& place(Tx& tx, std::uint64_t number) {
    auto& top = table[number / blocks_in_table];
    Table* at = tx(top);
    if (at == nullptr) {
      static constexpr std::array<std::byte, sizeof(Table)> zeros{};
      at = reinterpret_cast<Table*>(tx.alloc(sizeof(Table)));
      tx.write_bytes(static_cast<void*>(at), zeros.data(), sizeof(Table));
      tx(top) = at;
    }
    return at->block[number % blocks_in_table];
  }
  /// Frees the blocks [from, to).
  template <class Tx>
  void free(Tx& tx, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t number = from; number < to; ++number) {
      Table* const at = tx(table[number / blocks_in_table]);
      if (at == nullptr) continue;
      auto& slot = at->block[number % blocks_in_table];
      if (Block* const block = tx(slot); block != nullptr) {
        tx.free(block);
        tx(slot) = nullptr;
      }
    }
  }
  /// Frees the tables that have no blocks, from block `blocks` on.
  template <class Tx>
  void free_tables(Tx& tx, std::uint64_t blocks, std::uint64_t had) {
    for (std::uint64_t t = (blocks + blocks_in_table - 1) / blocks_in_table;
         t < (had + blocks_in_table - 1) / blocks_in_table; ++t)
      if (Table* const at = tx(table[t]); at != nullptr) {
        tx.free(at);
        tx(table[t]) = nullptr;
      }
  }
};

}  // namespace perdure::sqlite
