// SPDX-License-Identifier: BSD-3-Clause
//
// Functions that a block calls through pointers: each executable and shared object tells at its
// start which of its functions has which instrumented form.
#include <algorithm>
#include <cstdio>
#include <mutex>
#include <vector>

#include "perdure/base/at_fork.hpp"
#include "plain/itm.hpp"
#include "plain/thread.hpp"

namespace perdure::plain {
namespace {

struct Clone {
  void *function, *instrumented;
};
struct Tables {
  struct Table {
    const void* at;
    std::vector<Clone> clones;  // by function
  };
  std::mutex mutex;
  std::vector<Table> all;
};
Tables& tables() {
  static Tables& known = *new Tables;  // never destroyed: objects are unloaded after statics
  return known;
}
[[maybe_unused]] const int held = base::hold_over_fork<tables>();

void* clone_of(void* function) noexcept {
  const std::lock_guard lock(tables().mutex);
  for (const Tables::Table& table : tables().all) {
    const auto found =
        std::lower_bound(table.clones.begin(), table.clones.end(), function,
                         [](const Clone& clone, const void* f) { return clone.function < f; });
    if (found != table.clones.end() && found->function == function) return found->instrumented;
  }
  return nullptr;
}

void* must_have_clone(void* function) noexcept {
  if (void* const clone = clone_of(function); clone != nullptr) return clone;
  char text[96];
  (void)std::snprintf(text, sizeof text,
                      "a call through a pointer to %p, which was compiled plainly", function);
  die(text, "mark the function PERDURE_TRANSACTION_SAFE, and compile its file for blocks");
}

}  // namespace
}  // namespace perdure::plain

extern "C" {

void _ITM_registerTMCloneTable(void* table, std::size_t entries) {
  using namespace perdure::plain;  // NOLINT(google-build-using-namespace)
  const auto* const first = static_cast<const Clone*>(table);
  std::vector<Clone> clones(first, first + entries);
  std::sort(clones.begin(), clones.end(),
            [](const Clone& a, const Clone& b) { return a.function < b.function; });
  const std::lock_guard lock(tables().mutex);
  tables().all.push_back({table, std::move(clones)});
}

void _ITM_deregisterTMCloneTable(void* table) {
  using namespace perdure::plain;  // NOLINT(google-build-using-namespace)
  const std::lock_guard lock(tables().mutex);
  std::erase_if(tables().all, [table](const Tables::Table& one) { return one.at == table; });
}

void* _ITM_getTMCloneOrIrrevocable(void* function) {
  return perdure::plain::must_have_clone(function);
}
void* _ITM_getTMCloneSafe(void* function) { return perdure::plain::must_have_clone(function); }

}  // extern "C"
