// SPDX-License-Identifier: BSD-3-Clause
#include "bench/lmdb/environment.hpp"
#include "bench/readers/store.hpp"

namespace bench::readers {
namespace {

// LMDB orders keys as bytes.
std::string key_of(std::uint64_t n) {
  std::string key(8, '\0');
  for (int i = 7; i >= 0; --i, n >>= 8) key[static_cast<std::size_t>(i)] = static_cast<char>(n);
  return key;
}

class LmdbStore final : public Store {
 public:
  explicit LmdbStore(const std::string& folder) : env_(folder + "/rows.lmdb", true) {
    dbi_ = env_.update([](lmdb::Transaction& tx) { return tx.database("rows"); });
  }
  void load(std::uint64_t from, std::uint64_t to,
            const std::function<std::string(std::uint64_t)>& value) override {
    env_.update([&](lmdb::Transaction& tx) {
      for (std::uint64_t n = from; n < to; ++n) tx.put(dbi_, key_of(n), value(n));
      return 0;
    });
  }
  void put(std::uint64_t key, std::string_view value) override {
    env_.update([&](lmdb::Transaction& tx) { return tx.put(dbi_, key_of(key), value), 0; });
  }
  std::string get(std::uint64_t key) override {
    return env_.view([&](lmdb::Transaction& tx) {
      std::string_view value;
      (void)tx.get(dbi_, key_of(key), value);
      return std::string(value);
    });
  }
  void scan_in_one_transaction(
      const std::function<bool(std::uint64_t, std::uint64_t)>& more) override {
    env_.view([&](lmdb::Transaction& tx) {
      for (;;) {
        std::uint64_t rows = 0, sum = 0;
        lmdb::Cursor cursor(tx, dbi_);
        for (bool any = cursor.move(MDB_FIRST); any; any = cursor.move(MDB_NEXT)) {
          ++rows;
          sum += sum_of(cursor.value());
        }
        if (!more(rows, sum)) return 0;
      }
    });
  }
  void back_up(const std::string& path) override {
    lmdb::check(mdb_env_copy(env_.get(), path.c_str()), "copy");
  }

 private:
  lmdb::Environment env_;
  MDB_dbi dbi_ = 0;
};

}  // namespace

std::unique_ptr<Store> open_lmdb(const std::string& folder, bool /*writes*/) {
  return std::make_unique<LmdbStore>(folder);
}

}  // namespace bench::readers
