// SPDX-License-Identifier: BSD-3-Clause
//
// jobs_v2 plan|open|kill FILE: version 2 of the job queue takes over a pool of version 1, and does
// the jobs that version 1 has left in it.
#include "examples/jobs_v2.hpp"

#include <cstdio>

#include "examples/version_2.hpp"
#include "examples/wait_for_job.hpp"

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  using jobs::v2::Root;
  return version_2::run<Root>(argc, argv, jobs::v2::steps(), [&](const perdure::Options& options) {
    jobs::v2::Queue queue(argv[2], options);
    const auto soon = jobs::now() + 1h;  // by then the leases of version 1 are over, too
    queue.add("bill", "of May", soon);
    const auto left = queue.counts();
    std::uint64_t mails = 0, bills = 0;
    while (const auto job = queue.take("mail", soon, 1min)) mails += queue.finish(*job);
    while (const auto job = queue.take("bill", soon, 1min)) bills += queue.finish(*job);
    const auto now = queue.counts();
    const bool right = now.waiting == 0 && now.added == now.done + now.dead &&
                       left.waiting == mails + bills && queue.pool().check().ok();
    std::printf("%s: %llu mails, %llu bill\n", right ? "done" : "WRONG",
                static_cast<unsigned long long>(mails), static_cast<unsigned long long>(bills));
    return right ? 0 : 1;
  });
}
