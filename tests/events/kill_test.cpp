// SPDX-License-Identifier: BSD-3-Clause
//
// A program whose transactions emit, and one that counts the events in a pool of its own, with its
// position in the same transaction: both are killed at random instants. Each event of a transaction
// that was durable is counted exactly once, in order, and no other.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "perdure/perdure.hpp"
#include "tests/readers/process.hpp"
#include "tests/support/comes.hpp"

namespace perdure {
namespace {

using namespace std::chrono_literals;
using test::Line;
using test::Process;

struct Source {
  p<std::uint64_t> count;
};
struct Seen {
  p<std::uint64_t> count, id, ordinal, wrong;
};

class EventsKilled : public testing::TestWithParam<const char*> {
 protected:
  EventsKilled() {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("events_kill_" + std::string(GetParam()) + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    source_ = (folder_ / "source").string();
    seen_ = (folder_ / "seen").string();
    archive_ = (folder_ / "archive").string();
  }
  ~EventsKilled() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] Options options() const {
    Options o;
    o.medium = GetParam();
    o.creation.log_size = 1 << 20;
    o.archive.folder = archive_;
    o.archive.file_age = 50ms;
    return o;
  }
  static Options memory() {
    Options o;
    o.medium = "emulated";
    return o;
  }
  // Event k has the number k, and a transaction has one to three.
  [[nodiscard]] auto emitter() const {
    return std::make_unique<Process>([this](Line&) {
      auto pool = Pool<Source>::open(source_, options());
      for (std::uint64_t round = 0;; ++round) {
        (void)pool.update([&](tx& tx, Source& source) {
          std::uint64_t n = tx(source.count);
          for (std::uint64_t i = 0; i <= round % 3; ++i) {
            ++n;
            tx.emit("n", std::to_string(n) + ":" + std::string(n % 200, 'x'));
          }
          tx(source.count) = n;
        });
        std::this_thread::sleep_for(200us);
      }
    });
  }
  [[nodiscard]] auto consumer() const {
    return std::make_unique<Process>([this](Line&) {
      auto pool = Pool<Seen>::open(seen_, memory());
      EventOptions from{.archive = archive_};
      from.after = pool.view([](rtx& tx, const Seen& seen) {
        return EventPosition{tx(seen.id), tx(seen.id) == 0
                                              ? EventPosition::whole
                                              : static_cast<std::uint32_t>(tx(seen.ordinal))};
      });
      std::optional<EventStream> stream;
      while (!stream) try {
          stream.emplace(open_events(source_, from));
        } catch (const error& e) {
          if (e.code() != Code::not_found && e.code() != Code::busy) throw;
          std::this_thread::sleep_for(1ms);
        }
      for (Event event;;) {
        if (!stream->next(event, 1s)) continue;
        (void)pool.update([&](tx& tx, Seen& seen) {
          const std::uint64_t n = tx(seen.count) + 1;
          if (event.bytes.substr(0, event.bytes.find(':')) != std::to_string(n)) tx(seen.wrong) = n;
          tx(seen.count) = n;
          tx(seen.id) = stream->position().id;
          tx(seen.ordinal) = stream->position().ordinal;
        });
      }
    });
  }
  std::filesystem::path folder_;
  std::string source_, seen_, archive_;
};

TEST_P(EventsKilled, EachIsCountedOnce) {
  std::mt19937_64 random(7);
  { auto pool = Pool<Source>::open(source_, options()); }
  auto writes = emitter(), reads = consumer();
  for (int kills = 0; kills < 40; ++kills) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 120));
    auto& victim = random() % 2 == 0 ? writes : reads;
    victim->kill(SIGKILL);
    ASSERT_EQ(-SIGKILL, victim->wait()) << "it ended by itself";
    victim = &victim == &writes ? emitter() : consumer();
  }
  writes->kill(SIGKILL);
  ASSERT_EQ(-SIGKILL, writes->wait());
  std::uint64_t emitted = 0;
  {
    auto pool = Pool<Source>::open(source_, options());
    emitted = pool.view([](rtx& tx, const Source& source) { return tx(source.count); });
  }
  EXPECT_GT(emitted, 100U);
  // The consumer's own pool can be looked at beside it.
  std::uint64_t counted = 0, wrong = 0;
  Options looks = memory();
  looks.read_only = true;
  EXPECT_TRUE(test::comes([&] {
    auto pool = Pool<Seen>::try_open(seen_, looks);
    if (!pool.ok()) return false;
    pool->view(
        [&](rtx& tx, const Seen& seen) { counted = tx(seen.count), wrong = tx(seen.wrong); });
    return wrong != 0 || counted >= emitted;
  }));
  EXPECT_EQ(0U, wrong) << "the first event that is not the next one";
  EXPECT_EQ(emitted, counted);
  reads->kill(SIGKILL);
  EXPECT_EQ(-SIGKILL, reads->wait()) << "it ended by itself";
}

INSTANTIATE_TEST_SUITE_P(Media, EventsKilled, testing::Values("file", "emulated"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace perdure
