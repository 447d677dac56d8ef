// SPDX-License-Identifier: BSD-3-Clause
//
// Runs COUNT blocks of plain code, each of which swaps pairs of words of an emulated pool, for
// instructions_test.py:
//
//   callgrind_blocks POOL blocks KIND COUNT
//
// Kinds: update-1 and update-8, as those of callgrind_transactions. Exit: 0 done, 1 not, 2 wrong
// arguments.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "perdure/perdure.hpp"
#include "plain/plain.hpp"
#include "tests/callgrind/random.hpp"

namespace {

using perdure::test::Random;

constexpr std::uint64_t words = 4096;

struct Root {
  static constexpr const char* layout_id = "perdure::test::CallgrindBlocks/1";
  std::uint64_t word[words];
};

[[gnu::noinline]] void swap_words(perdure::PlainPool<Root>& pool, Random& random, unsigned pairs) {
  std::uint64_t at[16];
  for (unsigned i = 0; i < 2 * pairs; ++i) at[i] = random.below(words);
  pool.atomically([&at, pairs](Root& root) {
    for (unsigned i = 0; i < 2 * pairs; i += 2) {
      const std::uint64_t a = root.word[at[i]], b = root.word[at[i + 1]];
      root.word[at[i]] = b;
      root.word[at[i + 1]] = a;
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc == 5 ? argv[3] : "";
  if (kind != "update-1" && kind != "update-8")
    return std::fprintf(stderr, "usage: %s POOL blocks update-1|update-8 COUNT\n", argv[0]), 2;
  try {
    ::unlink(argv[1]);
    perdure::PlainPool<Root> pool(argv[1],
                                  {.creation = {.max_size = 1ULL << 28}, .medium = "emulated"});
    Random random;
    const unsigned pairs = kind == "update-1" ? 1 : 8;
    for (std::uint64_t n = std::strtoull(argv[4], nullptr, 10); n > 0; --n)
      swap_words(pool, random, pairs);
    pool.close();
    ::unlink(argv[1]);
    return 0;
  } catch (const std::exception& e) {
    return std::fprintf(stderr, "%s: %s\n", argv[0], e.what()), 1;
  }
}
