// SPDX-License-Identifier: BSD-3-Clause
//
// CheckedTransaction: an engine's transaction whose reads never leave the pool, for walks over data
// that may be damaged (Pool::check, Pool::checked_view).
//
// Every address is checked before it is read: it must be a word of the data region. A walk that
// reads more than sound data could ask for, or that goes deeper than sound data could lead, follows
// damaged pointers in a circle. Each of these ends it with error(corrupt).
// Thread safety: that of the transaction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "perdure/api/tx.hpp"
#include "perdure/base/status.hpp"

namespace perdure::detail {

template <class TxT>
class CheckedTransaction {
 public:
  /// `data`: the address at which the data region, `bytes` long, is mapped.
  CheckedTransaction(TxT& tx, const std::byte* data, std::uint64_t bytes) noexcept
      : tx_(tx),
        data_(reinterpret_cast<std::uintptr_t>(data)),
        bytes_(bytes),
        left_(reads_per_word * (bytes / 8)),
        stack_(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))) {}

  [[nodiscard]] static constexpr bool direct() noexcept { return false; }
  [[nodiscard]] std::uint64_t read(const std::uint64_t* a) {
    expect(a, 8);
    std::uint64_t word;
    tx_.read_bytes(&word, a, 8);
    return word;
  }
  void read_words(std::uint64_t* to, const std::uint64_t* a, std::uint64_t n) {
    expect(a, n * 8);
    tx_.read_bytes(to, a, n * 8);
  }
  /// Call this before reading the n bytes from `a` on: throws error(corrupt) where they are not all
  /// in the data region.
  void expect(const void* a, std::uint64_t n) {
    const auto at = reinterpret_cast<std::uintptr_t>(a);
    if (at < data_ || at - data_ > bytes_ || n > bytes_ - (at - data_)) outside(at, n);
    if (left_-- == 0)
      wrong("more reads than the pool has words", "pointers that end",
            "the pointers lead in a circle");
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if ((here < stack_ ? stack_ - here : here - stack_) > deepest)
      wrong("a structure nested deeper than " + std::to_string(deepest) + " bytes of stack",
            "a sound one", "the pointers lead in a circle");
  }

 private:
  /// The audit of a B+-tree reads each word about 20 times.
  static constexpr std::uint64_t reads_per_word = 256;
  /// In bytes of stack below the walk's beginning; balanced trees take less than 50 KiB.
  static constexpr std::uintptr_t deepest = 512 << 10;

  [[noreturn]] void outside(std::uintptr_t at, std::uint64_t n) const {
    wrong("a pointer to " + std::to_string(n) + " bytes at address " + std::to_string(at),
          "one into the data region, " + std::to_string(bytes_) + " bytes from address " +
              std::to_string(data_),
          "the data is damaged");
  }
  [[noreturn]] static void wrong(const std::string& found, const std::string& expected,
                                 const std::string& why) {
    throw error(
        failure(Code::corrupt, "", found, expected, why + ": restore the pool from a copy"));
  }

  TxT& tx_;
  const std::uintptr_t data_;
  const std::uint64_t bytes_;
  std::uint64_t left_;
  const std::uintptr_t stack_;
};

}  // namespace perdure::detail
