// SPDX-License-Identifier: BSD-3-Clause
//
// The fixture of the tests of the heap: a pool that is opened and closed repeatedly, used through
// HeapUser alone, without an engine. Thread safety: one thread calls open() and close().
#pragma once

#include <memory>
#include <set>

#include "pool_test.hpp"

namespace perdure::pool::testing {

class HeapTest : public ::testing::Test {
 protected:
  void open(std::uint64_t max = 4 * MiB) {
    how = small(scratch.path());
    how.max_bytes = max;
    how.base = base;
    auto r = OpenPool::open(how, tester());
    ASSERT_TRUE(r.ok()) << r.status().message();
    pool = std::move(*r);
    ASSERT_TRUE(pool->start_session(ViewPolicy::shadow).ok());
    user = std::make_unique<HeapUser>(*pool);
  }
  void close() {
    user->close();
    const auto a = audit_heap(pool->medium().data(), pool->header());
    EXPECT_TRUE(a.problems.empty()) << a.problems.front();
    user.reset();
    pool.reset();
  }
  [[nodiscard]] std::set<std::uint64_t> blocks() const {
    std::set<std::uint64_t> all;
    const auto a = audit_heap(pool->view(), pool->header(),
                              [&](std::uint64_t offset, std::uint64_t) { all.insert(offset); });
    EXPECT_TRUE(a.problems.empty() || a.problems.front().find("heap_used") != std::string::npos)
        << a.problems.front();
    return all;
  }

  Scratch scratch;
  OpenFile how;
  std::uint64_t base = 0;
  std::unique_ptr<OpenPool> pool;
  std::unique_ptr<HeapUser> user;
};

}  // namespace perdure::pool::testing
