// SPDX-License-Identifier: BSD-3-Clause
//
// Binding: a pool that plain code uses: what runs its transactions, and which addresses are its
// own. A PlainPool has one; blocks find it by the thread's choice, or as the only one there is.
// Thread safety: any thread may make all calls; the pool outlives the blocks on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "perdure/engine/dynamic_engine.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::plain {

class Binding {
 public:
  /// `runner`: of a pool whose engine was chosen when it was opened.
  Binding(engine::DynamicRunner& runner, pool::OpenPool& file, Durability durability);

  [[nodiscard]] engine::DynamicEngine::Implementation& engine() const noexcept { return engine_; }
  /// Of blocks that begin and commit by themselves.
  [[nodiscard]] Durability durability() const noexcept { return durability_; }
  [[nodiscard]] const pool::OpenPool& file() const noexcept { return file_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// The pool's addresses, as far as it may grow.
  [[nodiscard]] std::uintptr_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Where objects begin, from first() on; the heap's own structures lie below.
  [[nodiscard]] std::uint64_t objects() const noexcept { return objects_; }
  /// The bytes that the pool has now.
  [[nodiscard]] std::uint64_t data_bytes() const noexcept { return file_.data_bytes(); }

  /// From here on no block can begin on it.
  void end() noexcept;
  [[nodiscard]] bool ended() const noexcept { return ended_.load(std::memory_order_relaxed); }

 private:
  engine::DynamicEngine::Implementation& engine_;
  pool::OpenPool& file_;
  const std::string path_;  // of a pool that may be closed
  const Durability durability_;
  std::uintptr_t first_;
  std::uint64_t bytes_, objects_;
  std::atomic<bool> ended_{false};
};

/// A pool that no block finds: for run(). Throws std::bad_alloc, and error(read_only) of a pool
/// that is open for reading.
std::shared_ptr<Binding> make_binding(engine::DynamicRunner& runner, pool::OpenPool& file,
                                      Durability durability);
/// Makes a pool one that blocks find; one that is so already stays it. Throws as make_binding().
std::shared_ptr<Binding> bind(engine::DynamicRunner& runner, pool::OpenPool& file,
                              Durability durability);
/// The only pool that is bound; null where there are several, or none.
std::shared_ptr<Binding> only_binding();
/// How many are bound.
std::size_t bindings();
/// How often what is bound has changed; never 0.
std::uint64_t changes_of_bindings() noexcept;
/// Whether the address is another bound pool's.
bool in_other_pool(const void* at, const Binding& than) noexcept;

}  // namespace perdure::plain
