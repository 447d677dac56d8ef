// SPDX-License-Identifier: BSD-3-Clause
//
// SQLite: one table of blobs in WAL mode, prepared statements, BEGIN IMMEDIATE. Waiting:
// synchronous=FULL. Not waiting: synchronous=NORMAL (syncs at checkpoints only; a power cut may
// lose the last commits) and OFF (never syncs). A transaction takes a connection that is not in
// use (sqlite/connections.hpp).
#include <sqlite3.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "bench/apps/sqlite_programs.hpp"
#include "bench/peers/peer.hpp"
#include "bench/sqlite/connections.hpp"

namespace bench {
namespace {

class Connection final : public Peer::Transaction {
 public:
  explicit Connection(const std::string& path) {
    const int code =
        sqlite3_open_v2(path.c_str(), &db_,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
    check(code, "open");
    sqlite3_busy_handler(
        db_,
        [](void*, int) {
          ::usleep(50);
          return 1;
        },
        nullptr);  // a checkpoint of another connection
    run("PRAGMA journal_mode=WAL");
    run("CREATE TABLE IF NOT EXISTS kv(k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID");
    begin_ = prepare("BEGIN IMMEDIATE");
    view_ = prepare("BEGIN");
    commit_ = prepare("COMMIT");
    rollback_ = prepare("ROLLBACK");
    get_ = prepare("SELECT v FROM kv WHERE k = ?1");
    put_ =
        prepare("INSERT INTO kv(k, v) VALUES(?1, ?2) ON CONFLICT(k) DO UPDATE SET v = excluded.v");
    erase_ = prepare("DELETE FROM kv WHERE k = ?1");
    scan_ = prepare("SELECT k, v FROM kv WHERE k >= ?1 ORDER BY k");
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() override {
    for (sqlite3_stmt* s : {begin_, view_, commit_, rollback_, get_, put_, erase_, scan_})
      sqlite3_finalize(s);
    sqlite3_close(db_);
  }

  void run(const std::string& sql) {
    check(sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr), sql);
  }
  void transact(bool view, const Peer::Body& body) {
    step(view ? view_ : begin_, "BEGIN");
    try {
      body(*this);
      step(commit_, "COMMIT");
    } catch (...) {
      step(rollback_, "ROLLBACK");
      throw;
    }
  }

  bool get(std::string_view key, std::string& value) override {
    bind(get_, 1, key);
    const int code = sqlite3_step(get_);
    if (code == SQLITE_ROW) value = column(get_, 0);
    sqlite3_reset(get_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) check(code, "SELECT");
    return code == SQLITE_ROW;
  }
  void put(std::string_view key, std::string_view value) override {
    bind(put_, 1, key);
    bind(put_, 2, value);
    step(put_, "INSERT");
  }
  bool erase(std::string_view key) override {
    bind(erase_, 1, key);
    step(erase_, "DELETE");
    return sqlite3_changes(db_) != 0;
  }
  void scan(std::string_view from, const Peer::Visit& visit) override {
    bind(scan_, 1, from);
    int code;
    while ((code = sqlite3_step(scan_)) == SQLITE_ROW)
      if (!visit(column(scan_, 0), column(scan_, 1))) break;
    sqlite3_reset(scan_);
    if (code != SQLITE_DONE && code != SQLITE_ROW) check(code, "SELECT");
  }

 private:
  void check(int code, const std::string& what) {
    if (code != SQLITE_OK)
      throw std::runtime_error("sqlite: " + what + ": " +
                               (db_ != nullptr ? sqlite3_errmsg(db_) : "no memory"));
  }
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
  static void bind(sqlite3_stmt* s, int at, std::string_view bytes) {
    sqlite3_bind_blob(s, at, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC);
  }
  static std::string_view column(sqlite3_stmt* s, int at) {
    return {static_cast<const char*>(sqlite3_column_blob(s, at)),
            static_cast<std::size_t>(sqlite3_column_bytes(s, at))};
  }

  sqlite3* db_ = nullptr;
  sqlite3_stmt *begin_ = nullptr, *view_ = nullptr, *commit_ = nullptr, *rollback_ = nullptr,
               *get_ = nullptr, *put_ = nullptr, *erase_ = nullptr, *scan_ = nullptr;
};

class Sqlite final : public Peer {
 public:
  Sqlite(const Setting& setting, std::string synchronous)
      : mode_(std::move(synchronous)),
        connections_([this, path = setting.directory + "/sqlite.db"] {
          auto c = std::make_unique<Connection>(path);
          c->run("PRAGMA synchronous=" + now_);
          return c;
        }) {}

  void update(const Body& body) override {
    connections_.write([&](Connection& c) { c.transact(false, body); });
  }
  void view(const Body& body) override {
    connections_.read([&](Connection& c) { c.transact(true, body); });
  }
  void filled() override {
    connections_.read([](Connection& c) { c.run("PRAGMA wal_checkpoint(TRUNCATE)"); });
    now_ = mode_;
    connections_.clear();
  }
  void reopen() override { connections_.clear(); }
  [[nodiscard]] std::string describe() override { return sqlite::description(mode_); }

 private:
  std::string mode_, now_ = "OFF";
  sqlite::Connections<Connection> connections_;
};

void add(Systems& systems, const char* name, const char* about, const char* synchronous) {
  add_peer(
      systems, name, about, 64,
      [synchronous](const Setting& s) { return std::make_unique<Sqlite>(s, synchronous); },
      apps::sqlite_programs(synchronous));
}

}  // namespace

void add_sqlite(Systems& systems) {
  add(systems, "sqlite", "SQLite, WAL, synchronous=FULL", "FULL");
  add(systems, "sqlite-normal", "SQLite, WAL, synchronous=NORMAL: syncs at checkpoints only",
      "NORMAL");
  add(systems, "sqlite-off", "SQLite, WAL, synchronous=OFF: never syncs", "OFF");
}

}  // namespace bench
