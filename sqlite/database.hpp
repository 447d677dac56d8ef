// SPDX-License-Identifier: BSD-3-Clause
//
// Database: design B. What SQLite writes stays in DRAM, in an overlay, until sync() makes all of it
// one transaction, which stores only the words that differ. What the log cannot take in one
// transaction is first written beside the old blocks (database_spill.cpp).
//
// Crash invariants: DATABASE-1 the pool contains the database as after a whole number of commits:
// size, tables and blocks change in one transaction.
// DATABASE-2 blocks beyond the size are free (database_spill.cpp).
// A failed sync() has changed nothing in the pool or the overlay. Thread safety: store.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "sqlite/blocks.hpp"
#include "sqlite/dram_file.hpp"
#include "sqlite/store.hpp"

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

class Database final : public Store {
 public:
  Database(std::string path, DatabasePool pool, bool read_only);

  [[nodiscard]] std::uint64_t size() const noexcept override { return size_; }
  std::uint64_t read(std::uint64_t offset, void* to, std::uint64_t n) override;
  void write(std::uint64_t offset, const void* from, std::uint64_t n) override;
  void truncate(std::uint64_t bytes) override;
  /// DATABASE-1: makes everything that was written since the previous sync durable.
  void sync(Durability durability) override;
  void discard() noexcept override;
  File* journal(bool make) override;
  void remove_journal() override { journaled_.store(false, std::memory_order_relaxed); }

  void close() override { pool_.close(); }
  void let_go() noexcept override { const DatabasePool gone = std::move(pool_); }
  [[nodiscard]] Design design() const noexcept override { return Design::b; }

  [[nodiscard]] DatabasePool& pool() noexcept { return pool_; }

 private:
  using Bytes = std::array<std::byte, block_bytes>;
  /// sync() as one transaction. Throws error(too_big), with nothing changed.
  void commit(Durability durability);
  /// The same as several transactions, of which one changes the database. Throws error(too_big) or
  /// error(full), with nothing changed.
  void spill(Durability durability);
  /// DATABASE-2: frees the blocks beyond a database whose size is `bytes`.
  void free_beyond(std::uint64_t bytes) noexcept;
  void load(std::uint64_t number, std::uint64_t skip, std::byte* to, std::uint64_t n);
  Bytes& overlaid(std::uint64_t number);

  DatabasePool pool_;
  std::map<std::uint64_t, std::unique_ptr<Bytes>> overlay_;
  std::uint64_t size_ = 0, committed_ = 0;
  bool soon_ = false;  // the last commit may not be durable yet
  DramFile journal_;
  std::atomic<bool> journaled_{false};  // other connections read it, too
};

}  // namespace perdure::sqlite
