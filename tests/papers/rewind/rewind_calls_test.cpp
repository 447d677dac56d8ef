// SPDX-License-Identifier: BSD-3-Clause
//
// The paper's calls over REWIND, in all twelve compositions: Listing 2 with the crash explorer,
// many transactions of one thread, and wrong use.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "examples/rewind_list.hpp"
#include "tests/engine/recorded.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

using rewind_list::List;
using rewind_list::Manager;

std::vector<EngineInfo> compositions() {
  return engines_that([](const EngineInfo& e) { return is_rewind(e) && !isolates(e); });
}

class RewindCalls : public EngineTest {
 protected:
  static Options options() {
    Options o;
    o.engine = GetParam().name;
    o.creation.uuid_seed = 7;
    o.creation.threads = 1;
    o.creation.log_size = ring_bytes();
    return o;
  }
  static std::uint64_t ring_bytes() {
    return GetParam().family.find("-1l-") != std::string_view::npos ? 16384 : 65536;
  }
  static std::unique_ptr<medium::CrashMedium> make_medium() {
    return Recorded::make_medium(ring_bytes(), 4 << 20);
  }
  static std::vector<std::uint64_t> values(const List& list) {
    std::vector<std::uint64_t> all;
    for (const auto* n = list.head; n != nullptr; n = n->nxt) all.push_back(n->value);
    return all;
  }
  /// Checks the links in both directions.
  static bool whole(const List& list) {
    const rewind_list::Node* before = nullptr;
    for (const auto* n = list.head; n != nullptr; before = n, n = n->nxt)
      if (n->prv != before) return false;
    return list.tail == before;
  }
};
ENGINE_SUITE(RewindCalls, compositions);

TEST_P(RewindCalls, EveryPowerCutLeavesAListThatWas) {
  for (const auto model : {crash::Model::px86, crash::Model::adversarial}) {
    auto made = make_medium();
    Recorded recorded(*made);
    std::vector<std::vector<std::uint64_t>> states{{}};
    {
      Manager tm("crash", options(), std::move(made));
      recorded.made(tm.file().header());
      crash::Random random(3);
      for (std::uint64_t step = 0; step < 24; ++step) {
        recorded.begin(step);
        const auto tID = tm.getNextID();
        const auto there = values(tm.root());
        if (there.size() < 3 || (there.size() < 8 && random() % 2 == 0)) {
          append(tm, tID, 100 + step);
        } else {
          auto* n = tm.root().head;
          for (std::uint64_t left = random() % there.size(); left > 0; --left) n = n->nxt;
          remove(tm, tID, n);
        }
        if (random() % 4 == 0)
          tm.rollback(tID);
        else
          tm.commit(tID);
        states.push_back(values(tm.root()));
        recorded.done(step);
        if (step % 9 == 8) tm.checkpoint();
      }
      recorded.end();
    }
    const auto look = [&](auto&, const List& list, const crash::Crash& crash) {
      if (!crash.created) return crash::Verdict{};
      if (!whole(list)) return crash::Verdict{"a list that does not lead back", 0};
      const auto found = values(list);
      for (std::uint64_t k = crash.least; k <= crash.most + 1 && k < states.size(); ++k)
        if (states[k] == found)
          return crash::Verdict{{}, base::hash_bytes(found.data(), found.size() * 8, 1)};
      return crash::Verdict{"a list as after no step from " + std::to_string(crash.least) + " to " +
                                std::to_string(crash.most),
                            0};
    };
    recorded.explore<List>(GetParam().recover, model, 3000 / scale, 500 / scale, look);
  }
}

TEST_P(RewindCalls, AThreadHasManyTransactions) {
  Manager tm("recording", options(), make_medium());
  const auto a = tm.getNextID(), b = tm.getNextID(), c = tm.getNextID();
  append(tm, a, 1);
  tm.commit(a);
  append(tm, b, 2);
  EXPECT_THROW(tm.close(), error);
  tm.rollback(b);
  append(tm, c, 3);
  tm.commit(c);
  EXPECT_EQ((std::vector<std::uint64_t>{1, 3}), values(tm.root()));
  EXPECT_EQ(2U, tm.stats().commits);
  tm.close();
}

TEST_P(RewindCalls, SayWhatIsWrong) {
  Manager tm("recording", options(), make_medium());
  const auto tID = tm.getNextID();
  append(tm, tID, 1);
  auto* const n = tm.root().head;
  const auto code_of = [](auto&& f) {
    try {
      f();
    } catch (const error& e) {
      return e.code();
    }
    return Code::ok;
  };
  std::uint64_t outside = 0;
  EXPECT_EQ(Code::invalid, code_of([&] { tm.log(tID, &n->value, 2, 3); }));  // it is 1
  EXPECT_EQ(Code::invalid, code_of([&] { tm.log(tID, &outside, 0, 1); }));
  EXPECT_EQ(Code::invalid, code_of([&] { tm.log(tID + 1, &n->value, 1, 2); }));
  EXPECT_EQ(Code::invalid, code_of([&] { tm.commit(0); }));
  tm.commit(tID);
  EXPECT_EQ(Code::invalid, code_of([&] { tm.commit(tID); }));
  EXPECT_EQ(1U, n->value);
}

// A log that others' records fill is emptied by a checkpoint, without running the transaction
// again; a transaction that can never fit is refused, and undone.
TEST_P(RewindCalls, MakeRoom) {
  Manager tm("recording", options(), make_medium());
  for (std::uint64_t i = 0; i < 300 / scale; ++i) {
    const auto tID = tm.getNextID();
    append(tm, tID, i);
    tm.commit(tID);
    const auto gone = tm.getNextID();
    remove(tm, gone, tm.root().head);
    tm.commit(gone);
  }
  const auto kept = tm.getNextID(), large = tm.getNextID();
  append(tm, kept, 7);
  std::uint64_t* const value = &tm.root().head->value;
  try {
    for (std::uint64_t i = 0; i < 100'000; ++i) tm.log(large, value, 7 + i, 8 + i);
    FAIL() << "a transaction larger than its log";
  } catch (const error& e) {
    EXPECT_TRUE(e.code() == Code::too_big || e.code() == Code::full) << e.what();
  }
  tm.rollback(large);
  EXPECT_EQ(7U, *value);
  tm.commit(kept);
  EXPECT_EQ((std::vector<std::uint64_t>{7}), values(tm.root()));
}

}  // namespace
}  // namespace perdure::test
