// SPDX-License-Identifier: BSD-3-Clause
//
// SQLite as a key-value store: WAL, one connection a thread, prepared statements, BEGIN IMMEDIATE. Waiting: synchronous=FULL. Not
// waiting: synchronous=NORMAL (syncs at checkpoints only; a power cut may lose the last commits) and OFF (never syncs).
// SQLite has one writer: a mutex in front of it spares the threads its busy handler's sleeps, which would cost it much at 16 threads.
#include <sqlite3.h>
#include <unistd.h>

#include <mutex>
#include <stdexcept>

#include "bench/kv/store.hpp"

namespace bench {
namespace {

class Connection {
 public:
  Connection(const std::string& path, const std::string& synchronous) {
    const int code = sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
    check(code, "open");
    sqlite3_busy_handler(
        db_,
        [](void*, int) {
          ::usleep(50);
          return 1;
        },
        nullptr);  // a checkpointer of another connection
    run("PRAGMA journal_mode=WAL");
    run("PRAGMA synchronous=" + synchronous);
    run("CREATE TABLE IF NOT EXISTS kv(k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID");
    begin_ = prepare("BEGIN IMMEDIATE");
    put_ = prepare("INSERT INTO kv(k, v) VALUES(?1, ?2) ON CONFLICT(k) DO UPDATE SET v = excluded.v");
    commit_ = prepare("COMMIT");
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    for (sqlite3_stmt* s : {begin_, put_, commit_}) sqlite3_finalize(s);
    sqlite3_close(db_);
  }

  void begin() { step(begin_, "BEGIN IMMEDIATE"); }
  void commit() { step(commit_, "COMMIT"); }
  void put(const Key& key, const Value& value) {
    sqlite3_bind_blob(put_, 1, key.data(), key_bytes, SQLITE_STATIC);
    sqlite3_bind_blob(put_, 2, value.data(), value_bytes, SQLITE_STATIC);
    step(put_, "INSERT");
  }
  void for_each(const Store::Visit& visit) {
    sqlite3_stmt* s = prepare("SELECT k, v FROM kv");
    int code;
    while ((code = sqlite3_step(s)) == SQLITE_ROW) {
      visit(static_cast<const char*>(sqlite3_column_blob(s, 0)), static_cast<std::size_t>(sqlite3_column_bytes(s, 0)),
            static_cast<const char*>(sqlite3_column_blob(s, 1)), static_cast<std::size_t>(sqlite3_column_bytes(s, 1)));
    }
    sqlite3_finalize(s);
    if (code != SQLITE_DONE) check(code, "SELECT");
  }

 private:
  void check(int code, const std::string& what) {
    if (code != SQLITE_OK) throw std::runtime_error("sqlite: " + what + ": " + (db_ != nullptr ? sqlite3_errmsg(db_) : "no memory"));
  }
  void run(const std::string& sql) { check(sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr), sql); }
  sqlite3_stmt* prepare(const char* sql) {
    sqlite3_stmt* s = nullptr;
    check(sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, nullptr), sql);
    return s;
  }
  void step(sqlite3_stmt* s, const char* what) {
    const int code = sqlite3_step(s);
    sqlite3_reset(s);
    if (code != SQLITE_DONE) check(code, what);
  }

  sqlite3* db_ = nullptr;
  sqlite3_stmt *begin_ = nullptr, *put_ = nullptr, *commit_ = nullptr;
};

class SqliteStore final : public Store {
 public:
  SqliteStore(const Setting& setting, std::string synchronous)
      : path_(setting.directory + "/sqlite.db"), synchronous_(std::move(synchronous)), threads_(setting.max_threads) {
    open();
  }
  void put(unsigned thread, const Key& key, const Value& value) override {
    const std::lock_guard one_writer(writer_);
    Connection& c = *connections_[thread];
    c.begin();
    c.put(key, value);
    c.commit();
  }
  void load(std::span<const Record> records) override {
    Connection& c = *connections_[0];
    c.begin();
    for (const Record& r : records) c.put(r.key, r.value);
    c.commit();
  }
  void for_each(const Visit& visit) override { connections_[0]->for_each(visit); }
  void reopen() override {
    connections_.clear();
    open();
  }
  [[nodiscard]] std::string describe() override {
    return std::string("SQLite ") + sqlite3_libversion() + ", WAL, synchronous=" + synchronous_ +
           ", a connection a thread, BEGIN IMMEDIATE";
  }

 private:
  void open() {
    for (unsigned t = 0; t < threads_; ++t) connections_.push_back(std::make_unique<Connection>(path_, synchronous_));
  }
  std::string path_, synchronous_;
  unsigned threads_;
  std::mutex writer_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

void add(Systems& systems, const char* name, const char* about, const char* synchronous, bool wait) {
  systems.push_back({name, about, {"kv"}, 64, [synchronous, wait](const Setting& s) {
                       return open_kv(s, wait, std::make_unique<SqliteStore>(s, synchronous));
                     }});
}

}  // namespace

void add_sqlite(Systems& systems) {
  add(systems, "sqlite", "SQLite, WAL, synchronous=FULL", "FULL", true);
  add(systems, "sqlite-normal", "SQLite, WAL, synchronous=NORMAL: syncs at checkpoints only", "NORMAL", false);
  add(systems, "sqlite-off", "SQLite, WAL, synchronous=OFF: never syncs", "OFF", false);
}

}  // namespace bench
