// SPDX-License-Identifier: BSD-3-Clause
#include "bench/readers/store.hpp"
#include "bench/sqlite/connection.hpp"

namespace bench::readers {
namespace {

// In WAL mode, which lets others read meanwhile; synchronous=full: a commit is durable when it
// returns.
class SqliteStore final : public Store {
 public:
  explicit SqliteStore(const std::string& folder) : db_(folder + "/rows.sqlite", nullptr) {
    db_.run("pragma journal_mode=wal; pragma synchronous=full;");
    db_.run("create table if not exists row(key integer primary key, value blob)");
    put_ = std::make_unique<sqlite::Statement>(db_, "insert or replace into row values(?, ?)");
    get_ = std::make_unique<sqlite::Statement>(db_, "select value from row where key = ?");
    all_ = std::make_unique<sqlite::Statement>(db_, "select value from row order by key");
  }
  void load(std::uint64_t from, std::uint64_t to,
            const std::function<std::string(std::uint64_t)>& value) override {
    db_.run("begin");
    for (std::uint64_t key = from; key < to; ++key) put(key, value(key));
    db_.run("commit");
  }
  void put(std::uint64_t key, std::string_view value) override {
    (void)(*put_)(static_cast<std::int64_t>(key), sqlite::Blob{value});
  }
  std::string get(std::uint64_t key) override {
    std::string value;
    if ((*get_)(static_cast<std::int64_t>(key))) value = get_->text(0);
    get_->done();
    return value;
  }
  void scan_in_one_transaction(
      const std::function<bool(std::uint64_t, std::uint64_t)>& more) override {
    db_.run("begin");
    for (;;) {
      std::uint64_t rows = 0, sum = 0;
      for (bool any = (*all_)(); any; any = all_->next()) {
        ++rows;
        sum += sum_of(all_->bytes(0));
      }
      if (!more(rows, sum)) break;
    }
    db_.run("commit");
  }
  // Of another process's database, which is written meanwhile: SQLite's backup interface begins
  // anew at each commit, so one statement in one transaction does it.
  void back_up(const std::string& path) override { db_.run("vacuum into '" + path + "'"); }

 private:
  sqlite::Connection db_;
  std::unique_ptr<sqlite::Statement> put_, get_, all_;
};

}  // namespace

std::unique_ptr<Store> open_sqlite(const std::string& folder, bool /*writes*/) {
  return std::make_unique<SqliteStore>(folder);
}

}  // namespace bench::readers
