// SPDX-License-Identifier: BSD-3-Clause
//
// retired<C>: a container that this version of the program no longer uses, in the place of the one
// of its name. Opening the pool frees its elements and what they own, in batches; the next version
// leaves it out.
//
//     retired<map<std::string, std::uint64_t>> visits;
//
// What is left to free is in it, so it needs no record of its own: an opening that was killed is
// followed by one that goes on (Pool::open, docs/values.md).
// Thread safety: the opening's thread alone changes it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "perdure/api/batches.hpp"
#include "perdure/api/layout.hpp"
#include "perdure/api/owned.hpp"

namespace perdure {

/// A container that is emptied when the pool is opened. It has no elements for the program.
template <class C>
class retired {
 public:
  /// Frees what is left, up to `batch` heap blocks in each update (FREE-1, owned.hpp); called when
  /// the pool is opened. `run(f)` makes f(tx) an update.
  template <class Run>
  void catch_up(Run&& run, std::uint64_t batch) {
    detail::Batches batches(batch);
    for (bool done = false; !done;)
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
