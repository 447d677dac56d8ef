// SPDX-License-Identifier: BSD-3-Clause
//
// DudeTM's variants and its options: combination and compression, volatile logs without a bound, a
// shadow smaller than the pool.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <random>

#include "papers/dudetm/instances.hpp"
#include "papers/dudetm/options.hpp"
#include "perdure/api/compiled_pool.hpp"
#include "perdure/container/hash_map.hpp"
#include "perdure/pool/features.hpp"
#include "tests/engine/suite.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure::test {
namespace {

using medium::testing::Scratch;

struct Root {
  std::array<p<std::uint64_t>, 64> word;
  ptr<p<std::uint64_t>> counters;
  hash_map<std::uint64_t, std::uint64_t> map;
};
using DudetmPool = Pool<Root, engines<dudetm>>;

Options options_for(const char* engine, Durability durability = async) {
  Options o;
  o.engine = engine;
  o.durability = durability;
  o.creation.max_size = 256 << 20;
  o.creation.log_size = 4 << 20;
  return o;
}

class DudetmVariants : public EngineTest {};
std::vector<EngineInfo> forms() {
  return engines_that(
      [](const EngineInfo& e) { return is_dudetm(e) && isolates(e) && e.tm == "biased"; });
}
ENGINE_SUITE(DudetmVariants, forms);

// One family: each variant opens what another one made, with the order with which it was made.
TEST_P(DudetmVariants, OpenEachOthersPools) {
  const Scratch scratch("/dev/shm");
  std::uint64_t n = 0;
  const std::string name(GetParam().name);
  for (const EngineInfo& other : forms()) {
    for (const auto& engine : {std::string(other.name), name}) {
      auto pool = DudetmPool::open(scratch.path(), options_for(engine.c_str()));
      pool.view([&](auto& tx, const Root& r) { EXPECT_EQ(n, tx(r.word[0])); });
      for (int i = 0; i < 500; ++i) pool.update([&](auto& tx, Root& r) { tx(r.word[0]) = ++n; });
      pool.close();
    }
  }
  auto pool = Pool<Root, engines<dudetm>>::open(scratch.path());  // also if no engine is named
  EXPECT_EQ("dudetm", pool.stats().engine);
}

// The process is killed while Persist and Reproduce are at work. (A copy of the file of a living
// process would not do: its log and its data region would be of different moments.)
TEST_P(DudetmVariants, RecoverWhatWasDurable) {
  const Scratch scratch("/dev/shm");
  const pid_t child = ::fork();
  ASSERT_NE(-1, child);
  if (child == 0) {
    auto pool = DudetmPool::open(scratch.path(), options_for(GetParam().name.data()));
    for (std::uint64_t n = 1; n <= 3000; ++n) {
      auto receipt = pool.update([&](auto& tx, Root& r) {
        tx(r.word[n % 64]) = n;
        r.map.put(tx, n % 97, n);
        if (n % 5 == 0) r.map.erase(tx, n % 89);
      });
      if (n % 700 == 0) receipt.wait();  // the last time at 2800
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(0, status);
  auto pool = DudetmPool::open(scratch.path(), options_for(GetParam().name.data()));
  std::uint64_t last = 0;
  pool.view([&](auto& tx, const Root& r) {
    for (const auto& w : r.word) last = std::max(last, tx(w));
  });
  EXPECT_GE(last, 2800U);
  std::map<std::uint64_t, std::uint64_t> model;
  for (std::uint64_t n = 1; n <= last; ++n) {
    model[n % 97] = n;
    if (n % 5 == 0) model.erase(n % 89);
  }
  pool.view([&](auto& tx, const Root& r) {
    for (std::uint64_t i = 0; i < 64 && i <= last; ++i)
      EXPECT_EQ(last - (last - i) % 64, tx(r.word[i])) << i;
    for (std::uint64_t k = 0; k < 97; ++k) {
      const auto found = r.map.find(tx, k);
      EXPECT_EQ(model.contains(k), found.has_value());
      if (found && model.contains(k)) {
        EXPECT_EQ(model[k], *found);
      }
    }
  });
  const CheckReport report = pool.check();
  EXPECT_TRUE(report.ok()) << report.problems.front();
}

TEST(Dudetm, SyncHoldsIsolationThroughTheFence) {
  const Scratch scratch("/dev/shm");
  auto sync = DudetmPool::open(scratch.path("a"), options_for("dudetm-sync"));
  const std::uint64_t before = sync.stats().medium.fences;
  auto receipt = sync.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; });
  EXPECT_TRUE(receipt.durable());
  EXPECT_EQ(before + 1, sync.stats().medium.fences) << "one fence, by the thread that Performs";
}

// Section 3.3; the counts are those of the log's payload.
TEST(Dudetm, CombinationAndCompressionWriteLess) {
  const Scratch scratch("/dev/shm");
  std::atomic<std::uint64_t> observed{0};  // by the thread that writes the log
  const auto run = [&](const char* name, std::uint32_t group, bool compress) {
    observed = 0;
    Options o = options_for("dudetm");
    papers::DudetmOptions own{.persist_group = group};
    own.compress = compress;
    own.combined = [&](const std::uint64_t*, std::uint64_t words) { observed += words * 8; };
    o.engine_options = own;
    auto pool = DudetmPool::open(scratch.path(name), o);
    std::optional<Receipt<void>> last;
    for (std::uint64_t n = 0; n < 20000; ++n)
      last = pool.update([&](auto& tx, Root& r) {
        tx(r.word[n % 10]) = n;
        tx(r.word[10 + n % 7]) = n;
      });
    last->wait();
    return pool.stats();
  };
  const Stats plain = run("plain", 0, false), combined = run("combined", 1000, false),
              both = run("both", 1000, true);
  EXPECT_EQ(both.log_bytes_combined, observed) << "each payload is observed before compression";
  EXPECT_EQ(0U, plain.log_bytes_in);
  EXPECT_GE(combined.log_bytes_in, 20000U * 32);
  EXPECT_LT(combined.log_bytes_combined * 20, combined.log_bytes_in);
  EXPECT_EQ(combined.log_bytes_combined, combined.log_bytes_out);
  EXPECT_LT(both.log_bytes_out, both.log_bytes_combined);
}

// A library that does not know combined records would take one for a torn record: the feature's bit
// prevents it from opening the pool.
TEST(Dudetm, CombinationIsAFeatureOfThePool) {
  const Scratch scratch("/dev/shm");
  const auto combined = [&] {
    std::ifstream file(scratch.path(), std::ios::binary);
    pool::Header header;
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    return pool::has_feature(header, pool::Feature::combined_records);
  };
  DudetmPool::open(scratch.path(), options_for("dudetm")).close();
  EXPECT_FALSE(combined());
  auto pool = DudetmPool::open(scratch.path(), options_for("dudetm-combined"));
  EXPECT_TRUE(combined()) << "before the first transaction";
}

// A group that is not full does not wait for ever.
TEST(Dudetm, WhatNobodyWaitsForIsDurableSoon) {
  const Scratch scratch("/dev/shm");
  Options o = options_for("dudetm-combined");
  o.engine_options = papers::DudetmOptions{.persist_group = 1 << 20};
  auto pool = DudetmPool::open(scratch.path(), o);
  auto receipt = pool.update([](auto& tx, Root& r) { tx(r.word[0]) = 1; });
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!receipt.durable() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  EXPECT_TRUE(receipt.durable());
}

TEST(Dudetm, InfPerformsWithoutWaitingForLogSpace) {
  const Scratch scratch("/dev/shm");
  Options o = options_for("dudetm-inf");
  o.engine_options = papers::DudetmOptions{.volatile_log = 4096};
  o.creation.log_size = 1 << 20;
  {
    auto pool = DudetmPool::open(scratch.path(), o);
    const std::vector<std::uint64_t> words(64, 5);
    for (int n = 0; n < 20000; ++n)  // ten times the ring
      pool.update([&](auto& tx, Root& r) { tx.write_bytes(&r.word, words.data(), 512); });
    EXPECT_LE(pool.stats().log_used, pool.stats().log_capacity);
    pool.close();
  }
  auto pool = DudetmPool::open(scratch.path(), o);
  pool.view([](auto& tx, const Root& r) { EXPECT_EQ(5U, tx(r.word[63])); });
}

// --- paging (section 4.3) ------------------------------------------------------------------------

class DudetmPaged
    : public ::testing::TestWithParam<std::tuple<const char*, Durability, ShadowPaging>> {};
INSTANTIATE_TEST_SUITE_P(
    Forms, DudetmPaged,
    ::testing::Combine(::testing::Values("dudetm", "dudetm/stm", "dudetm/global_lock", "dudetm-inf",
                                         "dudetm-sync", "dudetm-combined"),
                       ::testing::Values(durable, async),
                       ::testing::Values(ShadowPaging::hardware, ShadowPaging::software)),
    [](const auto& of) {
      std::string name = std::get<0>(of.param);
      std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '/'; }, '_');
      return name + (std::get<1>(of.param) == durable ? "_durable" : "_async") +
             (std::get<2>(of.param) == ShadowPaging::hardware ? "_hardware" : "_software");
    });

TEST_P(DudetmPaged, APoolLargerThanItsShadowLosesNothing) {
  constexpr std::uint64_t pages = 512, words = pages * 512;
  constexpr int threads = 3;
  const std::uint64_t each = 12000 / scale;
  const Scratch scratch("/dev/shm");
  Options o = options_for(std::get<0>(GetParam()), std::get<1>(GetParam()));
  o.engine_options =
      papers::DudetmOptions{.shadow_size = 64 * 4096, .shadow_paging = std::get<2>(GetParam())};
  std::vector<std::vector<std::uint64_t>> counts(threads, std::vector<std::uint64_t>(pages));
  {
    auto pool = AnyPool<Root>::open(scratch.path(), o);
    pool.update(durable, [&](auto& tx, Root& r) {
      tx(r.counters) = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(words * 8));
    });
    std::atomic<std::uint64_t> most{0};
    in_threads(threads, [&](int me) {
      std::mt19937_64 random(static_cast<std::uint64_t>(me) + 10);
      for (std::uint64_t i = 0; i < each; ++i) {
        const std::uint64_t a = random() % pages, b = random() % pages;
        pool.update([&](auto& tx, Root& r) {
          p<std::uint64_t>* const counters = tx(r.counters);
          auto& x = counters[a * 512 + static_cast<std::uint64_t>(me) * 8];  // a line of its own
          auto& y = counters[b * 512 + 256 + static_cast<std::uint64_t>(me) * 8];
          tx(x) = tx(x) + 1;
          tx(y) = tx(y) + 1;
          if (i % 4 == 0) r.map.put(tx, random() % 500, i);
          if (i % 6 == 0) r.map.erase(tx, random() % 500);
        });
        ++counts[static_cast<std::size_t>(me)][a];
        if (i % 16 == 0)
          pool.view([&](auto& tx, const Root& r) {
            EXPECT_EQ(counts[static_cast<std::size_t>(me)][b],
                      tx(tx(r.counters)[b * 512 + static_cast<std::uint64_t>(me) * 8]));
          });
        if (i % 64 == 0) most = std::max(most.load(), pool.stats().shadow_pages);
      }
    });
    const Stats stats = pool.stats();
    EXPECT_GT(stats.evictions, each / 4);
    EXPECT_LE(most, 64 + threads * 20U) << "the limit, and what those in flight touched";
    pool.view([&](auto& tx, const Root& r) {
      for (int me = 0; me < threads; ++me)
        for (std::uint64_t p = 0; p < pages; ++p)
          ASSERT_EQ(counts[static_cast<std::size_t>(me)][p],
                    tx(tx(r.counters)[p * 512 + static_cast<std::uint64_t>(me) * 8]));
    });
    EXPECT_TRUE(pool.check().ok());
    // Everything that was committed is durable: the copy's log, which is read before its data
    // region, contains everything that the data region may already have.
    pool.update(durable, [](auto& tx, Root& r) { tx(r.word[1]) = 1; });
    std::filesystem::copy_file(scratch.path(), scratch.path("killed"));
    pool.close();
  }
  for (const char* name : {"pool", "killed"}) {
    auto pool = AnyPool<Root>::open(scratch.path(name), o);
    std::uint64_t all = 0, mine = 0;
    pool.view([&](auto& tx, const Root& r) {
      for (int me = 0; me < threads; ++me)
        for (std::uint64_t p = 0; p < pages; ++p) {
          mine += tx(tx(r.counters)[p * 512 + static_cast<std::uint64_t>(me) * 8]);
          all += tx(tx(r.counters)[p * 512 + 256 + static_cast<std::uint64_t>(me) * 8]);
        }
    });
    EXPECT_EQ(mine, all) << name << ": each transaction whole";
    EXPECT_EQ(threads * each, all) << name;
    EXPECT_TRUE(pool.check().ok());
  }
}

// Transactions that exceed any limit succeed, also together with small ones, and their pages are
// released.
void more_pages_than_the_shadow_has(ShadowPaging paging) {
  constexpr std::uint64_t pages = 1024, large = 200;
  const Scratch scratch("/dev/shm");
  Options o = options_for("dudetm");
  o.engine_options = papers::DudetmOptions{.shadow_size = 64 * 4096, .shadow_paging = paging};
  auto pool = DudetmPool::open(scratch.path(), o);
  pool.update([&](auto& tx, Root& r) {
    tx(r.counters) = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(pages * 4096));
  });
  const int rounds = static_cast<int>(60 / scale);
  std::atomic<bool> over{false};
  std::uint64_t small = 0;
  std::thread other([&] {
    std::mt19937_64 random(3);
    for (; !over; ++small) {
      const std::uint64_t page = random() % pages;
      pool.update([&](auto& tx, Root& r) {
        auto& x = tx(r.counters)[page * 512];
        tx(x) = tx(x) + 1;
      });
    }
  });
  for (int i = 0; i < rounds; ++i)
    pool.update([&](auto& tx, Root& r) {
      for (std::uint64_t p = 0; p < large; ++p) {
        auto& x = tx(r.counters)[(static_cast<std::uint64_t>(i) * 37 + p) % pages * 512 + 100];
        tx(x) = tx(x) + 1;
      }
    });
  over = true;
  other.join();
  for (int i = 0; i < 3; ++i) pool.update([&](auto& tx, Root& r) { tx(r.word[0]) = 1; });
  EXPECT_LE(pool.stats().shadow_pages, 64U) << "the next ones began when there was room again";
  std::uint64_t of_small = 0, of_large = 0;
  pool.view([&](auto& tx, const Root& r) {
    of_small = of_large = 0;
    for (std::uint64_t p = 0; p < pages; ++p) {
      of_small += tx(tx(r.counters)[p * 512]);
      of_large += tx(tx(r.counters)[p * 512 + 100]);
    }
  });
  EXPECT_EQ(small, of_small);
  EXPECT_EQ(static_cast<std::uint64_t>(rounds) * large, of_large);
}

TEST(Dudetm, ATransactionOfMorePagesThanTheShadowHasIsPerformed) {
  more_pages_than_the_shadow_has(ShadowPaging::hardware);
}
TEST(Dudetm, ATransactionOfMoreFramesThanTheShadowHasIsPerformed) {
  more_pages_than_the_shadow_has(ShadowPaging::software);
}

// Whole objects, and any bytes of them, across any pages; an abort; what views read meanwhile.
TEST(Dudetm, BytesAcrossFramesAreReadAsTheyWereWritten) {
  const Scratch scratch("/dev/shm");
  for (const char* tm : {"dudetm", "dudetm/stm", "dudetm/global_lock"}) {
    Options o = options_for(tm);
    o.engine_options =
        papers::DudetmOptions{.shadow_size = 16 * 4096, .shadow_paging = ShadowPaging::software};
    auto pool = AnyPool<Root>::open(scratch.path(o.engine.substr(o.engine.find('/') + 1)), o);
    constexpr std::size_t bytes = 40 * 4096;
    pool.update([&](auto& tx, Root& r) {
      tx(r.counters) = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(bytes));
    });
    std::vector<char> model(bytes), got(bytes), noise(3 * 4096);
    std::mt19937_64 random(5);
    for (int i = 0; i < 600; ++i) {
      const std::size_t n = random() % noise.size(), at = random() % (bytes - n);
      for (char& c : noise) c = static_cast<char>(random());
      const bool aborts = i % 5 == 0;
      const auto write = [&](auto& tx, Root& r) {
        auto* const to = reinterpret_cast<char*>(tx.read(r.counters)) + at;
        tx.write_bytes(to, noise.data(), n);
        std::vector<char> own(n);
        tx.read_bytes(own.data(), to, n);
        EXPECT_EQ(0, std::memcmp(own.data(), noise.data(), n)) << tm;
        if (aborts) throw std::runtime_error("no");
      };
      if (aborts) {
        EXPECT_THROW(pool.update(write), std::runtime_error);
      } else {
        pool.update(write);
        std::memcpy(model.data() + at, noise.data(), n);
      }
      pool.view([&](auto& tx, const Root& r) {
        tx.read_bytes(got.data(), reinterpret_cast<const char*>(tx.read(r.counters)), bytes);
      });
      ASSERT_EQ(model, got) << tm << " " << i;
    }
    EXPECT_GT(pool.stats().evictions, 100U);
    EXPECT_TRUE(pool.check().ok());
  }
}

// `automatic`: paged by software if the shadow is less than half of the pool's content at its
// opening.
TEST(Dudetm, HowAShadowIsPagedIsSeenAtOpening) {
  const Scratch scratch("/dev/shm");
  Options o = options_for("dudetm");
  papers::DudetmOptions own{.shadow_size = 1 << 20};
  o.engine_options = own;
  const auto by_software = [&] {
    auto pool = DudetmPool::open(scratch.path(), o);
    EXPECT_GE(pool.stats().heap_used, std::uint64_t{4} << 20);
    return pool.stats().paged_by_software;
  };
  {
    auto pool = DudetmPool::open(scratch.path(), o);
    EXPECT_FALSE(pool.stats().paged_by_software) << "an empty pool";
    pool.update([&](auto& tx, Root& r) {
      tx(r.counters) = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(std::uint64_t{4} << 20));
    });
  }
  EXPECT_TRUE(by_software());
  own.shadow_size = 3 << 20;
  o.engine_options = own;
  EXPECT_FALSE(by_software());
  own.shadow_paging = ShadowPaging::software;
  o.engine_options = own;
  EXPECT_TRUE(by_software());
}

TEST(Dudetm, AShadowsLimitIsRefusedWhereNothingPages) {
  const Scratch scratch("/dev/shm");
  const auto code = [&](const char* engine, std::uint64_t bytes) {
    Options o;
    o.engine = engine;
    o.engine_options = papers::DudetmOptions{.shadow_size = bytes};
    return Pool<Root, engines<shadow, dudetm>>::try_open(
               scratch.path(std::string(engine) + std::to_string(bytes)), o)
        .code();
  };
  EXPECT_EQ(Code::invalid, code("shadow", 1 << 20));
  EXPECT_EQ(Code::invalid, code("dudetm", 100));
  EXPECT_EQ(Code::ok, code("dudetm", 1 << 20));
  EXPECT_FALSE(std::filesystem::exists(scratch.path("dudetm100")));
  EXPECT_FALSE(std::filesystem::exists(scratch.path("shadow1048576")));
}

}  // namespace
}  // namespace perdure::test
