// SPDX-License-Identifier: BSD-3-Clause
//
// What an outside tool would see of a memory medium, with a stand-in for pmemcheck's header that
// counts: every line that the medium reports as durable was flushed inside an announced mapping,
// and fenced; nothing stays announced.
#include <gtest/gtest.h>
#include <valgrind/pmemcheck.h>

#include <cstdint>
#include <map>
#include <set>

#include "perdure/medium/medium.hpp"
#include "tests/medium/scratch.hpp"

namespace {

struct Seen {
  std::map<std::uintptr_t, std::size_t> mapped;
  std::set<std::uintptr_t> flushed, durable;  // lines
  unsigned fences = 0, strays = 0;
} seen;

}  // namespace

extern "C" {
void pmc_map(const void* at, size_t n) { seen.mapped[reinterpret_cast<std::uintptr_t>(at)] = n; }
void pmc_unmap(const void* at, size_t n) {
  const auto it = seen.mapped.find(reinterpret_cast<std::uintptr_t>(at));
  if (it == seen.mapped.end() || it->second != n)
    ++seen.strays;
  else
    seen.mapped.erase(it);
}
void pmc_flush(const void* at, size_t n) {
  const auto from = reinterpret_cast<std::uintptr_t>(at);
  auto it = seen.mapped.upper_bound(from);
  if (it == seen.mapped.begin() || (--it, from + n > it->first + it->second)) ++seen.strays;
  for (std::uintptr_t line = from / 64; line <= (from + n - 1) / 64; ++line)
    seen.flushed.insert(line);
}
void pmc_fence(void) {
  ++seen.fences;
  seen.durable.merge(seen.flushed);
  seen.flushed.clear();
}
}

namespace perdure::medium::testing {
namespace {

TEST(Pmemcheck, SeesEveryFlushAndFence) {
  const Scratch scratch;
  OpenMedium how;
  how.path = scratch.path("pool");
  how.kind = "emulated";
  how.create = true;
  how.log_bytes = how.data_bytes = how.max_data_bytes = region_align;
  {
    auto medium = open_medium(how).value();
    EXPECT_EQ(2U, seen.mapped.size());  // log and data region
    const auto line_of = [&](std::uint64_t offset) {
      return reinterpret_cast<std::uintptr_t>(medium->at(offset)) / 64;
    };
    const std::uint64_t words[16] = {1};
    medium->store(how.log_bytes + 640, words, 8);
    EXPECT_EQ(0U, seen.flushed.size());
    medium->flush(how.log_bytes + 640, 8);
    medium->stream(4096, words, 128);
    EXPECT_EQ(3U, seen.flushed.size());
    EXPECT_EQ(0U, seen.durable.size());
    ASSERT_TRUE(medium->fence().ok());
    EXPECT_EQ(1U, seen.fences);
    EXPECT_EQ(
        (std::set<std::uintptr_t>{line_of(how.log_bytes + 640), line_of(4096), line_of(4096 + 64)}),
        seen.durable);

    const auto ring = medium->map_ring(65536, 8192).value();
    EXPECT_EQ(3U, seen.mapped.size());
    seen.durable.clear();
    ASSERT_TRUE(medium->append_fence(ring, 8192 - 64, words, 128).ok());  // across the ring's end
    EXPECT_EQ(2U, seen.durable.size());
    EXPECT_EQ(2U, seen.fences);

    medium->store(how.log_bytes + 1280, words, 8);
    seen.durable.clear();
    ASSERT_TRUE(medium->flush_all().ok());
    EXPECT_TRUE(seen.durable.contains(line_of(how.log_bytes + 1280)));
  }
  EXPECT_EQ(0U, seen.mapped.size());
  EXPECT_EQ(0U, seen.strays);
}

}  // namespace
}  // namespace perdure::medium::testing
