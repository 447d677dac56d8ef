// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of archives and backups share: a pool whose program changes, allocates and frees,
// the contents after each of its transactions, and their comparison with what was restored.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "perdure/backup/restore.hpp"
#include "perdure/perdure.hpp"
#include "tests/engine/suite.hpp"
#include "tests/pool/pool_test.hpp"

namespace perdure::test {

struct BackedUp {
  static constexpr std::size_t slots = 32;
  map<std::uint64_t, std::string> sorted;
  hash_map<std::string, std::uint64_t> hashed;
  std::array<ptr<p<std::uint64_t>>, slots> block;  // of many sizes; the first word is the size
  p<std::uint64_t> count;
};

struct Contents {
  std::map<std::uint64_t, std::string> sorted;
  std::map<std::string, std::uint64_t> hashed;
  std::array<std::uint64_t, BackedUp::slots> block{};
  std::uint64_t count = 0;
  friend bool operator==(const Contents&, const Contents&) = default;
};
Contents contents(auto& tx, const BackedUp& r) {
  Contents c;
  r.sorted.for_each(tx, [&](std::uint64_t k, const std::string& v) { c.sorted.emplace(k, v); });
  r.hashed.for_each(tx, [&](const std::string& k, std::uint64_t v) { c.hashed.emplace(k, v); });
  for (std::size_t i = 0; i < BackedUp::slots; ++i)
    if (const auto* const at = tx.read(r.block[i]); at != nullptr) c.block[i] = tx.read(at[0]);
  c.count = tx.read(r.count);
  return c;
}

/// A program that makes random transactions, and knows the contents after each.
class Program {
 public:
  explicit Program(std::uint64_t seed) : random_(seed) {}
  /// Makes one; returns its id.
  template <class Pool>
  std::uint64_t step(Pool& pool) {
    const std::uint64_t what = random_() % 10, key = random_() % 200, length = random_() % 100;
    const std::size_t slot = random_() % BackedUp::slots;
    // now and then a block of several chunks, so that the pool grows
    const std::uint64_t words =
        random_() % 40 == 0 ? 20000 + random_() % 20000 : random_() % 500 + 1;
    const auto receipt = pool.update([&](auto& tx, BackedUp& r) {
      if (what < 4) {
        r.sorted.put(tx, key, std::string(length, static_cast<char>('a' + key % 26)));
      } else if (what < 6) {
        r.sorted.erase(tx, key);
      } else if (what < 8) {
        r.hashed.put(tx, "key " + std::to_string(key), length);
      } else if (what < 9) {
        r.hashed.erase(tx, "key " + std::to_string(key));
      } else {
        if (auto* const old = tx.read(r.block[slot]); old != nullptr) tx.free(old);
        auto* const made = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(words * 8));
        tx.write(made[0], words);
        if (words > 1) tx.write(made[words - 1], words);
        tx.write(r.block[slot], made);
      }
      tx.write(r.count, tx.read(r.count) + 1);
    });
    states_[receipt.id()] = pool.view([](auto& tx, const BackedUp& r) { return contents(tx, r); });
    return receipt.id();
  }
  /// The contents after the last transaction up to `id`.
  [[nodiscard]] const Contents& at(std::uint64_t id) const {
    return std::prev(states_.upper_bound(id))->second;
  }
  [[nodiscard]] const std::map<std::uint64_t, Contents>& states() const { return states_; }
  /// The pool's contents as they are, for what went before.
  template <class Pool>
  void knows(Pool& pool) {
    states_[pool.stats().last_id] =
        pool.view([](auto& tx, const BackedUp& r) { return contents(tx, r); });
  }

 private:
  std::mt19937_64 random_;
  std::map<std::uint64_t, Contents> states_;
};

/// Restores the folder to a point, opens the pool and checks it; its contents.
inline Contents restored(const std::string& folder, const std::string& path, const RestorePoint& to,
                         RestoreReport* report = nullptr) {
  std::filesystem::remove(path);
  const RestoreReport done = restore(folder, path, to);
  if (report != nullptr) *report = done;
  Options o;
  o.create = false;
  o.medium = "emulated";
  auto pool = AnyPool<BackedUp>::open(path, o);
  const CheckReport check = pool.check();
  EXPECT_TRUE(check.ok()) << check.problems.front();
  Contents c = pool.view([](auto& tx, const BackedUp& r) { return contents(tx, r); });
  pool.close();
  std::filesystem::remove(path);
  return c;
}

/// The files of an archive's log, by their numbers.
inline std::vector<std::string> segments(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (const std::string name = file.path().filename(); name.starts_with("log-"))
      names.push_back(file.path());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace perdure::test
