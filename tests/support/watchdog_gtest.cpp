// SPDX-License-Identifier: BSD-3-Clause
//
// Puts each GoogleTest case of a program under the watchdog, and what comes before and after the
// cases (set-up of suites, the program's end). Linked into every test program (perdure_add_test).
#include <gtest/gtest.h>

#include <string>

#include "tests/support/watchdog.hpp"

namespace perdure::test {
namespace {

class EachCase final : public ::testing::EmptyTestEventListener {
  void OnTestSuiteStart(const ::testing::TestSuite& suite) override {
    begin(std::string("set-up of ") + suite.name());
  }
  void OnTestStart(const ::testing::TestInfo& info) override { begin(of(info)); }
  void OnTestEnd(const ::testing::TestInfo& info) override { begin("what follows " + of(info)); }
  void OnTestProgramEnd(const ::testing::UnitTest&) override { begin("the end of the program"); }

  static std::string of(const ::testing::TestInfo& info) {
    return std::string(info.test_suite_name()) + "." + info.name();
  }
  void begin(const std::string& what) { watch(what.c_str(), limit_); }
  double limit_ = case_limit();
};

// GoogleTest owns the listeners.
[[maybe_unused]] const bool added = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new EachCase);
  return true;
}();

}  // namespace
}  // namespace perdure::test
