// SPDX-License-Identifier: BSD-3-Clause
//
// rebuilt<New, Old>: a container that this version of the program makes of the one that the pool
// has in its place: with another key, other members by which rows are found, elements that lie in
// nodes and have another layout, or a container of another kind.
//
//     rebuilt<table<User, key<&User::name>>, table<v1::User, key<&v1::User::id>>> users;
//
// It is a New. Opening the pool moves the elements, in batches; Options::migrate.steps say how one
// is made of an earlier one, where it does not become so by itself. The next version declares a New
// alone. Both lie side by side until the last element is moved.
// Thread safety: the opening's thread alone moves elements; otherwise New's.
// Invariants:
// REBUILD-1 An element is moved by one transaction, which takes it from the old container and adds
// it to the new one. A vector's elements are copied in order: the new container has as many as were
// copied, and the old one is emptied once it has all.
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
/// Whether it has keys and values.
template <class C>
concept maps_keys = !numbers_rows<C> && requires { typename C::mapped_type; };

/// Whether several of its elements may have one key.
template <class C>
concept shares_keys = requires { requires C::shares_keys; };

/// What a container's elements are, for a step: a table's row, a map's std::pair of key and value,
/// another one's element.
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

/// Adds an element. Throws error(exists) where there is one of its key.
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

/// Finds elements that a container can't have both.
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

/// A New that opening the pool makes of an Old. Both are containers of values: text, numbers,
/// structs, not containers in containers. `New` as in that class; in the root object alone.
template <class New, class Old>
class rebuilt : public New {
  using Element = typename detail::element_of<New>::type;
  using Before = typename detail::element_of<Old>::type;
  static_assert(value::described<Element>() && value::described<Before>(),
                "perdure::rebuilt: elements are values: a container in a container is not copied");

 public:
  /// What is equal among the elements of the Old at `old` once they have gone through `steps`, for
  /// a message; empty when nothing is. It holds the new keys in DRAM.
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

  /// Moves what is left, up to `batch` elements in each update; called when the pool is opened.
  /// `run(f)` makes f(tx) an update, `look(f)` a view; `done(n)` is called when n elements were
  /// moved.
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
      std::vector<detail::row*> rows;  // nobody else has the pool yet
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
      for (bool empty = false; !empty;) {
        std::uint64_t now = 0;
        batches.once(run, [&](auto& tx, std::uint64_t n) {
          now = 0;  // it may be run again
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

  /// For Pool::check(): those of both.
  template <class Tx, class F>
  void each_block(Tx& tx, F f) const {
    New::each_block(tx, f);
    old_.each_block(tx, f);
  }
  /// What is wrong with either.
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
  /// A whole cache line begins there, so that it shares no bytes with New's last one.
  static constexpr std::size_t line = 64;
  static_assert(alignof(New) <= line && alignof(Old) <= line);
  /// Where old_ is.
  static constexpr std::uint64_t before_at() { return (sizeof(New) + line - 1) / line * line; }
  /// Frees what the old container still owns (FREE-1, owned.hpp): all elements of a vector, which
  /// are copied, and of the others what is left of an empty one.
  template <class Run>
  void free_old(Run& run, detail::Batches& batches) {
    for (bool done = false; !done;)
      batches.once(run, [&](auto& tx, std::uint64_t blocks) {
        done = detail::free_some_owned(tx, old_, blocks);
      });
  }
  /// Calls f(element) for up to n elements, which leave the old container; a vector's are copied.
  /// Returns whether there is none left.
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
