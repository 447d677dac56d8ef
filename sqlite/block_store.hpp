// SPDX-License-Identifier: BSD-3-Clause
//
// BlockStore: design A. The database and SQLite's rollback journal lie side by side in a pool. What
// SQLite writes is stored in place at once, and becomes durable when SQLite syncs (one fence for
// the bytes, a second one if the size has changed). SQLite's journal makes transactions atomic:
// after a crash SQLite plays a hot journal back.
//
// Crash invariants, which are what a file system with ordered sizes promises:
//   BLOCKSTORE-1 A file's size, and whether the file exists, is one word in its pool, stored when
//                the bytes below it are durable. A smaller size is durable before anything is
//                stored beyond it: it is the end of a journal, and SQLite would otherwise play the
//                old one back. With synchronous=OFF, where nothing syncs, the size is stored at
//                once: a kill leaves what a file system would leave, a power cut may leave a
//                damaged database.
//   BLOCKSTORE-2 Blocks are added to a file by a transaction of the pool's engine (undo, which maps
//                the data region itself) before bytes are written to them; they are freed after the
//                smaller size is durable.
// Thread safety: store.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/engine/undo/instances.hpp"
#include "sqlite/blocks.hpp"
#include "sqlite/store.hpp"

namespace perdure::sqlite {

struct FileRoot {
  p<std::uint64_t> size_1;  ///< BLOCKSTORE-1: size + 1; 0: there is no such file
  Blocks blocks;
};
struct BlockRoot {
  std::array<FileRoot, 2> file;  ///< the database, the journal

  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    for (const auto& one : file) one.blocks.each_block(tx, f);
  }
};
using BlockPool = Pool<BlockRoot, engines<undo_none>>;

/// One of a BlockStore's two files.
class BlockFile final : public File {
 public:
  /// `owner` outlives it; its `waits` says whether to sync.
  BlockFile(BlockPool& pool, const Store& owner, const std::string& path, std::size_t which);

  // pairs with make, remove
  [[nodiscard]] bool there() const noexcept { return size_1_.load(std::memory_order_acquire) != 0; }
  void make();
  /// The removal is durable when it returns.
  void remove();
  [[nodiscard]] std::uint64_t size() const noexcept override;
  std::uint64_t read(std::uint64_t offset, void* to, std::uint64_t n) override;
  void write(std::uint64_t offset, const void* from, std::uint64_t n) override;
  void truncate(std::uint64_t bytes) override;
  void sync(Durability durability) override;
  /// Frees the blocks beyond the durable size, except for the first `kept`.
  void trim(std::uint64_t kept);

 private:
  [[nodiscard]] std::uint64_t place_of(const void* in_view) const noexcept;  // on the medium
  void reserve(std::uint64_t bytes);
  void put(std::uint64_t offset, const std::byte* from, std::uint64_t n);
  void set_size(std::uint64_t size_1);

  BlockPool& pool_;
  medium::Medium& medium_;
  const Store& owner_;
  const std::string& path_;
  const std::size_t which_;
  std::uint64_t at_;                   // of size_1, on the medium
  std::vector<std::uint64_t> blocks_;  // their places on the medium
  // Of these blocks, one bit for each line stored to.
  std::map<std::uint64_t, std::uint64_t> dirty_;
  std::atomic<std::uint64_t> size_1_;  // as SQLite sees it
  std::uint64_t durable_1_;            // the durable value; `unknown`: as last seen
};

class BlockStore final : public Store {
 public:
  BlockStore(std::string path, BlockPool pool, bool read_only);
  ~BlockStore() override;
  /// The pool's engine is the one of this design: error(invalid) if another one is asked for.
  static Options options_of(const std::string& path, Options options);

  [[nodiscard]] std::uint64_t size() const noexcept override { return database_.size(); }
  std::uint64_t read(std::uint64_t offset, void* to, std::uint64_t n) override {
    return database_.read(offset, to, n);
  }
  void write(std::uint64_t offset, const void* from, std::uint64_t n) override {
    database_.write(offset, from, n);
  }
  void truncate(std::uint64_t bytes) override { database_.truncate(bytes); }
  void sync(Durability durability) override;
  void discard() noexcept override {}
  File* journal(bool make) override;
  void remove_journal() override;
  void close() override;
  void let_go() noexcept override {
    closed_ = true;
    const BlockPool gone = std::move(pool_);
  }

  [[nodiscard]] Design design() const noexcept override { return Design::a; }

  [[nodiscard]] BlockPool& pool() noexcept { return pool_; }

 private:
  BlockPool pool_;
  BlockFile database_, journal_;
  bool closed_ = false;
};

}  // namespace perdure::sqlite
