// SPDX-License-Identifier: BSD-3-Clause
//
// CheckedTransaction: a view's transaction whose reads never leave the pool, for walks over data
// that may be damaged (Pool::check, Pool::checked_view). A walk sees a perdure::rtx, so it is
// compiled once, whatever the pool's engine is.
//
// Every address is checked before it is read: it must be a word of the data region. A walk that
// reads more than sound data could ask for, or that goes deeper than sound data could lead, follows
// damaged pointers in a circle. Each of these ends it with error(corrupt).
// Thread safety: that of the transaction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perdure/api/named_tx.hpp"

namespace perdure::detail {

/// The checks, over any transaction.
class CheckedReads : public engine::DynamicReads {
 public:
  [[nodiscard]] std::uint64_t read(const std::uint64_t* a) final;
  void read_words(std::uint64_t* to, const std::uint64_t* a, std::uint64_t n) final;
  /// Call this before reading the n bytes from `a` on: throws error(corrupt) where they are not all
  /// in the data region.
  void expect(const void* a, std::uint64_t n) final;

 protected:
  /// `data`: the address at which the data region, `bytes` long, is mapped.
  CheckedReads(const std::byte* data, std::uint64_t bytes) noexcept;
  ~CheckedReads() = default;
  /// Reads n bytes of the data region.
  virtual void fetch(void* to, const void* from, std::size_t n) = 0;

 private:
  const std::uintptr_t data_;
  const std::uint64_t bytes_;
  std::uint64_t left_;
  const std::uintptr_t stack_;
};

/// The checks over a transaction of type TxT.
template <class TxT>
class CheckedTransaction final : public CheckedReads {
 public:
  /// `data`: the address at which the data region, `bytes` long, is mapped.
  CheckedTransaction(TxT& tx, const std::byte* data, std::uint64_t bytes) noexcept
      : CheckedReads(data, bytes), tx_(tx) {}

 private:
  void fetch(void* to, const void* from, std::size_t n) override { tx_.read_bytes(to, from, n); }
  TxT& tx_;
};

}  // namespace perdure::detail
