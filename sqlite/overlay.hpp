// SPDX-License-Identifier: BSD-3-Clause
//
// Overlay: the part of design B that does not depend on where the database lies. What SQLite writes
// stays in DRAM, in an overlay of whole blocks, until sync() makes all of it one transaction; its
// rollback journal stays in DRAM, too.
// Thread safety: store.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "sqlite/blocks.hpp"
#include "sqlite/dram_file.hpp"
#include "sqlite/store.hpp"

namespace perdure::sqlite {

class Overlay : public Store {
 public:
  [[nodiscard]] std::uint64_t size() const noexcept override { return size_; }
  std::uint64_t read(std::uint64_t offset, void* to, std::uint64_t n) override;
  void write(std::uint64_t offset, const void* from, std::uint64_t n) override;
  void truncate(std::uint64_t bytes) override;
  void discard() noexcept override;
  File* journal(bool make) override;
  void remove_journal() override { journaled_.store(false, std::memory_order_relaxed); }
  [[nodiscard]] Design design() const noexcept override { return Design::b; }

 protected:
  using Store::Store;
  using Bytes = std::array<std::byte, block_bytes>;
  /// Reads n bytes of block `number` as they were committed, from its byte `skip` on.
  virtual void load(std::uint64_t number, std::uint64_t skip, std::byte* to, std::uint64_t n) = 0;

  std::map<std::uint64_t, std::unique_ptr<Bytes>> overlay_;  // by the block's number
  std::uint64_t size_ = 0, committed_ = 0;                   // of the database, in bytes

 private:
  Bytes& overlaid(std::uint64_t number);

  DramFile journal_;
  std::atomic<bool> journaled_{false};  // other connections read it, too
};

}  // namespace perdure::sqlite
