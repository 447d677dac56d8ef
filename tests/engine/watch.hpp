// SPDX-License-Identifier: BSD-3-Clause
//
// WatchMedium: passes every call on to a recording medium, notifies a test of each write to the
// data region, or of each store, flush and fence, before it happens, and counts each thread's
// fences separately (an engine's own thread has its own).
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "perdure/base/thread_slot.hpp"
#include "testing/recording_medium.hpp"

namespace perdure::test {

class WatchMedium final : public medium::Medium {
 public:
  enum class Call { write, flush, fence, flush_all };
  using Each = std::function<void(Call call, std::uint64_t offset)>;
  using DataWrite = std::function<void(std::uint64_t offset, const void* src, std::size_t n)>;

  explicit WatchMedium(std::unique_ptr<medium::RecordingMedium> inner) : inner_(std::move(inner)) {
    path_ = inner_->path();
    log_ = const_cast<std::byte*>(inner_->at(0));
    data_ = const_cast<std::byte*>(inner_->data());
    log_bytes_ = inner_->log_bytes();
    data_bytes_.store(inner_->data_bytes(), std::memory_order_relaxed);
    max_data_bytes_ = inner_->max_data_bytes();
    append_unit_ = inner_->append_unit();
    fence_is_sync_ = inner_->fence_is_sync();
    read_only_ = inner_->read_only();
    pages_ = inner_->pages();
  }
  [[nodiscard]] medium::RecordingMedium& recording() noexcept { return *inner_; }
  /// Set this while no other thread uses the medium.
  void before_data_write(DataWrite f) { before_ = std::move(f); }
  /// The same for every call that changes what is stored, or durable, except for records that are
  /// appended to a ring. It may be set at any time, also while a thread of the pool uses it.
  void before_each(Each f) {
    auto set = f ? std::make_shared<const Each>(std::move(f)) : nullptr;
    const std::lock_guard lock(each_mutex_);
    each_.swap(set);
  }
  /// Fences of the calling thread so far.
  [[nodiscard]] std::uint64_t my_fences() const noexcept { return mine(fences_).load(); }
  [[nodiscard]] std::uint64_t my_streamed_lines() const noexcept { return mine(lines_).load(); }

  std::string_view kind() const noexcept override { return inner_->kind(); }
  std::string describe() const override { return inner_->describe(); }
  void store(std::uint64_t offset, const void* src, std::size_t n) noexcept override {
    watch(offset, src, n);
    inner_->store(offset, src, n);
  }
  void stream(std::uint64_t offset, const void* src, std::size_t n) noexcept override {
    watch(offset, src, n);
    mine(lines_) += n / 64;
    inner_->stream(offset, src, n);
  }
  void flush(std::uint64_t offset, std::size_t n) noexcept override {
    each(Call::flush, offset);
    inner_->flush(offset, n);
  }
  Status fence() noexcept override {
    each(Call::fence, 0);
    ++mine(fences_);
    return inner_->fence();
  }
  Status flush_all() noexcept override {
    each(Call::flush_all, 0);
    return inner_->flush_all();
  }
  Result<medium::RingMap> map_ring(std::uint64_t offset, std::uint64_t bytes) override {
    return inner_->map_ring(offset, bytes);
  }
  void append(const medium::RingMap& ring, std::uint64_t pos, const void* src,
              std::size_t n) noexcept override {
    mine(lines_) += n / 64;
    inner_->append(ring, pos, src, n);
  }
  Status allocate(std::uint64_t offset, std::uint64_t n) override {
    return inner_->allocate(offset, n);
  }
  Status grow(std::uint64_t data_bytes) override {
    Status s = inner_->grow(data_bytes);
    data_bytes_.store(inner_->data_bytes(), std::memory_order_release);
    return s;
  }
  Status map_view(std::byte* address, std::uint64_t data_offset, std::uint64_t n,
                  medium::ViewKind kind) override {
    return inner_->map_view(address, data_offset, n, kind);
  }
  [[nodiscard]] bool drop_copies(std::byte* address, std::uint64_t n) noexcept override {
    return inner_->drop_copies(address, n);
  }
  medium::Counters counters() const noexcept override { return inner_->counters(); }

 private:
  using PerThread = std::array<std::atomic<std::uint64_t>, base::slot_count>;
  static std::atomic<std::uint64_t>& mine(PerThread& all) noexcept {
    return all[static_cast<std::size_t>(base::thread_slot())];
  }
  static const std::atomic<std::uint64_t>& mine(const PerThread& all) noexcept {
    return all[static_cast<std::size_t>(base::thread_slot())];
  }
  void each(Call call, std::uint64_t offset) noexcept {
    std::shared_ptr<const Each> f;
    {
      const std::lock_guard lock(each_mutex_);  // not while it runs: it may stop its thread
      f = each_;
    }
    if (f) (*f)(call, offset);
  }
  void watch(std::uint64_t offset, const void* src, std::size_t n) noexcept {
    each(Call::write, offset);
    if (before_ && offset >= log_bytes_) before_(offset, src, n);
  }
  std::unique_ptr<medium::RecordingMedium> inner_;
  DataWrite before_;
  std::mutex each_mutex_;
  std::shared_ptr<const Each> each_;
  PerThread fences_{}, lines_{};
};

}  // namespace perdure::test
