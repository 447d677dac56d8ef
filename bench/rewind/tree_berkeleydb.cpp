// SPDX-License-Identifier: BSD-3-Clause
//
// The tree in Berkeley DB: its own B-tree, the same records (an 8-byte key, 24 bytes), transactions
// whose log is synced at commit. On the emulated medium (tmpfs) each 64-byte line that it writes
// with a system call is charged like a line of Perdure's medium, through the library's hooks for
// its system calls; what its cache keeps in DRAM is not charged. An update deletes the record, and
// puts it if there was nothing to delete.
//
// On one thread the environment has no locking, which favours it. On more, updates hold a mutex,
// which rules deadlocks out, and look-ups read uncommitted records, as in REWIND's section 5.2.
// Thread safety: see Tree.
// 5.2. Thread safety: see Tree.
#include <db.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "bench/rewind/tree.hpp"
#include "perdure/medium/delay.hpp"

namespace bench {
namespace {

// global, because the library's hooks take no argument of ours.
perdure::medium::ModelDelay* charge = nullptr;

void charged(int file, std::uint64_t at, std::int64_t n) {
  if (n <= 0) return;
  constexpr std::uint64_t line = perdure::medium::line_bytes;
  const std::uint64_t first = at / line, last = (at + static_cast<std::uint64_t>(n) - 1) / line;
  charge->written((static_cast<std::uint64_t>(file) << 48) + first, last - first + 1);
}
ssize_t charged_write(int file, const void* data, std::size_t n) {
  const off_t at = ::lseek(file, 0, SEEK_CUR);
  const ssize_t done = ::write(file, data, n);
  charged(file, static_cast<std::uint64_t>(at), done);
  return done;
}
ssize_t charged_pwrite(int file, const void* data, std::size_t n, off_t at) {
  const ssize_t done = ::pwrite(file, data, n, at);
  charged(file, static_cast<std::uint64_t>(at), done);
  return done;
}

void check(int code, const char* what) {
  if (code != 0)
    throw std::runtime_error(std::string("berkeleydb: ") + what + ": " + db_strerror(code));
}

using Key = std::array<unsigned char, 8>;  // big-endian: the library compares bytes
using Value = std::array<std::uint64_t, 3>;

Key key_of(std::uint64_t key) {
  Key k;
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = static_cast<unsigned char>(key >> (56 - 8 * i));
  return k;
}
std::uint64_t number_of(const unsigned char* k) {
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < 8; ++i) key = key << 8 | k[i];
  return key;
}
template <class T>
DBT thing(T& bytes) {
  DBT t{};
  t.data = bytes.data();
  t.size = t.ulen = static_cast<u_int32_t>(sizeof bytes);
  return t;
}

class BerkeleyTree final : public Tree {
 public:
  explicit BerkeleyTree(const TreeSetting& setting)
      : home_(setting.store.directory), shared_(setting.threads > 1) {
    if (setting.store.medium == "emulated") {
      const auto delays = perdure::medium::Delays::named(setting.store.delays).value();
      if (!delays.none()) {
        static perdure::medium::ModelDelay model(delays);
        charge = &model;
        check(db_env_set_func_write(charged_write), "hook of write");
        check(db_env_set_func_pwrite(charged_pwrite), "hook of pwrite");
      }
    }
    open();
  }
  ~BerkeleyTree() override { close(); }

  void transact(std::span<const TreeOp> ops) override {
    bool updates = false;
    for (const TreeOp& op : ops) updates = updates || op.update;
    if (!updates) {
      for (const TreeOp& op : ops) look_up(nullptr, op.key);
      return;
    }
    std::unique_lock lock(updating_, std::defer_lock);
    if (shared_) lock.lock();
    DB_TXN* txn = begin();
    play(txn, ops);
    check(txn->commit(txn, 0), "commit");
  }

  double roll_back(std::span<const TreeOp> ops) override {
    DB_TXN* txn = begin();
    play(txn, ops);
    const auto start = std::chrono::steady_clock::now();
    check(txn->abort(txn), "abort");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  void reopen() override {
    check(env_->txn_checkpoint(env_, 0, 0, DB_FORCE), "checkpoint");
    close();
    open();
  }

  std::uint64_t audit() override {
    DBC* cursor = nullptr;
    check(db_->cursor(db_, nullptr, &cursor, 0), "cursor");
    std::uint64_t found = 0, wrong = 0;
    DBT key{}, value{};
    while (cursor->get(cursor, &key, &value, DB_NEXT) == 0) {
      ++found;
      Value words{};
      if (key.size == 8 && value.size == sizeof words)
        std::memcpy(words.data(), value.data, sizeof words);
      if (words != value_of(number_of(static_cast<const unsigned char*>(key.data)))) ++wrong;
    }
    cursor->close(cursor);
    if (wrong != 0)
      throw std::runtime_error("berkeleydb: " + std::to_string(wrong) + " records are wrong");
    return found;
  }
  std::string describe() override {
    return std::string(db_version(nullptr, nullptr, nullptr)) + ", log synced at commit" +
           (charge != nullptr ? ", lines written charged" : "");
  }

 private:
  static Value value_of(std::uint64_t key) { return {key + 1, key + 2, key + 3}; }
  DB_TXN* begin() {
    DB_TXN* txn = nullptr;
    check(env_->txn_begin(env_, nullptr, &txn, 0), "begin");
    return txn;
  }
  void play(DB_TXN* txn, std::span<const TreeOp> ops) {
    for (const TreeOp& op : ops) {
      if (!op.update) {
        look_up(txn, op.key);
        continue;
      }
      Key k = key_of(op.key);
      DBT key = thing(k);
      const int code = db_->del(db_, txn, &key, 0);
      if (code == 0) continue;
      if (code != DB_NOTFOUND) check(code, "delete");
      Value words = value_of(op.key);
      DBT value = thing(words);
      check(db_->put(db_, txn, &key, &value, 0), "put");
    }
  }
  void look_up(DB_TXN* txn, std::uint64_t number) {
    Key k = key_of(number);
    Value words{};
    DBT key = thing(k), value = thing(words);
    value.flags = DB_DBT_USERMEM;
    const int code = db_->get(db_, txn, &key, &value, shared_ ? DB_READ_UNCOMMITTED : 0);
    if (code != DB_NOTFOUND) check(code, "get");
  }
  void open() {
    check(db_env_create(&env_, 0), "environment");
    env_->set_errfile(env_, stderr);
    check(env_->set_cachesize(env_, 0, 128U << 20, 1), "cache");
    const u_int32_t parts =
        DB_INIT_TXN | DB_INIT_LOG | DB_INIT_MPOOL | (shared_ ? DB_INIT_LOCK | DB_THREAD : 0U);
    check(env_->open(env_, home_.c_str(), parts | DB_CREATE | DB_PRIVATE | DB_RECOVER, 0600),
          "open");
    check(db_create(&db_, env_, 0), "database");
    const u_int32_t how =
        DB_CREATE | DB_AUTO_COMMIT | (shared_ ? DB_THREAD | DB_READ_UNCOMMITTED : 0U);
    check(db_->open(db_, nullptr, "tree.db", nullptr, DB_BTREE, how, 0600), "open");
  }
  void close() {
    db_->close(db_, 0);
    env_->close(env_, 0);
  }

  std::string home_;
  const bool shared_;
  std::mutex updating_;
  DB_ENV* env_ = nullptr;
  DB* db_ = nullptr;
};

}  // namespace

std::unique_ptr<Tree> open_berkeleydb_tree(const TreeSetting& setting) {
  return std::make_unique<BerkeleyTree>(setting);
}

}  // namespace bench
