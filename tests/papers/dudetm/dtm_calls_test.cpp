// SPDX-License-Identifier: BSD-3-Clause
//
// The paper's calls over DudeTM, in each of its variants: Algorithm 1 with the crash explorer and
// with several threads, and wrong use.
#include "papers/dudetm/dtm_calls.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "examples/dudetm_transfer.hpp"
#include "tests/engine/recorded.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

using dudetm_transfer::Bank;
using dudetm_transfer::Dtm;

std::vector<EngineInfo> forms() {
  return engines_that([](const EngineInfo& e) { return is_dudetm(e) && e.tm == "biased"; });
}

class DtmCalls : public EngineTest {
 protected:
  static constexpr std::uint64_t ring_bytes = 24576;
  static Options options() {
    Options o;
    o.engine = GetParam().name;
    o.creation.uuid_seed = 7;
    o.creation.threads = 1;
    o.creation.log_size = ring_bytes;
    return o;
  }
  static std::unique_ptr<medium::CrashMedium> make_medium() {
    return Recorded::make_medium(ring_bytes, 4 << 20);
  }
  template <class F>
  static Code code_of(F&& f) {
    try {
      f();
    } catch (const error& e) {
      return e.code();
    }
    return Code::ok;
  }
};
ENGINE_SUITE(DtmCalls, forms);

TEST_P(DtmCalls, EveryPowerCutLeavesTheBanksTotal) {
  for (const auto model : {crash::Model::px86, crash::Model::adversarial}) {
    auto made = make_medium();
    Recorded recorded(*made);
    {
      Dtm dtm("crash", options(), std::move(made));
      recorded.made(dtm.file().header());
      dudetm_transfer::open_accounts(dtm, 10);
      for (std::uint64_t step = 0; step < 30; ++step) {
        recorded.begin(step);
        EXPECT_NE(0U, dudetm_transfer::transfer(dtm, step % 7, 50 + step));
        recorded.done(step);
      }
      recorded.end();
    }
    const auto look = [&](auto&, const Bank& bank, const crash::Crash& crash) {
      if (!crash.created || bank.opened == 0)
        return crash.least == 0 ? crash::Verdict{} : crash::Verdict{"no accounts", 0};
      const auto sum =
          std::accumulate(std::begin(bank.accounts), std::end(bank.accounts), std::int64_t{0});
      if (sum != 1000) return crash::Verdict{"the total is " + std::to_string(sum), 0};
      std::uint64_t done = 0;
      for (std::size_t i = 50; i < Bank::size; ++i)
        done += static_cast<std::uint64_t>(bank.accounts[i] - 10);
      if (done < crash.least || done > crash.most + 1)
        return crash::Verdict{std::to_string(done) + " transfers", 0};
      return crash::Verdict{{}, done};
    };
    recorded.explore<Bank>(GetParam().recover, model, 3000 / scale, 200 / scale, look);
  }
}

TEST_P(DtmCalls, TransferBetweenThreads) {
  Options o = options();
  o.durability = async;
  o.creation.threads = 3;
  o.creation.log_size = 1 << 20;
  Dtm dtm("recording", o, Recorded::make_medium(2 << 20, 4 << 20));
  dudetm_transfer::open_accounts(dtm, 10);
  in_threads(3, [&](int me) {
    crash::Random random(static_cast<std::uint64_t>(me));
    std::uint64_t last = 0;
    for (unsigned i = 0; i < 3000 / scale; ++i)
      if (const std::uint64_t id =
              dudetm_transfer::transfer(dtm, random() % Bank::size, random() % Bank::size);
          id != 0) {
        EXPECT_GT(id, last) << "IDs rise";
        last = id;
      }
    dtm.wait(last);
    EXPECT_GE(dtm.durableId(), last);
    EXPECT_EQ(Code::invalid, code_of([&] { dtm.wait(last + 1000000); }))
        << "it has not been drawn, and nobody would end the wait";
  });
  EXPECT_EQ(1000, dudetm_transfer::total(dtm));
  for (const auto& account : dtm.root().accounts)
    EXPECT_GE(dtm.transaction([&] {
      dtm.dtmBegin();
      const std::int64_t balance = dtm.dtmRead(&account);
      dtm.dtmEnd();
      return balance;
    }),
              0);
  dtm.close();
}

TEST_P(DtmCalls, AbortTakesEverythingBack) {
  Dtm dtm("recording", options(), make_medium());
  Bank& bank = dtm.root();
  dtm.dtmBegin();
  dtm.dtmWrite(&bank.accounts[3], 5);
  EXPECT_EQ(5, dtm.dtmRead(&bank.accounts[3]));
  (void)dtm.pmalloc(100);
  dtm.dtmAbort();
  dtm.dtmBegin();
  EXPECT_EQ(0, dtm.dtmRead(&bank.accounts[3]));
  dtm.dtmEnd();
  EXPECT_EQ(0U, dtm.stats().heap_used - dtm.file().header().root_bytes > 4096 ? 1U : 0U);
  EXPECT_EQ(0U, dudetm_transfer::transfer(dtm, 1, 2)) << "nothing to transfer";
}

TEST_P(DtmCalls, OutOfPlaceAreInvalid) {
  Dtm dtm("recording", options(), make_medium());
  std::int64_t outside = 0;
  EXPECT_EQ(Code::invalid, code_of([&] { dtm.dtmEnd(); }));
  EXPECT_EQ(Code::invalid, code_of([&] { dtm.dtmAbort(); }));
  EXPECT_EQ(Code::invalid, code_of([&] { (void)dtm.dtmRead(&dtm.root().opened); }));
  EXPECT_EQ(Code::invalid, code_of([&] { dtm.dtmWrite(&dtm.root().opened, 1); }));
  dtm.dtmBegin();
  EXPECT_EQ(Code::invalid, code_of([&] { dtm.dtmBegin(); }));
  EXPECT_EQ(Code::invalid, code_of([&] { dtm.dtmWrite(&outside, 1); }));
  EXPECT_EQ(Code::invalid, code_of([&] { dtm.close(); }));
  dtm.dtmWrite(&dtm.root().opened, 1);
  dtm.dtmEnd();
  dtm.close();
}

}  // namespace
}  // namespace perdure::test
