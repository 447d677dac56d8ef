// SPDX-License-Identifier: BSD-3-Clause
#include "tools/advise/cell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <filesystem>
#include <mutex>
#include <random>
#include <thread>

#include "tools/advise/replay.hpp"

namespace perdure::tool {
namespace {

using Clock = std::chrono::steady_clock;

// Bytes, of all threads together.
constexpr std::uint64_t stray_budget = 64 << 20, ready_budget = 16 << 20;
constexpr std::uint64_t max_ready = 20'000;  // blocks of one thread
// The longest that a cell takes to finish a pass, as a multiple of the cell's time.
constexpr double max_times = 4;

std::atomic<int> caught{0};
// It pairs with nothing: it is a flag.
void catch_signal(int signal) { caught.store(signal, std::memory_order_relaxed); }
void check_interrupt() {
  if (const int signal = caught.load(std::memory_order_relaxed); signal != 0)
    throw Interrupted{signal};
}

class ScratchFile {
 public:
  explicit ScratchFile(const std::string& directory) {
    std::random_device random;
    path_ = fmt::format("{}/perdure-advise-{:08x}{:08x}.pool", directory, random(), random());
  }
  ~ScratchFile() {
    std::error_code ignored;
    for (const char* end : {"", ".creating", ".creating.pool"})
      std::filesystem::remove(path_ + end, ignored);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// The threads of a replay. run() gives one task to all of them and waits until all have done it.
class Team {
 public:
  Team(ReplayPool& pool, const ReplayProgram& program, std::byte* arena)
      : pool_(pool), gate_(std::ssize(program.threads) + 1) {
    for (const ReplayThread& t : program.threads) {
      states_.push_back(std::make_unique<ReplayState>(t));
      states_.back()->base[0] = arena;
      states_.back()->stray_limit = stray_budget / program.threads.size();
    }
    ran_.resize(states_.size());
    for (std::size_t i = 0; i < states_.size(); ++i) threads_.emplace_back([this, i] { live(i); });
  }
  ~Team() {
    over_ = true;
    gate_.arrive_and_wait();
    for (std::thread& t : threads_) t.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] std::vector<std::unique_ptr<ReplayState>>& states() noexcept { return states_; }

  void supply() {
    run(
        [this](ReplayState& s) {
          std::uint64_t bytes = 0, blocks = 0;
          for (const auto& r : s.plan.ready) bytes += r.bytes * r.each_pass, blocks += r.each_pass;
          const std::uint64_t fit =
              bytes == 0 ? 0 : std::min(ready_budget / states_.size() / bytes, max_ready / blocks);
          pool_.supply(s, std::max<std::uint64_t>(1, fit));
        },
        {}, false);
  }
  /// Works until `limit` has passed, and until each thread has returned or (`together`) one of them
  /// has. Returns the time from the first thread's start until the last thread's transactions are
  /// durable.
  double work(double limit, bool together) {
    run(
        [this](ReplayState& s) {
          pool_.work(s, stop_);
          pool_.settle();
        },
        Clock::now() +
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit)),
        together);
    auto begun = ran_[0].begun, ended = ran_[0].ended;
    for (const Ran& r : ran_) begun = std::min(begun, r.begun), ended = std::max(ended, r.ended);
    return std::chrono::duration<double>(ended - begun).count();
  }

 private:
  struct Ran {
    Clock::time_point begun, ended;
    std::exception_ptr failure;
  };
  void run(const std::function<void(ReplayState&)>& task, Clock::time_point until, bool together) {
    task_ = &task;
    stop_ = false;
    returned_ = 0;
    gate_.arrive_and_wait();
    {
      std::unique_lock lock(mutex_);
      const std::size_t enough = together ? 1 : states_.size();
      const auto step = std::chrono::milliseconds(20);  // how soon a signal is noticed
      while (returned_ < enough && (until == Clock::time_point() || Clock::now() < until) &&
             caught.load(std::memory_order_relaxed) == 0)
        changed_.wait_until(lock, until == Clock::time_point()
                                      ? Clock::now() + step
                                      : std::min(until, Clock::now() + step));
    }
    stop_ = true;
    gate_.arrive_and_wait();
    for (const Ran& r : ran_)
      if (r.failure != nullptr) std::rethrow_exception(r.failure);
    check_interrupt();
  }
  void live(std::size_t me) {
    for (;;) {
      gate_.arrive_and_wait();
      if (over_) return;
      Ran& ran = ran_[me];
      ran.begun = Clock::now();
      try {
        (*task_)(*states_[me]);
      } catch (...) {
        ran.failure = std::current_exception();
        stop_ = true;
      }
      ran.ended = Clock::now();
      {
        const std::lock_guard lock(mutex_);
        ++returned_;
      }
      changed_.notify_all();
      gate_.arrive_and_wait();
    }
  }
  ReplayPool& pool_;
  std::vector<std::unique_ptr<ReplayState>> states_;
  std::vector<Ran> ran_;
  std::barrier<> gate_;
  std::atomic<bool> stop_{false}, over_{false};
  const std::function<void(ReplayState&)>* task_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t returned_ = 0;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

void warm_up(Team& team, double seconds) {
  for (auto& s : team.states()) s->one_pass = true;
  team.supply();
  const double took = team.work(seconds, false);
  std::uint64_t updates = 0;
  for (auto& s : team.states()) updates += s->updates;
  // Reading the clock takes about 25 ns: where updates are short, one in sixteen is timed.
  const double each = took * static_cast<double>(team.states().size()) /
                      static_cast<double>(std::max<std::uint64_t>(updates, 1));
  for (auto& s : team.states()) {
    s->one_pass = false;
    s->stride = s->until = each < 5e-6 ? 16 : 1;
    s->transactions = s->updates = 0;
    s->microseconds.clear();
    s->microseconds.reserve(1 << 16);
  }
}

double percentile(std::vector<float>& sorted, double share) {
  if (sorted.empty()) return 0;
  return static_cast<double>(sorted[std::min(
      sorted.size() - 1, static_cast<std::size_t>(share * static_cast<double>(sorted.size())))]);
}

}  // namespace

CellFigures run_cell(const ReplayProgram& program, const CellOptions& how) {
  check_interrupt();
  Options options;
  options.engine = how.engine;
  options.must_create = true;
  options.medium = how.medium;
  options.durability = how.mode;
  options.creation.log_size = how.log_size;
  if (how.max_size != 0) options.creation.max_size = how.max_size;
  options.creation.threads = static_cast<std::uint32_t>(program.threads.size());
  const ScratchFile file(how.directory);
  const auto pool = open_replay(file.path(), options);
  Team team(*pool, program, pool->make_arena(program.arena_bytes));
  warm_up(team, how.seconds);

  CellFigures f;
  medium::Counters medium;
  std::uint64_t commits = 0, aborts = 0, log_bytes = 0;
  const auto whole = [&] {
    return std::all_of(team.states().begin(), team.states().end(), [](const auto& s) {
      return s->transactions >= s->plan.transactions.size();
    });
  };
  while (f.seconds < how.seconds || (!whole() && f.seconds < how.seconds * max_times)) {
    team.supply();
    const Stats before = pool->stats();
    const double left = how.seconds - f.seconds;
    f.seconds += team.work(left > 0 ? left : how.seconds / 4, true);
    const Stats after = pool->stats();
    medium += after.medium - before.medium;
    commits += after.commits - before.commits;
    aborts += after.aborts - before.aborts;
    log_bytes += after.log_bytes - before.log_bytes;
  }
  std::vector<float> latencies;
  for (const auto& s : team.states()) {
    f.transactions += s->transactions;
    latencies.insert(latencies.end(), s->microseconds.begin(), s->microseconds.end());
  }
  std::sort(latencies.begin(), latencies.end());
  const auto each = [commits](std::uint64_t n) {
    return static_cast<double>(n) / static_cast<double>(std::max<std::uint64_t>(commits, 1));
  };
  f.per_second = static_cast<double>(f.transactions) / f.seconds;
  f.samples = latencies.size();
  f.p50_us = percentile(latencies, 0.5);
  f.p99_us = percentile(latencies, 0.99);
  f.fences = each(medium.fences);
  f.lines = each(medium.flushed_lines + medium.streamed_lines);
  f.log_bytes = each(log_bytes);
  f.syncs = each(medium.syncs);
  f.aborts = each(aborts);
  f.whole = whole();
  f.medium = pool->describe_medium();
  return f;
}

ScratchSizes scratch_sizes(const ReplayProgram& program) {
  ScratchSizes sizes;
  const std::uint64_t rings = std::max<std::uint64_t>(program.threads.size(), 1);
  // A transaction is at most half a ring. Four of the largest fit into that half, so that no engine
  // waits for log space all the time.
  sizes.log_size = std::max<std::uint64_t>(
      64 << 20,
      std::min<std::uint64_t>(program.largest_log_bytes * 8 * rings, std::uint64_t{2} << 30));
  const std::uint64_t data = program.arena_bytes + program.block_bytes * 2 +
                             2 * (stray_budget + ready_budget) + (16 << 20);
  sizes.max_size = std::max(std::uint64_t{1} << 30, std::bit_ceil(data * 2));
  sizes.disk_bytes = sizes.log_size + data + sizes.max_size / 8192;
  return sizes;
}

Interrupts::Interrupts() {
  caught = 0;
  struct sigaction action = {};
  action.sa_handler = catch_signal;
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(s, &action, nullptr);
}
Interrupts::~Interrupts() {
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) std::signal(s, SIG_DFL);
}

}  // namespace perdure::tool
