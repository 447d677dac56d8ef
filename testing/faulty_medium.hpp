// SPDX-License-Identifier: BSD-3-Clause
//
// FaultyMedium: passes all calls to another medium, and makes those calls fail that a test selects.
//
// A fence that is made to fail does not reach the inner medium, so nothing that it should have
// covered becomes durable; from then on the medium is poisoned as a real one is (LAW-9). An append
// that is made to fail loses its bytes, and the next fence reports it. Growth or an allocation that
// is made to fail changes nothing and poisons nothing; an allocation of pages that are allocated
// already does not count as a call. Thread safety: as the inner medium; plan faults while no other
// thread uses it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "perdure/medium/medium.hpp"
#include "perdure/medium/poison.hpp"

namespace perdure::medium {

class FaultyMedium final : public Medium {
 public:
  enum class Call : std::uint8_t {
    fence,
    append,
    grow,
    flush_all,
    map_view,
    map_ring,
    allocate,
    drop_copies
  };
  static constexpr std::uint64_t never = ~0ULL;

  explicit FaultyMedium(std::unique_ptr<Medium> inner);

  /// The nth call of this kind from now on (1 = the next) fails as a system call with `err` would;
  /// with `and_later` all calls after it fail too.
  void fail(Call call, std::uint64_t nth, int err, bool and_later = false) noexcept;
  /// The number of such calls since the last fail() for this kind, or ever.
  [[nodiscard]] std::uint64_t calls(Call call) const noexcept;
  [[nodiscard]] Medium& inner() noexcept { return *inner_; }
  /// What sync_ns() says from now on.
  void set_sync_ns(std::uint64_t ns) noexcept { sync_ns_ = ns; }

  std::string_view kind() const noexcept override { return inner_->kind(); }
  std::string describe() const override { return inner_->describe() + " (with faults)"; }
  void store(std::uint64_t offset, const void* src, std::size_t n) noexcept override {
    inner_->store(offset, src, n);
  }
  void stream(std::uint64_t offset, const void* src, std::size_t n) noexcept override {
    inner_->stream(offset, src, n);
  }
  void flush(std::uint64_t offset, std::size_t n) noexcept override { inner_->flush(offset, n); }
  Status fence() noexcept override;
  Status flush_all() noexcept override;
  Status usable() const override {
    Status s = poison_.check();
    return s.ok() ? inner_->usable() : s;
  }
  Result<RingMap> map_ring(std::uint64_t offset, std::uint64_t bytes) override;
  void append(const RingMap& ring, std::uint64_t pos, const void* src,
              std::size_t n) noexcept override;
  Status allocate(std::uint64_t offset, std::uint64_t n) override;
  Status grow(std::uint64_t data_bytes) override;
  Status map_view(std::byte* address, std::uint64_t data_offset, std::uint64_t n,
                  ViewKind kind) override;
  [[nodiscard]] bool drop_copies(std::byte* address, std::uint64_t n) noexcept override;
  Counters counters() const noexcept override { return inner_->counters(); }
  std::uint64_t sync_ns() const noexcept override { return sync_ns_; }

 private:
  struct Plan {
    std::atomic<std::uint64_t> made{0}, nth{never};
    std::atomic<int> err{0};
    std::atomic<bool> and_later{false};
  };
  Plan& plan(Call call) noexcept { return plans_[static_cast<std::size_t>(call)]; }
  int strike(Call call) noexcept;  // counts the call; returns the errno to fail with, or 0
  Status injected(const char* what, int err) const;

  std::unique_ptr<Medium> inner_;
  std::array<Plan, 8> plans_;
  std::atomic<int> lost_append_{0};
  std::atomic<std::uint64_t> sync_ns_{0};
  Poison poison_;
};

}  // namespace perdure::medium
