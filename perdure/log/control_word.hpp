// SPDX-License-Identifier: BSD-3-Clause
//
// ControlWord: a 64-bit word that says how to read a log. It holds a 48-bit value and a 16-bit
// check, which is bound to the pool, the log and the word's own place. One aligned store writes
// both, so a crash leaves the old word or the new one (MEDIUM-1), and a word that fails its check
// is damage (LAW-10).
//
// There are two forms, which a log's first words tell apart (docs/format.md, "Log forms"):
//   first     The check is a hash. One flip in about 65,000 is not detected.
//   checked   The check is the top of a product. Every single flip is detected, in the value or in
//             the check, whatever the word is, zero included.
// Proof for `checked`: a flip of bit i < 48 adds d = 2^i * factor or its negative, modulo 2^64, to
// value * factor. The top 16 bits then change by top16(d), plus a carry of 0 or 1 from below; they
// stay the same only if top16(d) is 0 or 0xffff, which `no_flip_is_lost` excludes for every i when
// this file is compiled. (The negative has the complement for its top.) A flip of the check leaves
// the value's check as it was. Of other damage 1 word in 65,536 is not detected.
// Thread safety: plain values and functions.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "perdure/base/checksum.hpp"
#include "perdure/base/status.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::log {

/// How a log's own words and sums are written.
enum class LogForm : std::uint8_t { first, checked };

namespace control_word {
inline constexpr unsigned value_bits = 48;
inline constexpr std::uint64_t factor = 0x9e3779b97f4a7c15ULL;
[[nodiscard]] constexpr bool no_flip_is_lost() noexcept {
  for (unsigned i = 0; i < value_bits; ++i) {
    const std::uint64_t top = (factor << i) >> value_bits;
    if (top == 0 || top == 0xffff) return false;
  }
  return true;
}
static_assert(no_flip_is_lost());
}  // namespace control_word

struct ControlWord {
  static constexpr unsigned value_bits = control_word::value_bits;
  static constexpr std::uint64_t limit = std::uint64_t{1} << value_bits;

  /// Makes a word. `identity` is that of the pool and the log, `place` is the word's place in what
  /// the identity covers, `value` is below `limit`.
  [[nodiscard]] static std::uint64_t make(std::uint64_t identity, std::uint64_t place,
                                          std::uint64_t value,
                                          LogForm form = LogForm::checked) noexcept {
    if (__builtin_expect(form == LogForm::first, 0)) {
      base::Checksum fold(identity);
      fold.add(value, place + 1);
      return value | fold.value() >> value_bits << value_bits;
    }
    const std::uint64_t mask = base::mix(identity + (place + 1) * control_word::factor);
    return value | (value * control_word::factor ^ mask) >> value_bits << value_bits;
  }
  [[nodiscard]] static constexpr std::uint64_t value(std::uint64_t word) noexcept {
    return word & (limit - 1);
  }
  struct Placed {
    std::uint64_t place, word;
  };
  /// Returns the form of a log with these words. It is `first` only where all of them have that
  /// form, so that damage to one word of a checked log is never read by the rules of the other
  /// form.
  [[nodiscard]] static LogForm form_of(std::uint64_t identity,
                                       std::initializer_list<Placed> words) noexcept {
    for (const Placed& p : words)
      // mutant: control-word-form-of-all
      if (!whole(identity, p.place, p.word, LogForm::first)) return LogForm::checked;
    return LogForm::first;
  }
  [[nodiscard]] static bool whole(std::uint64_t identity, std::uint64_t place, std::uint64_t word,
                                  LogForm form = LogForm::checked) noexcept {
    return word == make(identity, place, value(word), form);
  }

  /// Call this before a log is created anew. If the word `at` bytes from `offset`, which identifies
  /// the log, does not have the checked form, it is set to 0 durably. Otherwise a crash could leave
  /// words of both forms.
  static Status forget_other_form(medium::Medium& medium, std::uint64_t offset,
                                  std::uint64_t identity, std::uint64_t at) noexcept {
    const std::uint64_t word = *reinterpret_cast<const std::uint64_t*>(medium.at(offset + at)),
                        none = 0;
    if (word == none || whole(identity, at, word)) return {};
    medium.store(offset + at, &none, 8);
    medium.flush(offset + at, 8);
    // 0 means "no log". It is durable before any other word of the log changes its form.
    // mutant: control-word-forget-fence, call control-word-forget-fence
    return medium.fence();
  }
};

}  // namespace perdure::log
