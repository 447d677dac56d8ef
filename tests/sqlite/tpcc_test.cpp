// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C's five transactions in SQL on a pool, in both designs: its consistency conditions hold
// afterwards, in the reopened database, and in what a SIGKILL leaves, with every acknowledged
// transaction.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness/scratch.hpp"
#include "bench/sqlite/databases.hpp"
#include "bench/sqlite/tpcc_check.hpp"
#include "bench/sqlite/tpcc_transactions.hpp"

namespace {

using namespace bench::sqlite;
using Problems = std::vector<std::string>;

constexpr tpcc::Scale small{2, 60};

struct Kind {
  const char *database, *engine;
  friend void PrintTo(const Kind& k, std::ostream* out) { *out << k.database << ' ' << k.engine; }
};
class Tpcc : public ::testing::TestWithParam<Kind> {
 protected:
  [[nodiscard]] bench::sqlite::Setup how() const {
    bench::sqlite::Setup s;
    s.kind = GetParam().database;
    s.engine = GetParam().engine;
    s.directory = scratch_.path();
    s.log_size = 8 << 20;
    s.max_size = std::uint64_t{1} << 30;
    return s;
  }
  /// The money that was moved, and the number of orders.
  static std::string state(Connection& db) {
    return db.run(
        "select sum(d_ytd) || ' ' || (select count(*) from orders) || ' ' || (select count(*) from "
        "history) || ' ' || (select count(*) "
        "from new_order) from district");
  }
  bench::Scratch scratch_{::testing::TempDir()};
};
INSTANTIATE_TEST_SUITE_P(Databases, Tpcc,
                         ::testing::Values(Kind{"b", "shadow"}, Kind{"b", "softwrap"},
                                           Kind{"b", "bppm"}, Kind{"a", ""}, Kind{"wal", ""}));

TEST_P(Tpcc, KeepsItsConditions) {
  Subject subject(how());
  tpcc::Loader(subject.db(), small).load();
  EXPECT_EQ(Problems{}, tpcc::problems(subject.db()));
  std::array<unsigned, tpcc::kind_names.size()> count{};
  {
    tpcc::Terminal terminal(subject.db(), small, 5);
    for (int i = 0; i < 23 * 30; ++i) ++count[static_cast<std::size_t>(terminal.next())];
    EXPECT_LT(0U, terminal.rolled_back());
  }
  EXPECT_EQ((std::array<unsigned, 5>{300, 300, 30, 30, 30}), count);
  EXPECT_EQ(Problems{}, tpcc::problems(subject.db()));
  const std::string before = state(subject.db());
  subject.reopen();
  EXPECT_EQ(Problems{}, tpcc::problems(subject.db()));
  EXPECT_EQ(before, state(subject.db()));
}

// The conditions can fail.
TEST_P(Tpcc, WhatIsBrokenIsFound) {
  Subject subject(how());
  tpcc::Loader(subject.db(), tpcc::Scale{1, 100}).load();
  unsigned found = 0;
  for (const char* const damage :
       {"update warehouse set w_ytd = w_ytd + 1",
        "update district set d_next_o_id = d_next_o_id + 1 where d_id = 3",
        "delete from new_order where no_o_id = 25", "delete from order_line where ol_number = 2",
        "update orders set o_carrier_id = 1",
        "update orders set o_ol_cnt = o_ol_cnt + 1 where o_id = 1",
        "update order_line set ol_delivery_d = null", "delete from history where h_c_id = 7",
        "update customer set c_balance = c_balance + 1 where c_id = 9"}) {
    subject.db().run(std::string("begin; ").append(damage));
    found += tpcc::problems(subject.db()).empty() ? 0 : 1;
    subject.db().run("rollback");
  }
  EXPECT_EQ(9U, found);
  EXPECT_EQ(Problems{}, tpcc::problems(subject.db()));
}

TEST_P(Tpcc, SurvivesKills) {
  {
    Subject subject(how());
    tpcc::Loader(subject.db(), small).load();
  }
  std::uint64_t told_of = 0;
  for (std::uint64_t kill = 0; kill < 6; ++kill) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(0, ::pipe(pipe.data()));
    const pid_t child = ::fork();
    if (child == 0) {  // prints each payment that it has committed
      Subject subject(how());
      tpcc::Terminal terminal(subject.db(), small, 100 + kill);
      for (;;)
        if (terminal.next() == tpcc::Kind::payment && ::write(pipe[1], "p", 1) != 1) ::_exit(1);
    }
    ::close(pipe[1]);
    std::uint64_t told = 0;
    for (char c = 0; told < 20 + kill * 7 && ::read(pipe[0], &c, 1) == 1;) ++told;
    ::kill(child, SIGKILL);
    for (char c = 0; ::read(pipe[0], &c, 1) == 1;) ++told;
    ::close(pipe[0]);
    int status = 0;
    ASSERT_EQ(child, ::waitpid(child, &status, 0));
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
    told_of += told;
    Subject subject(how());
    EXPECT_EQ(Problems{}, tpcc::problems(subject.db())) << kill;
    const std::uint64_t loaded = small.warehouses * tpcc::districts * small.customers(),
                        paid =
                            std::stoull(subject.db().run("select count(*) from history")) - loaded;
    EXPECT_GE(paid, told_of);
    EXPECT_LE(paid, told_of + 1);
    told_of = paid;
  }
}

}  // namespace
