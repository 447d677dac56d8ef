// SPDX-License-Identifier: BSD-3-Clause
//
// Runs one kind of transaction COUNT times with one thread on an emulated pool, for
// instructions_test.py, which counts instructions:
//
//   callgrind_transactions POOL ENGINE KIND COUNT
//
// ENGINE is `compiled` (Pool<Root, engines<shadow>>) or `chosen` (Pool<Root>, behind virtual
// calls). Kinds: raw and look-up (a key of a chained hash table, by plain loads of the pool's
// memory, and in a view), view (one word), update-1 and update-8 (pairs of words swapped), find,
// put and put-erase (perdure::hash_map) and map-put (perdure::map). Exit: 0 done, 1 not, 2 wrong
// arguments.
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <type_traits>

#include "perdure/api/compiled_pool.hpp"
#include "perdure/perdure.hpp"
#include "tests/callgrind/random.hpp"

namespace {

using perdure::test::Random;

constexpr std::uint64_t words = 4096, buckets = 4096, keys = 4096;

struct Node {
  static constexpr const char* layout_id = "perdure::test::Node/1";
  perdure::p<std::uint64_t> key, value;
  perdure::ptr<Node> next;
};
struct Root {
  static constexpr const char* layout_id = "perdure::test::CallgrindRoot/1";
  perdure::p<std::uint64_t> word[words];
  perdure::ptr<Node> bucket[buckets];
  perdure::hash_map<std::uint64_t, std::uint64_t> map;
  perdure::map<std::uint64_t, std::uint64_t> ordered;
};

using Word = perdure::p<std::uint64_t>;
using Link = perdure::ptr<Node>;

/// Reads without any view: what both types hold is one word of the pool's memory.
struct RawReads {
  std::uint64_t operator()(const Word& word) const { return std::bit_cast<std::uint64_t>(word); }
  const Node* operator()(const Link& link) const { return std::bit_cast<const Node*>(link); }
};
template <class Tx>
struct ViewReads {
  Tx& tx;
  std::uint64_t operator()(const Word& word) const { return tx.read(word); }
  const Node* operator()(const Link& link) const { return tx.read(link); }
};

// Inlined, so that what is counted does not depend on what the compiler thinks of it.
template <class Reads>
[[gnu::always_inline]] inline std::uint64_t look_up(const Root& root, std::uint64_t key,
                                                    const Reads& read) {
  const Node* node = read(root.bucket[key % buckets]);
  while (node != nullptr && read(node->key) != key) node = read(node->next);
  return node == nullptr ? 0 : read(node->value);
}

template <class Pool>
void fill(Pool& pool) {
  for (std::uint64_t key = 0; key < keys; ++key)
    pool.update([&](auto& tx, Root& root) {
      const auto node = tx.template make<Node>();
      tx(node->key) = key;
      tx(node->value) = key + 1;
      tx(node->next) = tx.read(root.bucket[key % buckets]);
      tx(root.bucket[key % buckets]) = node;
      root.map.put(tx, key, key);
      root.ordered.put(tx, key, key);
    });
}

template <class Pool>
void swap_words(Pool& pool, Random& random, unsigned pairs) {
  std::uint64_t at[16];
  for (unsigned i = 0; i < 2 * pairs; ++i) at[i] = random.below(words);
  pool.update([&at, pairs](auto& tx, Root& root) {
    for (unsigned i = 0; i < 2 * pairs; i += 2) {
      const std::uint64_t a = tx.read(root.word[at[i]]), b = tx.read(root.word[at[i + 1]]);
      tx(root.word[at[i]]) = b;
      tx(root.word[at[i + 1]]) = a;
    }
  });
}

// One call of `f(i)` per transaction. A function of its own for each kind, so that no kind changes
// how another is compiled. Returns a sum, so that no read is left out; 0 is never one.
template <class F>
[[gnu::noinline]] std::uint64_t times(std::uint64_t count, F f) {
  std::uint64_t sum = 1;
  for (std::uint64_t i = 0; i < count; ++i) sum += f(i);
  return sum;
}

template <class Pool>
std::uint64_t run(Pool& pool, std::string_view kind, std::uint64_t count) {
  Random random;
  if (kind == "raw") {
    const Root* root = nullptr;
    pool.view([&root](auto&, const Root& r) { root = &r; });
    return times(
        count, [&, root](std::uint64_t) { return look_up(*root, random.below(keys), RawReads()); });
  }
  if (kind == "look-up")
    return times(count, [&](std::uint64_t) {
      return pool.view([key = random.below(keys)](auto& tx, const Root& root) {
        return look_up(root, key, ViewReads<std::remove_reference_t<decltype(tx)>>{tx});
      });
    });
  if (kind == "view")
    return times(count, [&](std::uint64_t i) {
      return pool.view([i](auto& tx, const Root& root) { return tx.read(root.word[i % words]); });
    });
  if (kind == "update-1" || kind == "update-8")
    return times(count, [&, pairs = kind == "update-1" ? 1U : 8U](std::uint64_t) {
      swap_words(pool, random, pairs);
      return 1U;
    });
  if (kind == "find")
    return times(count, [&](std::uint64_t) {
      return pool.view([key = random.below(keys)](auto& tx, const Root& root) {
        return root.map.find(tx, key).value_or(0);
      });
    });
  if (kind == "put")
    return times(count, [&](std::uint64_t i) {
      pool.update([&](auto& tx, Root& root) { root.map.put(tx, random.below(keys), i); });
      return 1U;
    });
  if (kind == "put-erase")
    return times(count, [&](std::uint64_t i) {
      pool.update([&](auto& tx, Root& root) {
        const std::uint64_t key = random.below(keys);
        if (!root.map.erase(tx, key)) root.map.put(tx, key, i);
      });
      return 1U;
    });
  if (kind == "map-put")
    return times(count, [&](std::uint64_t i) {
      pool.update([&](auto& tx, Root& root) { root.ordered.put(tx, random.below(keys), i); });
      return 1U;
    });
  return 0;
}

template <class Engines>
int run_on(const char* path, const char* kind, const char* count) {
  ::unlink(path);
  auto pool = perdure::Pool<Root, Engines>::open(
      path, {.creation = {.max_size = 1ULL << 28}, .medium = "emulated"});
  fill(pool);
  const std::uint64_t sum = run(pool, kind, std::strtoull(count, nullptr, 10));
  if (sum == 0) return std::fprintf(stderr, "found kind '%s'\n", kind), 2;
  std::printf("%llu\n", static_cast<unsigned long long>(sum));
  pool.close();
  ::unlink(path);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view engine = argc == 5 ? argv[2] : "";
  try {
    if (engine == "compiled")
      return run_on<perdure::engines<perdure::shadow>>(argv[1], argv[3], argv[4]);
    if (engine == "chosen") return run_on<perdure::default_engines>(argv[1], argv[3], argv[4]);
    return std::fprintf(stderr, "usage: %s POOL compiled|chosen KIND COUNT\n", argv[0]), 2;
  } catch (const std::exception& e) {
    return std::fprintf(stderr, "%s: %s\n", argv[0], e.what()), 1;
  }
}
