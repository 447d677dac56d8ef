// SPDX-License-Identifier: BSD-3-Clause
//
// Versions: a test's pool that several versions of a program open. Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "perdure/perdure.hpp"
#include "tests/api/small_pool.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure::test {

class Versions : public ::testing::Test {
 protected:
  using Lines = std::vector<std::string>;

  /// Opens the pool as this version, runs f(tx, root) in an update, and checks the pool.
  template <class Root, class F>
  void update(F f, const Options& options = small_pool()) {
    auto pool = Pool<Root>::open(path, options);
    pool.update([&](auto& tx, Root& root) { f(tx, root); });
    EXPECT_EQ(pool.check().problems, Lines{});
  }
  template <class Root>
  void opens(const Options& options = small_pool()) {
    update<Root>([](auto&, Root&) {}, options);
  }
  /// Why this version is refused; empty if it is not.
  template <class Root>
  Lines refusals(const Migration& migrate = {}) {
    return migration_plan<Root>(path, migrate).value().refusals;
  }
  medium::testing::Scratch scratch;
  const std::string path = scratch.path();
};

}  // namespace perdure::test
