// SPDX-License-Identifier: BSD-3-Clause
//
// Arena: memory for one root object and its blocks, which a test may damage at random.
//
// As in a pool, a read within the arena succeeds whatever lies there, and one outside it is
// error(corrupt). ArenaTx is the update that fills it, ArenaReader the reader over it. Nothing is
// freed.
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "perdure/base/status.hpp"
#include "perdure/value/access.hpp"
#include "tests/container/field_access.hpp"

namespace perdure::test {

class Arena {
 public:
  static constexpr std::size_t bytes = std::size_t{1} << 19;
  Arena() : memory_(std::make_unique<std::byte[]>(bytes + 64)) {}

  [[nodiscard]] std::byte* data() const {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory_.get()) + 63) &
                                        ~std::uintptr_t{63});
  }
  [[nodiscard]] std::size_t used() const { return used_; }
  [[nodiscard]] bool holds(const void* from, std::size_t n) const {
    const auto at = reinterpret_cast<std::uintptr_t>(from);
    const auto begin = reinterpret_cast<std::uintptr_t>(data());
    return at >= begin && at - begin <= bytes && n <= bytes - (at - begin);
  }
  std::byte* add(std::size_t n) {
    used_ = (used_ + 63) / 64 * 64;
    if (n > bytes - used_) throw std::length_error("the arena is full");
    std::byte* const block = data() + used_;
    used_ += n;
    ++blocks;
    return block;
  }
  std::size_t blocks = 0;  ///< added and not freed

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t used_ = 0;
};

class ArenaTx : public FieldReads<ArenaTx>, public FieldWrites<ArenaTx> {
 public:
  static constexpr bool read_only = false;
  explicit ArenaTx(Arena& arena) : arena_(arena) {}

  void read_bytes(void* to, const void* from, std::size_t n) { std::memcpy(to, from, n); }
  void write_bytes(void* to, const void* from, std::size_t n) {
    if (!arena_.holds(to, n)) throw std::logic_error("a write outside the arena");
    if (n != 0) std::memcpy(to, from, n);
  }
  std::byte* alloc(std::size_t n) { return arena_.add(n); }
  void free(void*) { --arena_.blocks; }

 private:
  Arena& arena_;
};

class ArenaReader final : public value::Reader {
 public:
  explicit ArenaReader(const Arena& arena) : arena_(arena) {}
  void read_bytes(void* to, const void* from, std::size_t n) override {
    expect(from, n);
    if (n != 0) std::memcpy(to, from, n);
  }
  void expect(const void* from, std::size_t n) override {
    if (!arena_.holds(from, n)) throw error(Status(Code::corrupt, "outside the arena"));
  }

 private:
  const Arena& arena_;
};

}  // namespace perdure::test
