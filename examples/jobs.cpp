// SPDX-License-Identifier: BSD-3-Clause
//
// jobs FILE [kill]: four workers take the jobs of a durable queue. Some jobs fail and are tried
// again, one in 50 always fails and becomes a dead letter, and one worker dies with a job, which is
// taken again when its lease has ended. With `kill` the process kills itself in the middle; run it
// again without: it does what was left.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>
#include <vector>

#include "examples/wait_for_job.hpp"

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return std::fprintf(stderr, "usage: jobs FILE [kill]\n"), 2;
  using namespace std::chrono_literals;
  try {
    jobs::Queue queue(argv[1], {.lease = 500ms, .retry_after = 20ms, .max_tries = 3});
    jobs::Waiting waiting(queue);
    std::printf("%llu jobs were left\n", static_cast<unsigned long long>(queue.counts().waiting));
    std::atomic<int> finished{0};
    const auto work = [&] {
      while (const auto job = waiting.take()) {
        const bool bad = job->id % 50 == 0 || (job->id % 20 == 0 && job->tries == 1);
        if (bad)
          waiting.fail(*job, "no answer");
        else if (waiting.finish(*job) && ++finished == 100 && argc == 3)
          std::raise(SIGKILL);
      }
    };
    std::vector<std::thread> workers;
    workers.emplace_back([&] { (void)waiting.take(); });  // it dies with its job
    for (int i = 0; i < 4; ++i) workers.emplace_back(work);
    for (int i = 0; i < 200; ++i) waiting.add("mail " + std::to_string(i));
    while (queue.counts().waiting != 0) std::this_thread::sleep_for(10ms);
    waiting.stop();
    for (auto& worker : workers) worker.join();
    const auto n = queue.counts();
    std::printf("%llu added = %llu done + %llu dead letters\n",
                static_cast<unsigned long long>(n.added), static_cast<unsigned long long>(n.done),
                static_cast<unsigned long long>(n.dead));
    return n.added == n.done + n.dead && n.dead >= n.added / 50 && queue.pool().check().ok() ? 0
                                                                                             : 1;
  } catch (const perdure::error& e) {
    return std::fprintf(stderr, "jobs: %s\n", e.what()), 1;
  }
}
