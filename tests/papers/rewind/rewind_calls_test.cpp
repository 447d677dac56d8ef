// SPDX-License-Identifier: BSD-3-Clause
//
// The paper's calls over REWIND, in all twelve compositions: Listing 2 with the crash explorer,
// many transactions of one thread, whose records lie between each other's, and wrong use.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "examples/rewind_list.hpp"
#include "tests/engine/recorded.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

using rewind_list::List;
using rewind_list::Manager;

// All of them, not the one that stands for them elsewhere: here their records lie between each
// other's.
std::vector<EngineInfo> compositions() {
  std::vector<EngineInfo> all;
  for (const EngineInfo& e : engine::registered())
    if (is_rewind(e) && !isolates(e) && (is_chosen(e) || all.empty())) all.push_back(e);
  return all;
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

// Three transactions at a time, each with words and a block of its own, as the caller's isolation
// has it: whatever a power cut leaves of their records in one log, what has committed is there, and
// nothing else.
struct Parts {
  static constexpr const char* layout_id = "perdure::test::RewindParts/1";
  static constexpr std::size_t count = 3, words = 8;
  struct Part {
    std::uint64_t word[words];
    std::uint64_t* block;
  } part[count];
  /// For check(): the blocks that it owns.
  template <class Tx, class F>
  void each_block(Tx&, F&& f) const {
    for (const Part& own : part)
      if (own.block != nullptr) f(own.block);
  }
};
using State = std::array<std::array<std::uint64_t, Parts::words + 1>, Parts::count>;

State state_of(const Parts& parts) {
  State s{};
  for (std::size_t i = 0; i < Parts::count; ++i) {
    std::copy_n(parts.part[i].word, Parts::words, s[i].begin());
    s[i].back() = parts.part[i].block != nullptr ? *parts.part[i].block : 0;
  }
  return s;
}

class Interleaved {
 public:
  Interleaved(papers::rewind::TransactionManager<Parts>& tm, std::uint64_t seed)
      : tm_(tm), random_(11 + seed) {}
  /// One call of one of the transactions: what has committed afterwards.
  State step(std::uint64_t n) {
    const std::size_t i = random_() % Parts::count;
    auto& id = running_[i];
    Parts::Part& own = tm_.root().part[i];
    if (id == 0) {
      id = tm_.getNextID();
      return committed_;
    }
    switch (random_() % 8) {
      case 0:
        tm_.commit(id);
        committed_[i] = state_of(tm_.root())[i];
        id = 0;
        break;
      case 1:
        tm_.rollback(id);
        id = 0;
        break;
      case 2: replace_block(id, own, n); break;
      default:
        for (std::uint64_t left = 1 + random_() % 3; left > 0; --left) {
          std::uint64_t& word = own.word[random_() % Parts::words];
          tm_.log(id, &word, word, 100 * n + left);
        }
    }
    return committed_;
  }

 private:
  void replace_block(papers::rewind::TransactionId id, Parts::Part& own, std::uint64_t n) {
    auto* const block = static_cast<std::uint64_t*>(tm_.allocate(id, 32));
    tm_.log(id, block, *block, n);
    std::uint64_t* const old = own.block;
    tm_.log(id, &own.block, old, block);
    if (old != nullptr) tm_.deallocate(id, old);
  }
  papers::rewind::TransactionManager<Parts>& tm_;
  std::array<papers::rewind::TransactionId, Parts::count> running_{};
  State committed_{};
  crash::Random random_;
};

TEST_P(RewindCalls, EveryPowerCutLeavesWhatHasCommittedOfTransactionsBesideEachOther) {
  constexpr std::uint64_t steps = 80;
  for (const auto model : {crash::Model::px86, crash::Model::adversarial})
    for (std::uint64_t from = 0; from < steps; from += steps / 4) {
      auto made = make_medium();
      Recorded recorded(*made);
      std::vector<State> states{State{}};
      {
        papers::rewind::TransactionManager<Parts> tm("crash", options(), std::move(made));
        recorded.made(tm.file().header());
        Interleaved program(tm, from);
        for (std::uint64_t step = 0; step < steps; ++step) {
          recorded.begin(step);
          states.push_back(program.step(step + 1));
          recorded.done(step);
          if (step % 17 == 16) tm.checkpoint();
        }
        recorded.end();
      }
      const auto look = [&](auto&, const Parts& parts, const crash::Crash& crash) {
        if (!crash.created) return crash::Verdict{};
        const State found = state_of(parts);
        for (std::uint64_t k = crash.least; k <= crash.most + 1 && k < states.size(); ++k)
          if (states[k] == found)
            return crash::Verdict{{}, base::hash_bytes(found.data(), sizeof found, 1)};
        return crash::Verdict{"what had committed after no step from " +
                                  std::to_string(crash.least) + " to " + std::to_string(crash.most),
                              0};
      };
      recorded.explore<Parts>(GetParam().recover, model, 6000 / scale, 400 / scale, look, from);
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
