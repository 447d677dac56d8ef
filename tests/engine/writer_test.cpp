// SPDX-License-Identifier: BSD-3-Clause
//
// Shadow's Writer (engine/shadow/writer.hpp), which only a pool with the engine compiled in uses. A
// seeded program of words, bytes, blocks, nested updates and exceptions is compared with a model,
// in memory and after a power cut. The record must have every word, in order, whatever is called in
// between (SHADOW-2, SHADOW-3), and a rollback must restore every word.
#include <optional>
#include <stdexcept>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/engine/shadow/instances.hpp"
#include "tests/engine/suite.hpp"

namespace perdure::test {
namespace {

struct Root {
  static constexpr unsigned count = 48;
  std::array<p<std::uint64_t>, count> words;
  ptr<p<std::uint64_t>> block;  // of `count` words, or null

  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    if (const auto* own = tx.read(block)) f(own);
  }
};
struct Model {
  std::array<std::uint64_t, Root::count> words{}, block{};
  bool has_block = false;
};
struct Stop : std::runtime_error {
  Stop() : std::runtime_error("stop") {}
};

template <class Instance>
class WriterTest : public ::testing::Test {
 protected:
  using TestPool = Pool<Root, engines<Instance>>;
  WriterTest() : entry(*engine::find_instance(Instance::names[0].name)) {
    shape.ring_bytes = 1 << 18;
    auto made = medium::RecordingMedium::make(shape.medium()).value();
    medium = made.get();
    pool.emplace(
        TestPool::try_open_on("recording", shape.options(entry), std::move(made), true).value());
  }

  // Eight steps of a program, on the pool and on the model, with a call of `inner` among them.
  template <class Tx, class Inner>
  void steps(Tx& tx, Root& root, Inner&& inner) {
    for (unsigned n = 0; n < 8; ++n) {
      const std::uint64_t value = random(), at = random() % Root::count;
      if (n == 4) inner();
      switch (random() % 6) {
        case 0:
        case 1:
          tx(root.words[at]) = value;
          tx(root.words[at]) += 1;
          model.words[at] = value + 1;
          break;
        case 2: {
          std::vector<std::uint64_t> many(1 + random() % (Root::count - at));
          for (auto& word : many) word = random();
          tx.write_bytes(&root.words[at], many.data(), many.size() * 8);
          std::copy(many.begin(), many.end(), model.words.begin() + static_cast<long>(at));
          break;
        }
        case 3: change_block(tx, root, value % 4 == 0); break;
        case 4:
          if (!model.has_block) break;
          tx(tx(root.block)[at]) = value;
          model.block[at] = value;
          break;
        default: EXPECT_EQ(model.words[at], tx.read(root.words[at])); break;
      }
    }
  }
  template <class Tx>
  void change_block(Tx& tx, Root& root, bool free) {
    if (model.has_block && !free) return;
    if (model.has_block) {
      tx.free(tx(root.block));
      tx(root.block) = nullptr;
    } else {
      tx(root.block) = reinterpret_cast<p<std::uint64_t>*>(tx.alloc(Root::count * 8));
      for (unsigned i = 0; i < Root::count; ++i) tx(tx(root.block)[i]) = i;
      for (unsigned i = 0; i < Root::count; ++i) model.block[i] = i;
    }
    model.has_block = !model.has_block;
  }
  // In memory, and in what recovery makes of a power cut at this instant.
  void expect_as_model(std::uint64_t step) {
    pool->view([&](auto& tx, const Root& root) {
      for (unsigned i = 0; i < Root::count; ++i) {
        ASSERT_EQ(model.words[i], tx.read(root.words[i])) << "step " << step << ", word " << i;
        if (model.has_block) {
          ASSERT_EQ(model.block[i], tx.read(tx.read(root.block)[i])) << "step " << step;
        }
      }
      ASSERT_EQ(model.has_block, tx.read(root.block) != nullptr) << "step " << step;
    });
    const Recovered r = recover(entry, medium->durable_image(), shape);
    ASSERT_TRUE(r.status.ok()) << r.status.message();
    ASSERT_TRUE(r.problems.empty()) << r.problems.front();
    ASSERT_EQ(0, std::memcmp(r.state.root.data(), model.words.data(), sizeof model.words))
        << "step " << step << ", recovered";
    ASSERT_EQ(model.has_block ? 1U : 0U, r.state.blocks.size()) << "step " << step;
    if (model.has_block) {
      ASSERT_EQ(0, std::memcmp(r.state.blocks.begin()->second.data(), model.block.data(),
                               sizeof model.block))
          << "step " << step << ", recovered";
    }
  }

  EngineInfo entry;
  Shape shape;
  medium::RecordingMedium* medium = nullptr;
  std::optional<TestPool> pool;
  Model model;
  std::mt19937_64 random{7};
};

struct Names {
  template <class Instance>
  static std::string GetName(int) {
    std::string name(Instance::names[0].name);
    std::replace(name.begin(), name.end(), '/', '_');
    return name;
  }
};
using Instances = ::testing::Types<shadow, shadow_stm, shadow_global_lock, shadow_none>;
TYPED_TEST_SUITE(WriterTest, Instances, Names);

// Transactions with each of these endings: they commit, are rolled back, contain another update, or
// one that throws, whether the outer one lets that pass or not.
TYPED_TEST(WriterTest, HasWhatTheModelHas) {
  enum { commit, abandon, nested, nested_throws, nested_is_caught, endings };
  const std::uint64_t all = 600 / scale;
  for (std::uint64_t step = 0; step < all; ++step) {
    const auto ending =
        this->random() % (step < all / 2 ? 2 : endings);  // later ones keep the cursor
    const Model before = this->model;
    const auto seed = this->random();
    const auto run = [&] {
      this->pool->update([&](auto& tx, Root& root) {
        this->model = before;  // it may run again
        this->random.seed(seed);
        this->steps(tx, root, [&] {
          if (ending < nested) return;
          const auto inner = [&] {
            this->pool->update([&](auto& tx2, Root& root2) {
              this->steps(tx2, root2, [] {});
              if (ending != nested) throw Stop();
            });
          };
          if (ending != nested_is_caught) return inner();
          try {
            inner();
          } catch (const Stop&) {  // what it has stored stays, as all of the outer one's
          }
        });
        if (ending == abandon) throw Stop();
      });
    };
    if (ending == abandon || ending == nested_throws) {
      EXPECT_THROW(run(), Stop);
      this->model = before;
    } else {
      run();
    }
    this->expect_as_model(step);
    if (this->HasFatalFailure()) return;
  }
  const auto report = this->pool->check();
  EXPECT_TRUE(report.problems.empty()) << report.problems.front();
}

// More than the record has room for at first, stored word by word, then taken back.
TYPED_TEST(WriterTest, ARecordThatGrowsKeepsWhatItHas) {
  for (const bool commits : {true, false}) {
    const Model before = this->model;
    const auto run = [&] {
      this->pool->update([&](auto& tx, Root& root) {
        for (std::uint64_t i = 0; i < 3000; ++i) {
          tx(root.words[i % Root::count]) = i * 3 + commits;
          this->model.words[i % Root::count] = i * 3 + commits;
        }
        if (!commits) throw Stop();
      });
    };
    if (commits) {
      run();
    } else {
      EXPECT_THROW(run(), Stop);
      this->model = before;
    }
    this->expect_as_model(commits);
  }
}

// An update within an update, caught with everything by the outer one: the transaction runs again.
TYPED_TEST(WriterTest, AProgramMayCatchEverything) {
  unsigned runs = 0;
  this->pool->update([&](auto& tx, Root& root) {
    ++runs;
    tx(root.words[0]) = 1;
    try {
      this->pool->update([&](auto& tx2, Root& root2) { tx2(root2.words[1]) = 2; });
    } catch (...) {}
    tx(root.words[2]) = 3;
  });
  this->model.words[0] = 1;
  this->model.words[1] = 2;
  this->model.words[2] = 3;
  EXPECT_LE(runs, 2U);
  this->expect_as_model(0);
}

}  // namespace
}  // namespace perdure::test
