#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Blocks compiled by Clang with the pass: at every level of optimisation, across files, from C, and
with sanitizers; and what is refused, by the pass, the linker, or when it is called."""

import os
import subprocess
import unittest

from programs import CC, CXX, GCC_FLAGS, LIBRARIES, OPEN, Programs

PASS = os.environ["PERDURE_PASS"]

# Every kind of access: each line of the output is said by a view afterwards.
ALL = r"""
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include "plain/plain.hpp"

struct Bits { unsigned a : 3, b : 5; long c : 40; };
struct Big { long v[5]; };
struct Shape {
  int sides;
  explicit Shape(int n) : sides(n) {}
  PERDURE_TRANSACTION_SAFE virtual int twice() { return 2 * sides; }
};
struct Square : Shape {
  int edge = 7;
  Square() : Shape(4) {}
  PERDURE_TRANSACTION_SAFE int twice() override { return 2 * edge; }
};
struct Root {
  static constexpr const char *layout_id = "pass/1";
  Bits bits;
  Big big, other;
  long double wide;
  float single;
  bool yes;
  char text[32];
  Shape *shape;
  unsigned char odd[7];
  double sums[8], values[8];
  int count;
};
static long sum_of(Big b) {  // by value: the caller's copy
  long sum = 0;
  for (long &v : b.v) sum += v, v = 0;
  return sum;
}
static Big make(long v) { return {{v, v + 1, v + 2, v + 3, v + 4}}; }
PERDURE_TRANSACTION_SAFE static void add_one(int *x) { ++*x; }
void (*through)(int *) = add_one;  // others may change it
static const int table[4] = {3, 1, 4, 1};
static int recurse(int n) { return n == 0 ? 0 : n + recurse(n - 1); }
struct Guard {
  int &out;
  ~Guard() { ++out; }
};

int main(int, char **arguments) {
  perdure::Options options;
  options.medium = "emulated";
  perdure::PlainPool<Root> pool(arguments[1], options);
  int outside = 0, runs = 0;
  pool.atomically([&](Root &r) {
    ++runs;
    r.bits.a = 5;
    r.bits.b = 17;
    r.bits.c = -123456789;
    r.big = make(10);
    r.other = r.big;
    r.other.v[0] += sum_of(r.big);
    r.wide = 2.5L;
    r.single = 1.25F;
    r.yes = true;
    std::strcpy(r.text, "text");
    r.shape = new Square();
    for (int i = 0; i < 7; ++i) r.odd[i] = static_cast<unsigned char>(table[i % 4]);
    for (int i = 0; i < 8; ++i) r.values[i] = i;
    for (int i = 0; i < 8; ++i) r.sums[i] = r.values[i] * 2 + 1;
    through(&r.count);
    r.count += recurse(4) + r.shape->twice();
    outside = static_cast<int>(std::strlen(r.text));
  });
  try {
    pool.atomically([&](Root &r) {
      Guard guard{outside};
      r.count = 0;
      std::memset(&r.big, 0xff, sizeof r.big);
      throw std::runtime_error("a text that is too long to be part of the object itself");
    });
  } catch (const std::runtime_error &e) {
    std::printf("caught %zu\n", std::strlen(e.what()));
  }
  pool.atomically([&](Root &r) {
    try {
      if (r.count > 0) throw 3;
    } catch (int e) {
      r.count += e;
    }
  });
  bool same = false, behind = false;
  double sum = 0;
  pool.atomically([&](Root &r) {
    same = std::memcmp(r.text, "text", 5) == 0 && std::strcmp(r.text, "texu") < 0;
    behind = std::strchr(r.text, 'x') == r.text + 2;
    sum = 0;
    for (double s : r.sums) sum += s;
  });
  const Root &r = pool.root();  // the engine stores in place
  std::printf("bits %u %u %ld\n", r.bits.a, r.bits.b, static_cast<long>(r.bits.c));
  std::printf("big %ld %ld %ld\n", r.big.v[0], r.big.v[4], r.other.v[0]);
  std::printf("numbers %.2Lf %.2f %d %d\n", r.wide, static_cast<double>(r.single), r.yes, r.odd[6]);
  std::printf("count %d sum %.0f same %d behind %d outside %d runs %d\n", r.count, sum, same,
              behind, outside, runs);
  pool.close();
}
"""
SAID = """caught 55
bits 5 17 -123456789
big 10 14 70
numbers 2.50 1.25 1 4
count 28 sum 64 same 1 behind 1 outside 4 runs 1
"""
IN_BLOCK = """
#include "plain/plain.hpp"
struct Root { static constexpr const char *layout_id = "r/1"; long sum; volatile long v; };
%s
void f(perdure::PlainPool<Root> &pool) { pool.atomically([](Root &r) { %s }); }
"""
# Each was compiled wrongly, or refused, once.
HARD = r"""
#include <cstdio>
#include <stdexcept>
#include <vector>
#include "plain/plain.hpp"

struct Node {
  Node *next;
  long value;
};
struct Root {
  static constexpr const char *layout_id = "hard/1";
  long sum, numbers[4];
  Node *list;
};
static long failures;
static void check(bool holds, const char *what) {
  if (!holds) std::printf("not so: %s\n", what), ++failures;
}
// An exception whose destructor stores to the pool.
struct Stores {
  Root *r;
  explicit Stores(Root *root) : r(root) {}
  Stores(const Stores &) = default;
  ~Stores() { r->sum += 7; }
};
// A distance to something else.
struct Relative {
  long off;
  explicit Relative(long *to) : off((char *)to - (char *)this) {}
  long *get() { return (long *)((char *)this + off); }
};
struct First { PERDURE_TRANSACTION_SAFE virtual long first() { return 1; } long a = 0; };
struct Second { PERDURE_TRANSACTION_SAFE virtual long second() { return 2; } long b = 0; };
struct Both : First, Second {
  PERDURE_TRANSACTION_SAFE long second() override { return 3 + a; }
};
static long count_of(const std::vector<long> &all) {
  long n = 0;
  for (long v : all) n += v != 0;
  return n;
}
Second *second;

int main(int, char **arguments) {
  perdure::Options options;
  options.medium = "emulated";
  options.creation.max_size = 64 << 20;
  perdure::PlainPool<Root> pool(arguments[1], options);
  const Root &is = pool.root();
  try {
    pool.atomically([](Root &r) {
      try {
        throw Stores(&r);
      } catch (Stores &) {
      }
      throw 1;
    });
  } catch (int) {
  }
  check(is.sum == 0, "what an exception's destructor stores is rolled back");
  pool.atomically([](Root &r) {
    try {
      throw Stores(&r);
    } catch (Stores &) {
    }
  });
  check(is.sum == 7, "what an exception's destructor stores is committed");
  try {
    pool.atomically([](Root &r) {
      Relative q(&r.numbers[0]);
      *q.get() = 7;
      throw 1;
    });
  } catch (int) {
  }
  check(is.numbers[0] == 0, "a store by a distance from a local is rolled back");
  Both both;
  second = &both;
  long got = 0;
  pool.atomically([&](Root &) { got = second->second(); });
  check(got == 3, "a virtual function of a second base is called");
  // An exception of the caller's, thrown again in a block that ends without an answer.
  try {
    throw std::runtime_error("the caller's");
  } catch (std::exception &) {
    try {
      pool.atomically([](Root &r) {
        try {
          throw;
        } catch (std::exception &) {
          for (long i = 0; i < 50'000'000; ++i) r.list = new Node{r.list, ++r.sum};
        }
      });
    } catch (const perdure::error &) {
    }
  }
  check(std::current_exception() == nullptr, "no handler is left open");
  check(is.sum == 7, "such a block leaves nothing");
  pool.atomically([](Root &r) {
    std::vector<long> local;
    for (long i = 0; i < 20; ++i) local.push_back(i);
    r.numbers[1] = count_of(local);
  });
  check(is.numbers[1] == 19, "a vector in a block");
  pool.close();
  return failures == 0 ? 0 : 1;
}
"""
C_PROGRAM = """
static int add(void *by) { r->sum += *(unsigned long *)by; return 0; }
static int back(void *by) { (void)add(by); return 1; }
static int too_much(void *by) {
  for (;;) {
    struct root *const one = malloc(sizeof *one);
    one->next = r->next;
    r->next = one;
    r->sum += *(unsigned long *)by;
  }
}
int main(int n, char **a) {
  perdure_pool *p = use_pool(a);
  unsigned long by = 5;
  (void)n;
  printf("%s ", perdure_code_name(perdure_plain_atomically(p, PERDURE_DURABLE, add, &by)));
  printf("%s ", perdure_code_name(perdure_plain_atomically(p, PERDURE_DEFAULT, back, &by)));
  printf("%d ", perdure_plain_atomically(p, 77, add, &by) == PERDURE_INVALID);
  int code = perdure_plain_atomically(p, PERDURE_GROUP, too_much, &by);
  printf("%d ", code == PERDURE_FULL || code == PERDURE_TOO_BIG);
  printf("%lu\\n", r->sum);
  perdure_plain_end(p);
  return perdure_close(p, NULL);
}
"""


class Pass(Programs):
    CC, CXX = os.environ["PERDURE_CLANG"], os.environ["PERDURE_CLANGXX"]
    FLAGS = [f"-fpass-plugin={PASS}", "-Wall", "-Wextra", "-Werror",
             "-Wno-unused-parameter"]

    def built(self, text, *flags, suffix=".cpp", **how):
        if suffix == ".cpp":
            flags = ("-std=c++20", *flags)
        status, said = self.compile(text, *flags, suffix=suffix, **how)
        self.assertEqual(0, status, said)

    def run_it(self):
        self.path("pool").unlink(missing_ok=True)
        done = subprocess.run([self.path("program"), self.path("pool")], capture_output=True,
                              text=True, timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr

    def linked(self, *objects):
        status, said = self.link(*objects)
        self.assertEqual(0, status, said)

    def test_every_kind_of_access_at_every_level(self):
        for level in ("-O0", "-O1", "-O2", "-O3", "-Os"):
            self.built(ALL, level)
            self.linked(self.path("program.o"))
            self.assertEqual((0, SAID, ""), self.run_it(), level)

    def test_what_was_compiled_wrongly_once(self):
        for level in ("-O0", "-O1", "-O2", "-O3"):
            self.built(HARD, level)
            self.linked(self.path("program.o"))
            self.assertEqual((0, "", ""), self.run_it(), level)

    def test_copies_to_locals_are_not_saved(self):
        """An attempt that copies for long takes no memory for it."""
        self.built("""
            #include <sys/resource.h>
            #include <cstdio>
            #include "plain/plain.hpp"
            struct Root { static constexpr const char *layout_id = "r/1"; long v[20]; };
            long sum;
            int main(int, char **a) {
              perdure::PlainPool<Root> pool(a[1]);
              const auto kib = [] { rusage u; getrusage(RUSAGE_SELF, &u); return u.ru_maxrss; };
              const long before = kib();
              pool.atomically([](Root &r) {
                long all = 0;
                for (long i = 0; i < 500000; ++i) {
                  Root copy = r;
                  asm volatile("" : : "r"(0));
                  all += copy.v[i % 20];
                }
                sum = all;
              });
              std::printf("%d\\n", kib() - before < 50000);
            }""".replace('asm volatile("" : : "r"(0));', ""))
        self.linked(self.path("program.o"))
        self.assertEqual((0, "1\n", ""), self.run_it())

    def test_names_that_linkers_resolve(self):
        """Constructors have two names, weak functions several definitions."""
        self.built("""
            #include "plain/safe.h"
            struct Item { PERDURE_TRANSACTION_SAFE Item(long n); long n; };
            Item::Item(long v) : n(v) {}
            PERDURE_TRANSACTION_SAFE __attribute__((weak)) long which() { return 1; }
            PERDURE_TRANSACTION_SAFE __attribute__((weak)) long only() { return 5; }""")
        self.path("program.o").rename(self.path("one.o"))
        self.built("""
            #include "plain/safe.h"
            PERDURE_TRANSACTION_SAFE long which() { return 100; }""")
        self.path("program.o").rename(self.path("two.o"))
        self.built("""
            #include <cstdio>
            #include "plain/plain.hpp"
            struct Item { PERDURE_TRANSACTION_SAFE Item(long n); long n; };
            PERDURE_TRANSACTION_SAFE long which();
            PERDURE_TRANSACTION_SAFE long only();
            struct Root { static constexpr const char *layout_id = "r/1"; long sum; Item *item; };
            int main(int, char **a) {
              perdure::PlainPool<Root> pool(a[1]);
              pool.atomically([](Root &r) { r.item = new Item(3); r.sum = which() + only(); });
              std::printf("%ld\\n", pool.root().sum + pool.root().item->n);
            }""")
        self.linked(self.path("program.o"), self.path("one.o"), self.path("two.o"))
        self.assertEqual((0, "108\n", ""), self.run_it())

    def test_a_functions_own_name_is_not_the_librarys(self):
        self.built(OPEN + """
            static void mine(struct root *at) __asm__("abort");
            static __attribute__((noinline)) void mine(struct root *at) { at->sum += 5; }
            static int body(void *at) { mine(at); return 1; }
            static int one(void *at) { (void)at; r->sum += 1; return 0; }
            static int two(void *at) { (void)at; r->sum += 2; return 0; }
            static int either(perdure_pool *p, int n) {
              if (n > 1) return perdure_plain_atomically(p, PERDURE_DURABLE, one, r);
              return perdure_plain_atomically(p, PERDURE_DURABLE, two, r);
            }
            int main(int n, char **a) {
              perdure_pool *p = use_pool(a);
              int code = perdure_plain_atomically(p, PERDURE_DURABLE, body, r);
              printf("%d %lu ", code, r->sum);
              code = either(p, n);
              printf("%d %lu\\n", code, r->sum);
              return perdure_close(p, NULL);
            }""", "-Wno-unused-function", suffix=".c")
        self.linked(self.path("program.o"))
        self.assertEqual((0, "-1 0 0 1\n", ""), self.run_it())

    def test_sanitizers(self):
        flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1"]
        self.built(ALL, "-O1", *flags)
        status, said = self.run_tool(self.CXX, *flags, self.path("program.o"), *LIBRARIES,
                                     "-pthread", "-o", self.path("program"))
        self.assertEqual(0, status, said)
        self.assertEqual((0, SAID, ""), self.run_it())

    def test_what_the_pass_refuses(self):
        for before, statement, words in [
            ("long other(long);", "r.sum = other(r.sum);", "'other(long)', whose text is not in"),
            ("", "r.v = 1;", "a volatile access"),
            ("", "__atomic_store_n(&r.sum, 1, __ATOMIC_RELEASE);", "an atomic access"),
            ("static long pick(int n, Root *r) {\n"
             "  static void *const to[] = {&&a, &&b};\n  goto *to[n & 1];\n"
             "a:\n  return r->sum += 5;\nb:\n  return 0;\n}",
             "r.sum = pick((int)r.sum, &r);", "a computed goto"),
            ("", "r.sum = *(long __attribute__((address_space(257))) *)0;",
             "an access by a pointer of another address space"),
            ("struct Kept { ~Kept(); };", "throw Kept();",
             "an exception whose destructor, 'Kept::~Kept()', is not in this file"),
            ("", "__atomic_thread_fence(__ATOMIC_SEQ_CST);", "an atomic access or a fence"),
            ("", 'asm volatile("nop"); r.sum = 1;', "assembly"),
            ("perdure::PlainPool<Root> *p;", "p->atomically([](Root &s) { s.sum = 1; });",
             "a block inside of a block"),
            ("#include <cstdio>", 'std::printf("%ld", r.sum);', "a call of 'printf'"),
            ("struct alignas(64) Wide { long v[8]; };", "r.sum = (long)new Wide();",
             "a call of 'operator new(unsigned long, std::align_val_t)'"),
        ]:
            with self.subTest(statement):
                self.refused(IN_BLOCK % (before, statement), "perdure: found", words,
                             "in a block of a transaction", suffix=".cpp", flags=["-std=c++20"])

    def test_where_it_is_refused(self):
        status, said = self.compile(IN_BLOCK % ("", "\n\nr.v = 1;"), "-std=c++20", "-g1",
                                    suffix=".cpp")
        self.assertNotEqual(0, status)
        self.assertRegex(said, r"program\.cpp:7:\d+: error: ")

    def test_a_file_that_was_compiled_without_the_pass(self):
        self.built(ALL, "-Wno-unused", with_blocks=False)
        status, said = self.link(self.path("program.o"))
        self.assertNotEqual(0, status)
        self.assertIn("perdure_plain_instrumented", said)

    def test_functions_of_other_files(self):
        """The other file is compiled by the pass, by GCC for blocks, and plainly."""
        other = """
            #include "plain/safe.h"
            PERDURE_TRANSACTION_SAFE void other(long *at) { *at += 4; }"""
        main = """
            #include <cstdio>
            #include "plain/plain.hpp"
            struct Root { static constexpr const char *layout_id = "r/1"; long sum; };
            PERDURE_TRANSACTION_SAFE void other(long *at);
            int main(int, char **a) {
              perdure::PlainPool<Root> pool(a[1]);
              try {
                pool.atomically([](Root &r) { other(&r.sum); throw 1; });
              } catch (int) {
              }
              pool.atomically([](Root &r) { other(&r.sum); });
              std::printf("%ld\\n", pool.root().sum);
            }"""
        self.built(main)
        self.path("program.o").rename(self.path("main.o"))
        self.built(other)
        self.linked(self.path("main.o"), self.path("program.o"))
        self.assertEqual((0, "4\n", ""), self.run_it())
        status, said = self.run_tool(CXX, *GCC_FLAGS, "-O2", f"-I{self.source()}", "-c",
                                     self.path("program.cpp"), "-o", self.path("program.o"))
        self.assertEqual(0, status, said)
        self.linked(self.path("main.o"), self.path("program.o"))
        self.assertEqual((0, "4\n", ""), self.run_it())
        self.built(other, with_blocks=False)
        status, said = self.link(self.path("main.o"), self.path("program.o"))
        self.assertNotEqual(0, status)
        self.assertIn("other(long*)", said)

    def test_a_function_of_the_pass_in_a_block_of_gcc(self):
        self.built("""
            #include "plain/safe.h"
            PERDURE_TRANSACTION_SAFE void other(unsigned long *at);
            PERDURE_TRANSACTION_SAFE void other(unsigned long *at) { *at += 4; }""", suffix=".c")
        self.path("program.o").rename(self.path("other.o"))
        self.path("program.c").write_text(OPEN + """
            PERDURE_TRANSACTION_SAFE void other(unsigned long *at);
            int main(int n, char **a) {
              perdure_pool *p = use_pool(a);
              (void)n;
              __transaction_atomic { other(&r->sum); if (r->sum == 4) __transaction_cancel; }
              __transaction_atomic { other(&r->sum); other(&r->sum); }
              printf("%lu\\n", r->sum);
              perdure_plain_end(p);
              return perdure_close(p, NULL);
            }""", encoding="utf-8")
        status, said = self.run_tool(CC, *GCC_FLAGS, "-O2", f"-I{self.source()}", "-c",
                                     self.path("program.c"), "-o", self.path("program.o"))
        self.assertEqual(0, status, said)
        self.linked(self.path("other.o"), self.path("program.o"))
        self.assertEqual((0, "8\n", ""), self.run_it())

    def test_c(self):
        self.built(OPEN + C_PROGRAM, "-Wno-unused-function", suffix=".c")
        self.linked(self.path("program.o"))
        self.assertEqual((0, "ok aborted 1 1 5\n", ""), self.run_it())

    def test_a_function_behind_a_pointer_that_is_not_marked(self):
        marked = "PERDURE_TRANSACTION_SAFE static void add_one"
        self.built(ALL.replace(marked, "static void add_one"))
        self.linked(self.path("program.o"))
        status, _, said = self.run_it()
        self.assertEqual(-6, status)
        self.assertIn("a call through a pointer", said)
        self.assertIn("PERDURE_TRANSACTION_SAFE", said)


if __name__ == "__main__":
    unittest.main()
