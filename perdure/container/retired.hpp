// SPDX-License-Identifier: BSD-3-Clause
//
// retired<C>: declares that this version of the program no longer uses the container C of this
// field. Opening the pool frees its elements and what they own, in batches. The next version of the
// program leaves the field out.
//
//     retired<map<std::string, std::uint64_t>> visits;
//
// The elements that are left in it are those that are still to be freed. So after an opening that
// was killed, the next one continues (Pool::open, docs/values.md).
// Thread safety: only the thread that opens the pool changes it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "perdure/api/batches.hpp"
#include "perdure/api/layout.hpp"
#include "perdure/api/owned.hpp"

namespace perdure {

/// A container that is emptied when the pool is opened. The program can't use its elements.
template <class C>
class retired {
 public:
  /// Frees the blocks that are left, up to `batch` of them per update (FREE-1, owned.hpp); called
  /// when the pool is opened. `run(f)` runs f(tx) as an update.
  template <class Run>
  void catch_up(Run&& run, std::uint64_t batch) {
    detail::Batches batches(batch);
    bool done = false;
    while (!done)
      batches.once(run, [&](auto& tx, std::uint64_t blocks) {
        done = detail::free_some_owned(tx, old_, blocks);
      });
  }

  /// For Pool::check(): those of the container.
  template <class Tx, class F>
    requires requires(const C& c, Tx& tx, F f) { c.each_block(tx, f); }
  void each_block(Tx& tx, F f) const {
    old_.each_block(tx, f);
  }
  /// For Pool::check(): those of the container.
  template <class Tx, class F>
    requires requires(const C& c, Tx& tx, F f) { c.each_object(tx, f); }
  void each_object(Tx& tx, F f) const {
    old_.each_object(tx, f);
  }
  /// For Pool::check(): those of the container.
  template <class Tx, class F>
    requires requires(const C& c, Tx& tx, F f) { c.each_pointer(tx, f); }
  void each_pointer(Tx& tx, F f) const {
    old_.each_pointer(tx, f);
  }
  /// For Pool::check(): that of the container.
  template <class Tx>
    requires requires(const C& c, Tx& tx) { c.audit(tx); }
  [[nodiscard]] auto audit(Tx& tx) const {
    return old_.audit(tx);
  }

  /// What stands for it in the layout text of a root (layout.hpp).
  static std::string layout_text(LayoutNames& names) { return "retired<" + names.name<C>() + ">"; }

 private:
  C old_;
};

}  // namespace perdure
