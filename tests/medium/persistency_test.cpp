// SPDX-License-Identifier: BSD-3-Clause
//
// What a power cut may leave, case by case, compared with the two models' definitions.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "testing/persistency.hpp"

namespace perdure::test {
namespace {

using medium::Model;
using Kind = medium::TraceEvent::Kind;

/// Two lines of a small medium, and a program on it.
class Program {
 public:
  void store(int thread, std::uint64_t word, std::uint64_t value) {
    write(Kind::store, thread, word, {value});
  }
  void stream(int thread, std::uint64_t word, std::vector<std::uint64_t> values) {
    write(Kind::stream, thread, word, std::move(values));
  }
  void flush(int thread, std::uint64_t line) {
    trace_.flushed(thread, line * 64, 64);
    step();
  }
  void fence(int thread) {
    trace_.note(Kind::fence, thread);
    step();
  }
  void lost(std::uint64_t word, std::uint64_t seen) { write(Kind::lost, 0, word, {seen}); }
  void killed() {
    trace_.note(Kind::killed, 0);
    step();
  }
  /// All contents of words 0 and 1 of a line that are possible after a power cut, as word0 * 100 +
  /// word1.
  std::set<std::uint64_t> left(Model model, std::uint32_t line = 0) {
    medium::Random random(1);
    std::vector<medium::Variant> variants;
    pending_.variants(line, model, 1000, random, variants);
    const std::uint64_t a = image_.word(line * 8), b = image_.word(line * 8 + 1);
    std::set<std::uint64_t> all{a * 100 + b};
    for (const auto& v : variants)
      all.insert(((v.mask & 1) != 0 ? v.value[0] : a) * 100 + ((v.mask & 2) != 0 ? v.value[1] : b));
    return all;
  }
  [[nodiscard]] std::size_t open_lines() const { return pending_.lines().size(); }
  medium::Image& image() { return image_; }

 private:
  void write(Kind kind, int thread, std::uint64_t word, std::vector<std::uint64_t> values) {
    trace_.wrote(kind, thread, word * 8, values.size() * 8,
                 reinterpret_cast<const std::byte*>(values.data()));
    step();
  }
  void step() { pending_.apply(trace_, trace_.events.back()); }
  medium::Image image_{std::vector<std::uint64_t>(1024), 4096};
  medium::Persistency pending_{image_};
  medium::Trace trace_;
};

using Set = std::set<std::uint64_t>;

TEST(Persistency, APrefixOfALinesStores) {
  Program p;
  p.store(0, 0, 1);
  p.store(0, 1, 1);
  p.store(0, 0, 2);
  EXPECT_EQ((Set{0, 100, 101, 201}), p.left(Model::px86));
  EXPECT_EQ((Set{0, 100, 200, 1, 101, 201}), p.left(Model::adversarial));
}

TEST(Persistency, AFlushCapturesWhatIsThereThenAndAFenceMakesItSure) {
  Program p;
  p.store(0, 0, 1);
  p.flush(0, 0);
  p.store(0, 1, 1);
  EXPECT_EQ((Set{0, 100, 101}), p.left(Model::px86));
  p.fence(0);
  EXPECT_EQ((Set{100, 101}), p.left(Model::px86));
  EXPECT_EQ(1U, p.open_lines());
  p.flush(0, 0);
  p.fence(0);
  EXPECT_EQ((Set{101}), p.left(Model::px86));
  EXPECT_EQ(0U, p.open_lines());
}

TEST(Persistency, AFenceIsItsThreads) {
  Program p;
  p.store(0, 0, 1);
  p.flush(0, 0);
  p.fence(1);
  EXPECT_EQ((Set{0, 100}), p.left(Model::px86));
  p.flush(1, 0);  // another thread may flush the line for this one
  p.fence(1);
  EXPECT_EQ((Set{100}), p.left(Model::px86));
}

TEST(Persistency, StreamedWordsComeEachByItselfAndNeedNoFlush) {
  Program p;
  p.stream(0, 0, {1, 1});
  EXPECT_EQ((Set{0, 100, 1, 101}), p.left(Model::px86));
  p.flush(1, 0);
  // Another thread's flush does not affect what is in this one's write-combining buffer.
  p.fence(1);
  EXPECT_EQ((Set{0, 100, 1, 101}), p.left(Model::px86));
  p.fence(0);
  EXPECT_EQ((Set{101}), p.left(Model::px86));
}

TEST(Persistency, AKilledProcessLeavesStoresThatAnybodyMayMakeDurable) {
  Program p;
  p.stream(0, 0, {1, 1});
  p.store(0, 8, 1);
  p.flush(0, 1);
  p.killed();
  p.fence(0);  // of the next process: it does not know what the first had begun
  EXPECT_EQ((Set{0, 100, 1, 101}), p.left(Model::px86));
  EXPECT_EQ((Set{0, 100}), p.left(Model::px86, 1));
  p.flush(3, 0);
  p.flush(3, 1);
  p.fence(3);
  EXPECT_EQ((Set{101}), p.left(Model::px86));
  EXPECT_EQ((Set{100}), p.left(Model::px86, 1));
}

TEST(Persistency, WhatAKilledProcessHadStagedNeverHappens) {
  Program p;
  p.store(0, 0, 1);
  p.store(0, 0, 2);
  p.store(0, 1, 3);
  p.killed();
  p.lost(0, 1);  // the next process finds 1 in word 0, and nothing in word 1
  p.lost(1, 0);
  EXPECT_EQ((Set{0, 100}), p.left(Model::px86));
  p.flush(1, 0);
  p.fence(1);
  EXPECT_EQ((Set{100}), p.left(Model::px86));
  EXPECT_EQ(0U, p.open_lines());
}

TEST(Persistency, LinesAreIndependent) {
  Program p;
  p.store(0, 0, 1);
  p.store(0, 8, 1);
  p.flush(0, 1);
  p.fence(0);
  EXPECT_EQ((Set{0, 100}), p.left(Model::px86, 0));
  EXPECT_EQ((Set{100}), p.left(Model::px86, 1));
}

TEST(Persistency, WhatIsDurableStays) {
  Program p;
  p.store(0, 0, 1);
  p.flush(0, 0);
  p.store(0, 0, 2);
  p.flush(1, 0);
  p.fence(1);
  p.fence(0);  // the older capture
  EXPECT_EQ((Set{200}), p.left(Model::px86));
}

TEST(Image, HashesFollowContentsAndTheJournalGoesBack) {
  medium::Image a(std::vector<std::uint64_t>(64), 0), b(std::vector<std::uint64_t>(64), 0);
  const std::uint64_t zero = a.hash();
  a.set(3, 7);
  a.set(4, 9);
  b.set(4, 1);
  b.set(4, 9);
  EXPECT_EQ(a.hash(), b.hash_with(b.hash(), {3, 7}));
  b.set(3, 7);
  EXPECT_EQ(a.hash(), b.hash());
  a.back_to(0);
  EXPECT_EQ(zero, a.hash());
  EXPECT_EQ(0U, a.word(3));
}

}  // namespace
}  // namespace perdure::test
