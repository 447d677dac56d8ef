// SPDX-License-Identifier: BSD-3-Clause
//
// version_2::run: the common part of the three programs of version 2. They print what opening a
// pool would do, open it, or kill themselves while they open it.
// Thread safety: one thread.
#pragma once

#include <perdure.hpp>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace version_2 {

// Runs `NAME plan FILE`, which prints what opening would do; `NAME open FILE`, which calls
// use(options) to open the pool; or `NAME kill FILE`, which does the same and dies by SIGKILL when
// the first batch of rows is done.
template <class Root, class Use>
int run(int argc, char** argv, const std::vector<perdure::MigrationStep>& steps, Use use) {
  const std::string_view how = argc == 3 ? argv[1] : "";
  try {
    if (how == "plan") {
      const auto plan = perdure::migration_plan<Root>(argv[2], {.steps = steps}).value();
      for (const std::string& line : plan.changes) std::printf("%s\n", line.c_str());
      for (const std::string& line : plan.refusals) std::printf("refused: %s\n", line.c_str());
      return plan.refusals.empty() ? 0 : 1;
    }
    if (how != "open" && how != "kill")
      return std::fprintf(stderr, "usage: %s plan|open|kill FILE\n", argv[0]), 2;
    perdure::Options options;
    options.migrate.batch = 50;
    options.migrate.progress = [&](const std::string& table, std::uint64_t rows) {
      std::printf("%s: %llu rows\n", table.c_str(), static_cast<unsigned long long>(rows));
      if (how == "kill") std::fflush(stdout), std::raise(SIGKILL);
    };
    return use(options);
  } catch (const perdure::error& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
  }
}

}  // namespace version_2
