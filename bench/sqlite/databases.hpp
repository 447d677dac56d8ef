// SPDX-License-Identifier: BSD-3-Clause
//
// The databases that are compared: SQLite on a plain file with a WAL or a rollback journal, and on
// a pool in both designs of the VFS (docs/sqlite.md); and the costs of a run.
// Thread safety: one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "bench/harness/device_bytes.hpp"
#include "bench/sqlite/connection.hpp"
#include "sqlite/block_store.hpp"
#include "sqlite/database.hpp"
#include "sqlite/vfs.hpp"

namespace bench::sqlite {

struct Setup {
  /// wal, journal: a plain file. b: the engine's transactions. a: SQLite's journal in the pool.
  /// non-atomic: the same without a journal (after a crash the database may be damaged: it is the
  /// paper's baseline).
  std::string kind = "b";
  std::string engine = "shadow";  ///< of kind b
  std::string medium = "file";    ///< of a pool
  std::string directory = "build";
  /// emulated: the time that a line takes to leave the 8-line write buffer.
  std::uint32_t tw_ns = 0;
  std::uint64_t log_size = std::uint64_t{64} << 20, max_size = std::uint64_t{8} << 30;
};

struct Cost {
  /// Bytes written to the log: a WAL's frames, a pool's records; a journal's are not counted.
  std::uint64_t log_bytes = 0;
  /// Bytes that the process has had written to its storage (/proc/self/io): none on tmpfs.
  std::uint64_t device_bytes = 0;
  std::uint64_t lines = 0, fences = 0;  ///< a pool's medium: 64-byte lines written, fences
  friend Cost operator-(Cost a, const Cost& b) {
    a.log_bytes -= b.log_bytes, a.device_bytes -= b.device_bytes, a.lines -= b.lines,
        a.fences -= b.fences;
    return a;
  }
};

class Subject {
 public:
  explicit Subject(const Setup& setup) : setup_(setup), path_(setup.directory + "/bench.db") {
    if (!plain()) open_pool();
    connect();
  }
  ~Subject() {
    db_.reset();
    perdure::sqlite::Store::release(store_);
  }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  [[nodiscard]] Connection& db() noexcept { return *db_; }
  /// Closes and opens again: a pool is recovered from, or read from, the medium.
  void reopen() {
    db_.reset();
    perdure::sqlite::Store::release(store_);
    a_ = nullptr, b_ = nullptr;
    if (!plain()) open_pool();
    connect();
  }
  [[nodiscard]] Cost cost() const {
    Cost c;
    c.device_bytes = static_cast<std::uint64_t>(device_bytes());
    c.log_bytes = wal_bytes_;
    const auto add = [&c](auto& pool) {
      c.log_bytes = pool.stats().log_bytes;
      const auto counted = pool.file().medium().counters();
      c.lines = counted.flushed_lines + counted.streamed_lines;
      c.fences = counted.fences;
    };
    if (a_ != nullptr) add(a_->pool());
    if (b_ != nullptr) add(b_->pool());
    return c;
  }

 private:
  [[nodiscard]] bool plain() const { return setup_.kind == "wal" || setup_.kind == "journal"; }

  void open_pool() {
    perdure::Options o;
    o.creation.threads = 1;
    o.creation.log_size = setup_.log_size;
    o.creation.max_size = setup_.max_size;
    o.medium = setup_.medium;
    o.medium_options.delays.drain_ns = setup_.tw_ns;
    o.medium_options.delays.buffer_each = setup_.tw_ns != 0;
    const bool b = setup_.kind == "b";
    if (b) o.engine = setup_.engine;
    if (perdure::sqlite::register_vfs() != SQLITE_OK)
      throw std::runtime_error("the VFS could not be registered");
    store_ = perdure::sqlite::Store::open(
        path_, o, b ? perdure::sqlite::Design::b : perdure::sqlite::Design::a);
    a_ = dynamic_cast<perdure::sqlite::BlockStore*>(store_.get());
    b_ = dynamic_cast<perdure::sqlite::Database*>(store_.get());
  }

  void connect() {
    db_ = std::make_unique<Connection>(path_, plain() ? nullptr : "perdure");
    db_->run("pragma synchronous = full");
    if (setup_.kind == "wal") {
      db_->run("pragma journal_mode = wal");
      wal_pages_ = 0;
      page_bytes_ = std::stoull(db_->run("pragma page_size"));
      sqlite3_wal_hook(db_->get(), grown, this);
    }
    if (setup_.kind == "non-atomic") db_->run("pragma journal_mode = off");
  }

  // Does what SQLite does by itself at 1000 pages (wal_autocheckpoint), and counts the frames.
  static int grown(void* me, sqlite3* db, const char* schema, int pages) {
    auto& s = *static_cast<Subject*>(me);
    const auto now = static_cast<std::uint64_t>(pages);
    s.wal_bytes_ += (now >= s.wal_pages_ ? now - s.wal_pages_ : now) * (s.page_bytes_ + 24);
    s.wal_pages_ = now;
    if (pages >= 1000)
      sqlite3_wal_checkpoint_v2(db, schema, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
    return SQLITE_OK;
  }

  const Setup setup_;
  const std::string path_;
  std::shared_ptr<perdure::sqlite::Store> store_;
  perdure::sqlite::BlockStore* a_ = nullptr;
  perdure::sqlite::Database* b_ = nullptr;
  std::unique_ptr<Connection> db_;
  std::uint64_t wal_bytes_ = 0, wal_pages_ = 0, page_bytes_ = 4096;
};

}  // namespace bench::sqlite
