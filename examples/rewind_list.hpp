// SPDX-License-Identifier: BSD-3-Clause
//
// A doubly linked list in persistent memory, written with the calls of the REWIND paper (VLDB '15):
// remove() is its Listing 2, in our words. It calls log() before every store; loads and stores are
// plain.
#pragma once

#include <cstdint>
#include <papers/rewind/rewind_calls.hpp>

namespace rewind_list {

struct Node {
  Node *prv, *nxt;
  std::uint64_t value;
};

struct List {
  static constexpr const char* layout_id = "rewind_list::List/1";
  Node *head, *tail;

  /// For check(): the blocks that the list owns.
  template <class Tx, class F>
  void each_block(Tx&, F&& f) const {
    for (const Node* n = head; n != nullptr; n = n->nxt) f(n);
  }
};

using Manager = perdure::papers::rewind::TransactionManager<List>;

/// Listing 2, within a transaction of the caller.
inline void remove(Manager& tm, perdure::papers::rewind::TransactionId tID, Node* n) {
  List& list = tm.root();
  if (n == list.tail) {
    tm.log(tID, &list.tail, list.tail, n->prv);
    list.tail = n->prv;
  }
  if (n == list.head) {
    tm.log(tID, &list.head, list.head, n->nxt);
    list.head = n->nxt;
  }
  if (n->prv != nullptr) {
    tm.log(tID, &n->prv->nxt, n->prv->nxt, n->nxt);
    n->prv->nxt = n->nxt;
  }
  if (n->nxt != nullptr) {
    tm.log(tID, &n->nxt->prv, n->nxt->prv, n->prv);
    n->nxt->prv = n->prv;
  }
  // The paper deletes after the commit, and logs a DELETE record for a crash in between;
  // deallocate() does both.
  tm.deallocate(tID, n);
}

/// The same with one group, which is what Batch is for.
inline void append(Manager& tm, perdure::papers::rewind::TransactionId tID, std::uint64_t value) {
  List& list = tm.root();
  auto* const n = static_cast<Node*>(tm.allocate(tID, sizeof(Node)));
  tm.group(tID, {{&n->prv, list.tail},
                 {&n->nxt, nullptr},
                 {&n->value, value},
                 {list.tail != nullptr ? &list.tail->nxt : &list.head, n},
                 {&list.tail, n}});
}

}  // namespace rewind_list
