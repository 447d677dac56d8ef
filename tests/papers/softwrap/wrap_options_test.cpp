// SPDX-License-Identifier: BSD-3-Clause
//
// What a program of SoftWrAP's calls can choose: global or local aliasing for each wrap, objects
// that are replaced as a whole, streaming to the data region; one after the other, and mixed, with
// a power cut at every point.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "papers/softwrap/options.hpp"
#include "papers/softwrap/wrap_calls.hpp"
#include "tests/engine/recorded.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

using papers::softwrap::Aliasing;
using papers::softwrap::WrapOptions;

/// Words, small blocks and objects.
struct Things {
  static constexpr const char* layout_id = "perdure::test::Things/1";
  static constexpr std::size_t words = 24, blocks = 6, objects = 3;
  /// Of the objects: in a span; a whole chunk's most part; more than one chunk.
  static constexpr std::array<std::size_t, objects> bytes{1500, 40'000, 70'001};
  std::uint64_t word[words];
  struct Block {
    std::uint64_t* at;
    std::uint64_t n;  ///< words
  } block[blocks];
  unsigned char* object[objects];
  void* filler[16];
  template <class Tx, class F>
  void each_block(Tx&, F&& f) const {
    for (const Block& b : block)
      if (b.at != nullptr) f(b.at);
    for (unsigned char* const o : object)
      if (o != nullptr) f(o);
    for (void* const one : filler)
      if (one != nullptr) f(one);
  }
};
using Wraps = papers::softwrap::SoftWrAP<Things>;

std::vector<unsigned char> object_of(std::size_t which, std::uint64_t seed) {
  std::vector<unsigned char> bytes(Things::bytes[which]);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(seed * 7 + i / 64 * 3 + i);
  return bytes;
}

/// Everything that a program can see, as numbers. load(to, from, n) copies bytes of the pool.
template <class Load>
std::vector<std::uint64_t> contents(const Things& root, Load&& load) {
  Things t;
  load(&t, &root, sizeof t);
  std::vector<std::uint64_t> all(std::begin(t.word), std::end(t.word));
  for (const Things::Block& b : t.block) {
    all.push_back(b.n);
    std::vector<std::uint64_t> words(b.n);
    if (b.n != 0) load(words.data(), b.at, b.n * 8);
    all.insert(all.end(), words.begin(), words.end());
  }
  for (std::size_t o = 0; o < Things::objects; ++o) {
    std::vector<unsigned char> bytes(t.object[o] == nullptr ? 0 : Things::bytes[o]);
    if (!bytes.empty()) load(bytes.data(), t.object[o], bytes.size());
    all.push_back(base::hash_bytes(bytes.data(), bytes.size(), 5));
  }
  return all;
}

std::vector<EngineInfo> forms() {
  return engines_that([](const EngineInfo& e) { return is_softwrap(e) && !isolates(e); });
}

class WrapOptionsTest : public EngineTest {
 protected:
  static constexpr std::uint64_t ring_bytes = 98304;
  static Options options(papers::SoftwrapOptions softwrap = {}) {
    Options o;
    o.engine = GetParam().name;
    o.engine_options = softwrap;
    o.creation.uuid_seed = 7;
    o.creation.threads = 1;
    o.creation.log_size = ring_bytes;
    return o;
  }
  static std::unique_ptr<medium::CrashMedium> make_medium() {
    return Recorded::make_medium(ring_bytes, 4 << 20);
  }
  static bool for_all() { return aliases_for_all(GetParam()); }
};
ENGINE_SUITE(WrapOptionsTest, forms);

/// One wrap of a few random changes.
class Program {
 public:
  Program(Wraps& sw, std::uint64_t seed, bool global) : sw_(sw), random_(seed), global_(global) {}
  void step(std::uint64_t n) {
    Aliasing aliasing = Aliasing::of_engine;
    if (random_() % 2 == 0)
      aliasing = global_ && random_() % 2 == 0 ? Aliasing::global : Aliasing::local;
    try {
      sw_.wrapOpen({aliasing});
      for (std::uint64_t left = 1 + random_() % 4; left != 0; --left) change(n);
      random_() % 5 == 0 ? sw_.wrapAbort() : sw_.wrapClose();
    } catch (const error& e) {  // an object that must be logged may be too much: rolled back
      if (e.code() != Code::busy && e.code() != Code::too_big) throw;
    }
  }

 private:
  void change(std::uint64_t n) {
    Things& t = sw_.root();
    switch (random_() % 8) {
      case 0: {
        const std::size_t o = random_() % Things::objects;
        const auto bytes = object_of(o, n);
        sw_.wrapFlip(reinterpret_cast<void**>(&t.object[o]), bytes.data(), bytes.size());
        break;
      }
      case 1: {  // a part of an object that is there
        const std::size_t o = random_() % Things::objects;
        if (auto* const at = sw_.wrapLoad(&t.object[o]); at != nullptr)
          sw_.wrapStore(reinterpret_cast<std::uint64_t*>(at) + random_() % 180, n);
        break;
      }
      case 2:
      case 3: {
        Things::Block& b = t.block[random_() % Things::blocks];
        if (auto* const old = sw_.wrapLoad(&b.at); old != nullptr) sw_.pfree(old);
        const std::uint64_t words = random_() % 3 == 0 ? 0 : 2 + random_() % 400;
        auto* const at = words == 0 ? nullptr : static_cast<std::uint64_t*>(sw_.pmalloc(words * 8));
        std::vector<std::uint64_t> values(words, n);
        if (words != 0) sw_.wrapWrite(at, values.data(), words * 8);
        sw_.wrapStore(&b.at, at);
        sw_.wrapStore(&b.n, words);
        break;
      }
      default: sw_.wrapStore(&t.word[random_() % Things::words], n);
    }
  }
  Wraps& sw_;
  crash::Random random_;
  const bool global_;
};

TEST_P(WrapOptionsTest, EveryPowerCutLeavesWhatHasClosedOfMixedWraps) {
  for (const auto model : {crash::Model::px86, crash::Model::adversarial})
    for (const bool stream : {false, true})
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        auto made = make_medium();
        Recorded recorded(*made);
        std::vector<std::vector<std::uint64_t>> states;
        {
          Wraps sw("crash", options({.stream_home = stream}), std::move(made));
          recorded.made(sw.file().header());
          const auto now = [&] {
            return contents(sw.root(), [&](void* to, const void* from, std::size_t n) {
              sw.wrapRead(to, from, n);
            });
          };
          states.push_back(now());
          Program program(sw, seed, for_all());
          for (std::uint64_t step = 0; step < 30; ++step) {
            recorded.begin(step);
            program.step(step + 1);
            states.push_back(now());
            recorded.done(step);
            if (step % 11 == 10) sw.checkpoint();
          }
          recorded.end();
        }
        const auto look = [&](auto&, const Things& t, const crash::Crash& crash) {
          if (!crash.created) return crash::Verdict{};
          const auto found = contents(
              t, [](void* to, const void* from, std::size_t n) { std::memcpy(to, from, n); });
          for (std::uint64_t k = crash.least; k <= crash.most + 1 && k < states.size(); ++k)
            if (states[k] == found)
              return crash::Verdict{{}, base::hash_bytes(found.data(), found.size() * 8, 1)};
          return crash::Verdict{"what had closed after no step from " +
                                    std::to_string(crash.least) + " to " +
                                    std::to_string(crash.most),
                                0};
        };
        recorded.explore<Things>(GetParam().recover, model, 1500 / scale, 100 / scale, look);
      }
}

TEST_P(WrapOptionsTest, ALocalWrapsValuesAreInTheDataRegionWhenItHasClosed) {
  Wraps sw("recording", options(), make_medium());
  Things& t = sw.root();
  sw.wrapOpen({Aliasing::local});
  sw.wrapStore(&t.word[3], 7);
  EXPECT_EQ(7U, sw.wrapLoad(&t.word[3]));
  EXPECT_EQ(0U, t.word[3]) << "nothing of an open wrap";
  sw.wrapClose();
  EXPECT_EQ(7U, t.word[3]);
  sw.wrapOpen({Aliasing::local});
  sw.wrapStore(&t.word[3], 8);
  sw.wrapAbort();
  EXPECT_EQ(7U, sw.wrapLoad(&t.word[3]));
  EXPECT_EQ(7U, t.word[3]);
}

// A table has an older value of the word, which a round would store over the newer one.
TEST_P(WrapOptionsTest, ALocalWrapIsNewerThanTheAliasesOfWrapsBefore) {
  if (!for_all()) return;
  for (int checkpoints = 0; checkpoints < 3; ++checkpoints) {
    Wraps sw("recording", options(), make_medium());
    Things& t = sw.root();
    sw.wrapOpen();
    sw.wrapStore(&t.word[3], 7);
    sw.wrapClose();
    for (int i = 0; i < checkpoints; ++i) sw.checkpoint();
    sw.wrapOpen({Aliasing::local});
    sw.wrapStore(&t.word[3], 8);
    EXPECT_EQ(8U, sw.wrapLoad(&t.word[3]));
    sw.wrapClose();
    EXPECT_EQ(8U, sw.wrapLoad(&t.word[3]));
    for (int i = 0; i < 3; ++i) sw.checkpoint();
    EXPECT_EQ(8U, sw.wrapLoad(&t.word[3]));
    EXPECT_EQ(8U, t.word[3]);
  }
}

TEST_P(WrapOptionsTest, TheOutermostWrapChoosesAndGlobalNeedsTables) {
  Wraps sw("recording", options(), make_medium());
  Things& t = sw.root();
  sw.wrapOpen({Aliasing::local});
  sw.wrapOpen({Aliasing::global});
  sw.wrapStore(&t.word[0], 1);
  sw.wrapClose();
  sw.wrapClose();
  EXPECT_EQ(1U, t.word[0]) << "it was a local one";
  if (for_all()) {
    sw.wrapOpen({Aliasing::global});
    sw.wrapStore(&t.word[0], 2);
    sw.wrapClose();
    EXPECT_EQ(1U, t.word[0]) << "the table has it";
    return;
  }
  try {
    sw.wrapOpen({Aliasing::global});
    FAIL() << "a pool without tables";
  } catch (const error& e) {
    EXPECT_EQ(Code::unsupported, e.code()) << e.what();
    EXPECT_NE(std::string::npos, std::string(e.what()).find("softwrap")) << e.what();
  }
  EXPECT_THROW(sw.wrapClose(), error) << "nothing is open";
}

// A wrap's choice is its own, also after a wrap that has stored nothing.
TEST_P(WrapOptionsTest, AWrapsAliasingEndsWithIt) {
  if (!for_all()) return;
  Wraps sw("recording", options(), make_medium());
  Things& t = sw.root();
  for (const Aliasing next : {Aliasing::of_engine, Aliasing::global}) {
    sw.wrapOpen({Aliasing::local});
    (void)sw.wrapLoad(&t.word[0]);
    sw.wrapClose();
    sw.wrapOpen({next});
    sw.wrapStore(&t.word[0], 5);
    sw.wrapClose();
    EXPECT_EQ(0U, t.word[0]) << "the table has it";
    EXPECT_EQ(5U, sw.wrapLoad(&t.word[0]));
  }
}

TEST_P(WrapOptionsTest, AnObjectInPlaceOfWhatIsNoBlockChangesNothing) {
  Wraps sw("recording", options(), make_medium());
  Things& t = sw.root();
  sw.wrapOpen();
  sw.wrapStore(reinterpret_cast<void**>(&t.object[0]), static_cast<void*>(&t.word[0]));
  const auto bytes = object_of(0, 1);
  try {
    sw.wrapFlip(reinterpret_cast<void**>(&t.object[0]), bytes.data(), bytes.size());
    ADD_FAILURE() << "a word of the root is no block";
  } catch (const error& e) {
    EXPECT_EQ(Code::invalid, e.code()) << e.what();
  }
  EXPECT_EQ(static_cast<void*>(&t.word[0]), sw.wrapLoad(reinterpret_cast<void**>(&t.object[0])));
  sw.wrapStore(reinterpret_cast<void**>(&t.object[0]), nullptr);
  sw.wrapClose();
}

// An object takes no line of the log for its bytes, and the wrap one more fence for all objects.
TEST_P(WrapOptionsTest, AnObjectGoesPastTheLog) {
  Wraps sw("recording", options(), make_medium());
  Things& t = sw.root();
  const auto flip = [&](std::size_t which, std::uint64_t seed) {
    const auto bytes = object_of(which, seed);
    sw.wrapFlip(reinterpret_cast<void**>(&t.object[which]), bytes.data(), bytes.size());
  };
  sw.wrapOpen();
  flip(0, 1);
  sw.wrapClose();
  const auto before = sw.file().medium().counters();
  const std::uint64_t log_bytes = sw.stats().log_bytes;
  sw.wrapOpen();
  flip(0, 2);
  flip(0, 3);
  sw.wrapClose();
  const auto cost = sw.file().medium().counters() - before;
  EXPECT_EQ(2U, cost.fences) << "the objects, then the log";
  // Two objects, two pointers, four heap ops (the second flip frees the first one's block again).
  EXPECT_GE(2U * 64, sw.stats().log_bytes - log_bytes);
  EXPECT_LE(2 * (1500 / 64), cost.streamed_lines);
  const auto now = object_of(0, 3);
  std::vector<unsigned char> found(now.size());
  sw.wrapRead(found.data(), sw.wrapLoad(&t.object[0]), found.size());
  EXPECT_EQ(now, found);
}

// Blocks of the object's size have had other values: of global wraps, which are in the tables and
// in the log, or of local ones, which are in the log alone. All were freed, and each object gets
// one of them: neither an alias nor a wrap that is replayed may hide it.
TEST_P(WrapOptionsTest, AnObjectIsNotHiddenByWhatLayInItsBlockBefore) {
  for (const Aliasing before : {Aliasing::of_engine, Aliasing::local}) {
    auto made = make_medium();
    Recorded recorded(*made);
    {
      Wraps sw("crash", options(), std::move(made));
      recorded.made(sw.file().header());
      Things& t = sw.root();
      const std::vector<std::uint64_t> old(100, 3);
      for (Things::Block& block : t.block) {
        sw.wrapOpen({before});
        sw.wrapStore(&block.at, static_cast<std::uint64_t*>(sw.pmalloc(1500)));
        sw.wrapWrite(sw.wrapLoad(&block.at), old.data(), old.size() * 8);
        sw.wrapClose();
      }
      sw.wrapOpen();
      for (Things::Block& block : t.block) {
        sw.pfree(sw.wrapLoad(&block.at));
        sw.wrapStore(&block.at, nullptr);
      }
      sw.wrapClose();
      for (std::uint64_t step = 0; step < 12; ++step) {
        recorded.begin(step);
        sw.wrapOpen();
        const auto bytes = object_of(0, step + 1);
        sw.wrapFlip(reinterpret_cast<void**>(&t.object[0]), bytes.data(), bytes.size());
        sw.wrapStore(&t.word[0], step + 1);
        sw.wrapClose();
        recorded.done(step);
        std::vector<unsigned char> found(bytes.size());
        sw.wrapRead(found.data(), sw.wrapLoad(&t.object[0]), found.size());
        EXPECT_EQ(bytes, found) << step;
      }
      recorded.end();
    }
    const auto look = [&](auto&, const Things& t, const crash::Crash& crash) {
      if (!crash.created || t.word[0] == 0) return crash::Verdict{};
      const auto right = object_of(0, t.word[0]);
      return std::memcmp(t.object[0], right.data(), right.size()) == 0
                 ? crash::Verdict{{}, t.word[0]}
                 : crash::Verdict{"another object than that of step " + std::to_string(t.word[0]),
                                  0};
    };
    recorded.explore<Things>(GetParam().recover, crash::Model::px86, 3000 / scale, 20 / scale,
                             look);
  }
}

// The pool is full but for two chunks that were spans: an object takes both, and the directory that
// a power cut leaves still calls them spans, whose bitmaps lay where the object's bytes are.
TEST_P(WrapOptionsTest, AnObjectIsNotTakenForTheBitmapOfASpanThatLayThereBefore) {
  bool took = false;
  auto made = make_medium();
  Recorded recorded(*made);
  {
    Wraps sw("crash", options(), std::move(made));
    recorded.made(sw.file().header());
    Things& t = sw.root();
    const auto put = [&](void** where, std::size_t bytes) {
      sw.wrapOpen();
      void* const block = sw.pmalloc(bytes);
      sw.wrapStore(where, block);
      sw.wrapClose();
    };
    const auto drop = [&](void** where) {
      sw.wrapOpen();
      sw.pfree(sw.wrapLoad(where));
      sw.wrapStore(where, nullptr);
      sw.wrapClose();
    };
    const auto at = [&](std::size_t n) { return reinterpret_cast<void**>(&t.block[n].at); };
    put(at(0), 16), put(at(1), 32);  // each makes a span
    for (void*& filler : t.filler) {
      try {
        put(&filler, 4 * pool::chunk_bytes);
      } catch (const error&) {  // full: rolled back
        break;
      }
    }
    for (std::size_t n = 2; n < Things::blocks; ++n) {
      try {
        put(at(n), pool::chunk_bytes + 1);
      } catch (const error&) {
        break;
      }
    }
    sw.checkpoint(), sw.checkpoint();
    drop(at(0)), drop(at(1));
    for (std::uint64_t step = 0; step < 3; ++step) {
      recorded.begin(step);
      try {
        sw.wrapOpen();
        std::vector<unsigned char> bytes(Things::bytes[2], 0xff);
        sw.wrapFlip(reinterpret_cast<void**>(&t.object[2]), bytes.data(), bytes.size());
        sw.wrapClose();
        took = true;
      } catch (const error&) {  // there is room for one
      }
      recorded.done(step);
    }
    recorded.end();
  }
  EXPECT_TRUE(took) << "the chunks of the spans were not used again: the test shows nothing";
  const auto look = [&](auto&, const Things& t, const crash::Crash&) {
    return crash::Verdict{{}, t.object[2] != nullptr ? 1U : 0U};
  };
  for (const auto model : {crash::Model::px86, crash::Model::adversarial})
    recorded.explore<Things>(GetParam().recover, model, 3000 / scale, 1, look);
}

}  // namespace
}  // namespace perdure::test
