// SPDX-License-Identifier: BSD-3-Clause
//
// Database: an SQLite database in a pool. Its bytes lie in blocks of 4 KiB, whatever SQLite's page size, found through two levels of tables; what SQLite
// writes stays in DRAM, in an overlay, until commit() makes all of it one transaction: the words that differ are stored, no others.
//
// Crash invariant: B1 the pool has the database as after a whole number of commits: size, tables and blocks change in one transaction.
// One Database a pool and process, shared by all connections. SQLite's locks keep the overlay to one of them: it writes under EXCLUSIVE only.
// Errors: perdure::error; a failed commit() has changed nothing, in the pool or the overlay.
// Thread safety: read, size, write, truncate, commit by whoever holds SQLite's lock for it; open and release from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "perdure/api/pool.hpp"

namespace perdure::sqlite {

inline constexpr std::uint64_t block_bytes = 4096, blocks_in_table = 512, tables_in_root = 16384;
/// What one pool can have: 32 GiB.
inline constexpr std::uint64_t most_bytes = block_bytes * blocks_in_table * tables_in_root;

struct Block {
  std::array<p<std::uint64_t>, block_bytes / 8> word;
};
struct Table {
  std::array<ptr<Block>, blocks_in_table> block;
};
struct Root {
  p<std::uint64_t> bytes;    ///< the database's size
  p<std::uint64_t> commits;  ///< for tools
  std::array<ptr<Table>, tables_in_root> table;

  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    for (const auto& t : table)
      if (const Table* const at = tx(t); at != nullptr) {
        f(at);
        for (const auto& b : at->block)
          if (const Block* const block = tx(b); block != nullptr) f(block);
      }
  }
};
using DatabasePool = Pool<Root, engines<any_engine>>;

/// SQLite's levels, in its order.
enum class Lock : int { none, shared, reserved, pending, exclusive };

class Database {
 public:
  /// The process's Database on this pool: opened, or made, at the first call. `busy` where another process has it.
  static std::shared_ptr<Database> open(const std::string& path, const Options& options);
  /// The same on a pool that the caller made (tests). It is found by open() under this path while it is alive.
  static std::shared_ptr<Database> adopt(const std::string& path, DatabasePool pool);
  /// A connection needs it no more; the last one's closes the pool, before anybody opens it again.
  static void release(std::shared_ptr<Database>& database);
  Database(std::string path, DatabasePool pool, bool read_only);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Bytes [offset, offset + n), zeros beyond the end; how many of them there were.
  std::uint64_t read(std::uint64_t offset, void* to, std::uint64_t n);
  void write(std::uint64_t offset, const void* from, std::uint64_t n);
  void truncate(std::uint64_t bytes);
  /// B1: all that was written since the last one. Whether there was anything.
  bool commit(Durability durability);
  /// What was written since is forgotten.
  void discard() noexcept;
  [[nodiscard]] bool dirty() const noexcept { return !overlay_.empty() || size_ != committed_; }
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }
  [[nodiscard]] DatabasePool& pool() noexcept { return pool_; }

  // SQLite's locks, among this process's connections: `from` is what the connection holds. False: another's is in the way.
  bool lock(Lock from, Lock to);
  void unlock(Lock from, Lock to);
  [[nodiscard]] bool reserved();

 private:
  using Bytes = std::array<std::byte, block_bytes>;
  void load(std::uint64_t number, std::uint64_t skip, std::byte* to, std::uint64_t n);
  Bytes& overlaid(std::uint64_t number);

  const std::string path_;
  DatabasePool pool_;
  const bool read_only_;
  std::map<std::uint64_t, std::unique_ptr<Bytes>> overlay_;
  std::uint64_t size_ = 0, committed_ = 0;
  std::mutex mutex_;  // the locks
  unsigned shared_ = 0;
  bool reserved_ = false, pending_ = false, exclusive_ = false;
};

}  // namespace perdure::sqlite
