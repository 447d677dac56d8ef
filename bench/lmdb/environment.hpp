// SPDX-License-Identifier: BSD-3-Clause
//
// LMDB's C interface in C++: an environment, transactions and cursors over named databases. A
// failure is a std::runtime_error with LMDB's message.
// Thread safety: an Environment is for any number of threads; a transaction and its cursors belong
// to one.
#pragma once

#include <lmdb.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace bench::lmdb {

inline void check(int code, const char* what) {
  if (code != MDB_SUCCESS)
    throw std::runtime_error(std::string("lmdb: ") + what + ": " + mdb_strerror(code));
}
inline MDB_val val(std::string_view bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};
}
inline std::string_view view_of(const MDB_val& v) {
  return {static_cast<const char*>(v.mv_data), v.mv_size};
}

/// One transaction, which is aborted unless it is committed. The bytes that its calls return are
/// valid until the transaction's next change.
class Transaction {
 public:
  Transaction(MDB_env* env, unsigned flags) {
    check(mdb_txn_begin(env, nullptr, flags, &txn_), "begin");
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }
  void commit() { check(mdb_txn_commit(std::exchange(txn_, nullptr)), "commit"); }

  /// Opens a database, and makes it if there is none. A null name means the main one.
  MDB_dbi database(const char* name, unsigned flags = 0) {
    MDB_dbi dbi = 0;
    check(mdb_dbi_open(txn_, name, flags | (name != nullptr ? MDB_CREATE : 0U), &dbi), "dbi");
    return dbi;
  }
  /// Returns false if there is no such key.
  bool get(MDB_dbi dbi, std::string_view key, std::string_view& value) {
    MDB_val k = val(key), v;
    const int code = mdb_get(txn_, dbi, &k, &v);
    if (code == MDB_NOTFOUND) return false;
    check(code, "get");
    value = view_of(v);
    return true;
  }
  void put(MDB_dbi dbi, std::string_view key, std::string_view value) {
    MDB_val k = val(key), v = val(value);
    check(mdb_put(txn_, dbi, &k, &v, 0), "put");
  }
  /// Removes a key with all its values. Returns whether there was one.
  bool erase(MDB_dbi dbi, std::string_view key) { return erase(dbi, key, nullptr); }
  /// Removes one value of a key in a database with MDB_DUPSORT. Returns whether it was there.
  bool erase(MDB_dbi dbi, std::string_view key, std::string_view value) {
    MDB_val v = val(value);
    return erase(dbi, key, &v);
  }
  /// The number of values.
  std::uint64_t entries(MDB_dbi dbi) {
    MDB_stat stat;
    check(mdb_stat(txn_, dbi, &stat), "stat");
    return stat.ms_entries;
  }
  [[nodiscard]] MDB_txn* get() const noexcept { return txn_; }

 private:
  bool erase(MDB_dbi dbi, std::string_view key, MDB_val* value) {
    MDB_val k = val(key);
    const int code = mdb_del(txn_, dbi, &k, value);
    if (code != MDB_NOTFOUND) check(code, "erase");
    return code == MDB_SUCCESS;
  }
  MDB_txn* txn_ = nullptr;
};

/// A position in a database. It stays right while its own transaction changes the database.
class Cursor {
 public:
  Cursor(Transaction& tx, MDB_dbi dbi) {
    check(mdb_cursor_open(tx.get(), dbi, &cursor_), "cursor");
  }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;
  ~Cursor() { mdb_cursor_close(cursor_); }

  /// Moves as `op` says: MDB_FIRST, MDB_NEXT, ... Returns false if nothing is there.
  bool move(MDB_cursor_op op) {
    const int code = mdb_cursor_get(cursor_, &key_, &value_, op);
    if (code != MDB_NOTFOUND) check(code, "cursor");
    return code == MDB_SUCCESS;
  }
  /// Moves to a key (MDB_SET_KEY), or to the first that is not before it (MDB_SET_RANGE).
  bool seek(std::string_view key, MDB_cursor_op op) {
    key_ = val(key);
    return move(op);
  }
  [[nodiscard]] std::string_view key() const { return view_of(key_); }
  [[nodiscard]] std::string_view value() const { return view_of(value_); }

 private:
  MDB_cursor* cursor_ = nullptr;
  MDB_val key_{}, value_{};
};

/// An environment in one file, of up to 64 GiB. `sync`: a commit is durable when it returns, which
/// is LMDB's default; otherwise MDB_NOSYNC, and the destructor makes all commits durable.
class Environment {
 public:
  Environment(const std::string& path, bool sync) {
    check(mdb_env_create(&env_), "create");
    try {
      check(mdb_env_set_mapsize(env_, std::size_t{64} << 30), "mapsize");
      check(mdb_env_set_maxreaders(env_, 256), "maxreaders");
      check(mdb_env_set_maxdbs(env_, 16), "maxdbs");
      check(mdb_env_open(env_, path.c_str(),
                         MDB_NOSUBDIR | MDB_NOTLS | (sync ? 0U : unsigned{MDB_NOSYNC}), 0600),
            "open");
    } catch (...) {
      mdb_env_close(env_);
      throw;
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    mdb_env_sync(env_, 1);
    mdb_env_close(env_);
  }
  /// From now on a commit is durable when it returns, and so is everything before.
  void sync_from_now() {
    check(mdb_env_sync(env_, 1), "sync");
    check(mdb_env_set_flags(env_, MDB_NOSYNC, 0), "flags");
  }
  /// Calls f(Transaction&) in a transaction and commits it; an exception aborts it.
  template <class F>
  auto update(F f) {
    Transaction tx(env_, 0);
    auto result = f(tx);
    tx.commit();
    return result;
  }
  /// Calls f(Transaction&), which only reads.
  template <class F>
  auto view(F f) {
    Transaction tx(env_, MDB_RDONLY);
    return f(tx);
  }
  [[nodiscard]] MDB_env* get() const noexcept { return env_; }

 private:
  MDB_env* env_ = nullptr;
};

/// What describes LMDB beside the figures.
inline std::string description(bool sync) {
  return std::string(mdb_version(nullptr, nullptr, nullptr)) + (sync ? "" : ", MDB_NOSYNC");
}

}  // namespace bench::lmdb
