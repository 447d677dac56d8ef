// SPDX-License-Identifier: BSD-3-Clause
//
// The order and the hash of composed keys: the order is that of the standard library's operators,
// and the hash, which is the pool format, is the same for ever.
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <limits>
#include <random>

#include "perdure/container/stored.hpp"
#include "tests/container/dram_tx.hpp"

namespace perdure::test {

/// Its hash and its operators ignore the case.
struct Caseless {
  std::string text;
  [[nodiscard]] std::string lower() const {
    std::string out = text;
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
  }
  friend bool operator<(const Caseless& a, const Caseless& b) { return a.lower() < b.lower(); }
};

}  // namespace perdure::test

template <>
struct perdure::hash<perdure::test::Caseless> {
  static std::uint64_t of(const perdure::test::Caseless& key) {
    return hash<std::string>::of(key.lower());
  }
};

namespace perdure::test {
namespace {

using Random = std::mt19937_64;
std::uint64_t below(Random& random, std::uint64_t n) { return random() % n; }

/// A small value, so that equal parts are frequent.
template <class T>
T some(Random& random) {
  if constexpr (std::is_same_v<T, std::string>) {
    static const char* const texts[] = {"",  "a",    "ab",
                                        "b", "\xff", "a much longer text than others"};
    return texts[below(random, 6)];
  } else if constexpr (std::is_same_v<T, bool>) {
    return below(random, 2) == 0;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(below(random, 5)) - 2;
  } else {
    return static_cast<T>(below(random, 5) - 2);
  }
}
template <class T>
T some_vector(Random& random) {
  T values(below(random, 4));
  for (auto& value : values) value = some<typename T::value_type>(random);
  return values;
}

/// Keys a and b compare in the container as they do in the program.
template <class K, class Make>
void expect_order(Make make) {
  struct Root {
    typename stored_key<K>::field key;
  };
  static_assert(value::placement_of<K, true>() == value::Placement::image);
  Random random(1);
  DramPool<Root> pool;
  int equal = 0;
  for (int i = 0; i < 2000; ++i) {
    const K a = make(random), b = make(random);
    pool.update([&](auto& tx, Root& root) { stored_key<K>::assign(tx, root.key, a); });
    pool.view([&](auto& tx, const Root& root) {
      EXPECT_EQ(stored_key<K>::less(tx, root.key, b), a < b);
      EXPECT_EQ(stored_key<K>::above(tx, root.key, b), b < a);
      EXPECT_EQ(stored_key<K>::equal(tx, root.key, b), a == b);
      EXPECT_TRUE(stored_key<K>::read(tx, root.key) == a);
      return 0;
    });
    if (a == b) {
      ++equal;
      EXPECT_EQ(stored_key<K>::hash(a), stored_key<K>::hash(b));
    } else {
      EXPECT_NE(stored_key<K>::hash(a), stored_key<K>::hash(b));
    }
  }
  EXPECT_GT(equal, 0);
}

TEST(ValueOrder, OfPairs) {
  using K = std::pair<std::string, std::int32_t>;
  expect_order<K>([](Random& r) { return K{some<std::string>(r), some<std::int32_t>(r)}; });
}
TEST(ValueOrder, OfTuples) {
  using K = std::tuple<std::int8_t, double, std::uint16_t, std::string>;
  expect_order<K>([](Random& r) {
    return K{some<std::int8_t>(r), some<double>(r), some<std::uint16_t>(r), some<std::string>(r)};
  });
}
TEST(ValueOrder, OfVectors) {
  expect_order<std::vector<std::int16_t>>(some_vector<std::vector<std::int16_t>>);
  expect_order<std::vector<std::string>>(some_vector<std::vector<std::string>>);
}
TEST(ValueOrder, OfOptionals) {
  using K = std::optional<std::string>;
  expect_order<K>([](Random& r) { return below(r, 3) == 0 ? K() : K(some<std::string>(r)); });
}
TEST(ValueOrder, OfVariants) {
  using K = std::variant<std::int64_t, std::string, bool>;
  expect_order<K>([](Random& r) {
    switch (below(r, 3)) {
      case 0: return K(some<std::int64_t>(r));
      case 1: return K(some<std::string>(r));
      default: return K(some<bool>(r));
    }
  });
}
TEST(ValueOrder, OfArrays) {
  using K = std::array<std::string, 3>;
  expect_order<K>([](Random& r) {
    return K{some<std::string>(r), some<std::string>(r), some<std::string>(r)};
  });
}

/// Its own order, backwards.
struct Backwards {
  std::string text;
  std::int32_t number = 0;
  friend bool operator<(const Backwards& a, const Backwards& b) {
    return std::tie(a.text, a.number) > std::tie(b.text, b.number);
  }
  friend bool operator==(const Backwards&, const Backwards&) = default;
};
TEST(ValueOrder, OfAStructThatHasOne) {
  const auto make = [](Random& r) {
    return Backwards{some<std::string>(r), some<std::int32_t>(r)};
  };
  expect_order<Backwards>(make);
  using K = std::pair<bool, Backwards>;  // within another key, too
  expect_order<K>([&](Random& r) { return K{some<bool>(r), make(r)}; });
}

struct Plain {
  std::string text;
  std::int32_t number = 0;
};
TEST(ValueOrder, OfAStructThatHasNone) {
  struct Root {
    stored_key<Plain>::field key;
  };
  DramPool<Root> pool;
  pool.update([](auto& tx, Root& root) {
    stored_key<Plain>::assign(tx, root.key, {"b", -1});
    EXPECT_TRUE(stored_key<Plain>::less(tx, root.key, {"c", -9}));
    EXPECT_TRUE(stored_key<Plain>::less(tx, root.key, {"b", 0}));
    EXPECT_TRUE(stored_key<Plain>::above(tx, root.key, {"b", -2}));
    EXPECT_TRUE(stored_key<Plain>::equal(tx, root.key, {"b", -1}));
  });
}

/// A separator of a B+-tree's inner node owns blocks of its own.
TEST(ValueOrder, ASeparatorIsACopy) {
  using K = std::pair<std::vector<std::string>, std::optional<std::string>>;
  struct Root {
    stored_key<K>::field key, separator;
  };
  DramPool<Root> pool;
  const K key{{"one", "two, which is longer than sixteen bytes"}, "three"};
  pool.update([&](auto& tx, Root& root) {
    stored_key<K>::assign(tx, root.key, key);
    const auto raw = tx.read(root.key);
    tx.write(root.separator, stored_key<K>::separator(tx, raw, raw));
  });
  pool.update([&](auto& tx, Root& root) { stored_key<K>::drop(tx, tx.read(root.key)); });
  pool.view([&](auto& tx, const Root& root) {
    EXPECT_TRUE(stored_key<K>::read(tx, root.separator) == key);
    std::vector<const void*> blocks;
    stored_key<K>::each_block(tx, tx.read(root.separator),
                              [&](const void* block) { blocks.push_back(block); });
    EXPECT_EQ(pool.compare_blocks(blocks), "");
    EXPECT_EQ(blocks.size(), 4U);
    return 0;
  });
}

/// The pool format: these values must never change.
TEST(ValueOrder, HashesAreKept) {
  EXPECT_EQ((stored_key<std::pair<std::string, std::int32_t>>::hash({"key", -1})),
            2586411831255582833ULL);
  EXPECT_EQ((stored_key<std::vector<std::uint16_t>>::hash({1, 2, 3})), 8067406198545971445ULL);
  EXPECT_EQ((stored_key<std::optional<double>>::hash(0.5)), 14198423655465692740ULL);
  EXPECT_EQ((stored_key<std::optional<double>>::hash(std::nullopt)), 0ULL);
  EXPECT_EQ((stored_key<std::variant<int, std::string>>::hash("text")), 5365936045037486941ULL);
  EXPECT_EQ((stored_key<Plain>::hash({"text", 7})), 11380355997374328978ULL);
}
TEST(ValueOrder, AHashOfItsOwnCountsWithinAKey) {
  using K = std::pair<Caseless, int>;
  EXPECT_EQ(stored_key<Caseless>::hash({"A"}), stored_key<Caseless>::hash({"a"}));
  EXPECT_EQ(stored_key<K>::hash({{"A"}, 1}), stored_key<K>::hash({{"a"}, 1}));
  EXPECT_NE(stored_key<K>::hash({{"A"}, 1}), stored_key<K>::hash({{"b"}, 1}));
}
TEST(ValueOrder, EveryNaNIsOneValue) {
  using K = std::optional<double>;
  const double one = std::nan("1"), other = -std::nan("2");
  EXPECT_EQ(stored_key<K>::hash(one), stored_key<K>::hash(other));
  EXPECT_EQ(hash<double>::of(one), hash<double>::of(other));
  EXPECT_EQ(hash<float>::of(std::nanf("1")), hash<float>::of(-std::nanf("2")));
}
TEST(ValueOrder, TheZerosHaveOneHash) {
  using K = std::optional<float>;
  EXPECT_EQ(stored_key<K>::hash(0.0F), stored_key<K>::hash(-0.0F));
}

}  // namespace
}  // namespace perdure::test
