// SPDX-License-Identifier: BSD-3-Clause
//
// Golden traces (trace.hpp): each engine, in each configuration of a pool, makes the same calls to
// its medium as when traces.txt was written. A refactoring leaves the traces as they are. A change
// of protocol writes them anew, in a commit of its own that says why:
//   PERDURE_GOLDEN=keep build/dev/tests/golden/golden_traces_test
// To see what has changed, write the whole traces before and after, and compare the two folders:
//   PERDURE_GOLDEN_DIR=FOLDER build/dev/tests/golden/golden_traces_test
//
// The program has one thread. The pool's own threads run where it waits, and when it yields after
// every third step: tests/crash/scheduler.hpp makes that the same at every run.
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "testing/explorer.hpp"
#include "tests/conformance/configurations.hpp"
#include "tests/crash/scheduler.hpp"
#include "tests/engine/suite.hpp"
#include "tests/golden/trace.hpp"

namespace perdure::test {
namespace {

using conformance::Configuration;
using conformance::configurations;
using crash::Random;

constexpr std::uint64_t seed = 20261125, steps = 40;
constexpr std::size_t images = 20;

struct Root {
  p<std::uint64_t> count;
  std::array<p<std::uint64_t>, 64> word;
  std::array<ptr<std::uint64_t>, 8> block;
};
struct Oops {};

/// Transaction n: words, runs of words, small and large blocks; one in nine is rolled back.
template <class Tx>
void step(Tx& tx, Root& r, std::uint64_t n) {
  Random random(seed + n);
  tx(r.count) = n;
  for (std::uint64_t i = random() % 6; i > 0; --i) tx(r.word[random() % 64]) = random();
  std::array<std::uint64_t, 40> run{};
  const std::uint64_t length = 1 + random() % 24;
  for (std::uint64_t& word : run) word = random();
  tx.write_bytes(&r.word[random() % (64 - length)], run.data(), length * 8);
  ptr<std::uint64_t>& slot = r.block[random() % 8];
  const std::uint64_t bytes = random() % 8 == 0 ? 70'000 : 16 + random() % 600;
  if (std::uint64_t* const old = tx(slot); old != nullptr) tx.free(old);
  if (random() % 4 == 0) {
    tx(slot) = nullptr;
  } else {
    auto* const block = reinterpret_cast<std::uint64_t*>(tx.alloc(bytes));
    tx.write_bytes(block, run.data(), std::min<std::uint64_t>(bytes, sizeof run));
    tx(slot) = block;
  }
  if (n % 9 == 8) throw Oops();
}

/// The results of one run of the program: its traces by phase, the number of fences of steps and
/// close, and images taken at 20 of them.
struct Traced {
  std::map<std::string, std::string> traces;
  std::uint64_t fences = 0;
  std::vector<std::vector<std::byte>> taken;
};

Shape shape_of(const EngineInfo& e, const Configuration& configuration) {
  Shape s;
  s.durability = configuration.durability;
  s.like_a_file = configuration.like_a_file;
  s.ring_bytes = ring_of_at_least(e, conformance::small_ring(e, configuration.like_a_file));
  s.data_bytes = 8 * pool::chunk_bytes;
  return s;
}

/// A power cut's image: of each line either what is durable or what the program sees.
std::vector<std::byte> image_of(const medium::RecordingMedium& medium, std::uint64_t number) {
  std::vector<std::byte> image = medium.durable_image();
  const std::vector<std::byte> current = medium.current_image();
  Random random(seed + number);
  for (std::size_t line = 0; line < image.size(); line += medium::line_bytes)
    if (random() % 2 == 0) std::copy_n(&current[line], medium::line_bytes, &image[line]);
  return image;
}

/// `every`: an image is taken at one in `every` fences of steps and close; 0: no images.
Traced run_program(const EngineInfo& e, const Configuration& configuration, std::uint64_t every) {
  Traced result;
  const Shape shape = shape_of(e, configuration);
  medium::RecordingOptions how = shape.medium();
  how.keep_bytes = true;
  auto made = medium::RecordingMedium::make(how).value();
  medium::RecordingMedium& medium = *made;
  const auto end_of = [&](const char* phase) {
    result.traces[phase] = golden::text_of(medium.events());
    medium.forget_events();
  };
  Options options = shape.options(e);
  options.creation.uuid_seed = 1;
  Scheduler::start(seed);
  {
    auto pool = AnyPool<Root>::try_open_on("recording", options, std::move(made), true).value();
    end_of("make");
    medium.set_fence_hooks(
        [&] {
          ++result.fences;
          if (every != 0 && result.fences % every == 0 && result.taken.size() < images)
            result.taken.push_back(image_of(medium, result.fences));
        },
        {});
    for (std::uint64_t n = 1; n <= steps; ++n) {
      if (n % 13 == 0) pool.checkpoint();
      try {
        const auto receipt =
            pool.update(configuration.durability, [&](auto& tx, Root& r) { step(tx, r, n); });
        if (!configuration.waits() && n % 5 == 0) receipt.wait();
      } catch (const Oops&) {}
      for (int i = 0; n % 3 == 0 && i < 4; ++i) ::sched_yield();  // several steps make a group
    }
    end_of("run");
    pool.close();
    end_of("close");
    medium.set_fence_hooks({}, {});
  }
  Scheduler::stop();
  return result;
}

/// The events of the recoveries of all images, one after another.
std::string recoveries_of(const EngineInfo& e, const Configuration& configuration,
                          const Traced& run) {
  std::string all;
  for (const std::vector<std::byte>& image : run.taken) {
    std::vector<medium::Event> events;
    Shape shape = shape_of(e, configuration);
    Scheduler::start(seed);
    const Recovered r = recover(e, image, shape, {}, true, &events);
    Scheduler::stop();
    EXPECT_TRUE(r.status.ok() && r.problems.empty()) << r.status.message();
    all += golden::text_of(events);
  }
  return all;
}

golden::TraceFile& file() {
  static golden::TraceFile file(PERDURE_GOLDEN_TRACES);
  return file;
}
bool keeps() {
  const char* const how = std::getenv("PERDURE_GOLDEN");
  return how != nullptr && std::string_view(how) == "keep";
}

void compare(const std::string& name, const std::string& text) {
  const std::string now = golden::summary_of(text);
  if (const char* const folder = std::getenv("PERDURE_GOLDEN_DIR"); folder != nullptr) {
    std::string plain = name;
    for (char& c : plain)
      if (c == '/' || c == ' ') c = '_';
    std::filesystem::create_directories(folder);
    std::ofstream(std::filesystem::path(folder) / (plain + ".txt")) << text;
  }
  if (keeps()) return file().keep(name, now);
  EXPECT_EQ(file().kept(name), now)
      << name << ": the engine asks something else of its medium than when the traces were kept. "
      << "The head of tests/golden/traces_test.cpp says how to see what, and how to keep new ones";
}

class GoldenTraces : public EngineTest {};
ENGINE_SUITE(GoldenTraces, durable_ones);

TEST_P(GoldenTraces, AreAsKept) {
  const EngineInfo& e = GetParam();
  for (const Configuration& configuration : configurations) {
    const std::uint64_t fences = run_program(e, configuration, 0).fences;
    ASSERT_GE(fences, images) << configuration.name;
    Traced run = run_program(e, configuration, fences / images);
    ASSERT_EQ(images, run.taken.size()) << configuration.name;
    run.traces["recover"] = recoveries_of(e, configuration, run);
    for (const auto& [phase, text] : run.traces)
      compare(std::string(e.name) + " " + configuration.name + " " + phase, text);
  }
  if (keeps()) file().save();
}

// A trace that differs in one event has another summary: the comparison relies on this.
TEST(GoldenTraceText, OneEventMakesADifference) {
  std::vector<medium::Event> events(3);
  events[0] = {medium::Event::Kind::store, 7, pool::first_ring, 8, {}, std::vector<std::byte>(8)};
  events[1] = {medium::Event::Kind::flush, 7, pool::first_ring, 64, {}, {}};
  events[2] = {medium::Event::Kind::fence, 7, 0, 0, {}, {}};
  const std::string whole = golden::summary_of(golden::text_of(events));
  const auto changed = [&](auto&& change) {
    std::vector<medium::Event> other = events;
    change(other);
    return golden::summary_of(golden::text_of(other));
  };
  EXPECT_NE(whole, changed([](auto& t) { t[0].data[3] = std::byte{1}; }));
  EXPECT_NE(whole, changed([](auto& t) { t[0].offset += 8; }));
  EXPECT_NE(whole, changed([](auto& t) { t[1].bytes = 128; }));
  EXPECT_NE(whole, changed([](auto& t) { t[2].thread = 8; }));
  EXPECT_NE(whole, changed([](auto& t) { std::swap(t[1], t[2]); }));
  EXPECT_NE(whole, changed([](auto& t) { t.pop_back(); }));
  EXPECT_EQ(whole, changed([](auto& t) {
              for (auto& e : t) e.thread = 3;
            }));
}

}  // namespace
}  // namespace perdure::test
