// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks of plain C++ on every engine, in atomically(): what they change is durable and isolated,
// what they leave is as it was (PLAIN-1, PLAIN-2). GCC compiles it, and Clang with the pass.
#include <gtest/gtest.h>
#include <ucontext.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/plain/blocks.hpp"

namespace perdure::plain::test {
namespace {

TEST_P(Blocks, AreDurable) {
  std::uint64_t expected = 0;
  for (int session = 0; session < 3; ++session) {
    PlainPool<Root> pool(scratch.path(), options());
    EXPECT_EQ(sum_of(pool), expected);
    for (std::uint64_t i = 1; i <= 50; ++i) {
      pool.atomically([&](Root& r) { push(r, i); });
      expected += i;
    }
    for (int i = 0; i < 20; ++i) {
      std::uint64_t value = 0;
      pool.atomically([&](Root& r) { value = pop(r); });
      expected -= value;
    }
    EXPECT_EQ(sum_of(pool), expected);
    EXPECT_TRUE(pool.pool().check().problems.empty());
  }
}

TEST_P(Blocks, ThatThrowLeaveNothing) {
  PlainPool<Root> pool(scratch.path(), options());
  pool.atomically([](Root& r) { push(r, 5); });
  std::uint64_t local = 1;
  auto* const outside = static_cast<std::uint64_t*>(std::malloc(8));
  *outside = 7;
  const auto fail = [&](Root& r) {
    push(r, 9);
    local = 2;
    *outside = 8;
    throw 42;
  };
  EXPECT_THROW(pool.atomically(fail), int);
  EXPECT_EQ(local, 1U);
  EXPECT_EQ(*outside, 7U);
  EXPECT_EQ(sum_of(pool), 5U);
  EXPECT_TRUE(pool.pool().check().problems.empty());
  std::free(outside);
}

TEST_P(Blocks, ExceptionsKeepWhatTheyHold) {
  PlainPool<Root> pool(scratch.path(), options());
  try {
    pool.atomically([](Root& r) {
      push(r, 9);
      throw std::runtime_error("a text that is too long for the object itself, so it is allocated");
    });
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "a text that is too long for the object itself, so it is allocated");
  }
  EXPECT_EQ(sum_of(pool), 0U);
  // One that is caught inside.
  std::uint64_t seen = 0;
  pool.atomically([&](Root& r) {
    try {
      push(r, 3);
      throw 4;
    } catch (int e) {
      seen = static_cast<std::uint64_t>(e);
      push(r, seen);
    }
  });
  EXPECT_EQ(seen, 4U);
  EXPECT_EQ(sum_of(pool), 7U);
}

TEST_P(Blocks, MoveBytesAndNumbersOfAllSizes) {
  PlainPool<Root> pool(scratch.path(), options());
  std::uint8_t local[40];
  for (int i = 0; i < 40; ++i) local[i] = static_cast<std::uint8_t>(i);
  pool.atomically([&](Root& r) {
    std::memcpy(r.bytes, local, sizeof local);
    std::memmove(r.bytes + 3, r.bytes, 30);
    std::memset(r.bytes + 35, 0xee, 5);
    r.real = 1.5;
    r.wide = 2.5L;
    r.single = 3.5F;
    r.half = 77;
    for (int i = 0; i < 64; ++i) r.accounts[i] = static_cast<std::uint64_t>(i);
  });
  std::uint8_t out[40];
  double real = 0;
  long double wide = 0;
  float single = 0;
  std::uint16_t half = 0;
  std::uint64_t sum = 0;
  pool.atomically([&](Root& r) {
    std::memcpy(out, r.bytes, sizeof out);
    real = r.real;
    wide = r.wide;
    single = r.single;
    half = r.half;
    sum = 0;
    for (const std::uint64_t a : r.accounts) sum += a;
  });
  std::uint8_t expected[40];
  std::memcpy(expected, local, sizeof local);
  std::memmove(expected + 3, expected, 30);
  std::memset(expected + 35, 0xee, 5);
  EXPECT_EQ(0, std::memcmp(out, expected, sizeof out));
  EXPECT_EQ(real, 1.5);
  EXPECT_EQ(wide, 2.5L);
  EXPECT_EQ(single, 3.5F);
  EXPECT_EQ(half, 77U);
  EXPECT_EQ(sum, 64U * 63 / 2);
}

// What is freed outside of the pool is freed at the commit: until then a repetition needs it.
TEST_P(Blocks, FreeAtTheCommit) {
  PlainPool<Root> pool(scratch.path(), options());
  auto* const block = static_cast<std::uint64_t*>(std::malloc(64));
  *block = 5;
  EXPECT_THROW(pool.atomically([&](Root&) {
    std::free(block);
    throw 1;
  }),
               int);
  EXPECT_EQ(*block, 5U) << "an address sanitizer, or a reuse, would see a free";
  pool.atomically([&](Root&) { std::free(block); });
}

TEST_P(Blocks, TooLargeOnesAreRefusedAndLeaveNothing) {
  PlainPool<Root> pool(scratch.path(), options());
  const auto too_much = [](Root& r) {
    for (std::uint64_t i = 0; i < 1'000'000; ++i) push(r, 1);
  };
  try {
    pool.atomically(too_much);
    FAIL();
  } catch (const error& e) {
    EXPECT_TRUE(e.code() == Code::full || e.code() == Code::too_big) << e.what();
  }
  EXPECT_EQ(sum_of(pool), 0U);
  pool.atomically([](Root& r) { push(r, 1); });
  EXPECT_EQ(sum_of(pool), 1U);
}

TEST_P(Blocks, JoinAnUpdateOfTheirPool) {
  PlainPool<Root> pool(scratch.path(), options());
  pool.pool().update([&](auto&, Root&) {
    pool.atomically([](Root& r) { push(r, 1); });
    pool.atomically([](Root& r) { push(r, 2); });
  });
  EXPECT_EQ(sum_of(pool), 3U);
  EXPECT_THROW(pool.pool().update([&](auto&, Root&) {
    pool.atomically([](Root& r) { push(r, 1); });
    throw 1;
  }),
               int);
  EXPECT_EQ(sum_of(pool), 3U);
}

TEST_P(Blocks, AreOnOnePool) {
  PlainPool<Root> pool(scratch.path(), options()), other(scratch.path("other"), options());
  const auto code = [](auto&& f) {
    try {
      f();
      return Code::ok;
    } catch (const error& e) {
      return e.code();
    }
  };
  Root& others = other.root();
  EXPECT_EQ(Code::invalid, code([&] {
              pool.atomically([&](Root& r) {
                push(r, 1);
                others.sum = 7;
              });
            }));
  Node* of_other = nullptr;
  other.atomically([&](Root& r) {
    push(r, 9);
    of_other = r.top;
  });
  EXPECT_EQ(Code::invalid, code([&] { pool.atomically([&](Root&) { delete of_other; }); }));
  other.atomically([](Root& r) { (void)pop(r); });
  EXPECT_EQ(sum_of(pool), 0U);
  EXPECT_EQ(sum_of(other), 0U);
}

constexpr const char* long_text =
    "a text that is too long for the object itself, so that it is allocated";

// Handlers in handlers, of exceptions that are gone, that were thrown again, and that another one
// was made of: what the attempt leaves is freed once, and no handler stays open.
TEST_P(Blocks, EndInHandlersOfHandlers) {
  PlainPool<Root> pool(scratch.path(), options()), other(scratch.path("other"), options());
  Root& others = other.root();  // a store to it ends an attempt
  const int uncaught = std::uncaught_exceptions();
  const auto ends = [&](auto&& f) {
    EXPECT_THROW(pool.atomically(f), error);
    EXPECT_EQ(uncaught, std::uncaught_exceptions());
    EXPECT_EQ(std::current_exception(), nullptr);
    EXPECT_EQ(sum_of(pool), 0U);
  };
  ends([&](Root& r) {
    try {
      throw std::runtime_error(long_text);
    } catch (const std::exception&) {
      try {
        throw std::logic_error(long_text);
      } catch (const std::exception&) {
        push(r, 1);
      }
      others.sum = 1;
    }
  });
  ends([&](Root&) {
    try {
      throw std::runtime_error(long_text);
    } catch (...) {
      try {
        throw;
      } catch (const std::runtime_error&) {
        others.sum = 1;
      }
    }
  });
  ends([&](Root&) {
    try {
      try {
        throw 1;
      } catch (int) {
        throw std::runtime_error(long_text);
      }
    } catch (const std::exception&) {
      others.sum = 1;
    }
  });
  // And out of a handler of the caller's.
  try {
    throw 7;
  } catch (int) {
    EXPECT_THROW(pool.atomically([&](Root&) {
      try {
        throw std::runtime_error(long_text);
      } catch (const std::exception&) {
        others.sum = 1;
      }
    }),
                 error);
    EXPECT_NE(std::current_exception(), nullptr) << "the caller's is still open";
  }
}

TEST_P(Blocks, AreAsDurableAsTheyAreAskedToBe) {
  Options o = options();
  o.durability = Durability::async;
  PlainPool<Root> pool(scratch.path(), o);
  const std::uint64_t fences = pool.pool().stats().medium.fences;
  atomically(pool.pool(), [](Root& r) { push(r, 1); }, Durability::durable);
  EXPECT_GE(pool.pool().durable_id(), pool.pool().stats().last_id);
  EXPECT_GT(pool.pool().stats().medium.fences, fences);
}

TEST_P(Blocks, GetWhatCopiesReturn) {
  PlainPool<Root> pool(scratch.path(), options());
  bool right = false;
  pool.atomically([&](Root& r) {
    void* const copied = std::memcpy(r.bytes, "copied", 7);
    void* const moved = std::memmove(r.bytes + 1, r.bytes, 7);
    void* const filled = std::memset(r.bytes + 20, 1, 7);
    right = copied == r.bytes && moved == r.bytes + 1 && filled == r.bytes + 20;
  });
  EXPECT_TRUE(right);
}

// Memory that a block takes and gives back is read as it was stored, however it was.
TEST_P(Blocks, HaveMemoryOfTheirOwn) {
  PlainPool<Root> pool(scratch.path(), options());
  for (int i = 0; i < 20; ++i)
    pool.atomically([&](Root& r) {
      for (int j = 0; j < 10; ++j) push(r, static_cast<std::uint64_t>(10 * i + j) % 50);
    });
  for (int round = 0; round < 3; ++round) {
    std::uint64_t twice = 0;
    pool.atomically([&](Root& r) {
      auto* const seen = new std::uint64_t[64];
      std::memset(seen, 0, 64 * sizeof *seen);
      twice = 0;
      for (const Node* n = r.top; n != nullptr; n = n->next) twice += seen[n->value]++;
      delete[] seen;
    });
    EXPECT_EQ(twice, 50U * (0 + 1 + 2 + 3));
  }
}

// A part of an update that failed is not committed with the rest, even if the program goes on.
TEST_P(Blocks, ThatFailInAnUpdateEndIt) {
  PlainPool<Root> pool(scratch.path(), options()), other(scratch.path("other"), options());
  Root& others = other.root();
  EXPECT_THROW(pool.pool().update([&](auto&, Root&) {
    try {
      pool.atomically([&](Root& r) {
        push(r, 1);
        others.sum = 2;
      });
    } catch (const error&) {}
  }),
               error);
  EXPECT_EQ(sum_of(pool), 0U);
}

// A conflict in a handler: the exception is freed, and the block runs again.
TEST_P(Blocks, RunAgainOutOfAHandler) {
  PlainPool<Root> pool(scratch.path(), options());
  const int uncaught = std::uncaught_exceptions();
  EXPECT_THROW(pool.atomically([&](Root& r) {
    try {
      throw std::runtime_error("a text that is too long for the object itself, so it is allocated");
    } catch (const std::exception&) {
      for (;;) push(r, 1);  // until the log or the pool is full
    }
  }),
               error);
  EXPECT_EQ(uncaught, std::uncaught_exceptions());
  EXPECT_EQ(std::current_exception(), nullptr) << "no handler is left open";
  EXPECT_EQ(sum_of(pool), 0U);
}

// The update may run again: what it frees outside of the pool would be freed twice.
TEST_P(Blocks, InsideAnUpdateFreeNothingElse) {
  PlainPool<Root> pool(scratch.path(), options());
  auto* const block = static_cast<std::uint64_t*>(std::malloc(64));
  *block = 5;
  try {
    pool.pool().update([&](auto&, Root&) {
      pool.atomically([&](Root& r) {
        push(r, 1);
        std::free(block);
      });
    });
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), Code::invalid) << e.what();
  }
  EXPECT_EQ(*block, 5U);
  std::free(block);
  EXPECT_EQ(sum_of(pool), 0U);
}

// On a small stack, with a variable below it, which is no part of the frames that are left.
struct OnItsOwnStack {
  static constexpr std::size_t bytes = 60 << 10;
  std::uint64_t below = 5;
  PlainPool<Root>* pool = nullptr;
  ucontext_t caller{}, own{};
  alignas(64) std::array<char, bytes> stack{};
};
std::unique_ptr<OnItsOwnStack> small_stack;
void on_small_stack() {
  try {
    small_stack->pool->atomically([](Root& r) {
      small_stack->below = 7;
      push(r, 1);
      throw 1;
    });
  } catch (int) {}
}
TEST_P(Blocks, RestoreWhatLiesBelowASmallStack) {
  PlainPool<Root> pool(scratch.path(), options());
  pool.atomically([](Root& r) { push(r, 5); });  // what a first block needs is made
  small_stack = std::make_unique<OnItsOwnStack>();
  small_stack->pool = &pool;
  ::getcontext(&small_stack->own);
  small_stack->own.uc_stack.ss_sp = small_stack->stack.data();
  small_stack->own.uc_stack.ss_size = OnItsOwnStack::bytes;
  small_stack->own.uc_link = &small_stack->caller;
  ::makecontext(&small_stack->own, on_small_stack, 0);
  ::swapcontext(&small_stack->caller, &small_stack->own);
  EXPECT_EQ(small_stack->below, 5U);
  EXPECT_EQ(sum_of(pool), 5U);
  small_stack.reset();
}

TEST_P(Blocks, OfSeveralThreadsAreIsolated) {
  if (GetParam().ends_with("none")) return;  // whose caller isolates
  PlainPool<Root> pool(scratch.path(), options());
  expect_isolated(pool, [&](int, std::size_t from, std::size_t to, std::uint64_t& done) {
    pool.atomically([&](Root& r) {
      r.accounts[from] -= 1;
      r.accounts[to] += 1;
      ++done;  // a repetition restores it
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, Blocks, ::testing::ValuesIn(engines()), name_of_instance);

}  // namespace
}  // namespace perdure::plain::test
