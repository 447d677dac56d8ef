// SPDX-License-Identifier: BSD-3-Clause
//
// The suites for walks during changes: for every container, by for_each and by cursor, an element
// that is present from a walk's beginning to its end is visited once, and an erased element is not
// visited afterwards.
//
// A walk takes place in one transaction. Each of its steps makes changes of one kind (erasing the
// element itself, its neighbours, or any element; adding; clearing) to the container and to a
// model. This file has what the suites of maps and of sequences share.
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <set>

namespace perdure::test {

/// The elements that a walk visited.
template <class T>
class Visits {
 public:
  template <class Elements>
  explicit Visits(const Elements& there) : stays_(there.begin(), there.end()), there_(stays_) {}
  void visit(const T& x) {
    EXPECT_TRUE(there_.contains(x)) << "an element was visited after it was erased";
    if (!added_.contains(x)) {
      EXPECT_FALSE(seen_.contains(x)) << "an element was visited twice";
    }
    seen_.insert(x);
  }
  void erase(const T& x) { there_.erase(x), stays_.erase(x); }
  void add(const T& x) { there_.insert(x), added_.insert(x); }
  void clear() { there_.clear(), stays_.clear(); }
  void expect_all() const {
    std::size_t skipped = 0;
    for (const T& x : stays_) skipped += !seen_.contains(x);
    EXPECT_EQ(skipped, 0U) << "elements that were skipped, of " << stays_.size();
  }
  [[nodiscard]] std::size_t seen() const { return seen_.size(); }

 private:
  std::set<T> stays_, there_, added_, seen_;
};

}  // namespace perdure::test
