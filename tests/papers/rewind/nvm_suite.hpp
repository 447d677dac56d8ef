// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the tests of REWIND's log structures: the versions of the pointer log, a small medium,
// and its exploration.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "papers/rewind/pointer_log.hpp"
#include "perdure/pool/address.hpp"
#include "testing/crash_medium.hpp"
#include "testing/explorer.hpp"

namespace perdure::test {

struct Version {
  const char* name;
  std::uint64_t cells, group;  // cells 0: simple
};
inline constexpr Version versions[] = {
    {"simple", 0, 1}, {"optimized", 5, 1}, {"batch2", 5, 2}, {"batch8", 20, 8}};
inline std::string version_name(const ::testing::TestParamInfo<Version>& info) {
  return info.param.name;
}

inline constexpr std::uint64_t log_bytes = 32 << 10, data_bytes = 64 << 10;
inline constexpr std::uint64_t root = 0, anchor = 64, arena_begin = 128, arena_bytes = 24 << 10;

/// A medium with an empty anchor and the root of an empty tree.
inline std::unique_ptr<medium::CrashMedium> make_medium() {
  medium::CrashOptions options;
  options.log_bytes = log_bytes;
  options.data_bytes = options.max_data_bytes = data_bytes;
  auto medium = medium::CrashMedium::make(options).value();
  papers::rewind::NvmStore nvm(*medium);
  nvm.start(root, 0);
  for (std::uint64_t word = 0; word < papers::rewind::Adll::anchor_words; ++word)
    nvm.start(anchor + word * 8, 0);
  nvm.fence();
  return medium;
}

/// An empty pointer log on a medium, or an existing one before its recovery.
struct LogRig {
  /// `at_once`: as BucketLog's.
  LogRig(medium::Medium& medium, const Version& v, std::uint64_t buckets = 8,
         std::uint64_t at_once = 0)
      : nvm(medium),
        arena(arena_begin, arena_bytes,
              v.cells == 0 ? 64 : papers::rewind::BucketLog::bucket_bytes(v.cells),
              v.cells == 0 ? 0 : buckets) {
    EXPECT_TRUE(medium.allocate(0, log_bytes).ok());  // an image's pages of zeros count as holes
    if (v.cells == 0)
      log = std::make_unique<papers::rewind::SimpleLog>(nvm, arena, anchor);
    else
      log = std::make_unique<papers::rewind::BucketLog>(nvm, arena, anchor, v.cells, v.group,
                                                        at_once);
  }
  papers::rewind::NvmStore nvm;
  papers::rewind::LogArena arena;
  std::unique_ptr<papers::rewind::PointerLog> log;
};

/// Explores every power cut since `image` was taken.
inline crash::Counts explore(medium::CrashMedium& medium, crash::Image& image,
                             crash::Subject& subject, crash::Model model) {
  const std::uint8_t uuid[16] = {9};
  // The address is free again at once.
  const std::uint64_t base = pool::AddressRange::choose(uuid, data_bytes, "log").value().base();
  auto arena = crash::Arena::make({log_bytes, data_bytes, base}).value();
  crash::ExploreOptions how;
  how.model = model;
  crash::Seen seen;
  crash::Explorer explorer(*arena, image, subject, how, seen);
  explorer.run(medium.end_trace());
  EXPECT_EQ("", explorer.failure());
  EXPECT_EQ(2U, explorer.counts().deepest);
  return explorer.counts();
}

}  // namespace perdure::test
