// SPDX-License-Identifier: BSD-3-Clause
//
// Version 2 of a program opens a pool, and the power fails at any point of it: the switch is whole
// or has not happened (SWITCH-1), each element is in the old container or in the one that is made
// of it (REBUILD-1), and the next opening finishes the work that was left (SWITCH-2). On every
// engine; with the explorer on two of them.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <string>
#include <vector>

#include "perdure/inspect/blocks.hpp"
#include "perdure/inspect/source.hpp"
#include "perdure/inspect/walk.hpp"
#include "perdure/perdure.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/value/access.hpp"
#include "testing/arena.hpp"
#include "testing/crash_medium.hpp"
#include "testing/explorer.hpp"
#include "testing/recording_medium.hpp"
#include "testing/recovered.hpp"
#include "tests/api/version_pairs.hpp"
#include "tests/engine/families.hpp"
#include "tests/engine/suite.hpp"

namespace perdure {
namespace {

using test::Evolved;
using test::fill;
using test::Linked;
using test::problem;
using test::Rebuilt;

Options options_for(const engine::EngineInfo& entry) {
  Options o;
  o.engine = entry.name;
  o.isolation = entry.isolation;
  o.creation.threads = 1;
  o.creation.uuid_seed = 1;
  o.migrate.batch = 3;
  return o;
}
/// The same for version 2, with its steps.
template <class Pair>
Options options_after(const engine::EngineInfo& entry) {
  Options o = options_for(entry);
  o.migrate.steps = Pair::steps();
  return o;
}

class EvolveCrash : public ::testing::TestWithParam<engine::EngineInfo> {};
class RebuiltCrash : public EvolveCrash {};
class LinkedCrash : public EvolveCrash {};

/// Version 2 opens the durable image of each fence of an earlier opening by version 2.
template <class Pair>
void each_fence(const engine::EngineInfo& engine, std::uint64_t rows) {
  using Pool1 = test::PoolBefore<Pair>;
  using Pool2 = test::PoolAfter<Pair>;
  const Options options = options_after<Pair>(engine);
  medium::RecordingOptions medium;
  medium.log_bytes = 2 << 20;
  medium.data_bytes = 2 << 20;
  medium.max_data_bytes = 4 << 20;
  std::vector<std::byte> before;
  {
    auto made = medium::RecordingMedium::make(medium).value();
    auto* const raw = made.get();
    auto pool = Pool1::try_open_on("pool", options_for(engine), std::move(made), true).value();
    fill<Pair>(pool, rows);
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
          // Some engines fence at each store.
          if (images.size() % (test::scale > 1 ? 3 : 8) == 0) every *= 2;
        },
        [] {});
    auto pool = Pool2::try_open_on("pool", options, std::move(made), false).value();
    EXPECT_EQ(problem<Pair>(pool, rows), "");
    pool.close();
    images.push_back(raw->durable_image());
  }
  ASSERT_GT(images.size(), 4U);
  std::uint64_t switched = 0;
  medium.record = false;
  for (const auto& image : images) {
    auto made = medium::RecordingMedium::make(medium, image).value();
    auto opened = Pool2::try_open_on("pool", options, std::move(made), false);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    if (opened->stats().commits == 0) ++switched;
    ASSERT_EQ(problem<Pair>(*opened, rows), "");
  }
  EXPECT_GT(switched, 0U) << "no image was finished";
  EXPECT_LT(switched, images.size()) << "each image was finished";
}

TEST_P(EvolveCrash, EachFenceLeavesAPoolThatTheNextOpeningFinishes) {
  each_fence<Evolved>(GetParam(), 20);
}
TEST_P(RebuiltCrash, EachFenceLeavesAPoolThatTheNextOpeningFinishes) {
  each_fence<Rebuilt>(GetParam(), 8);
}

TEST_P(LinkedCrash, EachFenceLeavesAPoolThatTheNextOpeningFinishes) {
  each_fence<Linked>(GetParam(), 8);
}

std::vector<engine::EngineInfo> durable() {
  std::vector<engine::EngineInfo> all;
  for (const engine::EngineInfo& e : engine::registered())
    if (test::is_durable(e) && e.runs_here().ok()) all.push_back(e);
  return all;
}
/// One instance of each engine: its variants by isolation run the same transactions here.
std::vector<engine::EngineInfo> one_of_each() {
  std::vector<engine::EngineInfo> all = durable();
  std::erase_if(all, [](const auto& e) { return e.name.find('/') != std::string_view::npos; });
  return all;
}
std::string name_of(const ::testing::TestParamInfo<engine::EngineInfo>& i) {
  std::string name(i.param.name);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Engines, EvolveCrash, ::testing::ValuesIn(durable()), name_of);
INSTANTIATE_TEST_SUITE_P(Engines, RebuiltCrash, ::testing::ValuesIn(one_of_each()), name_of);
INSTANTIATE_TEST_SUITE_P(Engines, LinkedCrash, ::testing::ValuesIn(one_of_each()), name_of);

/// Judges an image by its own catalog: it has version 1 with all of its data, or version 2 with all
/// of it and, where the work that follows is not marked as pending, without any left.
template <class Pair>
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
    const std::byte* const at = data + catalog->root_offset;
    if (catalog->layouts.front() == named_layout_of<typename Pair::Before>()) {
      ++old;
      const auto& root = *reinterpret_cast<const typename Pair::Before*>(at);
      if (catalog->layouts.size() != 1 || catalog->pending)
        wrong = "version 1 with marks of version 2";
      else
        wrong = Pair::problem(tx, root, rows_);
      Pair::each_block(tx, root, own);
    } else if (catalog->layouts.front() != named_layout_of<typename Pair::After>()) {
      wrong = "another layout";
    } else {
      ++(catalog->pending ? pending : done);
      const auto& root = *reinterpret_cast<const typename Pair::After*>(at);
      wrong = catalog->layouts.size() != 2 ? "the layouts before are not there"
                                           : Pair::problem(tx, root, rows_, catalog->pending);
      Pair::each_block(tx, root, own);
    }
    owned.insert(owned.end(), catalog->blocks.begin(), catalog->blocks.end());
    if (wrong.empty()) wrong = as_tools_see(tx, **file, data, *catalog);
    const CheckReport heap = detail::compare_heap(**file, data, std::move(owned), true);
    if (wrong.empty() && !heap.ok()) wrong = heap.problems.front();
    return {wrong, catalog->layouts.size() * 2 + (catalog->pending ? 1 : 0)};
  }
  // What the tools' walk by the layout text finds wrong. An index may lack entries while work is
  // pending.
  static std::string as_tools_see(crash::PlainTx& tx, pool::OpenPool& file, const std::byte* data,
                                  const pool::CatalogContents& catalog) {
    value::ReaderOver<crash::PlainTx> reader(tx);
    inspect::Walker walker(reader, reinterpret_cast<inspect::Address>(data),
                           file.header().data_bytes);
    const inspect::Source source = inspect::read_source(walker, file.header(), catalog);
    walker.use_records_of(source.tree);
    walker.use_copies(catalog.copied);
    inspect::Blocks found = inspect::find_blocks(walker, source.tree.root(), source.root);
    std::erase_if(found.problems, [](const std::string& one) {
      return one.find("entries, expected one for each of") != std::string::npos;
    });
    if (!found.problems.empty()) return "tools: " + found.problems.front();
    found.offsets.insert(found.offsets.end(), catalog.blocks.begin(), catalog.blocks.end());
    const CheckReport heap = detail::compare_heap(file, data, std::move(found.offsets), true);
    return heap.ok() ? "" : "tools: " + heap.problems.front();
  }
  const engine::EngineInfo entry_;
  const std::uint64_t rows_;
};

template <class Pair>
void explore(const char* engine, crash::Model model, std::uint64_t every) {
  using Pool1 = test::PoolBefore<Pair>;
  using Pool2 = test::PoolAfter<Pair>;
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
  Options before = options_for(*entry), after = options_after<Pair>(*entry);
  before.creation.log_size = after.creation.log_size = 65536;
  auto made = medium::CrashMedium::make(o).value();
  medium::CrashMedium* medium = made.get();
  std::unique_ptr<medium::CrashMedium> next;
  {
    auto pool = Pool1::try_open_on("crash", before, std::move(made), true).value();
    fill<Pair>(pool, rows);
    pool.close();
    next = medium->heir();
  }
  medium = next.get();
  crash::Image image(medium->begin_trace(), medium->data_bytes());
  medium->done(0);
  crash::Arena::Geometry geometry;
  medium::Trace trace;
  {
    auto pool = Pool2::try_open_on("crash", after, std::move(next), false).value();
    geometry = {medium->log_bytes(), medium->max_data_bytes(), pool.header().base,
                medium->append_unit(), medium->fence_is_sync()};
    pool.close();
    trace = medium->end_trace();
  }
  Judge<Pair> judge(*entry, rows);
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

TEST(EvolveExplored, ShadowPx86) { explore<Evolved>("shadow", crash::Model::px86, 1); }
TEST(EvolveExplored, ShadowAdversarial) {
  explore<Evolved>("shadow", crash::Model::adversarial, 1);
}
TEST(EvolveExplored, UndoPx86) { explore<Evolved>("undo", crash::Model::px86, 1); }
TEST(RebuiltExplored, ShadowPx86) { explore<Rebuilt>("shadow", crash::Model::px86, 1); }
TEST(RebuiltExplored, ShadowAdversarial) {
  explore<Rebuilt>("shadow", crash::Model::adversarial, 1);
}
TEST(RebuiltExplored, UndoPx86) { explore<Rebuilt>("undo", crash::Model::px86, 3); }
TEST(LinkedExplored, ShadowPx86) { explore<Linked>("shadow", crash::Model::px86, 1); }
TEST(LinkedExplored, ShadowAdversarial) { explore<Linked>("shadow", crash::Model::adversarial, 1); }
TEST(LinkedExplored, UndoPx86) { explore<Linked>("undo", crash::Model::px86, 3); }

}  // namespace
}  // namespace perdure
