// SPDX-License-Identifier: BSD-3-Clause
//
// RocksDB's TransactionDB (pessimistic: an update locks what it reads, so that transactions are
// serializable), with WriteOptions.sync (its write groups let threads share a sync), or without it.
// A view reads a snapshot. All other options have their defaults; recycled log files
// (recycle_log_file_num) made no difference here.
#include <rocksdb/db.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/utilities/transaction_db.h>
#include <rocksdb/version.h>

#include <stdexcept>

#include "bench/peers/peer.hpp"

namespace bench {
namespace {

struct Conflict {};  // the transaction runs again

void check(const rocksdb::Status& status) {
  if (status.IsBusy() || status.IsTimedOut() || status.IsTryAgain()) throw Conflict();
  if (!status.ok()) throw std::runtime_error("rocksdb: " + status.ToString());
}
rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view view_of(const rocksdb::Slice& s) { return {s.data(), s.size()}; }

void scan_with(rocksdb::Iterator* iterator, std::string_view from, const Peer::Visit& visit) {
  const std::unique_ptr<rocksdb::Iterator> at(iterator);
  for (at->Seek(slice(from)); at->Valid(); at->Next())
    if (!visit(view_of(at->key()), view_of(at->value()))) return;
  check(at->status());
}

class Updating final : public Peer::Transaction {
 public:
  explicit Updating(rocksdb::Transaction& tx) : tx_(tx) {}
  bool get(std::string_view key, std::string& value) override {
    const auto status = tx_.GetForUpdate({}, slice(key), &value);
    if (status.IsNotFound()) return false;
    check(status);
    return true;
  }
  void put(std::string_view key, std::string_view value) override {
    check(tx_.Put(slice(key), slice(value)));
  }
  bool erase(std::string_view key) override {
    std::string value;
    if (!get(key, value)) return false;
    check(tx_.Delete(slice(key)));
    return true;
  }
  void scan(std::string_view from, const Peer::Visit& visit) override {
    scan_with(tx_.GetIterator({}), from, visit);
  }

 private:
  rocksdb::Transaction& tx_;
};

class Viewing final : public Peer::Transaction {
 public:
  explicit Viewing(rocksdb::DB& db) : db_(db) { read_.snapshot = db.GetSnapshot(); }
  Viewing(const Viewing&) = delete;
  Viewing& operator=(const Viewing&) = delete;
  ~Viewing() override { db_.ReleaseSnapshot(read_.snapshot); }
  bool get(std::string_view key, std::string& value) override {
    const auto status = db_.Get(read_, slice(key), &value);
    if (status.IsNotFound()) return false;
    check(status);
    return true;
  }
  void put(std::string_view, std::string_view) override {
    throw std::logic_error("a view puts nothing");
  }
  bool erase(std::string_view) override { throw std::logic_error("a view erases nothing"); }
  void scan(std::string_view from, const Peer::Visit& visit) override {
    scan_with(db_.NewIterator(read_), from, visit);
  }

 private:
  rocksdb::DB& db_;
  rocksdb::ReadOptions read_;
};

class Rocksdb final : public Peer {
 public:
  Rocksdb(const Setting& setting, bool sync) : path_(setting.directory + "/rocksdb"), sync_(sync) {
    open();
  }

  void update(const Body& body) override {
    for (;;) {
      // Its destructor rolls back if the transaction was not committed.
      const std::unique_ptr<rocksdb::Transaction> tx(db_->BeginTransaction(write_));
      Updating updating(*tx);
      try {
        body(updating);
        check(tx->Commit());
        return;
      } catch (const Conflict&) {}
    }
  }
  void view(const Body& body) override {
    Viewing viewing(*db_);
    body(viewing);
  }
  void filled() override {
    check(db_->FlushWAL(true));
    write_.sync = sync_;
  }
  void reopen() override {
    db_.reset();
    open();
  }
  [[nodiscard]] std::string describe() override {
    return "RocksDB " + std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) + "." +
           std::to_string(ROCKSDB_PATCH) + ", TransactionDB, sync=" + (sync_ ? "true" : "false");
  }

 private:
  void open() {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::TransactionDB* db = nullptr;
    check(rocksdb::TransactionDB::Open(options, rocksdb::TransactionDBOptions(), path_, &db));
    db_.reset(db);
  }
  std::string path_;
  bool sync_;
  rocksdb::WriteOptions write_;
  std::unique_ptr<rocksdb::TransactionDB> db_;
};

}  // namespace

void add_rocksdb(Systems& systems) {
  add_peer(systems, "rocksdb", "RocksDB, WriteOptions.sync", 64,
           [](const Setting& s) { return std::make_unique<Rocksdb>(s, true); });
  add_peer(systems, "rocksdb-nosync", "RocksDB, sync=false", 64,
           [](const Setting& s) { return std::make_unique<Rocksdb>(s, false); });
}

}  // namespace bench
