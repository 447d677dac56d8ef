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
#include "bench/sqlite/baseline_store.hpp"
#include "bench/sqlite/connection.hpp"
#include "sqlite/block_store.hpp"
#include "sqlite/database.hpp"
#include "sqlite/vfs.hpp"

namespace bench::sqlite {

struct Setup {
  /// wal, journal: a plain file. b: the engine's transactions. a: SQLite's journal in the pool.
  /// b-non-atomic, b-undo-log: b over the paper's other two methods (baseline_store.hpp).
  std::string kind = "b";
  /// a: whole pages, and after a crash the database may be damaged. b: SQLite writes no journal to
  /// DRAM; a ROLLBACK drops what the store has not synced.
  bool no_journal = false;
  std::string engine = "shadow";  ///< of kind b
  std::string medium = "file";    ///< of a pool
  std::string directory = "build";
  /// emulated: the time that a line takes to leave the 8-line write buffer.
  std::uint32_t tw_ns = 0;
  std::uint64_t log_size = std::uint64_t{64} << 20, max_size = std::uint64_t{8} << 30;
  /// b-non-atomic, b-undo-log: bytes that the database may have.
  std::uint64_t baseline_size = std::uint64_t{1} << 30;
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
    if (!baseline()) {  // nothing of which recovers
      perdure::sqlite::Store::release(store_);
      a_ = nullptr, b_ = nullptr;
      if (!plain()) open_pool();
    }
    connect();
  }
  [[nodiscard]] Cost cost() const {
    Cost c;
    c.device_bytes = static_cast<std::uint64_t>(device_bytes());
    c.log_bytes = wal_bytes_;
    const auto count = [&c](const perdure::medium::Medium& medium) {
      const auto counted = medium.counters();
      c.lines = counted.flushed_lines + counted.streamed_lines;
      c.fences = counted.fences;
    };
    const auto add = [&](auto& pool) {
      c.log_bytes = pool.stats().log_bytes;
      count(pool.file().medium());
    };
    if (baseline_ != nullptr) count(*baseline_);
    if (a_ != nullptr) add(a_->pool());
    if (b_ != nullptr) add(b_->pool());
    return c;
  }

 private:
  [[nodiscard]] bool plain() const { return setup_.kind == "wal" || setup_.kind == "journal"; }
  [[nodiscard]] bool baseline() const {
    return setup_.kind == "b-non-atomic" || setup_.kind == "b-undo-log";
  }

  template <class Tx>
  void open_baseline() {
    softwrap::Setup s;
    s.directory = setup_.directory;
    s.tw_ns = setup_.tw_ns;
    s.data_size = setup_.baseline_size;
    auto made = perdure::sqlite::Store::adopt(path_, std::make_shared<BaselineStore<Tx>>(path_, s));
    baseline_ = &made->medium();
    store_ = std::move(made);
  }

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
    if (setup_.kind == "b-non-atomic") return open_baseline<softwrap::NonAtomicTx>();
    if (setup_.kind == "b-undo-log") return open_baseline<softwrap::UndoLogTx>();
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
    if (setup_.no_journal) db_->run("pragma journal_mode = off");
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
  const perdure::medium::Medium* baseline_ = nullptr;
  std::unique_ptr<Connection> db_;
  std::uint64_t wal_bytes_ = 0, wal_pages_ = 0, page_bytes_ = 4096;
};

}  // namespace bench::sqlite
