// SPDX-License-Identifier: BSD-3-Clause
//
// Version 2 of a program opens a pool, and the power fails, or the process is killed, at any point
// of it: the switch is whole or has not happened (SWITCH-1), and the next opening finishes the work
// that was left (SWITCH-2). On every engine; with the explorer on two of them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "perdure/perdure.hpp"
#include "perdure/pool/catalog.hpp"
#include "testing/arena.hpp"
#include "testing/crash_medium.hpp"
#include "testing/explorer.hpp"
#include "testing/recording_medium.hpp"
#include "testing/recovered.hpp"
#include "tests/engine/families.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure {
namespace {

struct User {
  std::uint64_t id = 0;
  std::string name, mail;
  friend bool operator==(const User&, const User&) = default;
};
namespace v1 {
struct Root {
  p<std::uint32_t> visits{3};
  hash_map<std::uint64_t, std::string> old;
  table<User, key<&User::id>, indexed<&User::name>> users;
};
}  // namespace v1
namespace v2 {
struct Root {
  p<std::uint64_t> added{7};
  table<User, ordered_key<&User::id>> none;
  table<User, key<&User::id>, dropped<indexed<&User::name>>, unique<&User::mail>> users;
  retired<hash_map<std::uint64_t, std::string>> old;
  p<std::uint64_t> visits{0};
};
}  // namespace v2
using Pool1 = Pool<v1::Root, engines<any_engine>>;
using Pool2 = Pool<v2::Root, engines<any_engine>>;

User user(std::uint64_t i) {
  return {i, "name " + std::to_string(i % 3), "mail " + std::to_string(i)};
}

void fill(Pool1& pool, std::uint64_t rows) {
  for (std::uint64_t from = 0; from < rows; from += 20)
    pool.update([&](auto& tx, v1::Root& r) {
      for (std::uint64_t i = from; i < std::min(rows, from + 20); ++i) {
        r.old.put(tx, i, "value");
        r.users.insert(tx, user(i));
      }
    });
}

/// What is wrong with a pool that version 2 has opened.
std::string problem(Pool2& pool, std::uint64_t rows) {
  std::string found = pool.view([&](auto& tx, const v2::Root& r) -> std::string {
    if (tx.read(r.added) != 7) return "the new field has no first value";
    if (tx.read(r.visits) != 3) return "the widened field is wrong";
    if (r.users.size(tx) != rows) return std::to_string(r.users.size(tx)) + " rows";
    for (std::uint64_t i = 0; i < rows; ++i) {
      if (r.users.find(tx, i) != user(i)) return "row " + std::to_string(i) + " is wrong";
      if (r.users.template one<&User::mail>(tx, user(i).mail) != user(i))
        return "row " + std::to_string(i) + " is not in the new index";
    }
    return {};
  });
  const CheckReport report = pool.check();
  if (found.empty() && !report.ok()) found = "check: " + report.problems.front();
  // The rows with their two texts, and the leaves of two maps: nothing of what was retired.
  if (found.empty() && report.blocks > rows * 11 / 2 + 20) found = "blocks are left";
  return found;
}

Options options_for(const engine::EngineInfo& entry) {
  Options o;
  o.engine = entry.name;
  o.isolation = entry.isolation;
  o.creation.threads = 1;
  o.creation.uuid_seed = 1;
  return o;
}

class EvolveCrash : public ::testing::TestWithParam<engine::EngineInfo> {};

// What is surely durable at each fence of an opening by version 2, opened by it again.
TEST_P(EvolveCrash, EachFenceLeavesAPoolThatTheNextOpeningFinishes) {
  constexpr std::uint64_t rows = 20;
  const Options options = options_for(GetParam());
  medium::RecordingOptions medium;
  medium.log_bytes = 2 << 20;
  medium.data_bytes = 2 << 20;
  medium.max_data_bytes = 4 << 20;
  std::vector<std::byte> before;
  {
    auto made = medium::RecordingMedium::make(medium).value();
    auto* const raw = made.get();
    auto pool = Pool1::try_open_on("pool", options, std::move(made), true).value();
    fill(pool, rows);
    pool.close();
    before = raw->durable_image();
  }
  std::vector<std::vector<std::byte>> images;
  {
    auto made = medium::RecordingMedium::make(medium, before).value();
    auto* const raw = made.get();
    std::uint64_t fences = 0, every = 1;
    raw->set_fence_hooks(
        [&] {
          if (fences++ % every != 0) return;
          images.push_back(raw->durable_image());
          if (images.size() % 8 == 0) every *= 2;  // some engines fence at each store
        },
        [] {});
    auto pool = Pool2::try_open_on("pool", options, std::move(made), false).value();
    EXPECT_EQ(problem(pool, rows), "");
    pool.close();
    images.push_back(raw->durable_image());
  }
  ASSERT_GT(images.size(), 4U);
  std::uint64_t switched = 0;
  for (const auto& image : images) {
    auto made = medium::RecordingMedium::make(medium, image).value();
    auto opened = Pool2::try_open_on("pool", options, std::move(made), false);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    if (opened->stats().commits == 0) ++switched;
    ASSERT_EQ(problem(*opened, rows), "");
  }
  EXPECT_GT(switched, 0U) << "no image was finished";
  EXPECT_LT(switched, images.size()) << "each image was finished";
}

std::vector<engine::EngineInfo> durable() {
  std::vector<engine::EngineInfo> all;
  for (const engine::EngineInfo& e : engine::registered())
    if (test::is_durable(e) && e.runs_here().ok()) all.push_back(e);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Engines, EvolveCrash, ::testing::ValuesIn(durable()), [](const auto& i) {
  std::string name(i.param.name);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

/// Judges an image by its own catalog: it has version 1 with all of its data, or version 2 with all
/// of it and, where the work that follows is not marked as pending, without any left.
class Judge final : public crash::Subject {
 public:
  Judge(const engine::EngineInfo& entry, std::uint64_t rows) : entry_(entry), rows_(rows) {}
  crash::Verdict judge(std::unique_ptr<medium::Medium> medium, const std::byte* data,
                       const crash::Crash&) override {
    try {
      return recovered(std::move(medium), data);
    } catch (const std::exception& e) {
      return {std::string("recovery, or the check after it, throws: ") + e.what(), 0};
    }
  }
  std::uint64_t old = 0, pending = 0, done = 0;  ///< what was found

 private:
  crash::Verdict recovered(std::unique_ptr<medium::Medium> medium, const std::byte* data) {
    pool::OpenFile how;
    how.path = "image";
    pool::Identity who;
    who.engine_any = who.layout_any = true;
    auto file = pool::OpenPool::open_on(std::move(medium), false, how, who);
    if (!file.ok()) return {"the pool is refused: " + file.status().message(), 0};
    engine::Recovery report;
    Status s = entry_.recover(**file, report);
    if (s.ok()) s = (*file)->start_session(pool::ViewPolicy::none);
    if (!s.ok()) return {"recovery fails: " + s.message(), 0};
    const auto catalog = pool::read_catalog("", (*file)->header(), data);
    if (!catalog.ok()) return {catalog.status().message(), 0};
    crash::PlainTransaction transaction;
    crash::PlainTx tx(transaction);
    std::vector<std::uint64_t> owned;
    const auto own = [&](const void* block) {
      owned.push_back(static_cast<std::uint64_t>(static_cast<const std::byte*>(block) - data));
    };
    std::string wrong;
    const auto need = [&](bool so, const char* what) {
      if (!so && wrong.empty()) wrong = what;
    };
    const std::byte* const at = data + catalog->root_offset;
    if (catalog->layouts.front() == named_layout_of<v1::Root>()) {
      ++old;
      const auto& root = *reinterpret_cast<const v1::Root*>(at);
      need(catalog->layouts.size() == 1 && !catalog->pending, "version 1 with marks of version 2");
      need(tx.read(root.visits) == 3, "visits");
      root.old.each_block(tx, own);
      root.users.each_block(tx, own);
      need(root.users.audit(tx).empty(), "version 1's table is not sound");
      rows(tx, root.users, need);
    } else {
      need(catalog->layouts.front() == named_layout_of<v2::Root>(), "another layout");
      need(catalog->layouts.size() == 2, "the layouts before are not there");
      const auto& root = *reinterpret_cast<const v2::Root*>(at);
      need(tx.read(root.added) == 7 && tx.read(root.visits) == 3, "the fields of version 2");
      root.old.each_block(tx, own);
      root.users.each_block(tx, own);
      rows(tx, root.users, need);
      if (catalog->pending) {
        ++pending;
      } else {
        ++done;
        need(root.users.audit(tx).empty(), "the table is not whole, and no work is pending");
        const std::size_t before = owned.size();
        root.old.each_block(tx, own);
        need(owned.size() == before, "what was retired is there, and no work is pending");
      }
    }
    owned.insert(owned.end(), catalog->blocks.begin(), catalog->blocks.end());
    const CheckReport heap = detail::compare_heap(**file, data, std::move(owned), true);
    if (wrong.empty() && !heap.ok()) wrong = heap.problems.front();
    return {wrong, catalog->layouts.size() * 2 + (catalog->pending ? 1 : 0)};
  }
  template <class Tx, class Table, class Need>
  void rows(Tx& tx, const Table& users, Need& need) const {
    need(users.size(tx) == rows_, "the number of rows");
    for (std::uint64_t i = 0; i < rows_; ++i) need(users.find(tx, i) == user(i), "a row");
  }
  const engine::EngineInfo entry_;
  const std::uint64_t rows_;
};

void explore(const char* engine, crash::Model model, std::uint64_t every) {
  constexpr std::uint64_t rows = 12;
  const auto all = durable();
  const auto entry = std::find_if(all.begin(), all.end(),
                                  [&](const engine::EngineInfo& e) { return e.name == engine; });
  ASSERT_NE(entry, all.end());
  medium::CrashOptions o;
  o.log_bytes = pool::first_ring + 65536;
  o.data_bytes = 8 * pool::chunk_bytes;
  o.max_data_bytes = 16 * pool::chunk_bytes;
  o.sparse = true;
  Options options = options_for(*entry);
  options.creation.log_size = 65536;
  auto made = medium::CrashMedium::make(o).value();
  medium::CrashMedium* medium = made.get();
  std::unique_ptr<medium::CrashMedium> next;
  {
    auto pool = Pool1::try_open_on("crash", options, std::move(made), true).value();
    fill(pool, rows);
    pool.close();
    next = medium->heir();
  }
  medium = next.get();
  crash::Image image(medium->begin_trace(), medium->data_bytes());
  medium->done(0);
  crash::Arena::Geometry geometry;
  medium::Trace trace;
  {
    auto pool = Pool2::try_open_on("crash", options, std::move(next), false).value();
    geometry = {medium->log_bytes(), medium->max_data_bytes(), pool.header().base,
                medium->append_unit(), medium->fence_is_sync()};
    pool.close();
    trace = medium->end_trace();
  }
  Judge judge(*entry, rows);
  auto arena = crash::Arena::make(geometry).value();
  crash::ExploreOptions explored;
  explored.model = model;
  explored.every = every;
  explored.seconds = 40;
  crash::Seen seen;
  crash::Explorer explorer(*arena, image, judge, explored, seen);
  explorer.run(trace);
  EXPECT_EQ(explorer.failure(), "");
  std::printf("  %llu recoveries, %llu of version 1, %llu with pending work, %llu finished\n",
              static_cast<unsigned long long>(explorer.counts().recoveries),
              static_cast<unsigned long long>(judge.old),
              static_cast<unsigned long long>(judge.pending),
              static_cast<unsigned long long>(judge.done));
  EXPECT_GT(judge.old, 0U);
  EXPECT_GT(judge.pending, 0U);
  EXPECT_GT(judge.done, 0U);
}

TEST(EvolveExplored, ShadowPx86) { explore("shadow", crash::Model::px86, 1); }
TEST(EvolveExplored, ShadowAdversarial) { explore("shadow", crash::Model::adversarial, 1); }
TEST(EvolveExplored, UndoPx86) { explore("undo", crash::Model::px86, 1); }

/// Kills openings by version 2 at random instants until `kills` were killed.
void kill_openings(std::uint64_t rows, unsigned kills, unsigned seed) {
  const medium::testing::Scratch scratch;
  const std::string made = scratch.path("made"), path = scratch.path("pool");
  Options options;
  options.engine = "shadow";
  options.creation.max_size = 1 << 30;
  options.creation.log_size = 16 << 20;
  {
    auto pool = Pool1::open(made, options);
    fill(pool, rows);
    pool.close();
  }
  crash::Random dice(seed);
  std::uint64_t killed = 0, finished = 0, longest_us = 20'000;
  while (killed < kills) {
    std::filesystem::copy_file(made, path, std::filesystem::copy_options::overwrite_existing);
    for (bool open = true; open;) {
      const auto start = std::chrono::steady_clock::now();
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        const bool ok = Pool2::try_open(path, options).ok();
        ::_exit(ok ? 0 : 1);
      }
      const bool let = killed >= kills || dice() % 8 == 0;  // or it would never be finished
      if (!let) {
        std::this_thread::sleep_for(std::chrono::microseconds(dice() % longest_us));
        ::kill(child, SIGKILL);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      if (WIFSIGNALED(status)) {
        ++killed;
        continue;
      }
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "after " << killed << " kills";
      longest_us = std::max<std::uint64_t>(
          1000, static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                               std::chrono::steady_clock::now() - start)
                                               .count()));
      ++finished;
      open = false;
    }
    auto pool = Pool2::open(path, options);
    ASSERT_EQ(problem(pool, rows), "") << "after " << killed << " kills";
  }
  std::printf("  %llu openings were killed, %llu finished\n",
              static_cast<unsigned long long>(killed), static_cast<unsigned long long>(finished));
}

TEST(EvolveKilled, AFewOpenings) { kill_openings(3'000, 25, 1); }
// The named long run: --gtest_also_run_disabled_tests --gtest_filter=*AHundredOpenings*
TEST(EvolveKilled, DISABLED_AHundredOpeningsOfAHundredThousandRows) {
  kill_openings(100'000, 100, 2);
}

}  // namespace
}  // namespace perdure
