// SPDX-License-Identifier: BSD-3-Clause
// A stranger's crash test: every power cut leaves a count that was there after some step.
#include <cstdio>
#include <perdure.hpp>
#include <testing/crashtest.hpp>

struct Counting {
  struct Root {
    perdure::p<std::uint64_t> count;
  };
  template <class Pool>
  void step(Pool& pool, perdure::crashtest::Step&) {
    pool.update([](auto& tx, Root& root) { ++tx(root.count); });
  }
  template <class Tx>
  std::uint64_t digest(Tx& tx, const Root& root) {
    return tx(root.count) + 1;
  }
};

int main() {
  const auto report = perdure::crashtest::explore<Counting>({.steps = 10});
  std::printf("%s%s\n", report.failure.c_str(),
              report.counts.recoveries > 100 ? "explored" : "looked at too little");
}
