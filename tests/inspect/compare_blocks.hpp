// SPDX-License-Identifier: BSD-3-Clause
//
// compare(): the blocks and elements that a walk by layout finds, against those of the container.
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "perdure/container/vector.hpp"
#include "perdure/inspect/blocks.hpp"
#include "tests/inspect/dram_walk.hpp"

namespace perdure::test {

using inspect::Address;
using inspect::Kind;

enum class Colour : std::uint16_t { red };
struct Small {
  std::uint32_t a;
  std::uint32_t b;
  friend bool operator==(const Small&, const Small&) = default;
  friend bool operator<(const Small& x, const Small& y) { return x.b < y.b; }
};
struct Place {
  std::string town;
  std::vector<std::string> names{};
};
struct Flat {
  std::int16_t x;
  double y;
};
struct Fields {
  p<std::uint32_t> n;
  vector<std::string> words;
};

inline std::string word(std::uint64_t i) {
  return i % 5 == 0 ? std::string()
                    : std::string(i % 40, static_cast<char>('a' + i % 26)) + std::to_string(i);
}
/// A value of T made from a number; different numbers below 200 give different ones, mostly.
template <class T>
T of(std::uint64_t i) {
  if constexpr (std::is_same_v<T, std::string>)
    return word(i);
  else if constexpr (std::is_same_v<T, Small>)
    return {1, static_cast<std::uint32_t>(i)};
  else if constexpr (std::is_same_v<T, Place>)
    return {word(i), {word(i + 1), word(i + 2)}};
  else if constexpr (std::is_same_v<T, Flat>)
    return {static_cast<std::int16_t>(i), 0.5};
  else if constexpr (std::is_same_v<T, std::array<std::uint8_t, 5>>)
    return {static_cast<std::uint8_t>(i), 1};
  else if constexpr (std::is_same_v<T, std::array<std::uint64_t, 20>>)
    return {i, 1};
  else if constexpr (std::is_same_v<T, std::pair<std::int16_t, std::string>>)
    return {static_cast<std::int16_t>(i), word(i)};
  else if constexpr (std::is_same_v<T, std::tuple<std::string, std::uint8_t>>)
    return {word(i), static_cast<std::uint8_t>(i)};
  else if constexpr (std::is_same_v<T, std::optional<std::string>>)
    return i % 3 == 0 ? T() : T(word(i));
  else if constexpr (std::is_same_v<T, std::variant<std::uint8_t, std::string, Place>>)
    return i % 3 == 0 ? T(static_cast<std::uint8_t>(i)) : i % 3 == 1 ? T(word(i)) : T(of<Place>(i));
  else if constexpr (std::is_same_v<T, std::vector<std::optional<std::string>>>)
    return T(i % 4, word(i));
  else if constexpr (std::is_same_v<T, std::chrono::sys_seconds>)
    return T(std::chrono::seconds(i));
  else
    return static_cast<T>(i);
}

/// Compares what the block is said to have with what it has.
class Sizes final : public inspect::Visitor {
 public:
  explicit Sizes(DramHeap& heap) : heap_(heap) {}
  void block(Address at, std::uint64_t bytes) override {
    const auto found = heap_.blocks.find(reinterpret_cast<std::byte*>(at));
    ASSERT_NE(found, heap_.blocks.end());
    EXPECT_EQ(found->second.size, bytes);
  }
  bool entry(const inspect::Entry&) override {
    ++entries;
    return true;
  }
  void problem(const std::string& text) override { ADD_FAILURE() << text; }
  std::uint64_t entries = 0;

 private:
  DramHeap& heap_;
};

template <class C>
struct Holder {
  p<std::uint8_t> before;
  C x;
};

/// Fills a container by fill(tx, x, random number), 300 times, and compares after some of them.
template <class C, class Fill>
void compare(Fill fill, bool elements = true) {
  SCOPED_TRACE(C::layout_text());
  DramPool<Holder<C>> pool;
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    pool.update([&](DramTx& tx, Holder<C>& root) { fill(tx, root.x, random()); });
    if (i % 60 != 0 && i != 299) continue;
    in_layout(pool, [&](inspect::Walker& walker, const inspect::Tree& tree, Address root) {
      const inspect::Member& member = tree.root().parts[1];
      ASSERT_NE(member.type->kind, Kind::unknown);
      EXPECT_EQ(member.at, offsetof(Holder<C>, x));
      EXPECT_EQ(member.type->size, sizeof(C));
      Sizes sizes(pool.heap());
      walker.each(*member.type, root + member.at, sizes);
      if (elements) {
        EXPECT_EQ(sizes.entries, walker.count(*member.type, root + member.at));
      }
      const inspect::Blocks found = inspect::find_blocks(walker, tree.root(), root);
      EXPECT_TRUE(found.whole()) << (found.problems.empty() ? "" : found.problems.front());
      std::vector<const void*> blocks;
      for (const std::uint64_t at : found.offsets) blocks.push_back(reinterpret_cast<void*>(at));
      EXPECT_EQ(pool.compare_blocks(blocks), "");
    });
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace perdure::test
