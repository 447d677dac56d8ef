#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a block can't be with GCC: each is refused by the compiler, the linker, or when the block
begins, with words that say what to do; nothing is compiled wrongly without a word."""

import unittest

from programs import OPEN, Programs


class Refusals(Programs):
    def test_bit_fields(self):
        text = "struct s { unsigned a : 3, b : 5, c : 8; } g;\n"
        block = "void f(void) { __transaction_atomic { %s } }\n"
        for flags in ("-O0", "-O1", "-O2", "-O3", "-Os"):
            for statement in ("g.a = 2;", "g.b += 1;", "struct s l = g; g.c = l.a + g.b;"):
                status, said = self.compile(text + block % statement, flags)
                self.assertNotEqual(0, status, (flags, statement))
                self.assertIn("a bit-field in a transaction", said)
                self.assertIn("make it a member of a whole type", said)
        # A struct that a function returns lies in its caller's memory.
        returned = """
            struct big { unsigned flag : 3, kind : 5; long a[4]; } target;
            __attribute__((noinline)) static struct big make(long *v) {
              struct big b = {1, 2, {*v}};
              b.flag = 3;
              return b;
            }"""
        self.refused(returned + block % "long l = target.a[0]; target = make(&l);",
                     "a bit-field in a transaction")
        safe = "__attribute__((transaction_safe)) void f(struct s *p) { p->b = 3; }\n"
        self.refused(text + safe, "a bit-field in a transaction")
        self.refused('extern "C" {' + text + safe + "}", "a bit-field in a transaction",
                     suffix=".cpp")
        # Outside of a block they are what they always are; so are those of a local.
        status, said = self.compile(text + "void e(void) { g.a = 2; }\n" +
                                    block % "struct s l = {1, 2, 3}; l.a = 2; (void)l;")
        self.assertEqual(0, status, said)

    def test_structs_that_pure_functions_return(self):
        text = """
            struct big { long a[4]; } target;
            __attribute__((noinline%s)) static struct big make(long v) {
              struct big b = {{v}};
              return b;
            }
            void f(long v) { __transaction_atomic { %s } }"""
        for of in ("", ", const", ", transaction_pure"):
            self.refused(text % (of, "target = make(v);"), "a struct that a function returns",
                         "store it to a local first")
        status, said = self.compile(text % ("", "struct big l = make(v); target = l;"))
        self.assertEqual(0, status, said)

    def test_what_the_compiler_refuses(self):
        block = ("int x; volatile int v;\nint other(int);\n"
                 "void f(void) { __transaction_atomic { %s } }")
        self.refused(block % "x = other(x);", "unsafe function call", "other")
        self.refused(block % "v = 1;", "volatile")
        self.refused(block % '__asm__("nop");', "asm")

    def test_new_of_what_is_aligned_to_more_than_16(self):
        """The compiler refuses it, or the linker: by whether <new> is included."""
        text = ("%s\nstruct alignas(32) wide { double v[4]; } *w;\n"
                "int main() { __transaction_atomic { w = new wide(); } }")
        self.refused(text % "#include <new>", "unsafe function call", suffix=".cpp")
        status, said = self.compile(text % "", suffix=".cpp")
        self.assertEqual(0, status, said)
        status, said = self.link(self.path("program.o"))
        self.assertNotEqual(0, status)
        self.assertIn("operator new(unsigned long, std::align_val_t)", said)

    def test_a_header_without_the_compilers_support(self):
        self.refused('#include "plain/plain.hpp"\n', "link perdure::plain",
                     suffix=".cpp", with_blocks=False)

    def test_a_function_that_was_compiled_plainly(self):
        status, said = self.compile("void other(void) {}\n", with_blocks=False)
        self.assertEqual(0, status, said)
        self.path("program.o").rename(self.path("other.o"))
        status, said = self.compile(OPEN + """
            __attribute__((transaction_safe)) void other(void);
            int main(void) { __transaction_atomic { other(); } return 0; }""")
        self.assertEqual(0, status, said)
        status, said = self.link(self.path("program.o"), self.path("other.o"))
        self.assertNotEqual(0, status)
        self.assertIn("other", said)

    def test_no_pool_or_several(self):
        self.dies("int main(void) { __transaction_atomic { if (r) r->sum = 1; } return 0; }",
                  "where 0 pools are open", "perdure::PlainPool::use()")
        self.dies("""
            int main(int n, char **a) {
              char other[300];
              snprintf(other, sizeof other, "%s-other", a[1]);
              perdure_plain_use(open_pool(a[1]));
              perdure_plain_use(open_pool(other));
              perdure_plain_use(NULL);
              __transaction_atomic { if (r) r->sum = (unsigned long)n; }
              return 0;
            }""", "where 2 pools are open")

    def test_a_pool_that_is_closed(self):
        self.dies("""
            int main(int n, char **a) {
              perdure_pool *p = use_pool(a);
              __transaction_atomic { r->sum = (unsigned long)n; }
              perdure_plain_end(p);
              perdure_close(p, NULL);
              __transaction_atomic { r->sum = 2; }
              return 0;
            }""", "which is closed")

    def test_a_relaxed_block_that_can_not_be_undone(self):
        self.dies("""
            int main(int n, char **a) {
              perdure_pool *p = use_pool(a);
              __transaction_relaxed { r->sum = (unsigned long)n; puts("never"); }
              return 0;
            }""", "no transaction can undo")

    def test_a_cancel_inside_another_block(self):
        self.dies("""
            int main(int n, char **a) {
              perdure_pool *p = use_pool(a);
              __transaction_atomic {
                r->sum = (unsigned long)n;
                __transaction_atomic { r->sum = 2; if (r->sum == 2) __transaction_cancel; }
              }
              return 0;
            }""", "__transaction_cancel in a block inside another one")

    def test_a_store_to_the_heaps_own_structures(self):
        self.dies("""
            int main(int n, char **a) {
              perdure_pool *p = use_pool(a);
              r = (struct root *)((size_t)perdure_plain_root(p) & ~(size_t)0xffff) - 1;
              __transaction_atomic { r->sum = (unsigned long)n; }
              return 0;
            }""", "a store to an address of the pool that is no object's")

    def test_a_block_after_the_threads_end(self):
        """In a handler of atexit() the main thread's state is gone."""
        done = self.run_program("""
            static perdure_pool *p;
            static void at_end(void) {
              __transaction_atomic { r->sum += 1; }
              printf("%lu\\n", r->sum);
              fflush(stdout);
            }
            int main(int n, char **a) {
              (void)n;
              atexit(at_end);
              p = use_pool(a);
              __transaction_atomic { r->sum += 1; }
              return 0;
            }""")
        self.assertEqual((0, "2\n"), (done.returncode, done.stdout), done.stderr)

    def test_a_function_behind_a_pointer(self):
        done = self.run_program("""
            __attribute__((transaction_safe)) static void add(unsigned long *x) { *x += 5; }
            static void (*call)(unsigned long *) __attribute__((transaction_safe)) = add;
            int main(int n, char **a) {
              (void)n;
              perdure_pool *p = use_pool(a);
              __transaction_atomic { call(&r->sum); }
              printf("%lu\\n", r->sum);
              perdure_plain_end(p);
              return perdure_close(p, NULL);
            }""")
        self.assertEqual((0, "5\n"), (done.returncode, done.stdout), done.stderr)


if __name__ == "__main__":
    unittest.main()
