// SPDX-License-Identifier: BSD-3-Clause
//
// For tests of blocks: a pool with a stack of nodes and with members of all sizes, on every engine.
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cctype>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "perdure/engine/dynamic_engine.hpp"
#include "plain/plain.hpp"
#include "tests/pool/pool_test.hpp"

namespace perdure::plain::test {

struct Node {
  Node* next;
  std::uint64_t value;
};
struct Root {
  static constexpr const char* layout_id = "plain::test::Root/1";
  Node* top;
  std::uint64_t sum;
  std::uint64_t accounts[64];
  std::uint8_t bytes[40];
  double real;
  long double wide;
  float single;
  std::uint16_t half;

  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    Node* n = nullptr;
    for (tx.read_bytes(&n, &top, sizeof n); n != nullptr; tx.read_bytes(&n, &n->next, sizeof n))
      f(n);
  }
};

inline void push(Root& r, std::uint64_t value) {
  r.top = new Node{r.top, value};
  r.sum += value;
}
inline std::uint64_t pop(Root& r) {
  Node* const n = r.top;
  if (n == nullptr) return 0;
  const std::uint64_t value = n->value;
  r.top = n->next;
  r.sum -= value;
  delete n;
  return value;
}

inline std::vector<std::string> engines() {
  std::vector<std::string> names;
  for (const auto& e : engine::registered())
    if (e.name.find("htm") == std::string_view::npos && !e.name.starts_with("volatile"))
      names.emplace_back(e.name);
  return names;
}

class Blocks : public ::testing::TestWithParam<std::string> {
 protected:
  Options options() const {
    Options o;
    o.medium = "emulated";
    o.engine = GetParam();
    o.creation.log_size = 1 << 20;
    o.creation.max_size = 64 << 20;
    return o;
  }
  const pool::testing::Scratch scratch;
};

inline std::uint64_t sum_of(PlainPool<Root>& pool) {
  std::uint64_t sum = 0;
  pool.atomically([&](Root& r) {
    sum = 0;
    for (const Node* n = r.top; n != nullptr; n = n->next) sum += n->value;
  });
  return sum;
}

/// Three threads move what is on the accounts, each time by transfer(i, from, to, done), which also
/// counts itself in `done`; their sum is the same in all blocks.
template <class Transfer>
void expect_isolated(PlainPool<Root>& pool, const Transfer& transfer) {
  pool.atomically([](Root& r) {
    for (std::uint64_t& a : r.accounts) a = 100;
  });
  constexpr int threads = 3, each = 400;
  std::atomic<bool> wrong{false};
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&, t] {
      std::uint64_t x = static_cast<std::uint64_t>(t) * 7919 + 1;
      std::uint64_t done = 0;
      for (int i = 0; i < each; ++i) {
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
        transfer(i, (x >> 33) % 64, (x >> 40) % 64, done);
        if (i % 16 == 0) {
          std::uint64_t sum = 0;
          pool.atomically([&](Root& r) {
            sum = 0;
            for (const std::uint64_t a : r.accounts) sum += a;
          });
          if (sum != 6400) wrong = true;
        }
      }
      if (done != each) wrong = true;
    });
  for (auto& w : workers) w.join();
  EXPECT_FALSE(wrong);
}

inline std::string name_of_instance(const ::testing::TestParamInfo<std::string>& of) {
  std::string name = of.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

}  // namespace perdure::plain::test
