// SPDX-License-Identifier: BSD-3-Clause
//
// REWIND's logs as sequences of pointers: appending, removing and compacting, and what every power
// cut leaves.
#include "papers/rewind/pointer_log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/papers/rewind/nvm_suite.hpp"

namespace perdure::test {
namespace {

using papers::rewind::PointerLog;

/// A log on a medium; records are lines that contain a number.
struct Rig : LogRig {
  using LogRig::LogRig;
  void append(std::uint64_t number) {
    const std::uint64_t record = arena.take_line();
    const std::uint64_t words[8] = {number, number, number, number, number, number, number, number};
    nvm.start_line(record, words);
    log->append(record);
  }
  /// The numbers of the records in the log; a record that is not whole is 0.
  [[nodiscard]] std::vector<std::uint64_t> numbers() const {
    std::vector<std::uint64_t> all;
    for (auto at = log->first(); at; at = log->next(at)) {
      const std::uint64_t record = log->record(at);
      bool whole = true;
      for (std::uint64_t w = 8; w < 64; w += 8)
        whole = whole && nvm.word(record + w) == nvm.word(record);
      all.push_back(whole ? nvm.word(record) : 0);
    }
    return all;
  }
  [[nodiscard]] std::vector<std::uint64_t> backwards() const {
    std::vector<std::uint64_t> all;
    for (auto at = log->last(); at; at = log->prior(at)) all.push_back(nvm.word(log->record(at)));
    return all;
  }
  /// The i-th pointer.
  [[nodiscard]] PointerLog::At at(std::uint64_t i) const {
    auto found = log->first();
    while (i-- > 0) found = log->next(found);
    return found;
  }
  void remove(std::uint64_t i) {
    const auto where = at(i);
    const std::uint64_t record = log->record(where);
    log->remove(where);
    arena.give_line(record);
  }
};

class PointerLogs : public ::testing::TestWithParam<Version> {};
INSTANTIATE_TEST_SUITE_P(All, PointerLogs, ::testing::ValuesIn(versions), version_name);

TEST_P(PointerLogs, KeepWhatIsAppendedAndNotRemovedInOrder) {
  auto medium = make_medium();
  Rig rig(*medium, GetParam());
  std::vector<std::uint64_t> model;
  crash::Random random(5);
  const std::uint64_t lines = rig.arena.free_lines();
  for (std::uint64_t i = 1; i <= 2000; ++i) {
    if (model.size() < 40 && (random() % 2 == 0 || model.empty()) && rig.log->fits(1)) {
      rig.append(i);
      model.push_back(i);
    } else if (!model.empty()) {
      rig.log->persist();
      const std::uint64_t victim = random() % 3 == 0 ? random() % model.size() : 0;
      rig.remove(victim);
      model.erase(model.begin() + static_cast<std::ptrdiff_t>(victim));
    }
    if (i % 50 == 0 || !rig.log->fits(1)) rig.log->compact();
    std::vector<std::uint64_t> durable(
        model.begin(), model.end() - static_cast<std::ptrdiff_t>(rig.log->pending()));
    ASSERT_EQ(durable, rig.numbers()) << i;
    std::reverse(durable.begin(), durable.end());
    ASSERT_EQ(durable, rig.backwards()) << i;
  }
  while (!model.empty()) {
    rig.log->persist();
    rig.remove(0);
    model.erase(model.begin());
  }
  EXPECT_FALSE(rig.log->first());
  EXPECT_FALSE(rig.log->last());
  EXPECT_EQ(lines, rig.arena.free_lines());
  EXPECT_GE(1U, rig.arena.buckets() - rig.arena.free_buckets());  // the bucket that is being filled
}

// The paper's fences and, separately, its synchronous stores (sections 3.2, 3.3).
TEST_P(PointerLogs, CostWhatTheyShould) {
  auto medium = make_medium();
  Rig rig(*medium, GetParam());
  rig.append(1);  // also makes the first bucket
  rig.log->persist();
  const std::uint64_t fences = rig.nvm.fences(), stores = rig.nvm.synchronous_stores();
  const std::uint64_t n = GetParam().group == 1 ? 4 : GetParam().group;
  for (std::uint64_t i = 0;
       i < (GetParam().cells == 5 ? 4 / GetParam().group * GetParam().group : n); ++i)
    rig.append(2 + i);
  const std::uint64_t f = rig.nvm.fences() - fences, s = rig.nvm.synchronous_stores() - stores;
  if (std::string(GetParam().name) == "simple") {
    EXPECT_EQ(0U, f);      // lastTail's fence serves the record, too
    EXPECT_EQ(4U * 5, s);  // lastTail, toAppend, the link to it, tail, toAppend
  } else if (GetParam().group == 1) {
    EXPECT_EQ(4U, f);
    EXPECT_EQ(4U, s);
  } else {
    EXPECT_EQ(GetParam().group == 2 ? 2U : 1U, f);  // one fence and one store per group
    EXPECT_EQ(GetParam().group == 2 ? 2U : 1U, s);
  }
}

// ADLL-4: recovery refuses the log, whichever bit of the anchor or of a node's links is flipped.
TEST_P(PointerLogs, NameADamagedLink) {
  auto medium = make_medium();
  std::vector<std::pair<std::uint64_t, const char*>> words;
  {
    Rig rig(*medium, GetParam());
    for (std::uint64_t i = 1; i <= 12; ++i) rig.append(i);
    rig.log->persist();
    for (std::uint64_t i = 0; i < papers::rewind::Adll::anchor_words; ++i)
      words.emplace_back(anchor + i * 8, "damaged anchor");
    for (std::uint64_t node = rig.nvm.value(anchor); node != 0; node = rig.nvm.value(node)) {
      words.emplace_back(node, "damaged link");
      words.emplace_back(node + 8, "damaged link");
    }
  }
  ASSERT_LE(papers::rewind::Adll::anchor_words + 2, words.size());
  const auto recovered = [&] { return Rig(*medium, GetParam()).log->recover(); };
  ASSERT_EQ("", recovered().message());
  for (const auto& [place, what] : words) {
    std::uint64_t right = 0;
    std::memcpy(&right, medium->at(place), 8);
    for (unsigned bit = 0; bit < 64; ++bit) {
      const std::uint64_t wrong = right ^ std::uint64_t{1} << bit;
      medium->store(place, &wrong, 8);
      const Status s = recovered();
      EXPECT_EQ(Code::corrupt, s.code()) << place << ", bit " << bit;
      EXPECT_NE(std::string::npos, s.message().find(what)) << s.message();
    }
    medium->store(place, &right, 8);
  }
  EXPECT_EQ("", recovered().message());
}

/// Recovers the log and judges its content: the numbers after an operation that is not older than
/// the acknowledged one.
class Recovered final : public crash::Subject {
 public:
  explicit Recovered(const Version& version) : version_(version) {}
  crash::Verdict judge(std::unique_ptr<medium::Medium> medium, const std::byte*,
                       const crash::Crash& crash) override {
    Rig rig(*medium, version_);
    if (Status s = rig.log->recover(); !s.ok()) return {"refused: " + s.message(), 0};
    const auto found = rig.numbers();
    for (const std::uint64_t n : found)
      if (n == 0) return {"a pointer to a record that is not whole", 0};
    crash::Verdict verdict{{}, base::hash_bytes(found.data(), found.size() * 8, 1)};
    for (std::uint64_t k = crash.least; k <= crash.most && k < states.size(); ++k)
      if (states[k] == found)
        return go_on(rig, found)
                   ? verdict
                   : crash::Verdict{"what is appended after recovery is lost, or hurts others", 0};
    verdict.problem = "holds " + std::to_string(found.size()) +
                      " records, as after no operation from " + std::to_string(crash.least) +
                      " to " + std::to_string(crash.most);
    return verdict;
  }
  std::vector<std::vector<std::uint64_t>> states{{}};

 private:
  // The log continues after recovery, in DRAM only. (A power cut there would be one in recovery,
  // and must change nothing, so none is made.)
  bool go_on(Rig& rig, const std::vector<std::uint64_t>& found) const {
    for (auto at = rig.log->first(); at; at = rig.log->next(at))
      if (!rig.arena.mark_line(rig.log->record(at))) return false;
    return rig.numbers() == found;
  }
  const Version version_;
};

TEST_P(PointerLogs, EveryPowerCutLeavesAStateThatWas) {
  for (const auto model : {crash::Model::px86, crash::Model::adversarial}) {
    auto medium = make_medium();
    crash::Image image(medium->begin_trace(), data_bytes);
    Recovered subject(GetParam());
    Rig rig(*medium, GetParam());
    crash::Random random(9);
    std::vector<std::uint64_t> model_of;
    std::uint64_t compacted = 0;
    for (std::uint64_t step = 0; step < 200; ++step) {
      medium->begin(step);
      const std::uint64_t dice = random() % 12, there = rig.numbers().size();
      const bool grows = step / 30 % 2 == 0;  // then it gets gaps
      if (!rig.log->fits(1) || dice == 0) {
        const std::uint64_t free = rig.arena.free_buckets();
        rig.log->compact();
        if (rig.arena.free_buckets() > free) ++compacted;
      } else if (there == 0 || (grows ? dice < 9 : dice < 2)) {
        rig.append(1000 + step);
      } else if (dice < 11) {
        rig.remove(dice < 4 ? 0 : random() % there);
      } else {
        rig.log->persist();
      }
      subject.states.push_back(rig.numbers());
      medium->done(step + 1);
    }
    EXPECT_EQ(GetParam().cells != 0, compacted != 0);
    EXPECT_GT(explore(*medium, image, subject, model).distinct, 300U);
  }
}

// Threads take turns, under a lock: the thread that ends a group makes what others have appended to
// it durable, too.
TEST_P(PointerLogs, AGroupIsDurableWhoeverEndsIt) {
  for (const auto model : {crash::Model::px86, crash::Model::adversarial}) {
    auto medium = make_medium();
    crash::Image image(medium->begin_trace(), data_bytes);
    Recovered subject(GetParam());
    Rig rig(*medium, GetParam());
    for (std::uint64_t step = 0; step < 40; ++step) {
      medium->begin(step);
      if (step % 4 == 3)
        rig.log->persist();
      else if (step / 8 % 2 == 0 ? step % 2 == 0
                                 : step % 4 != 0)  // alone in its group, and with others
        std::thread([&] { rig.append(1000 + step); }).join();
      else
        rig.append(1000 + step);
      subject.states.push_back(rig.numbers());
      medium->done(step + 1);
    }
    EXPECT_GT(explore(*medium, image, subject, model).distinct, 50U);
  }
}

}  // namespace
}  // namespace perdure::test
