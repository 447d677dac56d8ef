// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/api/checked.hpp"

#include <stdexcept>
#include <string>
#include <unordered_set>

#include "perdure/api/walk.hpp"
#include "perdure/base/status.hpp"

namespace perdure {
namespace detail {
namespace {

// The audit of a B+-tree reads each word about 20 times.
constexpr std::uint64_t reads_per_word = 256;
// In bytes of stack below the walk's beginning; balanced trees take less than 50 KiB.
constexpr std::uintptr_t deepest = 512 << 10;

[[noreturn]] void wrong(const std::string& found, const std::string& expected,
                        const std::string& why) {
  throw error(failure(Code::corrupt, "", found, expected, why + ": restore the pool from a copy"));
}

}  // namespace

CheckedReads::CheckedReads(const std::byte* data, std::uint64_t bytes) noexcept
    : data_(reinterpret_cast<std::uintptr_t>(data)),
      bytes_(bytes),
      left_(reads_per_word * (bytes / 8)),
      stack_(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))) {}

std::uint64_t CheckedReads::read(const std::uint64_t* a) {
  expect(a, 8);
  std::uint64_t word;
  fetch(&word, a, 8);
  return word;
}

void CheckedReads::read_words(std::uint64_t* to, const std::uint64_t* a, std::uint64_t n) {
  expect(a, n * 8);
  fetch(to, a, n * 8);
}

void CheckedReads::expect(const void* a, std::uint64_t n) {
  const auto at = reinterpret_cast<std::uintptr_t>(a);
  if (at < data_ || at - data_ > bytes_ || n > bytes_ - (at - data_))
    wrong("a pointer to " + std::to_string(n) + " bytes at address " + std::to_string(at),
          "one into the data region, " + std::to_string(bytes_) + " bytes from address " +
              std::to_string(data_),
          "the data is damaged");
  if (left_-- == 0)
    wrong("more reads than the pool has words", "pointers that end",
          "the pointers lead in a circle");
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if ((here < stack_ ? stack_ - here : here - stack_) > deepest)
    wrong("a structure nested deeper than " + std::to_string(deepest) + " bytes of stack",
          "a sound one", "the pointers lead in a circle");
}

OwnedBlocks owned_by(const std::byte* data, std::uint64_t data_bytes, AuditRoot audit_root,
                     void* arg) {
  struct Circle {};
  OwnedBlocks found;
  std::unordered_set<std::uint64_t> entered;
  const std::function<bool(const void*, bool)> block = [&](const void* at, bool own) {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - data);
    if (!own && !entered.insert(offset).second) return false;
    if (found.offsets.size() > data_bytes / 16) throw Circle();
    found.offsets.push_back(offset);
    return true;
  };
  try {
    found.problems = audit_root(arg, block);
  } catch (const Circle&) {
    found.problems.emplace_back(
        "more blocks are owned than the pool can hold: damaged pointers that lead in a circle");
  } catch (const error& e) {
    if (e.code() != Code::corrupt) throw;
    found.problems.emplace_back(e.what());
  } catch (const std::length_error&) {
    found.problems.emplace_back("a length that no memory can hold: the data is damaged");
  }
  found.whole = found.problems.empty();
  return found;
}

}  // namespace detail
}  // namespace perdure
