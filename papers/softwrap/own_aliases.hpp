// SPDX-License-Identifier: BSD-3-Clause
//
// OwnAliases: the aliases of one wrap with local aliasing (papers: SoftWrAP, MSST '15, section
// IV-D): words that it has stored, which no other wrap sees, discarded as it closes.
// Thread safety: it belongs to one transaction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "papers/names.hpp"
#include "perdure/tm/write_set.hpp"

namespace perdure::papers::softwrap {

class OwnAliases {
 public:
  OwnAliases() : words_(tm::PrivateWrites{}) {}

  [[nodiscard]] bool empty() const noexcept { return words_.empty(); }
  /// Gives the word's alias this value. Throws std::bad_alloc, unchanged.
  void put(std::uint64_t offset, std::uint64_t value) { words_.put(offset, value); }
  /// Returns whether the word has an alias, and its value.
  [[nodiscard]] bool find(std::uint64_t offset, std::uint64_t& value) const {
    return !words_.empty() && words_.find(offset, value);
  }
  /// Puts into values[i] the alias of word `offset` + 8 i, where it has one, for i < n.
  void over(std::uint64_t offset, std::uint64_t* values, std::uint64_t n) const {
    if (words_.empty()) return;
    for (std::uint64_t i = 0; i < n; ++i) (void)words_.find(offset + i * 8, values[i]);
  }
  /// Returns whether one of n words has an alias.
  [[nodiscard]] bool any_of(std::uint64_t offset, std::uint64_t n) const {
    std::uint64_t value = 0;
    for (std::uint64_t i = 0; i < n && !words_.empty(); ++i)
      if (words_.find(offset + i * 8, value)) return true;
    return false;
  }
  /// Calls f(offset, value) for each, in the order in which they were stored first.
  template <class F>
  void for_each(F&& f) const {
    for (const auto& e : words_.writes().entries) f(e.address, e.value);
  }
  [[nodiscard]] std::size_t size() const noexcept { return words_.writes().entries.size(); }
  void clear() noexcept {
    words_.clear();
    words_.writes().entries.clear();
  }

 private:
  tm::WriteSet<tm::PrivateWrites> words_;
};

}  // namespace perdure::papers::softwrap
