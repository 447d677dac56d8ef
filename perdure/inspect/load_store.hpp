// SPDX-License-Identifier: BSD-3-Clause
//
// LoadStore: the blocks of a pool that is being built, for Loader.
//
// No pointer of the pool leads to these blocks until the root object is written, which comes last.
// So each block may be written in a transaction of its own, and a large one in several.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>

#include "perdure/inspect/walk.hpp"
#include "perdure/value/access.hpp"

namespace perdure::inspect {

class LoadStore {
 public:
  LoadStore() = default;
  LoadStore(const LoadStore&) = delete;
  LoadStore& operator=(const LoadStore&) = delete;
  virtual ~LoadStore() = default;

  /// Allocates a block; its bytes are undefined. Throws error(full) and std::bad_alloc.
  [[nodiscard]] virtual Address alloc(std::uint64_t bytes) = 0;
  /// Writes bytes of a block. Throws what a transaction throws.
  virtual void write(Address to, const void* from, std::uint64_t n) = 0;
  /// Allocates a block with these bytes.
  [[nodiscard]] virtual Address add(const void* bytes, std::uint64_t n) = 0;
  /// Calls f with a reader of the blocks. f must not write.
  virtual void view(const std::function<void(value::Reader&)>& f) = 0;
  /// Reads bytes that were written.
  virtual void read(void* to, Address from, std::uint64_t n) = 0;
};

}  // namespace perdure::inspect
