// SPDX-License-Identifier: BSD-3-Clause
//
// Berkeley DB's B-tree with transactions. Waiting: its default, the log is synced at commit
// (threads share a sync). Not waiting: DB_TXN_WRITE_NOSYNC (the log is written at commit, not
// synced). A transaction locks what it reads; a deadlock aborts one of the two transactions, which
// runs again.
#include <db.h>

#include <stdexcept>
#include <utility>

#include "bench/peers/peer.hpp"

namespace bench {
namespace {

struct Deadlock {};  // the transaction runs again

void check(int code, const char* what) {
  if (code == DB_LOCK_DEADLOCK || code == DB_LOCK_NOTGRANTED) throw Deadlock();
  if (code != 0)
    throw std::runtime_error(std::string("berkeleydb: ") + what + ": " + db_strerror(code));
}
DBT thing(std::string_view bytes) {
  DBT t{};
  t.data = const_cast<char*>(bytes.data());
  t.size = static_cast<u_int32_t>(bytes.size());
  return t;
}
/// The buffer that a get fills: malloc's memory, which the library allocates because threads share
/// the handle.
class Found {
 public:
  explicit Found(std::string_view bytes = {}) : dbt_(thing(bytes)) { dbt_.flags = DB_DBT_REALLOC; }
  Found(const Found&) = delete;
  Found& operator=(const Found&) = delete;
  ~Found() { std::free(dbt_.data); }
  DBT* operator&() { return &dbt_; }  // NOLINT(google-runtime-operator): what the library takes
  [[nodiscard]] std::string_view bytes() const {
    return {static_cast<const char*>(dbt_.data), dbt_.size};
  }

 private:
  DBT dbt_;
};
char* copied(std::string_view bytes) {
  auto* const memory = static_cast<char*>(std::malloc(bytes.size()));
  if (memory == nullptr) throw std::bad_alloc();
  bytes.copy(memory, bytes.size());
  return memory;
}

class BerkeleyTransaction final : public Peer::Transaction {
 public:
  BerkeleyTransaction(DB_ENV* env, DB* db) : db_(db) {
    check(env->txn_begin(env, nullptr, &txn_, 0), "begin");
  }
  BerkeleyTransaction(const BerkeleyTransaction&) = delete;
  BerkeleyTransaction& operator=(const BerkeleyTransaction&) = delete;
  ~BerkeleyTransaction() override {
    if (txn_ != nullptr) txn_->abort(txn_);
  }
  void commit(u_int32_t flags) {
    DB_TXN* const txn = std::exchange(txn_, nullptr);
    check(txn->commit(txn, flags), "commit");
  }

  bool get(std::string_view key, std::string& value) override {
    DBT k = thing(key);
    Found v;
    const int code = db_->get(db_, txn_, &k, &v, 0);
    if (code == DB_NOTFOUND) return false;
    check(code, "get");
    value = v.bytes();
    return true;
  }
  void put(std::string_view key, std::string_view value) override {
    DBT k = thing(key), v = thing(value);
    check(db_->put(db_, txn_, &k, &v, 0), "put");
  }
  bool erase(std::string_view key) override {
    DBT k = thing(key);
    const int code = db_->del(db_, txn_, &k, 0);
    if (code != DB_NOTFOUND) check(code, "erase");
    return code == 0;
  }
  void scan(std::string_view from, const Peer::Visit& visit) override {
    DBC* opened = nullptr;
    check(db_->cursor(db_, txn_, &opened, 0), "cursor");
    const auto close = [](DBC* c) { c->close(c); };
    const std::unique_ptr<DBC, decltype(close)> cursor(opened, close);
    Found key(std::string_view(copied(from), from.size())), value;
    for (int code = cursor->get(cursor.get(), &key, &value, DB_SET_RANGE); code != DB_NOTFOUND;
         code = cursor->get(cursor.get(), &key, &value, DB_NEXT)) {
      check(code, "scan");
      if (!visit(key.bytes(), value.bytes())) return;
    }
  }

 private:
  DB* db_;
  DB_TXN* txn_ = nullptr;
};

class Berkeley final : public Peer {
 public:
  Berkeley(const Setting& setting, bool sync)
      : home_(setting.directory), sync_(sync), commit_(DB_TXN_NOSYNC) {
    open();
  }
  ~Berkeley() override { close(); }

  void update(const Body& body) override { transact(body, commit_); }
  void view(const Body& body) override { transact(body, DB_TXN_NOSYNC); }
  void filled() override {
    check(env_->txn_checkpoint(env_, 0, 0, DB_FORCE), "checkpoint");
    commit_ = sync_ ? 0 : DB_TXN_WRITE_NOSYNC;
  }
  void reopen() override {
    close();
    open();
  }
  [[nodiscard]] std::string describe() override {
    return std::string(db_version(nullptr, nullptr, nullptr)) +
           (sync_ ? ", log synced at commit" : ", DB_TXN_WRITE_NOSYNC");
  }

 private:
  void transact(const Body& body, u_int32_t commit) {
    for (;;) {
      BerkeleyTransaction tx(env_, db_);
      try {
        body(tx);
        tx.commit(commit);
        return;
      } catch (const Deadlock&) {}
    }
  }
  void open() {
    check(db_env_create(&env_, 0), "environment");
    env_->set_errfile(env_, stderr);
    check(env_->set_cachesize(env_, 0, 512U << 20, 1), "cache");
    check(env_->set_lk_detect(env_, DB_LOCK_DEFAULT), "deadlock detection");
    constexpr u_int32_t locks = 100'000;  // a scan of everything locks every page
    check(env_->set_lk_max_locks(env_, locks), "locks");
    check(env_->set_lk_max_objects(env_, locks), "lock objects");
    check(env_->log_set_config(env_, DB_LOG_AUTO_REMOVE, 1), "log");
    const u_int32_t parts = DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK | DB_INIT_MPOOL;
    check(env_->open(env_, home_.c_str(), parts | DB_CREATE | DB_THREAD | DB_PRIVATE | DB_RECOVER,
                     0600),
          "open");
    check(db_create(&db_, env_, 0), "database");
    check(db_->open(db_, nullptr, "berkeley.db", nullptr, DB_BTREE,
                    DB_CREATE | DB_THREAD | DB_AUTO_COMMIT, 0600),
          "open");
  }
  void close() {
    db_->close(db_, 0);
    env_->close(env_, 0);
  }
  std::string home_;
  bool sync_;
  u_int32_t commit_;
  DB_ENV* env_ = nullptr;
  DB* db_ = nullptr;
};

}  // namespace

void add_berkeleydb(Systems& systems) {
  add_peer(systems, "berkeleydb", "Berkeley DB, log synced at commit", 64,
           [](const Setting& s) { return std::make_unique<Berkeley>(s, true); });
  add_peer(systems, "berkeleydb-nosync",
           "Berkeley DB, DB_TXN_WRITE_NOSYNC: log written, not synced", 64,
           [](const Setting& s) { return std::make_unique<Berkeley>(s, false); });
}

}  // namespace bench
