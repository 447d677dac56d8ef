// SPDX-License-Identifier: BSD-3-Clause
//
// The common part of the container suite: one seeded sequence of transactions on a container and a
// std:: model.
//
// Tests are typed by a Policy, so that the same suite runs on the DRAM stand-in and on pools of
// every engine. A Policy has
//   template <class Root> using Pool = ...;  with update(f), view(f), heap faults (Pool::injects)
//                                            and compare_blocks(list of blocks);
//   static constexpr int scale;              steps are multiplied by it, divided by 100
// A transaction has one to eight operations; a part of them ends in a user's exception, a part
// meets a full heap or a conflict at a random write (if the pool injects faults): then model and
// container must be as before. Every few transactions the container's audit must be empty and its
// blocks must be exactly the heap's.
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "perdure/api/hash.hpp"
#include "perdure/api/persistent.hpp"
#include "perdure/api/walk.hpp"
#include "tests/container/dram_tx.hpp"

namespace perdure::test {

struct UserError {};

inline std::uint64_t seed_of_run() {
  const char* text = std::getenv("PERDURE_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

using Random = std::mt19937_64;
inline std::uint64_t below(Random& random, std::uint64_t n) { return random() % n; }

/// A value of a type for a number: distinct numbers below 2^15 give distinct values.
template <class T>
struct Sample;
template <class T>
  requires std::is_arithmetic_v<T>
struct Sample<T> {
  static T of(std::uint64_t i) {
    if constexpr (sizeof(T) == 8)
      // spread over all bits, odd multiplier: distinct
      return static_cast<T>(i * 0x9e3779b97f4a7c15ULL);
    else
      return static_cast<T>(i);
  }
};
template <>
struct Sample<std::string> {
  static std::string of(std::uint64_t i) {
    // Empty, short and long; many with a common start; a few with NUL and high bytes.
    if (i == 0) return {};
    std::string text = (i % 3 == 0   ? "a rather long common beginning of a key/"
                        : i % 3 == 1 ? "k"
                                     : std::string("\xff\0z", 3)) +
                       std::to_string(i);
    if (i % 7 == 0) text.append(i % 97 * 13, static_cast<char>('a' + i % 26));
    return text;
  }
};
/// A plain struct as a value, 24 bytes without padding.
struct Record {
  std::uint64_t a;
  std::uint32_t b[3];
  std::int32_t c;
  friend bool operator==(const Record&, const Record&) = default;
};
template <>
struct Sample<Record> {
  static Record of(std::uint64_t i) {
    const auto n = static_cast<std::uint32_t>(i);
    return {i, {n, n + 1, n + 2}, -static_cast<std::int32_t>(n)};
  }
};
/// A struct as a key that has one of four hashes: long chains.
struct Clash {
  std::uint32_t major, minor;
  friend auto operator<=>(const Clash&, const Clash&) = default;
};
template <>
struct Sample<Clash> {
  static Clash of(std::uint64_t i) {
    return {static_cast<std::uint32_t>(i / 10), static_cast<std::uint32_t>(i % 10)};
  }
};

/// The value that a test changes a value to.
template <class T>
T changed(const T& value) {
  return static_cast<T>(value + 1);
}
inline std::string changed(const std::string& value) {
  return value.size() > 300 ? value.substr(0, 7) : value + "+";
}
inline Record changed(Record value) { return value.b[1] += 7, value; }

/// Runs transactions on one container (a field of `Root` named x) and on a model that is copied
/// before each.
template <class Pool, class Model>
class Runner {
 public:
  explicit Runner(std::uint64_t seed) : random(seed_of_run() * 1000003 + seed) {}

  /// Runs one transaction of `operations` calls of op(tx, container, model), which may fail in the
  /// ways described above.
  template <class Op>
  void transaction(std::uint64_t operations, Op op) {
    Model next = model;
    const auto body = [&](auto& tx, auto& root) {
      next = model;  // a lambda may run more than once
      Random again = random;
      for (std::uint64_t i = 0; i < operations; ++i) op(tx, root.x, next, again);
      end_ = again;
      if (fails_) throw UserError{};
    };
    fails_ = below(random, 12) == 0;
    const bool faulty = inject();
    try {
      pool.update(body);
      model = next;
      ++committed;
    } catch (const UserError&) {
      ++thrown;
    } catch (const Conflict&) {
      ++injected;
    } catch (const error& e) {
      if (!faulty || e.code() != Code::full) throw;
      ++injected;
    }
    calm();
    random.seed(random() ^ end_());
  }

  /// The container's audit is empty, and its blocks are the heap's.
  void expect_sound() {
    std::vector<const void*> blocks;
    const std::vector<std::string> problems = pool.view([&](auto& tx, const auto& root) {
      blocks.clear();
      root.x.each_block(tx, [&](const void* block) { blocks.push_back(block); });
      return root.x.audit(tx);
    });
    EXPECT_TRUE(problems.empty()) << problems.front();
    EXPECT_EQ(pool.compare_blocks(blocks), "");
  }

  /// An empty container owns no block, not even its own tables.
  void expect_no_blocks() {
    const int n = view([](auto& tx, const auto& c) {
      int blocks = 0;
      c.each_block(tx, [&](const void*) { ++blocks; });
      return blocks;
    });
    EXPECT_EQ(n, 0) << "blocks owned by an empty container";
  }

  /// Calls f(tx, container) inside a view.
  template <class F>
  auto view(F f) {
    return pool.view([&](auto& tx, const auto& root) { return f(tx, root.x); });
  }

  Pool pool;
  Model model;
  Random random;
  int committed = 0, thrown = 0, injected = 0;

 private:
  bool inject() {
    if constexpr (Pool::injects) {
      const auto what = below(random, 10);
      if (what == 0) pool.heap().allocs_until_full = below(random, 6);
      if (what == 1) pool.heap().writes_until_conflict = below(random, 40);
      return what == 0;
    } else {
      return false;
    }
  }
  void calm() {
    if constexpr (Pool::injects)
      pool.heap().allocs_until_full = pool.heap().writes_until_conflict = ~0ULL;
  }

  bool fails_ = false;
  Random end_;
};

/// The policy of the stand-in.
struct DramPolicy {
  template <class Root>
  using Pool = DramPool<Root>;
  static constexpr int scale = 100;
};

/// `steps`, scaled for the policy.
template <class Policy>
constexpr int steps(int n) {
  return n * Policy::scale / 100;
}

}  // namespace perdure::test

template <>
struct perdure::hash<perdure::test::Clash> {
  static std::uint64_t of(const perdure::test::Clash& key) {
    return perdure::base::mix(key.major % 4);
  }
};
