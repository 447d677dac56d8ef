// SPDX-License-Identifier: BSD-3-Clause
//
// LMDB. Waiting: its default, a commit syncs. Not waiting: MDB_NOSYNC. It has one writer; its own
// lock makes other threads wait.
#include <lmdb.h>

#include <stdexcept>
#include <utility>

#include "bench/peers/peer.hpp"

namespace bench {
namespace {

void check(int code, const char* what) {
  if (code != MDB_SUCCESS)
    throw std::runtime_error(std::string("lmdb: ") + what + ": " + mdb_strerror(code));
}
MDB_val val(std::string_view bytes) { return {bytes.size(), const_cast<char*>(bytes.data())}; }
std::string_view view_of(const MDB_val& v) {
  return {static_cast<const char*>(v.mv_data), v.mv_size};
}

class LmdbTransaction final : public Peer::Transaction {
 public:
  LmdbTransaction(MDB_env* env, MDB_dbi dbi, unsigned flags) : dbi_(dbi) {
    check(mdb_txn_begin(env, nullptr, flags, &txn_), "begin");
  }
  LmdbTransaction(const LmdbTransaction&) = delete;
  LmdbTransaction& operator=(const LmdbTransaction&) = delete;
  ~LmdbTransaction() override {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }
  void commit() { check(mdb_txn_commit(std::exchange(txn_, nullptr)), "commit"); }

  bool get(std::string_view key, std::string& value) override {
    MDB_val k = val(key), v;
    const int code = mdb_get(txn_, dbi_, &k, &v);
    if (code == MDB_NOTFOUND) return false;
    check(code, "get");
    value = view_of(v);
    return true;
  }
  void put(std::string_view key, std::string_view value) override {
    MDB_val k = val(key), v = val(value);
    check(mdb_put(txn_, dbi_, &k, &v, 0), "put");
  }
  bool erase(std::string_view key) override {
    MDB_val k = val(key);
    const int code = mdb_del(txn_, dbi_, &k, nullptr);
    if (code != MDB_NOTFOUND) check(code, "erase");
    return code == MDB_SUCCESS;
  }
  void scan(std::string_view from, const Peer::Visit& visit) override {
    MDB_cursor* cursor = nullptr;
    check(mdb_cursor_open(txn_, dbi_, &cursor), "cursor");
    const std::unique_ptr<MDB_cursor, decltype(&mdb_cursor_close)> closes(cursor, mdb_cursor_close);
    MDB_val key = val(from), value;
    for (int code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE); code != MDB_NOTFOUND;
         code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
      check(code, "scan");
      if (!visit(view_of(key), view_of(value))) return;
    }
  }

 private:
  MDB_dbi dbi_;
  MDB_txn* txn_ = nullptr;
};

class Lmdb final : public Peer {
 public:
  Lmdb(const Setting& setting, bool sync) : path_(setting.directory + "/lmdb.db"), sync_(sync) {
    open(MDB_NOSYNC);
  }
  ~Lmdb() override { mdb_env_close(env_); }

  void update(const Body& body) override {
    LmdbTransaction tx(env_, dbi_, 0);
    body(tx);
    tx.commit();
  }
  void view(const Body& body) override {
    LmdbTransaction tx(env_, dbi_, MDB_RDONLY);
    body(tx);
  }
  void filled() override {
    check(mdb_env_sync(env_, 1), "sync");
    if (sync_) check(mdb_env_set_flags(env_, MDB_NOSYNC, 0), "flags");
  }
  void reopen() override {
    check(mdb_env_sync(env_, 1), "sync");
    mdb_env_close(env_);
    open(sync_ ? 0 : MDB_NOSYNC);
  }
  [[nodiscard]] std::string describe() override {
    return std::string(mdb_version(nullptr, nullptr, nullptr)) + (sync_ ? "" : ", MDB_NOSYNC");
  }

 private:
  void open(unsigned flags) {
    check(mdb_env_create(&env_), "create");
    check(mdb_env_set_mapsize(env_, std::size_t{8} << 30), "mapsize");
    check(mdb_env_set_maxreaders(env_, 256), "maxreaders");
    check(mdb_env_open(env_, path_.c_str(), MDB_NOSUBDIR | MDB_NOTLS | flags, 0600), "open");
    MDB_txn* txn = nullptr;
    check(mdb_txn_begin(env_, nullptr, 0, &txn), "begin");
    check(mdb_dbi_open(txn, nullptr, 0, &dbi_), "dbi");
    check(mdb_txn_commit(txn), "commit");
  }
  std::string path_;
  bool sync_;
  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
};

}  // namespace

void add_lmdb(Systems& systems) {
  add_peer(systems, "lmdb", "LMDB, its default", 64,
           [](const Setting& s) { return std::make_unique<Lmdb>(s, true); });
  add_peer(systems, "lmdb-nosync", "LMDB, MDB_NOSYNC: never syncs", 64,
           [](const Setting& s) { return std::make_unique<Lmdb>(s, false); });
}

}  // namespace bench
