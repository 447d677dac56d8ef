// SPDX-License-Identifier: BSD-3-Clause
//
// GuardedMemory: the log and the data region of a pool that was killed, each between ranges of
// address space that must not be accessed, to be recovered repeatedly with damage in it. The stores
// of recovery are counted, and undone for the next time.
// Thread safety: one thread.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "perdure/medium/file_handle.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/medium/words.hpp"

namespace perdure::faults {

/// A range of memory with nothing mapped for 4 GiB on either side.
class GuardedRange {
 public:
  GuardedRange(int fd, std::uint64_t offset, std::uint64_t bytes) : bytes_(bytes) {
    void* const space = ::mmap(nullptr, bytes + 2 * guard, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) throw std::bad_alloc();
    space_ = static_cast<std::byte*>(space);
    if (::mmap(at(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
               static_cast<off_t>(offset)) == MAP_FAILED)
      throw std::bad_alloc();
  }
  GuardedRange(const GuardedRange&) = delete;
  GuardedRange& operator=(const GuardedRange&) = delete;
  ~GuardedRange() { ::munmap(space_, bytes_ + 2 * guard); }
  [[nodiscard]] std::byte* at() const noexcept { return space_ + guard; }

 private:
  static constexpr std::uint64_t guard = 4ULL << 30;
  std::uint64_t bytes_;
  std::byte* space_ = nullptr;
};

class GuardedMemory {
 public:
  /// `image`: the log, then the data region.
  GuardedMemory(std::span<const std::byte> image, std::uint64_t log_bytes)
      : image_(image.begin(), image.end()),
        log_bytes_(log_bytes),
        memory_(medium::make_memory_file("perdure-guarded", image.size()).value()),
        log_(memory_.get(), 0, log_bytes),
        data_(memory_.get(), log_bytes, image.size() - log_bytes) {
    for (std::uint64_t line = 0; line < image_.size() / 64; ++line) touched_.push_back(line);
    restore();
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() {
    for (const auto& r : rings_) ::munmap(r.base, 2 * r.bytes);
  }

  /// Restores the image without damage; the previous medium must be destroyed.
  void restore() {
    for (const std::uint64_t line : touched_)
      std::memcpy(address(line * 64), &image_[line * 64], 64);
    touched_.clear();
    stores_ = outside_ = 0;
  }
  void flip(std::uint64_t offset, unsigned bit) {
    address(offset)[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    touched_.push_back(offset / 64);
  }
  /// Calls of store, stream and append since restore().
  [[nodiscard]] std::uint64_t stores() const noexcept { return stores_; }
  /// Calls with bytes outside log and data region, since restore(): they were not executed.
  [[nodiscard]] std::uint64_t outside() const noexcept { return outside_; }
  [[nodiscard]] const std::byte* data() const noexcept { return data_.at(); }
  [[nodiscard]] const std::vector<std::byte>& image() const noexcept { return image_; }
  /// Opens a medium on it. One at a time.
  [[nodiscard]] std::unique_ptr<medium::Medium> open() { return std::make_unique<Medium>(*this); }

 private:
  class Medium final : public medium::Medium {
   public:
    explicit Medium(GuardedMemory& memory) : memory_(memory) {
      path_ = "guarded";
      log_ = memory.log_.at();
      data_ = memory.data_.at();
      log_bytes_ = memory.log_bytes_;
      max_data_bytes_ = memory.image_.size() - log_bytes_;
      data_bytes_.store(max_data_bytes_, std::memory_order_relaxed);  // one thread
    }
    std::string_view kind() const noexcept override { return "guarded"; }
    std::string describe() const override { return "memory between guards"; }
    void store(std::uint64_t offset, const void* src, std::size_t n) noexcept override {
      write(offset, src, n);
    }
    void stream(std::uint64_t offset, const void* src, std::size_t n) noexcept override {
      write(offset, src, n);
    }
    void flush(std::uint64_t offset, std::size_t n) noexcept override { (void)inside(offset, n); }
    Status fence() noexcept override { return {}; }
    Status flush_all() noexcept override { return {}; }
    Result<medium::RingMap> map_ring(std::uint64_t offset, std::uint64_t bytes) override {
      for (const medium::RingMap& r : memory_.rings_)
        if (r.offset == offset && r.bytes == bytes) return r;
      void* const space =
          ::mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (space == MAP_FAILED) return system_failure(path_, "mmap", errno);
      auto* const base = static_cast<std::byte*>(space);
      for (const std::uint64_t half : {std::uint64_t{0}, bytes})
        if (::mmap(base + half, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, memory_.memory_.get(),
                   static_cast<off_t>(offset)) == MAP_FAILED)
          return system_failure(path_, "mmap", errno);
      memory_.rings_.push_back({base, offset, bytes});
      return memory_.rings_.back();
    }
    void append(const medium::RingMap& ring, std::uint64_t pos, const void* src,
                std::size_t n) noexcept override {
      for (std::size_t i = 0; i < n; i += 64)
        write(ring.offset + (pos + i) % ring.bytes, static_cast<const std::byte*>(src) + i, 64);
    }
    Status allocate(std::uint64_t offset, std::uint64_t n) override {
      (void)inside(offset, n);
      return {};
    }
    Status grow(std::uint64_t) override {
      return failure(Code::unsupported, path_, "growth", "a data region of the size it had");
    }
    Status map_view(std::byte*, std::uint64_t, std::uint64_t, medium::ViewKind) override {
      return failure(Code::unsupported, path_, "a view", "ViewPolicy::none");
    }

   private:
    bool inside(std::uint64_t offset, std::size_t n) const noexcept {
      const std::uint64_t end = offset < log_bytes_ ? log_bytes_ : memory_.image_.size();
      if (offset < end && n <= end - offset) return true;
      ++memory_.outside_;
      return false;
    }
    void write(std::uint64_t offset, const void* src, std::size_t n) noexcept {
      ++memory_.stores_;
      if (!inside(offset, n)) return;
      for (std::uint64_t line = offset / 64; line * 64 < offset + n; ++line)
        memory_.touched_.push_back(line);
      medium::copy_words(memory_.address(offset), src, n);
    }
    GuardedMemory& memory_;
  };

  [[nodiscard]] std::byte* address(std::uint64_t offset) const noexcept {
    return offset < log_bytes_ ? log_.at() + offset : data_.at() + (offset - log_bytes_);
  }

  const std::vector<std::byte> image_;
  const std::uint64_t log_bytes_;
  const medium::Descriptor memory_;
  const GuardedRange log_, data_;
  std::vector<medium::RingMap> rings_;
  std::vector<std::uint64_t> touched_;
  std::uint64_t stores_ = 0, outside_ = 0;
};

}  // namespace perdure::faults
