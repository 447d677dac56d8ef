// SPDX-License-Identifier: BSD-3-Clause
//
// KillingMedium: passes every call on to another medium, and kills the process (SIGKILL) inside its
// n-th call.
//
// A store, a stream or an append that it interrupts has done a part of its work: a prefix of its
// words or lines. It therefore reaches the instants between two stores of a checkpoint, a recovery
// or a header, which are too short for a clock, and reaches them again with the same n.
// Thread safety: as the inner medium; calls of all threads count together.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "perdure/medium/medium.hpp"

namespace perdure::kill {

class KillingMedium final : public medium::Medium {
 public:
  /// Kills in the n-th call from now on; 0: never.
  KillingMedium(std::unique_ptr<medium::Medium> inner, std::uint64_t nth)
      : inner_(std::move(inner)), nth_(nth) {
    path_ = inner_->path();
    log_ = const_cast<std::byte*>(inner_->at(0));
    data_ = const_cast<std::byte*>(inner_->data());
    log_bytes_ = inner_->log_bytes();
    // No other thread sees this object yet.
    data_bytes_.store(inner_->data_bytes(), std::memory_order_relaxed);
    max_data_bytes_ = inner_->max_data_bytes();
    append_unit_ = inner_->append_unit();
    fence_is_sync_ = inner_->fence_is_sync();
    read_only_ = inner_->read_only();
    pages_ = inner_->pages();
  }

  /// The same, set later.
  void arm(std::uint64_t nth) noexcept {
    made_.store(0, std::memory_order_relaxed);
    nth_.store(nth, std::memory_order_relaxed);
  }

  std::string_view kind() const noexcept override { return inner_->kind(); }
  std::string describe() const override { return inner_->describe() + " (that kills)"; }
  void store(std::uint64_t offset, const void* src, std::size_t n) noexcept override {
    if (now()) inner_->store(offset, src, n / 16 * 8), die();
    inner_->store(offset, src, n);
  }
  void stream(std::uint64_t offset, const void* src, std::size_t n) noexcept override {
    if (now()) inner_->stream(offset, src, n / 128 * 64), die();
    inner_->stream(offset, src, n);
  }
  void flush(std::uint64_t offset, std::size_t n) noexcept override {
    if (now()) die();
    inner_->flush(offset, n);
  }
  Status fence() noexcept override {
    if (now()) die();
    return inner_->fence();
  }
  Status flush_all() noexcept override {
    if (now()) die();
    return inner_->flush_all();
  }
  Result<medium::RingMap> map_ring(std::uint64_t offset, std::uint64_t bytes) override {
    return inner_->map_ring(offset, bytes);
  }
  void append(const medium::RingMap& ring, std::uint64_t pos, const void* src,
              std::size_t n) noexcept override {
    if (now()) inner_->append(ring, pos, src, n / 128 * 64), die();
    inner_->append(ring, pos, src, n);
  }
  Status allocate(std::uint64_t offset, std::uint64_t n) override {
    if (allocated(offset, n)) return {};
    if (now()) die();
    Status s = inner_->allocate(offset, n);
    if (now()) die();
    return s;
  }
  Status grow(std::uint64_t data_bytes) override {
    if (now()) die();
    Status s = inner_->grow(data_bytes);
    // pairs with the acquire in data_bytes()
    data_bytes_.store(inner_->data_bytes(), std::memory_order_release);
    if (now()) die();
    return s;
  }
  Status map_view(std::byte* address, std::uint64_t data_offset, std::uint64_t n,
                  medium::ViewKind kind) override {
    return inner_->map_view(address, data_offset, n, kind);
  }
  medium::Counters counters() const noexcept override { return inner_->counters(); }

 private:
  bool now() noexcept {
    return made_.fetch_add(1, std::memory_order_relaxed) + 1 ==
           nth_.load(std::memory_order_relaxed);
  }
  [[noreturn]] static void die() noexcept {
    for (;;) ::kill(::getpid(), SIGKILL);
  }

  std::unique_ptr<medium::Medium> inner_;
  std::atomic<std::uint64_t> nth_, made_{0};
};

}  // namespace perdure::kill
