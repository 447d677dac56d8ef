// SPDX-License-Identifier: BSD-3-Clause
//
// rebuilt<New, Old>: a container that this version of the program makes from the container that the
// pool has in the same field. It may have another key, other members by which rows are found,
// another layout of elements that lie in nodes, or be of another kind.
//
//     rebuilt<table<User, key<&User::name>>, table<v1::User, key<&v1::User::id>>> users;
//
// The program uses it as a New. Opening the pool moves the elements, in batches. If an element
// can't be converted without the program's help, Options::migrate.steps has a step that makes a new
// element from an old one. Both containers exist until the last element has moved. The next version
// of the program declares a New alone.
// Thread safety: only the thread that opens the pool moves elements; otherwise that of New.
// Invariants:
// REBUILD-1 An element of a container that is rebuilt is moved by one transaction, which takes it
// from the old container and adds it to the new one; a vector's elements are copied in order, and
// the old vector is emptied once the new container has all of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/api/batches.hpp"
#include "perdure/api/element_steps.hpp"
#include "perdure/api/layout.hpp"
#include "perdure/container/shared_keys.hpp"
#include "perdure/container/table_row.hpp"
#include "perdure/container/table_shared.hpp"
#include "perdure/value/placement.hpp"
#include "perdure/value/type_of.hpp"

namespace perdure {

namespace detail {

/// Whether a container holds rows that have numbers.
template <class C>
concept numbers_rows = requires { typename C::shared; };
/// Whether a container has keys and values.
template <class C>
concept maps_keys = !numbers_rows<C> && requires { typename C::mapped_type; };

/// Whether several elements of a container may have the same key.
template <class C>
concept shares_keys = requires { requires C::shares_keys; };

/// The type of a container's elements for a step: a table's row, a map's std::pair of key and
/// value, or the element of another container.
template <class C>
struct element_of {
  using type = typename C::value_type;
};
template <maps_keys C>
struct element_of<C> {
  using type = std::pair<typename C::key_type, typename C::mapped_type>;
};

/// Calls f(element) for each element.
template <class C, class Tx, class F>
void each_element(const C& c, Tx& tx, F f) {
  if constexpr (numbers_rows<C>)
    c.each_row(tx, f);
  else if constexpr (maps_keys<C>)
    c.for_each(tx, [&](const auto& key, const auto& value) {
      f(typename element_of<C>::type(key, value));
    });
  else
    c.for_each(tx, [&](const auto& value) { f(value); });
}

/// Adds an element. Throws error(exists) if the container has an element with its key.
template <class C, class Tx>
void add_element(C& c, Tx& tx, const typename element_of<C>::type& element) {
  const auto require = [](bool added) {
    if (!added)
      throw error(Status(Code::exists,
                         "perdure::rebuilt: found another element with the same key, expected "
                         "none: a step must depend on its element alone"));
  };
  if constexpr (numbers_rows<C>) {
    require(c.insert(tx, element));
  } else if constexpr (maps_keys<C>) {
    if constexpr (shares_keys<C>)
      (void)c.insert(tx, element.first, element.second);
    else
      require(c.insert(tx, element.first, element.second));
  } else if constexpr (requires { typename C::key_type; }) {
    require(c.insert(tx, element));
  } else if constexpr (requires { c.push_back(tx, element); }) {
    c.push_back(tx, element);
  } else {
    c.push(tx, element);
  }
}

/// Finds elements that can't both be in one container, such as two with one key.
template <class C>
struct shared_elements {
  void add(const typename element_of<C>::type&) {}
  [[nodiscard]] std::string text(const std::string&) { return {}; }
};
template <numbers_rows C>
struct shared_elements<C> : C::shared {};
template <class C>
  requires(!numbers_rows<C> && !shares_keys<C> && requires { typename C::key_type; })
struct shared_elements<C> {
  void add(const typename element_of<C>::type& element) {
    if constexpr (maps_keys<C>)
      keys_.add(element.first);
    else
      keys_.add(element);
  }
  [[nodiscard]] std::string text(const std::string& path) { return keys_.met.text("key", path); }

 private:
  shared_keys<typename C::key_type> keys_;
};

}  // namespace detail

/// A New that opening the pool makes from an Old. Both are containers of values (text, numbers,
/// structs), not of containers. It must be a field of the root object. Calls: those of New.
template <class New, class Old>
class rebuilt : public New {
  using Element = typename detail::element_of<New>::type;
  using Before = typename detail::element_of<Old>::type;
  static_assert(value::described<Element>() && value::described<Before>(),
                "perdure::rebuilt: elements are values: a container in a container is not copied");

 public:
  /// Finds elements of the Old at `old` that would be equal in the New after `steps`, and returns a
  /// text for a message; empty if there are none. It holds the new keys in DRAM.
  template <class Tx>
  [[nodiscard]] static std::string shared_after(Tx& tx, const std::byte* old,
                                                const std::vector<MigrationStep>& steps,
                                                const std::string& path) {
    const detail::ElementSteps by = steps_for(steps, path);
    detail::shared_elements<New> all;
    detail::each_element(*reinterpret_cast<const Old*>(old), tx, [&](const Before& before) {
      Element now{};
      by.make(std::addressof(before), std::addressof(now));
      all.add(now);
    });
    return all.text(path);
  }

  /// Moves the elements that are left in the Old, up to `batch` elements per update; called when
  /// the pool is opened. `run(f)` runs f(tx) as an update, `look(f)` as a view; `done(n)` is called
  /// when n elements have been moved.
  template <class Run, class Look, class Done>
  void catch_up_rebuilt(Run&& run, Look&& look, std::uint64_t batch,
                        const std::vector<MigrationStep>& steps, const std::string& path,
                        Done&& done) {
    detail::Batches batches(batch);
    const detail::ElementSteps by = steps_for(steps, path);
    const auto move = [&](auto& tx, const Before& before) {
      Element now{};
      by.make(std::addressof(before), std::addressof(now));
      detail::add_element<New>(*this, tx, now);
    };
    std::uint64_t moved = 0;
    // add() never gives a row the key of an earlier one.
    if constexpr (detail::numbers_rows<Old> && detail::numbers_rows<New>)
      run([&](auto& tx) { New::go_on_with_number(tx, old_.next_number(tx)); });
    if constexpr (detail::numbers_rows<Old>) {
      std::vector<detail::row*> rows;  // no other thread has the pool yet
      look([&](auto& tx) { rows = old_.rows_by_number(tx); });
      while (moved < rows.size()) {
        std::uint64_t to = moved;
        batches.once(run, [&](auto& tx, std::uint64_t n) {
          to = moved + std::min<std::uint64_t>(rows.size() - moved, n);
          for (std::uint64_t i = moved; i < to; ++i) {
            const auto [before, number] = old_.take_numbered(tx, rows[i]);
            if constexpr (detail::numbers_rows<New>) {
              Element now{};
              by.make(std::addressof(before), std::addressof(now));
              New::add_numbered(tx, now, number);
            } else {
              move(tx, before);
            }
          }
        });
        done(moved = to);
      }
    } else {
      bool empty = false;
      while (!empty) {
        std::uint64_t now = 0;
        batches.once(run, [&](auto& tx, std::uint64_t n) {
          now = 0;  // the transaction may be run again
          empty = take_some(tx, n, [&](const Before& before) {
            ++now;
            move(tx, before);
          });
        });
        moved += now;
        if (now != 0) done(moved);
      }
    }
    free_old(run, batches);
  }

  /// For Pool::check(): the blocks of both containers.
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    New::each_block(tx, f);
    old_.each_block(tx, f);
  }
  /// The faults of both containers.
  template <class Tx>
  [[nodiscard]] std::vector<std::string> audit(Tx& tx) const {
    std::vector<std::string> out = New::audit(tx);
    for (std::string& one : old_.audit(tx)) out.push_back("before: " + std::move(one));
    return out;
  }

  /// What stands for it in the layout text of a root (layout.hpp).
  static std::string layout_text(LayoutNames& names) {
    const std::string now = names.name<New>(), before = names.name<Old>();
    std::string text = "rebuilt<" + now + "," + before + ">";
    names.note_rebuild({text, before, before_at(), sizeof(Old), &value::type_of<Before>(),
                        &value::type_of<Element>()});
    return text;
  }

 private:
  static detail::ElementSteps steps_for(const std::vector<MigrationStep>& steps,
                                        const std::string& path) {
    return {steps, path, value::type_of<Before>(), value::type_of<Element>()};
  }
  /// The Old begins at a cache line of its own, so that it shares none with the New.
  static constexpr std::size_t line = 64;
  static_assert(alignof(New) <= line && alignof(Old) <= line);
  /// Where old_ is.
  static constexpr std::uint64_t before_at() { return (sizeof(New) + line - 1) / line * line; }
  /// Frees what the old container still owns (FREE-1, owned.hpp): the elements of a vector, which
  /// were copied, or the blocks that other containers have even when they are empty.
  template <class Run>
  void free_old(Run& run, detail::Batches& batches) {
    bool done = false;
    while (!done)
      batches.once(run, [&](auto& tx, std::uint64_t blocks) {
        done = detail::free_some_owned(tx, old_, blocks);
      });
  }
  /// Calls f(element) for up to n elements, and removes them from the old container, but not from a
  /// vector, which is copied. Returns whether no element is left.
  template <class Tx, class F>
  bool take_some(Tx& tx, std::uint64_t n, F f) {
    if constexpr (detail::maps_keys<Old>) {
      return old_.take_some(tx, n,
                            [&](const auto& key, const auto& value) { f(Before(key, value)); });
    } else if constexpr (requires { old_.take_some(tx, n, f); }) {
      return old_.take_some(tx, n, f);
    } else if constexpr (requires { old_.get(tx, n); } && !requires { old_.pop_front(tx); }) {
      const std::uint64_t size = old_.size(tx);
      for (std::uint64_t i = New::size(tx); i < size && n > 0; ++i, --n) f(old_.get(tx, i));
      return New::size(tx) >= size;
    } else {
      for (; n > 0; --n) {
        const auto element = [&] {
          if constexpr (requires { old_.pop_front(tx); })
            return old_.pop_front(tx);
          else
            return old_.pop(tx);
        }();
        if (!element) return true;
        f(*element);
      }
      return old_.empty(tx);
    }
  }

  alignas(line) Old old_;
};

}  // namespace perdure
