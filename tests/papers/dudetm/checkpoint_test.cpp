// SPDX-License-Identifier: BSD-3-Clause
//
// Reproduce by replay makes a checkpoint from time to time: lines are written back a slice at a
// time, while transactions continue and further records are applied (replay.hpp). Explored with
// power cuts, with logs so small that a checkpoint has dozens of slices.
#include "tests/engine/recorded.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

constexpr std::uint64_t words = 4096, a_transaction = 4;
struct Root {
  std::array<p<std::uint64_t>, words> word;
};
std::uint64_t place(std::uint64_t n, std::uint64_t i) {
  return (n * 37 + i * (words / a_transaction)) % words;
}

class DudetmCheckpoint : public EngineTest {};
std::vector<EngineInfo> replaying() {
  return engines_that([](const EngineInfo& e) { return is_dudetm(e) && isolates(e); });
}
ENGINE_SUITE(DudetmCheckpoint, replaying);

// Transaction n stores n to four words, lines apart. At whatever instant the power fails, exactly a
// prefix is present.
TEST_P(DudetmCheckpoint, LeavesAPrefixWhereverThePowerIsCut) {
  for (const auto model : {crash::Model::px86, crash::Model::adversarial}) {
    Shape shape;
    shape.threads = 1;
    shape.ring_bytes = 32768;
    shape.durability = async;
    auto made = Recorded::make_medium(shape.ring_bytes, 8 << 20);
    medium::CrashMedium& medium = *made;
    Options o = shape.options(GetParam());
    auto pool = std::make_unique<AnyPool<Root>>(
        AnyPool<Root>::try_open_on("settlement", o, std::move(made), true).value());
    pool->checkpoint();  // no thread is at work
    Recorded recorded(medium);
    recorded.made(pool->header());
    std::uint64_t n = 0;
    const std::uint64_t before = pool->stats().checkpoints;
    for (; n < 20000 && (n < 600 || pool->stats().checkpoints < before + 2); ++n) {
      recorded.begin(n);
      auto receipt = pool->update([&](auto& tx, Root& r) {
        for (std::uint64_t i = 0; i < a_transaction; ++i) tx(r.word[place(n + 1, i)]) = n + 1;
      });
      if (n % 64 == 63) {
        receipt.wait();
        recorded.done(n);
      }
    }
    EXPECT_GE(pool->stats().checkpoints, before + 2);
    recorded.end();
    pool.reset();
    std::vector<std::uint64_t> model_words(words);
    recorded.explore<Root>(
        GetParam().recover, model, 20000 / scale, 500 / scale,
        [&](auto& tx, const Root& r, const crash::Crash& crash) {
          std::uint64_t last = 0;
          for (const auto& w : r.word) last = std::max(last, tx(w));
          if (last < crash.least)
            return crash::Verdict{"the last one found is " + std::to_string(last) +
                                      ", acknowledged was " + std::to_string(crash.least),
                                  0};
          std::fill(model_words.begin(), model_words.end(), 0);
          for (std::uint64_t t = 1; t <= last; ++t)
            for (std::uint64_t i = 0; i < a_transaction; ++i) model_words[place(t, i)] = t;
          for (std::uint64_t w = 0; w < words; ++w)
            if (tx(r.word[w]) != model_words[w])
              return crash::Verdict{"of " + std::to_string(last) + ", word " + std::to_string(w) +
                                        " is " + std::to_string(tx(r.word[w])) + ", expected " +
                                        std::to_string(model_words[w]),
                                    0};
          return crash::Verdict{{}, last};
        });
  }
}

}  // namespace
}  // namespace perdure::test
