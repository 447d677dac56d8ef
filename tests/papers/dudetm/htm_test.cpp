// SPDX-License-Identifier: BSD-3-Clause
//
// DudeTM over hardware transactions: refused if the processor has none, before a byte is written;
// with the stand-in, pools are those of the family, with dense numbers in the log and the header
// and timestamps for callers; a crash with several threads leaves a prefix.
#include <filesystem>
#include <fstream>

#include "papers/dudetm/instances.hpp"
#include "papers/dudetm/options.hpp"
#include "perdure/api/compiled_pool.hpp"
#include "perdure/container/hash_map.hpp"
#include "perdure/tm/rtm_stand_in.hpp"
#include "tests/engine/suite.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure::test {
namespace {

using medium::testing::Scratch;

struct Root {
  std::array<p<std::uint64_t>, 64> word;
  hash_map<std::uint64_t, std::uint64_t> map;
};
struct Slots {
  std::array<ptr<std::uint64_t>, 2> block;
};
using Htms = Pool<Root, engines<dudetm_htm, dudetm_htm_stand_in, dudetm, dudetm_stm>>;

Options options_for(const char* engine, Durability durability = durable) {
  Options o;
  o.engine = engine;
  o.durability = durability;
  o.creation.max_size = 256 << 20;
  o.creation.log_size = 4 << 20;
  return o;
}

/// The hardware if this processor has it, and the stand-in everywhere.
std::vector<const char*> htms_here() {
  std::vector<const char*> all{"dudetm/htm-stand-in"};
  if (runs_here(*engine::find_instance("dudetm/htm"))) all.push_back("dudetm/htm");
  return all;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Htm, IsRefusedWhereTheProcessorHasNone) {
  const Status here = engine::find_instance("dudetm/htm")->runs_here();
  if (here.ok()) GTEST_SKIP() << "this processor has hardware transactions";
  const Scratch scratch("/dev/shm");
  const auto refused = [&](const Status& s) {
    EXPECT_EQ(Code::unsupported, s.code());
    for (const std::string& part :
         {scratch.path(), std::string("'dudetm/htm'"), here.message(), std::string("dudetm/stm")})
      EXPECT_NE(std::string::npos, s.message().find(part)) << part << " in: " << s.message();
  };
  refused(Htms::try_open(scratch.path(), options_for("dudetm/htm")).status());
  EXPECT_FALSE(std::filesystem::exists(scratch.path())) << "nothing is made";
  refused(Pool<Root, engines<dudetm_htm>>::try_open(scratch.path()).status());
  { auto pool = Htms::open(scratch.path(), options_for("dudetm/stm")); }
  const std::string before = bytes_of(scratch.path());
  refused(Htms::try_open(scratch.path(), options_for("dudetm/htm")).status());
  EXPECT_TRUE(before == bytes_of(scratch.path())) << "not a byte is written";
  Options unnamed = options_for("");
  EXPECT_EQ("dudetm/htm-stand-in", Htms::open(scratch.path(), unnamed).engine_name())
      << "of a list, the first that runs here";
}

TEST(Htm, RunsWhereTheProcessorHasIt) {
  if (const Status here = engine::find_instance("dudetm/htm")->runs_here(); !here.ok())
    GTEST_SKIP() << here.message();
  const Scratch scratch("/dev/shm");
  auto pool = Htms::open(scratch.path(), options_for("dudetm/htm"));
  in_threads(4, [&](int) {
    for (int i = 0; i < 1000; ++i) pool.update([](auto& tx, Root& r) { ++tx(r.word[0]); });
  });
  pool.view([](auto& tx, const Root& r) { EXPECT_EQ(4000U, tx(r.word[0])); });
  const auto stats = pool.stats();
  std::printf("[          ] %llu of %llu transactions committed without the lock\n",
              static_cast<unsigned long long>(stats.without_lock),
              static_cast<unsigned long long>(stats.commits + stats.reads));
  EXPECT_GT(stats.without_lock, 0U) << "every transaction ran under the lock";
}

// Isolation ends before the record is durable: a pool of the strict order promises more than that.
TEST(Htm, RefusesAPoolOfTheStrictOrder) {
  const Scratch scratch("/dev/shm");
  { auto pool = Htms::open(scratch.path(), options_for("dudetm-sync")); }
  const std::string before = bytes_of(scratch.path());
  const Status s = Htms::try_open(scratch.path(), options_for("dudetm/htm-stand-in")).status();
  EXPECT_EQ(Code::incompatible, s.code());
  EXPECT_NE(std::string::npos, s.message().find("strict commit order")) << s.message();
  EXPECT_TRUE(before == bytes_of(scratch.path())) << "not a byte is written";
}

TEST(Htm, NoShadowSmallerThanThePool) {
  const Scratch scratch("/dev/shm");
  Options o = options_for("dudetm/htm-stand-in");
  o.engine_options = papers::DudetmOptions{.shadow_size = 1 << 20};
  EXPECT_EQ(Code::invalid, Htms::try_open(scratch.path(), o).code());
  EXPECT_FALSE(std::filesystem::exists(scratch.path()));
}

// One family: numbers in the header and the log are dense, whichever engine wrote them, and
// continue from session to session; timestamps belong to a session.
TEST(Htm, NumbersInThePoolAreDense) {
  const Scratch scratch("/dev/shm");
  std::uint64_t n = 0;
  std::vector<const char*> all{"dudetm/stm", "dudetm/htm-stand-in", "dudetm",
                               "dudetm/htm-stand-in"};
  for (const char* engine : htms_here()) all.push_back(engine);
  for (const char* engine : all) {
    auto pool = Htms::open(scratch.path(), options_for(engine));
    EXPECT_EQ(n, pool.header().checkpoint_id) << engine;
    for (int i = 0; i < 300; ++i) {
      ++n;
      const auto receipt = pool.update([&](auto& tx, Root& r) { tx(r.word[0]) = n; });
      EXPECT_GE(receipt.id(), n);
      EXPECT_TRUE(receipt.durable());
    }
    pool.checkpoint();
    EXPECT_EQ(n, pool.header().checkpoint_id);
    EXPECT_GE(pool.stats().checkpoint_id, pool.stats().last_id);
    EXPECT_GE(pool.durable_id(), pool.stats().checkpoint_id);
    const auto looked =
        pool.update([](auto& tx, Root& r) { return static_cast<std::uint64_t>(tx(r.word[0])); });
    EXPECT_EQ(n, looked.value());
    pool.close();
    EXPECT_TRUE(looked.durable()) << "it bounds what was read, and that is durable";
    EXPECT_TRUE(looked.try_wait().ok());
  }
}

// The heap's bits are set in isolation, with the pointer to the block: a thread that sees the one
// sees the other.
TEST(Htm, WhoSeesABlockMayFreeIt) {
  for (const char* const engine : htms_here()) {
    const Shape shape{.durability = async, .ring_bytes = 1 << 20};
    auto rig = open_rig<Slots>(*engine::find_instance(engine), shape);
    in_threads(4, [&](int) {
      for (unsigned i = 0; i < 20000 / scale; ++i)
        rig.pool.update([&](auto& tx, Slots& r) {
          auto& slot = r.block[i % r.block.size()];
          std::uint64_t* const block = tx(slot);
          if (block != nullptr) tx.free(block);  // throws if its bit is not set
          tx(slot) = block == nullptr ? reinterpret_cast<std::uint64_t*>(tx.alloc(48)) : nullptr;
        });
    });
  }
}

// A hardware transaction can't contain another one's begin and end: such a transaction runs under
// the lock. The inner one, which has committed, therefore never runs twice.
TEST(Htm, ATransactionInsideOneOnAnotherPoolEndsTheTry) {
  for (const char* const engine : htms_here()) {
    const Scratch scratch("/dev/shm");
    auto outer = Htms::open(scratch.path("outer"), options_for(engine)),
         inner = Htms::open(scratch.path("inner"), options_for(engine));
    int runs = 0, inner_runs = 0;
    outer.update([&](auto& tx, Root& r) {
      ++runs;
      ++tx(r.word[0]);
      inner.update([&](auto& other, Root& s) { ++other(s.word[0]); });
      ++inner_runs;
      ++tx(r.word[1]);
    });
    EXPECT_GE(runs, engine == std::string_view("dudetm/htm") ? 1 : 2)
        << "what an aborted try of the hardware counts is undone";
    EXPECT_EQ(1, inner_runs);
    inner.view([&](auto& tx, const Root& r) { EXPECT_EQ(1U, tx(r.word[0])); });
    outer.view([&](auto& tx, const Root& r) { EXPECT_EQ(2U, tx(r.word[0]) + tx(r.word[1])); });
  }
}

// A full volatile log, a full ring, groups that are combined: transactions wait until there is log
// space.
TEST(Htm, LogsThatAreFullPushBack) {
  for (const char* const engine : htms_here())
    for (const std::uint32_t group : {0U, 20U}) {
      const Scratch scratch("/dev/shm");
      Options o = options_for(engine, async);
      o.creation.log_size = 128 << 10;
      o.engine_options = papers::DudetmOptions{.persist_group = group, .volatile_log = 16 << 10};
      auto pool = Htms::open(scratch.path(), o);
      in_threads(3, [&](int t) {
        for (std::uint64_t i = 0; i < 3000 / scale; ++i)
          pool.update([&](auto& tx, Root& r) {
            for (std::size_t k = 0; k < 40; ++k) tx(r.word[k]) = i;
            r.map.put(tx, i % 50 * 3 + static_cast<std::uint64_t>(t), i);
            if (i % 7 == 0) r.map.erase(tx, i % 89);
          });
      });
      pool.checkpoint();
      EXPECT_EQ(3 * (3000 / scale), pool.stats().commits);
      EXPECT_EQ(pool.stats().commits, pool.header().checkpoint_id);
      const CheckReport check = pool.check();
      EXPECT_TRUE(check.ok()) << check.problems.front();
    }
}

// As after a kill, while threads commit: each thread's transactions up to one, and all that this
// one had read.
TEST(Htm, ACrashUnderThreadsLeavesAPrefix) {
  struct Limits {
    Limits() { tm::RtmStandIn::limits() = {4096, 512, 200}; }
    ~Limits() { tm::RtmStandIn::limits() = {}; }
  } often;
  constexpr std::size_t threads = 3;
  for (const char* const engine : htms_here())
    for (const Durability durability : {durable, async}) {
      const EngineInfo& e = *engine::find_instance(engine);
      Shape shape;
      shape.durability = durability;
      shape.ring_bytes = 1 << 20;
      auto rig = open_rig<Root>(e, shape);
      std::vector<std::pair<std::vector<std::byte>, std::array<std::uint64_t, threads>>> images;
      std::array<std::atomic<std::uint64_t>, threads> told{};
      std::mutex mutex;
      in_threads(threads, [&](int t) {
        const auto me = static_cast<std::size_t>(t);
        for (std::uint64_t i = 1; i <= 400 / scale; ++i) {
          const auto receipt = rig.pool.update([&](auto& tx, Root& r) {
            const std::uint64_t total = tx(r.word[0]) + 1;
            tx(r.word[0]) = total;           // of all threads
            tx(r.word[8 + me * 8]) = i;      // of this thread
            tx(r.word[9 + me * 8]) = total;  // the total at that time
          });
          if (durability == async && i % 16 == 0) receipt.wait();
          if (durability == durable || i % 16 == 0) told[me] = i;
          if (i % 20 == 0) {
            std::array<std::uint64_t, threads> least{};
            // Read before the image: it stays true.
            for (std::size_t u = 0; u < threads; ++u) least[u] = told[u];
            auto image = rig.medium->durable_image();
            const std::lock_guard lock(mutex);
            images.emplace_back(std::move(image), least);
          }
        }
      });
      for (const auto& [image, least] : images) {
        const Recovered r = recover(e, image, shape);
        ASSERT_TRUE(r.status.ok()) << r.status.message();
        std::array<std::uint64_t, 64> word{};
        std::memcpy(word.data(), r.state.root.data(), sizeof word);
        std::uint64_t sum = 0;
        for (std::size_t t = 0; t < threads; ++t) {
          sum += word[8 + t * 8];
          EXPECT_GE(word[8 + t * 8], least[t]) << "lost what was acknowledged";
          EXPECT_LE(word[9 + t * 8], word[0]) << "had read what is lost";
        }
        EXPECT_EQ(word[0], sum) << "a hole";
        EXPECT_EQ(sum, r.report.last_id) << "numbers are dense";
      }
    }
}

}  // namespace
}  // namespace perdure::test
