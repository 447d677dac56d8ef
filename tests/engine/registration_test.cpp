// SPDX-License-Identifier: BSD-3-Clause
//
// An engine that is registered after main() has begun, as register_engines() does for the papers,
// belongs to any_engine from the next opening on.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/api/pool.hpp"
#include "perdure/engine/dynamic_engine_over.hpp"
#include "perdure/engine/undo/instances.hpp"
#include "tests/medium/scratch.hpp"

namespace perdure {
namespace {

struct late : undo {
  static constexpr std::array<engine::InstanceName, 1> names = {{{"undo/late", type::name}}};
};

struct Root {
  p<std::uint64_t> value;
};

template <class List>
std::uint64_t stored_and_read(const std::string& path) {
  Options options;
  options.engine = "undo/late";
  options.creation.max_size = 64 << 20;
  options.creation.log_size = 1 << 20;
  auto pool = Pool<Root, List>::open(path, options);
  pool.update([](auto& tx, Root& root) { tx(root.value) = 7; });
  EXPECT_EQ(pool.engine_name(), "undo/late");
  return pool.view([](auto& tx, const Root& root) -> std::uint64_t { return tx(root.value); });
}

// There is one test, because a registration belongs to the process.
TEST(Registration, IsSeenByThePoolsThatAreOpenedAfterIt) {
  const medium::testing::Scratch scratch;
  const std::string path = scratch.path("pool");
  Options options;
  options.engine = "undo/late";
  const auto before = Pool<Root, engines<any_engine>>::try_open(path, options);
  ASSERT_FALSE(before.ok());
  EXPECT_EQ(before.code(), Code::incompatible) << before.status().message();

  engine::register_engines(engines<late>());
  EXPECT_EQ((stored_and_read<engines<any_engine>>(path)), 7U);
  EXPECT_EQ((stored_and_read<engines<shadow, any_engine>>(path)), 7U);
}

}  // namespace
}  // namespace perdure
