// SPDX-License-Identifier: BSD-3-Clause
//
// PoolPolicy<Instance, medium>: runs the container suite on a real pool. Pool::check() compares its
// blocks, and every pool is closed and opened again at the end of its test, when its root's
// containers must still be sound.
// If Instance is any_engine, the environment variable PERDURE_TEST_ENGINE names the engine.
//
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/api/pool.hpp"
#include "tests/container/suite.hpp"

namespace perdure::test {

struct Emulated {
  static constexpr const char* name = "emulated";
};
struct File {
  static constexpr const char* name = "file";
};

/// On a tmpfs if there is one: the suite tests containers, not disks.
inline std::string scratch_folder() {
  std::string folder =
      (::access("/dev/shm", W_OK) == 0 ? std::string("/dev/shm/") : ::testing::TempDir()) +
      "perdure-container-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) std::abort();
  return folder;
}

template <class Root, class Instance, class Medium>
class RealPool {
 public:
  static constexpr bool injects = false;
  using Real = perdure::Pool<Root, engines<Instance>>;

  RealPool() { open(); }
  ~RealPool() {
    if (!std::uncaught_exceptions()) {
      if (pool_->engine_name() != "volatile") {
        const CheckReport before = pool_->check();
        pool_->close();
        pool_.reset();
        open();
        const CheckReport after = pool_->check();
        EXPECT_TRUE(after.ok()) << after.problems.front();
        EXPECT_EQ(after.blocks, before.blocks);
      }
    }
    pool_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  template <class F>
  void update(F f) {
    pool_->update(f);
  }
  template <class F>
  auto view(F f) {
    return pool_->view(f);
  }
  std::string compare_blocks(const std::vector<const void*>&) {
    const CheckReport report = pool_->check();
    return report.ok() ? std::string() : report.problems.front();
  }

 private:
  void open() {
    Options options;
    if (const char* const engine = std::getenv("PERDURE_TEST_ENGINE");
        engine != nullptr && std::is_same_v<Instance, any_engine>)
      options.engine = engine;
    options.medium = Medium::name;
    options.creation.log_size = 128 << 20;  // REWIND logs 64 bytes or more per word
    options.creation.threads = 2;
    options.creation.max_size = 1 << 30;
    pool_ = std::make_unique<Real>(Real::open(folder_ + "/pool", options));
  }
  std::string folder_ = scratch_folder();
  std::unique_ptr<Real> pool_;
};

template <class Instance, class Medium = Emulated>
struct PoolPolicy {
  template <class Root>
  using Pool = RealPool<Root, Instance, Medium>;
  static constexpr int scale = 30;
};

/// For large values: some engines log 64 bytes or more per word.
template <class Instance>
struct SlowPoolPolicy : PoolPolicy<Instance> {
  static constexpr int scale = 8;
};

}  // namespace perdure::test
