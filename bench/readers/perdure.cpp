// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/perdure.hpp"

#include "bench/readers/store.hpp"

namespace bench::readers {
namespace {

struct Rows {
  perdure::map<std::uint64_t, std::string> row;
};

class PerdureStore final : public Store {
 public:
  PerdureStore(const std::string& folder, bool writes)
      : pool_(perdure::Pool<Rows>::open(folder + "/rows.perdure", options(writes))) {}

  void load(std::uint64_t from, std::uint64_t to,
            const std::function<std::string(std::uint64_t)>& value) override {
    pool_.update(perdure::async, [&](perdure::tx& tx, Rows& rows) {
      for (std::uint64_t key = from; key < to; ++key) rows.row.put(tx, key, value(key));
    });
  }
  void put(std::uint64_t key, std::string_view value) override {
    pool_.update([&](perdure::tx& tx, Rows& rows) { rows.row.put(tx, key, std::string(value)); });
  }
  std::string get(std::uint64_t key) override {
    (void)pool_.refresh();
    return pool_.view([&](perdure::rtx& tx, const Rows& rows) { return *rows.row.find(tx, key); });
  }
  void scan_in_one_transaction(
      const std::function<bool(std::uint64_t, std::uint64_t)>& more) override {
    const auto state = pool_.snapshot();
    for (std::uint64_t rows = 0, sum = 0;;) {
      rows = sum = 0;
      state.view([&](perdure::rtx& tx, const Rows& all) {
        all.row.for_each(tx, [&](std::uint64_t, const std::string& value) {
          ++rows;
          sum += sum_of(value);
        });
      });
      if (!more(rows, sum)) return;
    }
  }
  void back_up(const std::string& path) override { (void)pool_.backup(path); }

 private:
  static perdure::Options options(bool writes) {
    perdure::Options o;
    o.read_only = !writes;
    o.medium = "file";
    return o;
  }
  perdure::Pool<Rows> pool_;
};

}  // namespace

std::unique_ptr<Store> open_perdure(const std::string& folder, bool writes) {
  return std::make_unique<PerdureStore>(folder, writes);
}

}  // namespace bench::readers
