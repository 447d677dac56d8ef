// SPDX-License-Identifier: BSD-3-Clause
//
// WrapSum: the sums that close a wrap (papers/softwrap/wrap_record.hpp), for its writer and for the
// scan.
//
// Two sums of 64 bits run over the wrap's lines, with keys of their own: `sum`, of which the close
// has 32 bits, and `check`, of which the last line has what space the entries and the close leave:
// 64 bits, 32, or none. Both are bound to pool, session, log, bucket and base by their seed, and
// each line is bound to its place in the bucket. Both are linear (base::Checksum::linear), so a
// scan that has read each line of a bucket once has the sums of any wrap as the difference of two
// prefixes. Order: the check is taken while its own bytes and the close's sum are 0; the sum then
// covers it. Thread safety: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "papers/names.hpp"
#include "perdure/base/checksum.hpp"

namespace perdure::papers::softwrap {

class WrapSum {
 public:
  /// The sums of the lines that were added, before they are mixed.
  struct Linear {
    std::uint64_t sum, check;
    friend constexpr Linear operator-(Linear a, Linear b) noexcept {
      return {a.sum - b.sum, a.check - b.check};
    }
  };

  /// Starts the sums at `first_line` of the bucket. `seed`: WrapPlace::seed.
  WrapSum(std::uint64_t seed, std::uint64_t first_line) noexcept
      : sum_(seed), check_(base::mix(seed)) {
    sum_.skip(first_line * pairs_a_line);
    check_.skip(first_line * pairs_a_line);
  }
  /// Adds the next line, which is not the wrap's last.
  void add(const std::byte* line) noexcept { add(words_of(line)); }
  [[nodiscard]] Linear linear() const noexcept { return {sum_.linear(), check_.linear()}; }

  /// Returns the sum with the wrap's last line, check included: the upper half of that line's last
  /// 8 bytes. `less`: what was added, but does not belong to the wrap.
  [[nodiscard]] std::uint32_t close(const std::byte* line, Linear less = {}) const noexcept {
    return static_cast<std::uint32_t>(base::mix((with(words_of(line)) - less).sum) >> 32);
  }
  /// Returns the check with the wrap's last line, for its `bytes` (8 or 4) from byte `at` on.
  [[nodiscard]] std::uint64_t check(const std::byte* line, std::size_t at, std::size_t bytes,
                                    Linear less = {}) const noexcept {
    Words words = words_of(line);
    std::memset(reinterpret_cast<std::byte*>(words.data()) + at, 0, bytes);
    return base::mix((with(words) - less).check) >> (8 - bytes) * 8;
  }

 private:
  static constexpr std::uint64_t pairs_a_line = 4;
  using Words = std::array<std::uint64_t, 2 * pairs_a_line>;
  [[nodiscard]] static Words words_of(const std::byte* line) noexcept {
    Words words;
    std::memcpy(words.data(), line, sizeof words);
    return words;
  }
  void add(const Words& words) noexcept {
    for (std::size_t i = 0; i < words.size(); i += 2) {
      sum_.add(words[i], words[i + 1]);
      check_.add(words[i], words[i + 1]);
    }
  }
  // Adds this line, with 0 as the close's sum.
  [[nodiscard]] Linear with(Words last) const noexcept {
    last.back() &= 0xffffffff;
    WrapSum all = *this;
    all.add(last);
    return all.linear();
  }
  base::Checksum sum_, check_;
};

/// The sum of logs of the first form: 32 bits, with keys counted from the wrap's first line.
class FirstWrapSum {
 public:
  FirstWrapSum(std::uint64_t seed, std::uint64_t first_line) noexcept : fold_(seed + first_line) {}
  void add(const std::byte* line) noexcept { add(fold_, line, ~std::uint64_t{0}); }
  [[nodiscard]] std::uint32_t close(const std::byte* line) const noexcept {
    base::Checksum fold = fold_;
    add(fold, line, 0xffffffff);
    return static_cast<std::uint32_t>(fold.value() >> 32);
  }

 private:
  static void add(base::Checksum& fold, const std::byte* line, std::uint64_t of_last) noexcept {
    std::uint64_t w[8];
    std::memcpy(w, line, sizeof w);
    w[7] &= of_last;
    for (int i = 0; i < 8; i += 2) fold.add(w[i], w[i + 1]);
  }
  base::Checksum fold_;
};

}  // namespace perdure::papers::softwrap
