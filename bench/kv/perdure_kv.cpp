// SPDX-License-Identifier: BSD-3-Clause
//
// Perdure as a key-value store: a perdure::hash_map in a pool on the file medium, one put a transaction, the default engine.
// `perdure`: durable when update() returns. `perdure-receipts`: update(async); each thread keeps the receipts of its last puts and waits
// for the oldest when it has too many, and for the last one before its clock stops: every put is known to be durable.
#include <deque>
#include <filesystem>

#include "bench/kv/store.hpp"
#include "perdure/perdure.hpp"

namespace bench {
namespace {

struct KvRoot {
  perdure::hash_map<Key, Value> map;
};

class PerdureStore final : public Store {
 public:
  PerdureStore(const Setting& setting, bool wait)
      : path_(setting.directory + "/pool.perdure"), wait_(wait), open_receipts_(setting.max_threads) {
    options_.medium = "file";
    options_.durability = wait ? perdure::durable : perdure::async;
    options_.log_size = setting.log_size;
    open();
  }

  void put(unsigned thread, const Key& key, const Value& value) override {
    auto receipt = pool_->update([&](auto& tx, KvRoot& root) { return root.map.put(tx, key, value); });
    if (wait_) return;
    auto& open = open_receipts_[thread].receipts;
    open.push_back(receipt);
    if (open.size() > most_open) {
      open.front().wait();
      while (!open.empty() && open.front().durable()) open.pop_front();
    }
  }
  void load(std::span<const Record> records) override {
    pool_->update(perdure::async, [&](auto& tx, KvRoot& root) {
      for (const Record& r : records) root.map.put(tx, r.key, r.value);
    });
  }
  void settle(unsigned thread) override {
    auto& open = open_receipts_[thread].receipts;
    if (!open.empty()) open.back().wait();
    open.clear();
  }
  void for_each(const Visit& visit) override {
    pool_->view([&](auto& tx, const KvRoot& root) {
      root.map.for_each(tx, [&](const Key& key, const Value& value) { visit(key.data(), key_bytes, value.data(), value_bytes); });
    });
  }
  void reopen() override {
    for (auto& thread : open_receipts_) thread.receipts.clear();
    pool_->close();
    pool_.reset();
    open();
  }
  [[nodiscard]] std::map<std::string, double> counters() override {
    const auto s = pool_->stats();
    const auto n = [](std::uint64_t x) { return static_cast<double>(x); };
    return {{"commits", n(s.commits)},        {"aborts", n(s.aborts)},       {"fences", n(s.medium.fences)},
            {"syncs", n(s.medium.syncs)},     {"log_bytes", n(s.log_bytes)}, {"written_bytes", n(s.medium.written_bytes)},
            {"checkpoints", n(s.checkpoints)}};
  }
  [[nodiscard]] std::string describe() override {
    return "Perdure, engine " + std::string(pool_->engine_name()) + ", file medium, hash_map<16 bytes, 100 bytes>, log of " +
           std::to_string(pool_->stats().log_capacity >> 20) + " MiB" +
           (wait_ ? ", durable" : ", async, up to " + std::to_string(most_open) + " receipts open a thread");
  }

 private:
  static constexpr std::size_t most_open = 8192;
  struct alignas(128) Thread {
    std::deque<perdure::Receipt<bool>> receipts;
  };
  void open() { pool_.emplace(perdure::Pool<KvRoot>::open(path_, options_)); }

  std::string path_;
  bool wait_;
  perdure::Options options_;
  std::vector<Thread> open_receipts_;
  std::optional<perdure::Pool<KvRoot>> pool_;
};

void add(Systems& systems, const char* name, const char* about, bool wait) {
  systems.push_back(
      {name, about, {"kv"}, 64, [wait](const Setting& s) { return open_kv(s, wait, std::make_unique<PerdureStore>(s, wait)); }});
}

}  // namespace

void add_perdure_kv(Systems& systems) {
  add(systems, "perdure", "Perdure, durable when update() returns", true);
  add(systems, "perdure-receipts", "Perdure, async: a receipt for every put, all of them waited for", false);
}

}  // namespace bench
