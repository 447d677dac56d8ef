// SPDX-License-Identifier: BSD-3-Clause
//
// DramFile: design B's journal, in DRAM. SQLite reads it back for a ROLLBACK, or after a cache
// spill; after a crash there is nothing to roll back, because the pool has committed transactions
// only.
// Thread safety: the connection that holds SQLite's RESERVED lock uses it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "sqlite/store.hpp"

namespace perdure::sqlite {

class DramFile final : public File {
 public:
  [[nodiscard]] std::uint64_t size() const noexcept override { return bytes_.size(); }
  std::uint64_t read(std::uint64_t offset, void* to, std::uint64_t n) override {
    const std::uint64_t there = offset >= size() ? 0 : std::min(n, size() - offset);
    if (there != 0) std::memcpy(to, bytes_.data() + offset, there);
    std::memset(static_cast<std::byte*>(to) + there, 0, n - there);
    return there;
  }
  void write(std::uint64_t offset, const void* from, std::uint64_t n) override {
    if (bytes_.size() < offset + n) bytes_.resize(offset + n);
    std::memcpy(bytes_.data() + offset, from, n);
  }
  void truncate(std::uint64_t n) override { bytes_.resize(n); }
  void sync(Durability) override {}

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace perdure::sqlite
