// SPDX-License-Identifier: BSD-3-Clause
//
// LMDB as a key-value store: one put a write transaction. Waiting: its default. Not waiting: MDB_NOSYNC.
// LMDB has one writer; its own lock makes the threads wait.
#include <lmdb.h>

#include <stdexcept>

#include "bench/kv/store.hpp"

namespace bench {
namespace {

void check(int code, const char* what) {
  if (code != MDB_SUCCESS) throw std::runtime_error(std::string("lmdb: ") + what + ": " + mdb_strerror(code));
}

class LmdbStore final : public Store {
 public:
  LmdbStore(const Setting& setting, unsigned flags) : path_(setting.directory + "/lmdb.db"), flags_(flags) { open(); }
  ~LmdbStore() override { mdb_env_close(env_); }

  void put(unsigned, const Key& key, const Value& value) override {
    MDB_txn* txn = begin(0);
    put(txn, key, value);
    check(mdb_txn_commit(txn), "commit");
  }
  void load(std::span<const Record> records) override {
    MDB_txn* txn = begin(0);
    for (const Record& r : records) put(txn, r.key, r.value);
    check(mdb_txn_commit(txn), "commit");
  }
  void for_each(const Visit& visit) override {
    MDB_txn* txn = begin(MDB_RDONLY);
    MDB_cursor* cursor = nullptr;
    check(mdb_cursor_open(txn, dbi_, &cursor), "cursor");
    MDB_val key, value;
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == MDB_SUCCESS) {
      visit(static_cast<const char*>(key.mv_data), key.mv_size, static_cast<const char*>(value.mv_data), value.mv_size);
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
  }
  void reopen() override {
    mdb_env_close(env_);
    open();
  }
  [[nodiscard]] std::string describe() override {
    return std::string(mdb_version(nullptr, nullptr, nullptr)) + ((flags_ & MDB_NOSYNC) != 0 ? ", MDB_NOSYNC" : "");
  }

 private:
  void open() {
    check(mdb_env_create(&env_), "create");
    check(mdb_env_set_mapsize(env_, std::size_t{1} << 30), "mapsize");
    check(mdb_env_open(env_, path_.c_str(), MDB_NOSUBDIR | flags_, 0600), "open");
    MDB_txn* txn = begin(0);
    check(mdb_dbi_open(txn, nullptr, 0, &dbi_), "dbi");
    check(mdb_txn_commit(txn), "commit");
  }
  MDB_txn* begin(unsigned flags) {
    MDB_txn* txn = nullptr;
    check(mdb_txn_begin(env_, nullptr, flags, &txn), "begin");
    return txn;
  }
  void put(MDB_txn* txn, const Key& key, const Value& value) const {
    MDB_val k{key_bytes, const_cast<char*>(key.data())}, v{value_bytes, const_cast<char*>(value.data())};
    check(mdb_put(txn, dbi_, &k, &v, 0), "put");
  }
  std::string path_;
  unsigned flags_;
  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
};

void add(Systems& systems, const char* name, const char* about, unsigned flags, bool wait) {
  systems.push_back(
      {name, about, {"kv"}, 64, [flags, wait](const Setting& s) { return open_kv(s, wait, std::make_unique<LmdbStore>(s, flags)); }});
}

}  // namespace

void add_lmdb(Systems& systems) {
  add(systems, "lmdb", "LMDB, its default", 0, true);
  add(systems, "lmdb-nosync", "LMDB, MDB_NOSYNC: never syncs", MDB_NOSYNC, false);
}

}  // namespace bench
