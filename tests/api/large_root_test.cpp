// SPDX-License-Identifier: BSD-3-Clause
//
// A root, and an object, that are larger than a thread's stack: the first opening and make() build
// them outside it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "perdure/perdure.hpp"

namespace perdure {
namespace {

constexpr std::size_t count = 4096;
using Part = p<std::array<std::uint64_t, 512>>;

struct Large {  // 16 MiB
  p<std::uint64_t> first{5};
  std::array<Part, count> parts;
  p<std::uint64_t> last{7};
};
struct Owner {
  ptr<Large> large;
};
struct Zeros {
  std::array<Part, count> parts;
};

struct Throws {
  static constexpr std::string_view layout_id = "throws";
  Throws() { throw std::runtime_error("no root"); }
  std::array<Part, count> parts;
};

template <class Tx>
void expect_first_values(Tx& tx, const Large& large) {
  EXPECT_EQ(5U, tx(large.first));
  EXPECT_EQ(7U, tx(large.last));
  for (const std::size_t i : {std::size_t{0}, count / 2, count - 1})
    EXPECT_EQ((std::array<std::uint64_t, 512>{}), tx(large.parts[i])) << i;
}

class LargeRoot : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "perdure-large-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    rlimit stack{};
    ASSERT_EQ(0, ::getrlimit(RLIMIT_STACK, &stack));
    stack.rlim_cur = std::min<rlim_t>(stack.rlim_cur, 8 << 20);  // also a stack that grows heeds it
    ASSERT_EQ(0, ::setrlimit(RLIMIT_STACK, &stack));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ + "/pool"; }
  static Options options(const char* medium) {
    Options o;
    o.medium = medium;
    o.creation.max_size = 256 << 20;
    return o;
  }

 private:
  std::string folder_;
};

TEST_F(LargeRoot, HasItsFirstValuesAndKeepsItsOwn) {
  for (const char* medium : {"file", "emulated"}) {
    {
      auto pool = Pool<Large>::open(path(), options(medium));
      pool.view([](auto& tx, const Large& root) { expect_first_values(tx, root); });
      pool.update([](auto& tx, Large& root) {
        tx(root.first) = 8;
        tx(root.parts[1]) = std::array<std::uint64_t, 512>{9};
      });
      EXPECT_TRUE(pool.check().problems.empty());
      pool.close();
    }
    auto pool = Pool<Large>::open(path(), options(medium));
    pool.view([](auto& tx, const Large& root) {
      EXPECT_EQ(8U, tx(root.first));
      EXPECT_EQ(7U, tx(root.last));
      EXPECT_EQ((std::array<std::uint64_t, 512>{9}), tx(root.parts[1]));
      EXPECT_EQ((std::array<std::uint64_t, 512>{}), tx(root.parts[2]));
    });
    pool.close();
    std::filesystem::remove(path());
  }
}

TEST_F(LargeRoot, MayBeOfZeros) {
  auto pool = Pool<Zeros>::open(path(), options("file"));
  pool.view([](auto& tx, const Zeros& root) {
    EXPECT_EQ((std::array<std::uint64_t, 512>{}), tx(root.parts[count - 1]));
  });
  EXPECT_EQ(0U, pool.stats().commits) << "nothing was stored";
}

TEST_F(LargeRoot, WhoseConstructorThrowsLeavesNoPool) {
  EXPECT_THROW((void)Pool<Throws>::open(path(), options("file")), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(LargeRoot, AnObjectThatIsMadeMayBeAsLarge) {
  {
    auto pool = Pool<Owner>::open(path(), options("file"));
    pool.update([](auto& tx, Owner& root) { tx(root.large) = perdure::make<Large>(tx); });
    pool.close();
  }
  auto pool = Pool<Owner>::open(path(), options("file"));
  pool.view([](auto& tx, const Owner& root) { expect_first_values(tx, *tx(root.large)); });
}

}  // namespace
}  // namespace perdure
