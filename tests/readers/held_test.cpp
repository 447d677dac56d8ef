// SPDX-License-Identifier: BSD-3-Clause
//
// What it costs a reader process to stay in one state while the pool is written. Its memory is
// counted: what it keeps of the log must not be copied again and again.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <new>

#include "tests/readers/bank.hpp"
#include "tests/readers/process.hpp"
#include "tests/support/comes.hpp"

namespace {
std::atomic<std::uint64_t> allocated{0};  // bytes, by all threads
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  allocated += bytes;
  if (void* const p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  allocated += bytes;
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace perdure {
namespace {

TEST(HeldState, KeepsWhatIsWrittenMeanwhileWithoutCopyingItAgain) {
  constexpr std::uint64_t many = 8000;
  const std::string folder = testing::TempDir() + "readers_held_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/pool";
  const auto options = [](bool reads) {
    Options o;
    o.read_only = reads;
    o.medium = "emulated";
    o.creation.log_size = 1 << 20;
    o.readers.writer_patience = std::chrono::seconds(10);  // a slow machine is not the matter
    return o;
  };
  test::Process writer([&](test::Line& line) {
    auto pool = test::BankPool::open(path, options(false));
    test::open_bank(pool);
    for (std::uint64_t n = 0; line.receive(n);) {
      for (std::uint64_t i = 0; i < n; ++i)
        pool.update([](tx& tx, test::Bank& bank) { tx(bank.changes) = tx(bank.changes) + 1; });
      line.send(n);
    }
  });
  ASSERT_EQ(1U, writer.ask(1));
  auto pool = test::BankPool::open(path, options(true));
  const auto held = pool.snapshot();
  const std::uint64_t before = allocated;
  ASSERT_EQ(many, writer.ask(many));
  ASSERT_TRUE(test::comes([&] { return pool.stats().followed_records >= many; }));
  // About 100 bytes a transaction, and twice that as vectors grow.
  EXPECT_LE(allocated - before, many * 1000);
  std::uint64_t changes = 0;
  held.view(
      [&](rtx& tx, const test::Bank& bank) { EXPECT_EQ("", test::wrong_with(tx, bank, changes)); });
  EXPECT_EQ(1U, changes);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace perdure
