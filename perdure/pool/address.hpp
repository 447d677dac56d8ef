// SPDX-License-Identifier: BSD-3-Clause
//
// Where in the address space a pool's view lies: chosen once, at creation, recorded in the header,
// and kept free for all of max_data_bytes.
//
// Pools hold plain pointers, so a view always returns to its base. Slots are as large as the pool
// may grow, rounded up to a power of two, in a range that the loader, the heap and the sanitizers
// leave alone; the pool's uuid selects the first slot to try. If the base is in use at opening, the
// error names what occupies it. A forked child has none of its parent's ranges, so it can open the
// pools that its parent closes; its copies of AddressRange objects own nothing. Thread safety:
// values; the system calls order themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "perdure/base/status.hpp"
#include "perdure/base/thread_slot.hpp"

namespace perdure::pool {

/// Reserved address space (nothing is mapped, nothing committed). The destructor gives it back with
/// everything that was mapped there since.
class AddressRange {
 public:
  AddressRange() noexcept = default;
  AddressRange(AddressRange&& o) noexcept
      : base_(std::exchange(o.base_, 0)), bytes_(std::exchange(o.bytes_, 0)), owner_(o.owner_) {}
  AddressRange& operator=(AddressRange&& o) noexcept {
    std::swap(base_, o.base_);
    std::swap(bytes_, o.bytes_);
    std::swap(owner_, o.owner_);
    return *this;
  }
  ~AddressRange();

  /// Reserves exactly this range for the pool `path`; the error `incompatible` names what occupies
  /// it.
  static Result<AddressRange> reserve(std::uint64_t base, std::uint64_t bytes,
                                      const std::string& path);
  /// Reserves a free slot, chosen by the uuid.
  static Result<AddressRange> choose(const std::uint8_t (&uuid)[16], std::uint64_t bytes,
                                     const std::string& path);

  [[nodiscard]] std::byte* begin() const noexcept { return reinterpret_cast<std::byte*>(base_); }
  [[nodiscard]] std::uint64_t base() const noexcept { return base_; }
  [[nodiscard]] explicit operator bool() const noexcept { return base_ != 0; }

 private:
  AddressRange(std::uint64_t base, std::uint64_t bytes) noexcept : base_(base), bytes_(bytes) {}
  std::uint64_t base_ = 0, bytes_ = 0;
  base::Owner owner_;
};

}  // namespace perdure::pool
