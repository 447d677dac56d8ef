// SPDX-License-Identifier: BSD-3-Clause
//
// LMDB. Waiting: its default, a commit syncs. Not waiting: MDB_NOSYNC. It has one writer; its own
// lock makes other threads wait.
#include "bench/apps/lmdb_programs.hpp"
#include "bench/lmdb/environment.hpp"
#include "bench/peers/peer.hpp"

namespace bench {
namespace {

class LmdbTransaction final : public Peer::Transaction {
 public:
  LmdbTransaction(const lmdb::Environment& env, MDB_dbi dbi, unsigned flags)
      : dbi_(dbi), tx_(env.get(), flags) {}
  void commit() { tx_.commit(); }

  bool get(std::string_view key, std::string& value) override {
    std::string_view found;
    if (!tx_.get(dbi_, key, found)) return false;
    value = found;
    return true;
  }
  void put(std::string_view key, std::string_view value) override { tx_.put(dbi_, key, value); }
  bool erase(std::string_view key) override { return tx_.erase(dbi_, key); }
  void scan(std::string_view from, const Peer::Visit& visit) override {
    lmdb::Cursor at(tx_, dbi_);
    for (bool there = at.seek(from, MDB_SET_RANGE); there; there = at.move(MDB_NEXT))
      if (!visit(at.key(), at.value())) return;
  }

 private:
  MDB_dbi dbi_;
  lmdb::Transaction tx_;
};

class Lmdb final : public Peer {
 public:
  Lmdb(const Setting& setting, bool sync) : path_(setting.directory + "/lmdb.db"), sync_(sync) {
    open(false);
  }

  void update(const Body& body) override {
    LmdbTransaction tx(*env_, dbi_, 0);
    body(tx);
    tx.commit();
  }
  void view(const Body& body) override {
    LmdbTransaction tx(*env_, dbi_, MDB_RDONLY);
    body(tx);
  }
  void filled() override {
    if (sync_) env_->sync_from_now();
  }
  void reopen() override { open(sync_); }
  [[nodiscard]] std::string describe() override { return lmdb::description(sync_); }

 private:
  void open(bool sync) {
    env_.reset();
    env_ = std::make_unique<lmdb::Environment>(path_, sync);
    dbi_ = env_->update([](lmdb::Transaction& tx) { return tx.database(nullptr); });
  }
  std::string path_;
  bool sync_;
  std::unique_ptr<lmdb::Environment> env_;
  MDB_dbi dbi_ = 0;
};

void add(Systems& systems, const char* name, const char* about, bool sync) {
  add_peer(
      systems, name, about, 64,
      [sync](const Setting& s) { return std::make_unique<Lmdb>(s, sync); },
      apps::lmdb_programs(sync));
}

}  // namespace

void add_lmdb(Systems& systems) {
  add(systems, "lmdb", "LMDB, its default", true);
  add(systems, "lmdb-nosync", "LMDB, MDB_NOSYNC: never syncs", false);
}

}  // namespace bench
