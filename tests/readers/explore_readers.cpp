// SPDX-License-Identifier: BSD-3-Clause
//
// Processes that read a pool beside one that writes it, killed, stopped and started at random for a
// given time: `./dev explore --readers`. Each state that a reader sees must be whole, states of one
// reader never go back, and what any of them has seen is there when the writer has recovered.
// Everything that is chosen follows from the seed; what the processes do meanwhile does not.
#include <fmt/format.h>
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/readers/bank.hpp"
#include "tests/readers/process.hpp"

namespace perdure {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using test::Bank;
using test::BankPool;
using test::Line;
using test::Process;

struct How {
  const char* name;
  const char* medium;
  Durability durability;
  std::uint32_t threads;
};
constexpr How hows[] = {{"file", "file", Durability::durable, 2},
                        {"file async", "file", Durability::async, 2},
                        {"memory", "emulated", Durability::durable, 2},
                        {"memory group", "emulated", Durability::group, 1}};

// All processes share it.
struct Shared {
  std::atomic<std::uint64_t> shown{0};  // the most transactions that a reader has seen
  std::atomic<std::uint64_t> states{0}, holds{0}, checks{0}, overtaken{0}, attached{0}, writes{0};
  std::atomic<std::uint64_t> expelled{0}, waits{0};
  std::atomic<bool> wrong{false};
};
Shared* shared = nullptr;
constexpr std::int64_t most_texts = 1200;  // that a pool grows to

[[noreturn]] void found(const std::string& what) {
  fmt::print(stderr, "wrong: {}\n", what);
  std::fflush(stderr);
  shared->wrong = true;
  ::_exit(3);
}

Options options(const How& how, bool reads) {
  Options o;
  o.read_only = reads;
  o.medium = how.medium;
  o.durability = how.durability;
  o.creation.log_size = 1 << 20;
  o.creation.threads = how.threads;
  return o;
}

// Writes until it is killed, in sessions that it closes now and then.
void write(const std::string& path, const How& how, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (;;) {
    auto pool = BankPool::open(path, options(how, false));
    test::open_bank(pool);
    const std::uint64_t shown = shared->shown;
    std::uint64_t has = 0;
    std::string wrong;
    std::uint64_t texts = 0;
    pool.view([&](rtx& tx, const Bank& bank) {
      wrong = test::wrong_with(tx, bank, has);
      texts = tx(bank.texts);
    });
    if (!wrong.empty()) found("after recovery, " + wrong);
    if (has < shown) found(fmt::format("{} transactions were shown, {} are left", shown, has));
    std::atomic<std::uint64_t> n{random()};
    // Each pool grows for a while, in small steps.
    std::atomic<std::int64_t> room{most_texts - static_cast<std::int64_t>(texts)};
    std::atomic<bool> stop{false};
    const auto work = [&](bool slow) {
      while (!stop) {
        const std::uint64_t own = n++;
        (void)test::change_bank(pool, own);
        if (own >= 300 && own % 8 == 0 && room-- > 0) (void)test::grow_bank(pool, own);
        ++shared->writes;
        if (slow) std::this_thread::sleep_for(2ms);
      }
    };
    const bool slow = random() % 3 == 0;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 1 + random() % 2; ++i) threads.emplace_back(work, slow);
    const auto end = Clock::now() + std::chrono::milliseconds(100 + random() % 3000);
    while (Clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
      const auto what = random() % 4;
      if (what == 0) pool.checkpoint();
      if (what == 1) (void)pool.trim(1 << 20);
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    const Stats stats = pool.stats();
    shared->expelled += stats.readers_expelled, shared->waits += stats.reader_waits;
    if (random() % 4 != 0) pool.close();  // or the destructor does
  }
}

void read(const std::string& path, const How& how, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uint64_t last = 0;
  for (;;) {
    auto opened = BankPool::try_open(path, options(how, true));
    if (opened.code() == Code::busy) continue;  // the writer is opening it
    auto& pool = opened.value();
    // Another thread of the process moves on meanwhile, as far as it may.
    std::atomic<bool> stop{false};
    std::thread other([&, own = random()] {
      std::mt19937_64 other_random(own);
      std::uint64_t newest = 0;
      while (!stop) try {
          std::uint64_t changes = 0;
          std::string wrong;
          if (other_random() % 4 == 0) (void)pool.refresh();
          pool.view(
              [&](rtx& tx, const Bank& bank) { wrong = test::wrong_with(tx, bank, changes); });
          if (!wrong.empty()) found("another thread saw " + wrong);
          if (changes < newest) found("another thread saw an older state");
          newest = changes;
          ++shared->states;
          std::this_thread::sleep_for(std::chrono::microseconds(other_random() % 3000));
        } catch (const error& e) {
          if (e.code() != Code::expired && e.code() != Code::busy) found(e.what());
        }
    });
    const auto end = Clock::now() + std::chrono::milliseconds(random() % 4000);
    while (Clock::now() < end) try {
        std::uint64_t changes = 0;
        std::string wrong;
        const auto whole = [&](rtx& tx, const Bank& bank) {
          wrong = test::wrong_with(tx, bank, changes);
        };
        const auto seen = [&] {
          ++shared->states;
          if (!wrong.empty()) found("a view saw " + wrong);
          if (changes < last) found(fmt::format("{} transactions after {}", changes, last));
          last = changes;
          std::uint64_t most = shared->shown;
          while (changes > most && !shared->shown.compare_exchange_weak(most, changes)) {}
        };
        switch (random() % 8) {
          case 0: {
            const auto held = pool.snapshot();
            const auto until = Clock::now() + std::chrono::milliseconds(random() % 1500);
            std::uint64_t first = 0;
            while (Clock::now() < until) {
              held.view(whole);
              if (first != 0 && changes != first) found("a snapshot that changes");
              first = changes;
              seen();
            }
            ++shared->holds;
            break;
          }
          case 1: {
            const CheckReport report = pool.check();
            if (!report.ok()) found("check: " + report.problems.front());
            ++shared->checks;
            break;
          }
          case 2: (void)pool.refresh(); [[fallthrough]];
          default: pool.view(whole); seen();
        }
      } catch (const error& e) {
        // The writer was ahead, or is opening the pool.
        if (e.code() != Code::expired && e.code() != Code::busy) found(e.what());
      }
    stop = true;
    other.join();
    const Stats stats = pool.stats();
    shared->overtaken += stats.overtaken, shared->attached += stats.attached;
  }
}

int run(double minutes, std::uint64_t seed, const std::string& folder) {
  std::mt19937_64 random(seed);
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared = new (memory) Shared;
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double, std::ratio<60>>(minutes));
  std::uint64_t round = 0, killed = 0, stopped = 0;
  auto told = begin;
  while (Clock::now() < end) {
    const How& how = hows[round % std::size(hows)];
    const std::string path = fmt::format("{}/pool{}", folder, round++);
    shared->shown = 0;
    {
      auto pool = BankPool::open(path, options(how, false));
      test::open_bank(pool);
    }
    const auto start = [&](bool writes) {
      return std::make_unique<Process>(
          [&, own = random()](Line&) { writes ? write(path, how, own) : read(path, how, own); });
    };
    auto writer = start(true);
    std::vector<std::unique_ptr<Process>> readers;
    for (unsigned i = 0; i < 2; ++i) readers.push_back(start(false));
    const auto last = std::min(end, Clock::now() + 12s);
    while (Clock::now() < last && !shared->wrong) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 700));
      auto& reader = readers[random() % readers.size()];
      switch (random() % 6) {
        case 0:
        case 1: writer = nullptr, writer = start(true), ++killed; break;
        case 2: reader = nullptr, reader = start(false), ++killed; break;
        case 3:
          reader->kill(SIGSTOP), ++stopped;
          std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
          reader->kill(SIGCONT);
          break;
        default: break;
      }
      if (Clock::now() - told > 10s) {
        told = Clock::now();
        fmt::print(stderr, "{:.0f} s: {} states read, {} transactions, {} kills\n",
                   std::chrono::duration<double>(told - begin).count(), shared->states.load(),
                   shared->writes.load(), killed);
      }
    }
    writer = nullptr;
    readers.clear();
    std::filesystem::remove(path);
    if (shared->wrong) {
      fmt::print(stderr, "found with {}, round {}, seed {}\n", how.name, round, seed);
      return 1;
    }
  }
  fmt::print(
      "seed {}: {} rounds, {} transactions, {} states read, {} held, {} checks, {} kills, "
      "{} stops; attached {} times, overtaken {} times; checkpoints waited {} times, {} of "
      "them in vain; none wrong\n",
      seed, round, shared->writes.load(), shared->states.load(), shared->holds.load(),
      shared->checks.load(), killed, stopped, shared->attached.load(), shared->overtaken.load(),
      shared->waits.load(), shared->expelled.load());
  return shared->states == 0 || shared->writes == 0 ? 1 : 0;
}

}  // namespace
}  // namespace perdure

int main(int argc, char** argv) {
  CLI::App app{"Kill, stop and start processes that read a pool and the one that writes it"};
  double minutes = 1;
  std::uint64_t seed = 1;
  app.add_option("--minutes", minutes, "how long")->capture_default_str();
  app.add_option("--seed", seed, "of what is chosen")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto folder = std::filesystem::temp_directory_path() /
                      fmt::format("perdure_readers_{}", static_cast<long>(::getpid()));
  std::filesystem::create_directories(folder);
  int status = 1;
  try {
    status = perdure::run(minutes, seed, folder.string());
  } catch (const std::exception& e) {
    fmt::print(stderr, "explore_readers: {}\n", e.what());
  }
  std::filesystem::remove_all(folder);
  return status;
}
