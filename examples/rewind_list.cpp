// SPDX-License-Identifier: BSD-3-Clause
//
// rewind_list FILE: runs Listing 2 of the REWIND paper: appends ten nodes, removes every other one,
// rolls one removal back, and prints the list.
#include <cstdio>

#include "rewind_list.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: rewind_list FILE\n"), 2;
  try {
    perdure::Options options;
    options.creation.max_size = std::uint64_t{1} << 30;
    options.creation.log_size = 8 << 20;
    rewind_list::Manager tm(argv[1], options);
    for (std::uint64_t value = 0; value < 10; ++value) {
      const auto tID = tm.getNextID();
      append(tm, tID, value);
      tm.commit(tID);
    }
    bool odd = true;
    for (auto* n = tm.root().head; n != nullptr; odd = !odd) {
      auto* const next = n->nxt;
      if (odd) {
        const auto tID = tm.getNextID();
        remove(tm, tID, n);
        tm.commit(tID);
      }
      n = next;
    }
    const auto tID = tm.getNextID();
    remove(tm, tID, tm.root().head);
    tm.rollback(tID);
    for (const auto* n = tm.root().head; n != nullptr; n = n->nxt)
      std::printf("%llu ", static_cast<unsigned long long>(n->value));
    std::printf("\n");
    tm.close();
    return 0;
  } catch (const perdure::error& e) {
    return std::fprintf(stderr, "rewind_list: %s\n", e.what()), 1;
  }
}
