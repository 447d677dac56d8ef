// SPDX-License-Identifier: BSD-3-Clause
//
// Berkeley DB as a key-value store: a B-tree in a transactional environment, one put a transaction. Waiting: its default (the log is
// synced at commit; threads share a sync). Not waiting: DB_TXN_WRITE_NOSYNC (the log is written at commit, not synced).
#include <db.h>

#include <stdexcept>

#include "bench/kv/store.hpp"

namespace bench {
namespace {

void check(int code, const char* what) {
  if (code != 0) throw std::runtime_error(std::string("berkeleydb: ") + what + ": " + db_strerror(code));
}

DBT thing(const char* data, std::size_t n) {
  DBT t{};
  t.data = const_cast<char*>(data);
  t.size = static_cast<u_int32_t>(n);
  return t;
}

class BerkeleyStore final : public Store {
 public:
  BerkeleyStore(const Setting& setting, bool sync) : home_(setting.directory), sync_(sync) { open(); }
  ~BerkeleyStore() override { close(); }

  void put(unsigned, const Key& key, const Value& value) override {
    transact(sync_ ? 0 : DB_TXN_WRITE_NOSYNC, [&](DB_TXN* txn) { return put(txn, key, value); });
  }
  void load(std::span<const Record> records) override {
    transact(DB_TXN_NOSYNC, [&](DB_TXN* txn) {
      for (const Record& r : records) {
        if (const int code = put(txn, r.key, r.value); code != 0) return code;
      }
      return 0;
    });
  }
  void for_each(const Visit& visit) override {
    DBC* cursor = nullptr;
    check(db_->cursor(db_, nullptr, &cursor, 0), "cursor");
    DBT key{}, value{};
    while (cursor->get(cursor, &key, &value, DB_NEXT) == 0) {
      visit(static_cast<const char*>(key.data), key.size, static_cast<const char*>(value.data), value.size);
    }
    cursor->close(cursor);
  }
  void reopen() override {
    close();
    open();
  }
  [[nodiscard]] std::string describe() override {
    return std::string(db_version(nullptr, nullptr, nullptr)) + (sync_ ? ", log synced at commit" : ", DB_TXN_WRITE_NOSYNC");
  }

 private:
  /// Runs f in a transaction until no deadlock with another thread's page order ends it.
  template <class F>
  void transact(u_int32_t flags, F f) {
    for (;;) {
      DB_TXN* txn = nullptr;
      check(env_->txn_begin(env_, nullptr, &txn, 0), "begin");
      const int code = f(txn);
      if (code == 0) {
        check(txn->commit(txn, flags), "commit");
        return;
      }
      txn->abort(txn);
      if (code != DB_LOCK_DEADLOCK) check(code, "put");
    }
  }
  int put(DB_TXN* txn, const Key& key, const Value& value) {
    DBT k = thing(key.data(), key_bytes), v = thing(value.data(), value_bytes);
    return db_->put(db_, txn, &k, &v, 0);
  }
  void open() {
    check(db_env_create(&env_, 0), "environment");
    env_->set_errfile(env_, stderr);
    check(env_->set_cachesize(env_, 0, 128U << 20, 1), "cache");
    check(env_->set_lk_detect(env_, DB_LOCK_DEFAULT), "deadlock detection");
    const u_int32_t parts = DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK | DB_INIT_MPOOL;
    check(env_->open(env_, home_.c_str(), parts | DB_CREATE | DB_THREAD | DB_PRIVATE | DB_RECOVER, 0600), "open");
    check(db_create(&db_, env_, 0), "database");
    check(db_->open(db_, nullptr, "berkeley.db", nullptr, DB_BTREE, DB_CREATE | DB_THREAD | DB_AUTO_COMMIT, 0600), "open");
  }
  void close() {
    db_->close(db_, 0);
    env_->close(env_, 0);
  }
  std::string home_;
  bool sync_;
  DB_ENV* env_ = nullptr;
  DB* db_ = nullptr;
};

void add(Systems& systems, const char* name, const char* about, bool sync) {
  systems.push_back(
      {name, about, {"kv"}, 64, [sync](const Setting& s) { return open_kv(s, sync, std::make_unique<BerkeleyStore>(s, sync)); }});
}

}  // namespace

void add_berkeleydb(Systems& systems) {
  add(systems, "berkeleydb", "Berkeley DB, log synced at commit", true);
  add(systems, "berkeleydb-nosync", "Berkeley DB, DB_TXN_WRITE_NOSYNC: log written, not synced", false);
}

}  // namespace bench
