// SPDX-License-Identifier: BSD-3-Clause
//
// Store: a database on a pool, as the VFS sees it: its bytes, the bytes of its rollback journal,
// and SQLite's locks. Two designs of one paper (SoftWrAP, MSST '15, Figure 15):
//
//   A  BlockStore (block_store.hpp): blocks are written in place in the pool, and so is
//      SQLite's own journal: SQLite makes its transactions atomic.
//   B  Database (database.hpp): what SQLite commits is one durable transaction of the pool; the
//      journal stays in DRAM.
// There is one Store per pool and process, shared by all connections. A forked child begins with
// none: the stores of its parent are not found there (vfs_files.hpp). SQLite's locks separate the
// writers of the database: it is changed under EXCLUSIVE. The journal is written under RESERVED,
// but other connections ask for it, read it and sync it, too: all of that is done under its mutex.
// Errors: perdure::error. Thread safety: open, find, release, locks, waits from any thread; the
// journal under journal_mutex(); the rest by the connection that holds SQLite's lock for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "perdure/api/options.hpp"
#include "perdure/api/receipt.hpp"
#include "sqlite/locks.hpp"

namespace perdure::sqlite {

class File {
 public:
  virtual ~File() = default;
  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
  /// Reads bytes [offset, offset + n), zeros beyond the end; returns how many of them exist.
  virtual std::uint64_t read(std::uint64_t offset, void* to, std::uint64_t n) = 0;
  virtual void write(std::uint64_t offset, const void* from, std::uint64_t n) = 0;
  virtual void truncate(std::uint64_t bytes) = 0;
  /// What was written is durable when it returns; with `async`, soon after.
  virtual void sync(Durability durability) = 0;
};

enum class Design : std::uint8_t { a, b };

class Store : public File {
 public:
  /// The process's Store on this pool; the first call opens or makes it. Without a design: the
  /// pool's own, or B for a new pool. `busy` if another process has the pool open. The Store is
  /// known by its path as SQLite names it: absolute, without links. With Options::read_only it may
  /// be a Store that is also written: what a connection may do is up to the connection. Without
  /// read_only, a Store that is open read-only is closed and opened anew for writing; its
  /// connections find locks().closed(), and open theirs again. `busy` if one of them is in a
  /// transaction.
  static std::shared_ptr<Store> open(const std::string& path, const Options& options,
                                     std::optional<Design> design = {});
  /// The Store that is open under this path, or null.
  static std::shared_ptr<Store> find(const std::string& path);
  /// The paths of all open stores.
  static std::vector<std::string> open_paths();
  /// Registers a Store that the caller made (tests): it is found by its path while it is alive.
  template <class T>
  static std::shared_ptr<T> adopt(const std::string& path, std::shared_ptr<T> made) {
    enlist(path, made);
    return made;
  }
  /// A connection no longer needs it; the last connection's release closes the pool, before any
  /// connection opens it again.
  static void release(std::shared_ptr<Store>& store);
  /// For the parent's Store in a forked child: it is left as it is, and never destroyed.
  static void abandon(std::shared_ptr<Store>& store) noexcept;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// A connection releases RESERVED: what it has written and not synced is dropped, if the design
  /// keeps that separately.
  virtual void discard() noexcept = 0;
  /// SQLite's journal: null if there is none and `make` is false. It lives as long as the Store.
  virtual File* journal(bool make) = 0;
  /// The removal is durable when it returns, if the journal is.
  virtual void remove_journal() = 0;
  /// Closes the pool in order, for a caller that wants to see the errors; only the destructor may
  /// follow.
  virtual void close() = 0;
  /// Releases the pool and its file, if it is open read-only and its locks are closed; only the
  /// destructor may follow.
  virtual void let_go() noexcept = 0;

  /// SQLite's `synchronous` of the connection that writes: false is OFF, where nothing syncs.
  void set_waits(bool yes) noexcept { waits_.store(yes, std::memory_order_relaxed); }
  [[nodiscard]] bool waits() const noexcept { return waits_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::mutex& journal_mutex() noexcept { return journal_mutex_; }
  [[nodiscard]] virtual Design design() const noexcept = 0;
  /// Whether its path now names another file, or none.
  [[nodiscard]] bool moved() const noexcept;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }
  [[nodiscard]] Locks& locks() noexcept { return locks_; }

 protected:
  Store(std::string path, bool read_only);
  const std::string path_;

 private:
  static void enlist(const std::string& path, const std::shared_ptr<Store>& store);
  const bool read_only_;
  std::uint64_t device_ = 0, inode_ = 0;  // of the pool's file; zero: there is none (tests)
  std::atomic<bool> waits_{true};
  std::mutex journal_mutex_;
  Locks locks_;
};

}  // namespace perdure::sqlite
