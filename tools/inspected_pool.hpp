// SPDX-License-Identifier: BSD-3-Clause
//
// InspectedPool: a pool of any program, opened to read its containers by its layout text
// (perdure/inspect). A pool that was not closed in order is recovered first. Not thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "perdure/inspect/source.hpp"
#include "perdure/inspect/walk.hpp"

namespace perdure {
class ErasedPool;
}

namespace perdure::tool {

struct PoolArguments;

class InspectedPool {
 public:
  /// Throws perdure::error.
  explicit InspectedPool(const PoolArguments& arguments);
  ~InspectedPool();
  InspectedPool(const InspectedPool&) = delete;
  InspectedPool& operator=(const InspectedPool&) = delete;

  /// Calls f in a read transaction, of which no read leaves the pool. This process is the only one
  /// that has the pool open for changes, and changes nothing: f runs once.
  void view(const std::function<void(inspect::Walker&, const inspect::Source&)>& f);
  [[nodiscard]] ErasedPool& pool() noexcept { return *pool_; }

 private:
  std::unique_ptr<ErasedPool> pool_;
};

}  // namespace perdure::tool
