// SPDX-License-Identifier: BSD-3-Clause
//
// For tests of blocks: a pool with a stack of nodes and with members of all sizes, on every engine.
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <string>
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

inline std::string name_of_instance(const ::testing::TestParamInfo<std::string>& of) {
  std::string name = of.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

}  // namespace perdure::plain::test
