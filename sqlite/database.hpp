// SPDX-License-Identifier: BSD-3-Clause
//
// Database: design B on a pool: sync() makes what is in the overlay (overlay.hpp) one transaction,
// which stores only the words that differ. What the log cannot take in one transaction is first
// written beside the old blocks (database_spill.cpp).
//
// Crash invariants: DATABASE-1 the pool contains the database as after a whole number of commits:
// size, tables and blocks change in one transaction.
// DATABASE-2 blocks beyond the size are free (database_spill.cpp).
// A failed sync() has changed nothing in the pool or the overlay. Thread safety: store.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "sqlite/blocks.hpp"
#include "sqlite/overlay.hpp"

namespace perdure::sqlite {

struct Root {
  p<std::uint64_t> bytes;    ///< the database's size
  p<std::uint64_t> commits;  ///< for tools
  Blocks blocks;

  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    blocks.each_block(tx, f);
  }
};
using DatabasePool = Pool<Root, engines<any_engine>>;

class Database final : public Overlay {
 public:
  Database(std::string path, DatabasePool pool, bool read_only);

  /// DATABASE-1: makes everything that was written since the previous sync durable.
  void sync(Durability durability) override;
  void close() override { pool_.close(); }
  void let_go() noexcept override { const DatabasePool gone = std::move(pool_); }
  [[nodiscard]] DatabasePool& pool() noexcept { return pool_; }

 private:
  /// sync() as one transaction. Throws error(too_big), with nothing changed.
  void commit(Durability durability);
  /// The same as several transactions, of which one changes the database. Throws error(too_big) or
  /// error(full), with nothing changed.
  void spill(Durability durability);
  /// DATABASE-2: frees the blocks beyond a database whose size is `bytes`.
  void free_beyond(std::uint64_t bytes) noexcept;
  void load(std::uint64_t number, std::uint64_t skip, std::byte* to, std::uint64_t n) override;

  DatabasePool pool_;
  bool soon_ = false;  // the last commit may not be durable yet
};

}  // namespace perdure::sqlite
