// SPDX-License-Identifier: BSD-3-Clause
//
// The hash table of Tokyo Cabinet's design (bench/workloads/tc_hash.hpp), in ordinary memory and in
// a pool: it has what std::map has, and the records, order of iteration and trees that Tokyo
// Cabinet itself has after the same calls; and its workload runs on it.
#include <gtest/gtest.h>
#include <tcutil.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/bench/tc_hash_hosts.hpp"

namespace {

using namespace tc_hash_test;

using Hosts = ::testing::Types<InMemory, InPool>;
TYPED_TEST_SUITE(TcHash, Hosts);

// Tokyo Cabinet's own, with as many buckets.
class Original {
 public:
  void put(const std::string& key, const std::string& value) {
    tcmdbput(db_.get(), key.data(), size(key), value.data(), size(value));
  }
  bool out(const std::string& key) { return tcmdbout(db_.get(), key.data(), size(key)); }
  Records all() {
    Records found;
    tcmdbiterinit(db_.get());
    int key_size = 0, value_size = 0;
    while (const Bytes key{tcmdbiternext(db_.get(), &key_size)}) {
      const Bytes value(tcmdbget(db_.get(), key.get(), key_size, &value_size));
      found.emplace_back(std::string(key.get(), static_cast<std::size_t>(key_size)),
                         std::string(value.get(), static_cast<std::size_t>(value_size)));
    }
    return found;
  }
  std::string trees() {
    std::string text;
    for (std::uint32_t number = 0; number < bench::TcKey::maps; ++number)
      for (std::uint64_t i = 0; i < buckets; ++i) draw(db_->maps[number]->buckets[i], text);
    return text;
  }
  // Of keys and values.
  std::uint64_t bytes() {
    constexpr std::uint64_t a_record = sizeof(TCMAPREC) + sizeof(tcgeneric_t);
    return tcmdbmsiz(db_.get()) - tcmdbrnum(db_.get()) * a_record -
           bench::TcKey::maps * buckets * sizeof(void*);
  }

 private:
  struct Bytes : std::unique_ptr<char, decltype(&std::free)> {
    explicit Bytes(void* bytes) : unique_ptr(static_cast<char*>(bytes), std::free) {}
  };
  static void draw(const TCMAPREC* record, std::string& text) {
    if (record == nullptr) return;
    text += '(';
    text.append(reinterpret_cast<const char*>(record + 1),
                static_cast<std::uint32_t>(record->ksiz) & bench::TcKey::size_mask);
    draw(record->left, text);
    text += ' ';
    draw(record->right, text);
    text += ')';
  }
  static int size(const std::string& bytes) { return static_cast<int>(bytes.size()); }
  std::unique_ptr<TCMDB, decltype(&tcmdbdel)> db_{tcmdbnew2(1), tcmdbdel};
};

// 1,000 keys of 0 to 18 bytes, several in each bucket. Of some it is the length or the bytes alone
// that set them apart: hashes and bucket are the same.
std::vector<std::string> some_keys() {
  std::vector<std::string> keys{""};
  std::map<std::array<std::uint64_t, 3>, std::string> first;
  for (std::uint64_t n = 1; n < 20'000; ++n) {
    const std::string bytes = std::string(n % 2, '\0') + std::to_string(n * n * n) +
                              std::string(n % 5, static_cast<char>(n));
    const bench::TcKey key(bytes);
    const auto [at, alone] = first.try_emplace(
        {key.map, key.bucket_hash % buckets, key.sizes & ~bench::TcKey::size_mask}, bytes);
    if (!alone && keys.size() < 500) keys.insert(keys.end(), {at->second, bytes});
  }
  for (std::uint64_t n = 0; keys.size() < 1000; ++n) keys.push_back("key " + std::to_string(n));
  return keys;
}

TYPED_TEST(TcHash, HasWhatAMapHasInTokyoCabinetsOrder) {
  std::mt19937_64 random(11);
  const auto below = [&random](std::uint64_t n) { return random() % n; };
  const auto keys = some_keys();
  std::map<std::string, std::string> model;
  Original original;
  for (int step = 1; step <= 20'000; ++step) {
    const std::string& key = keys[below(keys.size())];
    if (below(3) == 0) {
      const bool there = model.erase(key) != 0;
      ASSERT_EQ(there, this->out(key));
      ASSERT_EQ(there, original.out(key));
    } else {
      const std::string value(below(60), static_cast<char>(random()));
      model[key] = value;
      this->put(key, value);
      original.put(key, value);
    }
    std::string found;
    const auto at = model.find(key);
    ASSERT_EQ(at != model.end(), this->get(key, found));
    if (at != model.end()) {
      ASSERT_EQ(at->second, found);
    }
    if (step % 2000 == 0) {
      ASSERT_EQ(std::vector<std::string>{}, this->problems());
      const Records all = this->all();
      ASSERT_EQ(original.all(), all);
      ASSERT_EQ(original.trees(), this->trees());
      ASSERT_EQ(model, (std::map<std::string, std::string>(all.begin(), all.end())));
      const std::uint64_t bytes = this->host_.view([](auto& tx, const auto& root) {
        std::uint64_t sum = 0;
        for (const auto& map : root.maps) sum += tx.get(map.bytes);
        return sum;
      });
      ASSERT_EQ(original.bytes(), bytes);
    }
  }
  ASSERT_LT(std::size_t{500}, model.size());  // several records a bucket: trees were searched
  while (!model.empty()) {
    ASSERT_TRUE(this->out(model.begin()->first));
    model.erase(model.begin());
  }
  ASSERT_EQ(Records{}, this->all());
  ASSERT_EQ(std::vector<std::string>{}, this->problems());
  if constexpr (std::is_same_v<TypeParam, InMemory>) {
    ASSERT_EQ(bench::TcKey::maps, this->host_.blocks());  // the buckets
  }
}

// The workload on a pool, as the benchmarks open it.
using Workload = bench::KeySet<bench::KvTable<bench::TcCalls<bench::PerdureModel>>>;
using Host = bench::PerdureHost<Workload::Root, perdure::bppm>;

TEST(TcHashWorkload, RunsAndIsRightAfterItWasOpenedAgain) {
  const bench::Scratch scratch(::testing::TempDir());
  const bench::Setting setting{
      .structure = "tchash", .directory = scratch.path(), .log_size = 1 << 20};
  Host host(setting, {.engine = "bppm"});
  Workload::fill(host, setting);
  bench::Rng rng(1, 0);
  std::int64_t grown = 0;
  for (int i = 0; i < 20'000; ++i)
    grown += Workload::step(host, {.workload = "tchash-90"}, 90, rng).grown;
  EXPECT_NE(0, grown);
  for (const bool again : {false, true}) {
    if (again) {
      ASSERT_TRUE(host.reopen());
    }
    EXPECT_EQ(std::vector<std::string>{}, Workload::audit(host, grown));
    EXPECT_EQ(std::vector<std::string>{}, host.check());
  }
}

TEST(TcHashWorkload, MissesARecordThatIsLost) {
  const bench::Scratch scratch(::testing::TempDir());
  const bench::Setting setting{.structure = "tchash", .directory = scratch.path()};
  Host host(setting, {.engine = "bppm"});
  Workload::fill(host, setting);
  EXPECT_EQ(std::vector<std::string>{}, Workload::audit(host, 0));
  host.update([](auto& tx, auto& root) {
    using Hash = bench::TcHash<bench::PerdureModel>;
    std::string key, value;
    Hash::load(tx, tx.get(root.maps[0].first), key, value);
    return Hash::out(tx, root, key);
  });
  EXPECT_EQ(std::vector<std::string>{"tchash: found 99999 elements, expected 100000"},
            Workload::audit(host, 0));
}

}  // namespace
