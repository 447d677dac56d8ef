// SPDX-License-Identifier: BSD-3-Clause
//
// A pool's file that was copied piece by piece while the program wrote to it. No such copy can be
// made sound; it must be refused, or its check must report what is wrong, and nothing may crash on
// it. A copy of a pool that is closed, or whose program was killed, is as good as the pool.
#include "faults.hpp"

namespace perdure::faults {
namespace {

class Copy : public ::testing::TestWithParam<Case> {
 protected:
  const Scratch scratch{GetParam().medium != "file"};
  const std::string path = scratch.path(), copy = scratch.path("copy");

  /// Copies the file from its beginning, with `steps` updates of the live pool after each piece.
  void copy_beside_updates(TestPool& pool, std::uint64_t& n, std::uint64_t steps) {
    constexpr std::size_t piece = 32 << 10;
    std::ifstream in(path, std::ios::binary);
    std::ofstream out(copy, std::ios::binary | std::ios::trunc);
    std::vector<char> buffer(piece);
    for (;;) {
      in.read(buffer.data(), piece);
      if (in.gcount() == 0) return;
      out.write(buffer.data(), in.gcount());
      for (std::uint64_t i = 0; i < steps; ++i)
        pool.update([&](auto& tx, Root& root) { step(tx, root, n + 1); }), ++n;
    }
  }
};

TEST_P(Copy, OfALivePoolIsRefused) {
  std::uint64_t n = 0;
  {
    auto pool = TestPool::open(path, small(GetParam()));
    for (; n < 50; ++n) pool.update([&](auto& tx, Root& root) { step(tx, root, n + 1); });
    copy_beside_updates(pool, n, GetParam().medium == "file" ? 8 : 30);
  }
  ASSERT_GT(n, 400U);
  auto opened = TestPool::try_open(copy, small(GetParam()));
  const bool records = engine::find_instance(GetParam().engine)->ring_records;
  if (!opened.ok()) {
    EXPECT_EQ(Code::corrupt, opened.code()) << opened.status().message();
    if (records) {
      EXPECT_NE(std::string::npos, opened.status().message().find("copied while a program wrote"))
          << opened.status().message();
    }
    return;
  }
  EXPECT_FALSE(records) << "opened, though its log has gone round since its header was read";
  const CheckReport report = opened->check();  // whatever its result, it returns
  std::printf("[          ] opened; check() has %zu complaints\n", report.problems.size());
}

TEST_P(Copy, OfAPoolWhoseProgramWasKilledIsTheSamePool) {
  ASSERT_EQ(0, in_child([&] {
              // It is never closed.
              auto* const pool = new TestPool(TestPool::open(path, small(GetParam())));
              for (std::uint64_t n = 1; n <= 2000; ++n)
                pool->update([&](auto& tx, Root& root) { step(tx, root, n); });
              if (GetParam().durability == async) pool->checkpoint();
            }));
  write_all(copy, read_all(path));
  auto pool = TestPool::open(copy, small(GetParam()));
  EXPECT_EQ(2000U, steps_in(pool));
  expect_sound(pool);
}

INSTANTIATE_TEST_SUITE_P(Engines, Copy, ::testing::ValuesIn(durable_cases()), CaseName());

}  // namespace
}  // namespace perdure::faults
