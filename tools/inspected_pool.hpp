// SPDX-License-Identifier: BSD-3-Clause
//
// InspectedPool: a pool of any program, opened to read its containers by its layout text
// (perdure/inspect). A pool that another process writes is read beside it. One that was not closed
// in order is read as its recovery would leave it, or recovered first where its engine serves no
// readers. Not thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "perdure/inspect/source.hpp"
#include "perdure/inspect/walk.hpp"

namespace perdure {
class ErasedPool;
namespace engine {
class OpenSnapshot;
}
}  // namespace perdure

namespace perdure::tool {

struct PoolArguments;

class InspectedPool {
 public:
  /// Throws perdure::error.
  explicit InspectedPool(const PoolArguments& arguments);
  ~InspectedPool();
  InspectedPool(const InspectedPool&) = delete;
  InspectedPool& operator=(const InspectedPool&) = delete;

  /// Calls f in a read transaction, of which no read leaves the pool. f runs once. Where another
  /// process writes the pool, all calls see one state; error(expired) if it can't be kept.
  void view(const std::function<void(inspect::Walker&, const inspect::Source&)>& f);
  [[nodiscard]] ErasedPool& pool() noexcept { return *pool_; }
  /// The state that is kept; null where nobody can change the pool.
  [[nodiscard]] engine::OpenSnapshot* state() noexcept { return state_.get(); }

 private:
  std::unique_ptr<ErasedPool> pool_;
  std::shared_ptr<engine::OpenSnapshot> state_;
};

}  // namespace perdure::tool
