// SPDX-License-Identifier: BSD-3-Clause
//
// Pool::trim() on every engine: what it gives back, what it leaves alone, what it refuses.
#include "tests/engine/trim_blocks.hpp"

namespace perdure::test {
namespace {

std::uint64_t chunks_with_blocks(const medium::Medium& m) {
  std::uint64_t n = 0;
  for (std::uint64_t at = 0; at < m.data_bytes(); at += pool::chunk_bytes)
    n += m.allocated_end(m.log_bytes() + at, pool::chunk_bytes) != 0 ? 1 : 0;
  return n;
}

class Trims : public EngineTest {};
ENGINE_SUITE(Trims, durable_ones);

TEST_P(Trims, GiveBackWhatIsFreeAndItIsUsedAgain) {
  const Shape shape;
  auto rig = open_rig<Blocks>(GetParam(), shape);
  auto& pool = rig.pool;
  // Whole chunks, spans of one chunk, and spans of several.
  const auto bytes_of = [](std::size_t i) -> std::uint64_t {
    return i % 3 == 0 ? 150 << 10 : i % 3 == 1 ? 3000 : 8000;
  };
  const auto fill = [&](std::size_t from, std::size_t step) {
    for (std::size_t i = from; i < slots; i += step)
      pool.update([&](auto& tx, Blocks& r) { make(tx, r.slot[i], bytes_of(i), 1000 * (i + 1)); });
  };
  const auto expect_sound = [&](auto& p) {
    p.view([&](auto& tx, const Blocks& r) {
      for (std::size_t i = 0; i < slots; ++i) EXPECT_TRUE(sound(tx, r.slot[i])) << i;
    });
    const CheckReport check = p.check();
    EXPECT_TRUE(check.ok()) << check.problems.front();
  };
  fill(0, 1);
  const std::uint64_t used = pool.stats().heap_used;
  // All small blocks, and every second large one.
  for (std::size_t i = 0; i < slots; ++i)
    if (i % 3 != 0 || i % 2 != 0) pool.update([&](auto& tx, Blocks& r) { drop(tx, r.slot[i]); });
  const std::uint64_t left = pool.stats().heap_used, before = chunks_with_blocks(*rig.medium);
  const std::uint64_t bytes = trim_all(pool);
  // 4 large blocks of 3 chunks, a span of one chunk and one of 2.
  EXPECT_GE(bytes, (4 * 3 + 3) * pool::chunk_bytes);
  EXPECT_LE(chunks_with_blocks(*rig.medium), before - bytes / pool::chunk_bytes);
  EXPECT_EQ(left, pool.stats().heap_used) << "what was cleared has no block";
  EXPECT_EQ(0U, trim_all(pool)) << "nothing is left";
  expect_sound(pool);

  for (std::size_t i = 0; i < slots; ++i)
    if (i % 3 != 0 || i % 2 != 0)
      pool.update([&](auto& tx, Blocks& r) { make(tx, r.slot[i], bytes_of(i), 7000 * (i + 1)); });
  EXPECT_EQ(used, pool.stats().heap_used);
  expect_sound(pool);
  for (std::size_t i = 0; i < slots; i += 2)
    pool.update([&](auto& tx, Blocks& r) { drop(tx, r.slot[i]); });
  EXPECT_GT(trim_all(pool), 0U);
  EXPECT_TRUE(pool.close().clean);

  auto second = opened_again(rig, GetParam(), shape);
  expect_sound(second.pool);
  // Empty spans of an earlier session are found, too.
  for (std::size_t i = 1; i < slots; i += 2)
    second.pool.update([&](auto& tx, Blocks& r) { drop(tx, r.slot[i]); });
  EXPECT_GT(trim_all(second.pool), 0U);
  expect_sound(second.pool);
}

TEST_P(Trims, AreRefusedInsideATransaction) {
  auto rig = open_rig<Blocks>(GetParam(), Shape());
  rig.pool.update([&](auto& tx, Blocks& r) { tx(r.version) = 1; });
  bool refused = false;
  rig.pool.view([&](auto&, const Blocks&) {
    try {
      (void)rig.pool.trim();
    } catch (const error& e) {
      refused = e.code() == Code::invalid;
    }
  });
  EXPECT_TRUE(refused);
}

// In a pool of an engine that makes nothing durable, a chunk that is free in memory may be in use
// in the file.
TEST(TrimOfVolatile, IsRefused) {
  for (const EngineInfo& e : engine::registered()) {
    if (is_durable(e) || !runs_here(e)) continue;
    auto rig = open_rig<Blocks>(e, Shape());
    rig.pool.update([](auto& tx, Blocks& r) { make(tx, r.slot[0], 200 << 10, 5); });
    rig.pool.update([](auto& tx, Blocks& r) { drop(tx, r.slot[0]); });
    try {
      (void)rig.pool.trim();
      ADD_FAILURE() << e.name;
    } catch (const error& refusal) {
      EXPECT_EQ(Code::unsupported, refusal.code()) << e.name;
    }
    rig.pool.update([](auto& tx, Blocks& r) { make(tx, r.slot[1], 200 << 10, 6); });
  }
}

}  // namespace
}  // namespace perdure::test
