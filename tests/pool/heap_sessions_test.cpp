// SPDX-License-Identifier: BSD-3-Clause
//
// The size of the data region over many sessions whose objects have other sizes each time: it stays
// within a small factor of the maximum that was live at one time, whatever an earlier session has
// left. 200 sessions on the default engine, 24 on one instance of each other family. A quarter of
// the sessions end by the process's death instead of a close.
#include <sys/mman.h>

#include <array>
#include <random>
#include <set>

#include "perdure/perdure.hpp"
#include "pool_test.hpp"
#include "tests/engine/families.hpp"

namespace perdure::pool {
namespace {

using namespace testing;

/// Lists of blocks; the first word of a block is the address of the next one.
constexpr std::size_t lists = 16;
struct Root {
  std::array<ptr<std::uint64_t>, lists> first;
};
using AnyPool = Pool<Root, engines<any_engine>>;

/// Shared by the sessions. It lies in memory that is shared with children.
struct Tally {
  std::uint64_t live = 0, high = 0;                           ///< bytes in blocks: now, at most
  std::uint64_t data_bytes = 0;                               ///< of the data region
  std::array<std::uint64_t, lists> blocks{}, bytes_of_one{};  ///< of each list: blocks of one size
};

/// The bytes that a block of `bytes` takes: whole chunks above the largest size class.
std::uint64_t taken(std::uint64_t bytes) {
  const std::uint32_t cls = size_class(bytes);
  return cls == large_class ? (bytes + chunk_bytes - 1) / chunk_bytes * chunk_bytes
                            : class_bytes(cls);
}

class Session {
 public:
  Session(AnyPool& pool, Tally& tally) : pool_(pool), tally_(tally) {}

  /// Puts `count` blocks of `bytes` into an empty list.
  void fill(std::size_t list, std::uint64_t bytes, std::uint64_t count) {
    tally_.bytes_of_one[list] = taken(bytes);
    for (std::uint64_t n = 0; n < count;) {
      const std::uint64_t some = std::min<std::uint64_t>(count - n, 32);
      pool_.update([&](auto& tx, Root& r) {
        for (std::uint64_t i = 0; i < some; ++i) {
          const std::uint64_t* const next = tx.read(r.first[list]);
          auto* const block = reinterpret_cast<std::uint64_t*>(tx.alloc(bytes));
          tx.write_bytes(block, &next, sizeof next);
          tx(r.first[list]) = block;
        }
      });
      n += some;
      tally_.blocks[list] += some;
      tally_.live += some * taken(bytes);
      tally_.high = std::max(tally_.high, tally_.live);
    }
  }
  /// Frees a list's blocks.
  void empty(std::size_t list) {
    while (tally_.blocks[list] > 0) {
      const std::uint64_t some = std::min<std::uint64_t>(tally_.blocks[list], 32);
      pool_.update([&](auto& tx, Root& r) {
        for (std::uint64_t i = 0; i < some; ++i) {
          std::uint64_t* const block = tx.read(r.first[list]);
          std::uint64_t* next = nullptr;
          tx.read_bytes(&next, block, sizeof next);
          tx.free(block);
          tx(r.first[list]) = next;
        }
      });
      tally_.blocks[list] -= some;
      tally_.live -= some * tally_.bytes_of_one[list];
    }
  }
  void empty_all() {
    for (std::size_t list = 0; list < lists; ++list) empty(list);
  }

 private:
  AnyPool& pool_;
  Tally& tally_;
};

class HeapSessions : public ::testing::TestWithParam<engine::EngineInfo> {
 protected:
  void SetUp() override {
    void* const shared =
        ::mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, shared);
    tally = new (shared) Tally;
    options.engine = GetParam().name;
    options.medium = "emulated";
    options.isolation = GetParam().isolation;
    options.creation.max_size = 1ULL << 30;
    options.creation.log_size = 4 * MiB;
    options.creation.threads = 1;
  }
  void TearDown() override { ::munmap(tally, sizeof(Tally)); }

  // Session number `n`: it fills up to three lists with sizes of its own, and empties the lists
  // that it found before that, after it or in between.
  void session(unsigned n, std::uint64_t live) {
    AnyPool pool = AnyPool::open(scratch.path(), options);
    Session s(pool, *tally);
    std::mt19937_64 random(n);
    const auto fill_some = [&](std::uint64_t bytes) {
      for (std::size_t k = 0; k < 3; ++k) {
        const std::size_t list = (n * 3 + k) % lists;
        s.empty(list);
        // up to 256 KiB
        const std::uint64_t log2 = 5 + random() % 13,
                            size = (1ULL << log2) + random() % (1ULL << log2);
        s.fill(
            list, size,
            std::clamp<std::uint64_t>(bytes / 3 / taken(size), 1, 2000 / test::heavy(GetParam())));
      }
    };
    switch (n % 4) {
      case 0:
        fill_some(live);
        s.empty_all();
        break;
      case 1:
        s.empty_all();
        fill_some(live);
        break;
      case 2:
        for (std::size_t list = 0; list < lists; list += 2) s.empty(list);
        fill_some(live / 2);
        for (std::size_t list = 1; list < lists; list += 2) s.empty(list);
        break;
      default: s.empty_all();
    }
    tally->data_bytes = pool.stats().data_bytes;
    if (n % 4 == 2) ::_exit(::testing::Test::HasFailure() ? 1 : 0);  // without a close
    pool.close();
  }

  // Runs `sessions` and checks the bound of the data region after each.
  void run(unsigned sessions, std::uint64_t live) {
    for (unsigned n = 0; n < sessions; ++n) {
      if (n % 4 == 2) {
        ASSERT_EQ(0, in_child([&] { session(n, live); })) << "session " << n;
      } else {
        session(n, live);
      }
      // It grows without a search for empty spans while more than half of it is used, by an eighth,
      // and at least by 4 MiB, rounded to a multiple of 2 MiB. In addition: the directory, and for
      // each class a span that is not full.
      const std::uint64_t bound = tally->high * 9 / 4 + 8 * MiB;
      ASSERT_LE(tally->data_bytes, bound)
          << "session " << n << ", at most " << tally->high << " bytes were live at one time";
    }
  }

  Scratch scratch;
  Options options;
  Tally* tally = nullptr;
};

std::vector<engine::EngineInfo> the_default() { return {*engine::find_instance("shadow")}; }
/// The first instance of each other durable family that runs here.
std::vector<engine::EngineInfo> others() {
  std::set<std::string_view> seen{"shadow"};
  std::vector<engine::EngineInfo> kept;
  for (const engine::EngineInfo& e : test::chosen_engines())
    if (test::is_durable(e) && !test::is_stood_for(e) && test::runs_here(e) &&
        seen.insert(e.family).second)
      kept.push_back(e);
  return kept;
}
std::string name_of(const ::testing::TestParamInfo<engine::EngineInfo>& info) {
  std::string name(info.param.name);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

class LongHistory : public HeapSessions {};
TEST_P(LongHistory, TheDataRegionIsBoundedByWhatIsLive) { run(200, 16 * MiB); }
INSTANTIATE_TEST_SUITE_P(Default, LongHistory, ::testing::ValuesIn(the_default()), name_of);

class ShortHistory : public HeapSessions {};
TEST_P(ShortHistory, TheDataRegionIsBoundedByWhatIsLive) { run(24, 8 * MiB); }
INSTANTIATE_TEST_SUITE_P(Families, ShortHistory, ::testing::ValuesIn(others()), name_of);

}  // namespace
}  // namespace perdure::pool
