// SPDX-License-Identifier: BSD-3-Clause
//
// The hash table of Tokyo Cabinet's design (bench/workloads/tc_hash.hpp) in ordinary memory and in
// a pool, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/scratch.hpp"
#include "bench/systems/perdure.hpp"
#include "bench/systems/plain_model.hpp"
#include "papers/blurred/instances.hpp"

namespace tc_hash_test {

using Records = std::vector<std::pair<std::string, std::string>>;

// Tokyo Cabinet has at least 17 buckets in a map.
inline constexpr std::uint64_t buckets = 17;

/// A table in ordinary memory. It frees its blocks at its end, also those of a broken table.
class InMemory : public bench::HostDefaults {
 public:
  using Model = bench::PlainModel;
  struct Tx : bench::PlainTx {
    std::set<void*>& blocks;
    explicit Tx(std::set<void*>& b) : blocks(b) {}
    template <class T>
    T* allocate(std::size_t n) const {
      auto* const block = PlainTx::allocate<T>(n);
      blocks.insert(block);
      return block;
    }
    template <class T>
    void destroy(T* block) const {
      ASSERT_EQ(1U, blocks.erase(block));
      PlainTx::destroy(block);
    }
  };
  ~InMemory() {
    for (void* block : blocks_) ::operator delete(block);
  }

  template <class F>
  auto update(F&& f) {
    Tx tx(blocks_);
    return f(tx, root_);
  }
  template <class F>
  auto view(F&& f) {
    return update(f);
  }
  /// What nothing leads to remains here.
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }

 private:
  std::set<void*> blocks_;
  bench::TcRoot<Model> root_;
};

/// A table in a pool of BPPM.
class InPool : public bench::PerdureHost<bench::TcRoot<bench::PerdureModel>, perdure::bppm> {
 public:
  using Model = bench::PerdureModel;
  InPool() : InPool(std::make_unique<bench::Scratch>(::testing::TempDir())) {}

 private:
  explicit InPool(std::unique_ptr<bench::Scratch> scratch)
      : PerdureHost({.structure = "tchash", .directory = scratch->path(), .log_size = 1 << 20},
                    {.engine = "bppm"}),
        scratch_(std::move(scratch)) {}
  std::unique_ptr<bench::Scratch> scratch_;
};

template <class Host>
class TcHash : public ::testing::Test {
 protected:
  using Model = typename Host::Model;
  using Hash = bench::TcHash<Model>;
  using Calls = bench::TcCalls<Model>;

  void SetUp() override { Calls::prepare(host_, buckets); }
  void put(const std::string& key, const std::string& value) {
    host_.update([&](auto& tx, auto& root) {
      Hash::put(tx, root, key, value);
      return true;
    });
  }
  bool out(const std::string& key) {
    return host_.update([&](auto& tx, auto& root) { return Hash::out(tx, root, key); });
  }
  bool get(const std::string& key, std::string& value) {
    return host_.view([&](auto& tx, const auto& root) { return Hash::get(tx, root, key, value); });
  }
  Records all() {
    Records found;
    host_.view([&](auto& tx, const auto& root) {
      found.clear();
      for (const auto& map : root.maps)
        for (auto record = tx.get(map.first); record; record = tx.get(record->next)) {
          auto& [key, value] = found.emplace_back();
          Hash::load(tx, record, key, value);
        }
      return true;
    });
    return found;
  }
  // Each bucket's tree, a record as (KEY LEFT RIGHT).
  std::string trees() {
    std::string text;
    host_.view([&](auto& tx, const auto& root) {
      text.clear();
      const auto draw = [&](const auto& again, auto record) -> void {
        if (!record) return;
        std::string key, value;
        Hash::load(tx, record, key, value);
        text += '(' + key;
        again(again, tx.get(record->left));
        text += ' ';
        again(again, tx.get(record->right));
        text += ')';
      };
      for (const auto& map : root.maps)
        for (std::uint64_t i = 0; i < buckets; ++i) draw(draw, tx.get(tx.get(map.buckets)[i]));
      return true;
    });
    return text;
  }
  std::vector<std::string> problems() {
    std::vector<std::string> found;
    Calls::audit(host_, found);
    for (auto& problem : host_.check()) found.push_back(problem);
    return found;
  }

  Host host_;
};

}  // namespace tc_hash_test
