// SPDX-License-Identifier: BSD-3-Clause
//
// RocksDB as a key-value store: Put with WriteOptions.sync (its write groups let threads share a sync), or without. Its defaults
// otherwise; recycled log files (recycle_log_file_num), its documented setting for cheaper syncs, were tried and brought nothing here.
#include <rocksdb/db.h>
#include <rocksdb/version.h>

#include <stdexcept>

#include "bench/kv/store.hpp"

namespace bench {
namespace {

void check(const rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error("rocksdb: " + status.ToString());
}

class RocksdbStore final : public Store {
 public:
  RocksdbStore(const Setting& setting, bool sync) : path_(setting.directory + "/rocksdb") {
    write_.sync = sync;
    open();
  }
  void put(unsigned, const Key& key, const Value& value) override { check(db_->Put(write_, slice(key), slice(value))); }
  void load(std::span<const Record> records) override {
    rocksdb::WriteBatch batch;
    for (const Record& r : records) check(batch.Put(slice(r.key), slice(r.value)));
    check(db_->Write(rocksdb::WriteOptions(), &batch));
  }
  void for_each(const Visit& visit) override {
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(rocksdb::ReadOptions()));
    for (at->SeekToFirst(); at->Valid(); at->Next()) visit(at->key().data(), at->key().size(), at->value().data(), at->value().size());
    check(at->status());
  }
  void reopen() override {
    db_.reset();
    open();
  }
  [[nodiscard]] std::string describe() override {
    return "RocksDB " + std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) + "." + std::to_string(ROCKSDB_PATCH) +
           (write_.sync ? ", sync=true" : ", sync=false");
  }

 private:
  template <std::size_t n>
  static rocksdb::Slice slice(const std::array<char, n>& bytes) {
    return {bytes.data(), n};
  }
  void open() {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB* db = nullptr;
    check(rocksdb::DB::Open(options, path_, &db));
    db_.reset(db);
  }
  std::string path_;
  rocksdb::WriteOptions write_;
  std::unique_ptr<rocksdb::DB> db_;
};

void add(Systems& systems, const char* name, const char* about, bool sync) {
  systems.push_back(
      {name, about, {"kv"}, 64, [sync](const Setting& s) { return open_kv(s, sync, std::make_unique<RocksdbStore>(s, sync)); }});
}

}  // namespace

void add_rocksdb(Systems& systems) {
  add(systems, "rocksdb", "RocksDB, WriteOptions.sync", true);
  add(systems, "rocksdb-nosync", "RocksDB, sync=false", false);
}

}  // namespace bench
