// SPDX-License-Identifier: BSD-3-Clause
//
// Database: a commit that the pool's log cannot take in one transaction, such as DROP TABLE or
// CREATE INDEX of 100 MB.
//
// Invariant DATABASE-2: a block whose number is at or beyond the database's size is free: it is
// read as zeros, and freed when convenient. A large commit therefore has three parts, each of them
// transactions that fit the log:
//   1 The blocks that differ are written whole, as new blocks beyond the end of both the old and
//   the new database.
//   2 One transaction swaps them with the blocks that they replace, and sets the size. It logs two
//   pointers per block of 4 KiB.
//   3 The blocks beyond the end are freed: those that were replaced, and those that a smaller
//   database no longer has.
// A crash in part 1 leaves the old database, a crash in part 3 the new one (DATABASE-1), with
// blocks beyond the end, which the next opening for writing frees. The transactions of part 1 may
// be acknowledged before they are durable: a pool recovers its transactions in order, so that part
// 2 is durable only if they are.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sqlite/database.hpp"

namespace perdure::sqlite {
namespace {

constexpr std::uint64_t at_once = 256;  // blocks per transaction; fewer where the log is small
constexpr std::uint64_t max_blocks = blocks_in_table * tables_in_file;

/// Calls f(from, to) for parts of [from, to) in order, with smaller parts if f throws too_big. What
/// f does for one block must fit the log.
template <class F>
void in_parts(std::uint64_t from, std::uint64_t to, F&& f) {
  for (std::uint64_t step = at_once; from < to;) {
    const std::uint64_t end = std::min(to, from + step);
    try {
      f(from, end);
      from = end;
    } catch (const error& e) {
      if (e.code() != Code::too_big || step == 1) throw;
      step = std::max<std::uint64_t>(step / 4, 1);
    }
  }
}

}  // namespace

void Database::spill(Durability durability) {
  const std::uint64_t end = std::max(blocks_of(size_), blocks_of(committed_));
  // They have tables of their own.
  const std::uint64_t first = (end + blocks_in_table - 1) / blocks_in_table * blocks_in_table;
  if (overlay_.size() > max_blocks - std::min(first, max_blocks))
    throw error(failure(Code::too_big, path_,
                        "a transaction over " + std::to_string(overlay_.size()) +
                            " blocks of 4 KiB, more than the pool's log takes",
                        "at most " + std::to_string(max_blocks - std::min(first, max_blocks)) +
                            " beside a database of this size",
                        "split it, or make the pool with a larger log_size"));
  try {
    std::vector<std::pair<std::uint64_t, const Bytes*>> changed;
    for (const auto& [number, bytes] : overlay_) changed.emplace_back(number, bytes.get());
    in_parts(0, changed.size(), [&](std::uint64_t from, std::uint64_t to) {
      pool_.update(Durability::async, [&](auto& tx, Root& root) {
        for (std::uint64_t i = from; i < to; ++i) {
          auto& slot = root.blocks.place(tx, first + i);
          Block* block = tx(slot);
          if (block == nullptr) {
            block = reinterpret_cast<Block*>(tx.alloc(block_bytes));
            tx(slot) = block;
          }
          tx.write_bytes(static_cast<void*>(block), changed[i].second->data(), block_bytes);
        }
      });
    });
    pool_.update(durability, [&](auto& tx, Root& root) {
      for (std::uint64_t i = 0; i < changed.size(); ++i) {
        auto& mine = root.blocks.place(tx, changed[i].first);
        auto& made = root.blocks.place(tx, first + i);
        Block *const old = tx(mine), *const fresh = tx(made);
        tx(mine) = fresh;
        tx(made) = old;
      }
      if (size_ != committed_) tx(root.bytes) = size_;
      tx(root.commits) += 1;
    });
  } catch (...) {
    free_beyond(committed_);  // frees what part 1 has made
    throw;
  }
  free_beyond(size_);
}

void Database::free_beyond(std::uint64_t bytes) noexcept {
  try {
    const std::uint64_t end = blocks_of(bytes);
    const auto tables = pool_.view([&](auto& tx, const Root& root) {
      std::vector<std::uint64_t> found;
      for (std::uint64_t t = end / blocks_in_table; t < tables_in_file; ++t) {
        const Table* const table = tx(root.blocks.table[t]);
        if (table == nullptr) continue;
        bool any = t * blocks_in_table >= end;  // the table itself
        for (std::uint64_t n = std::max(end, t * blocks_in_table);
             !any && n < (t + 1) * blocks_in_table; ++n)
          any = tx(table->block[n % blocks_in_table]) != nullptr;
        if (any) found.push_back(t);
      }
      return found;
    });
    for (const std::uint64_t t : tables) {
      const std::uint64_t first = t * blocks_in_table, last = first + blocks_in_table;
      in_parts(std::max(end, first), last, [&](std::uint64_t from, std::uint64_t to) {
        pool_.update(Durability::async, [&](auto& tx, Root& root) {
          root.blocks.free(tx, from, to);
          if (first >= end && to == last) root.blocks.free_tables(tx, first, last);
        });
      });
    }
  } catch (const std::exception&) {
    // DATABASE-2: the blocks stay until the next opening; the pool reports its failure at the next
    // commit.
  }
}

}  // namespace perdure::sqlite
