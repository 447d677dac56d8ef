// SPDX-License-Identifier: BSD-3-Clause
//
// plain_list FILE: the doubly linked list of the REWIND paper as its Listing 1 has it: plain loads
// and stores in a `persistent atomic` block, and nothing else. The compiler inserts what
// rewind_list.hpp (Listing 2) writes out. The pool runs the paper's own engine.
#include <cstdio>
#include <papers/engines.hpp>
#include <plain/plain.hpp>

#define persistent
#define atomic __transaction_atomic

namespace {

struct Node {
  Node *prv, *nxt;
  std::uint64_t value;
};

struct List {
  static constexpr const char* layout_id = "plain_list::List/1";
  Node *head, *tail;

  void append(std::uint64_t value) {
    persistent atomic {
      Node* const n = new Node{tail, nullptr, value};
      if (tail)
        tail->nxt = n;
      else
        head = n;
      tail = n;
    }
  }
  // Listing 1.
  void remove(Node* n) {
    persistent atomic {
      if (n == tail) tail = n->prv;
      if (n == head) head = n->nxt;
      if (n->prv) n->prv->nxt = n->nxt;
      if (n->nxt) n->nxt->prv = n->prv;
      delete n;
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: plain_list FILE\n"), 2;
  try {
    perdure::papers::register_engines();
    perdure::Options options;
    options.engine = "rewind-1l-nfp-optimized";
    options.creation.max_size = std::uint64_t{1} << 30;
    options.creation.log_size = 8 << 20;
    perdure::PlainPool<List> pool(argv[1], options);
    List& list = pool.root();
    for (std::uint64_t value = 0; value < 10; ++value) list.append(value);
    bool odd = true;
    for (Node* n = list.head; n != nullptr; odd = !odd) {
      Node* const next = n->nxt;
      if (odd) list.remove(n);
      n = next;
    }
    try {
      pool.atomically([](List& l) {
        l.remove(l.head);
        throw "not this one";
      });
    } catch (const char*) {  // it is rolled back
    }
    for (const Node* n = list.head; n != nullptr; n = n->nxt)
      std::printf("%llu ", static_cast<unsigned long long>(n->value));
    std::printf("\n");
    pool.close();
    return 0;
  } catch (const perdure::error& e) {
    return std::fprintf(stderr, "plain_list: %s\n", e.what()), 1;
  }
}
