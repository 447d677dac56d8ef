// SPDX-License-Identifier: BSD-3-Clause
//
// walk_blocks, audit: every heap block that an object leads to, and every problem that the
// containers in it report.
//
// check() compares the blocks found with the heap's: a block that nothing leads to is a leak, one
// that two containers own is a double use. A container owns its blocks. A ptr<T> field only leads
// to a block: several may lead to one, in circles too, and T's own fields are walked the first
// time. A raw pool pointer held as a container's key or value leads to a block in the same way.
// Thread safety: that of the transaction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/api/checked.hpp"
#include "perdure/api/fields.hpp"
#include "perdure/api/layout.hpp"
#include "perdure/api/named_tx.hpp"
#include "perdure/api/persistent.hpp"

namespace perdure {

namespace detail {

/// Walks with a list of what remains to be entered, not by recursion: a hand-made list may be a
/// million nodes long.
template <class Tx, class F, class Audit>
class Walk {
 public:
  Walk(Tx& tx, F& f, Audit& audit) : tx_(tx), f_(f), audit_(audit) {}

  template <class T>
  void object(const T& x, const std::string& path) {
    if constexpr (std::is_array_v<T>) {
      for (const auto& element : x) object(element, path);
    } else if constexpr (is_std_array<T>) {
      for (const auto& element : x) object(element, path);
    } else if constexpr (requires { x.each_block(tx_, [](const void*) {}); }) {
      if constexpr (requires { x.audit(tx_); }) {
        const auto problems = x.audit(tx_);
        for (const auto& problem : problems) audit_(path, problem);
        if (!problems.empty()) return;  // its nodes may hold anything
      }
      x.each_block(tx_, [this](const void* block) { this->f_(block, true); });
      if constexpr (requires { x.each_object(tx_, [](const auto&) {}); })
        x.each_object(tx_, [this](const auto& inner) { this->later(inner); });
      if constexpr (requires { x.each_pointer(tx_, [](auto*) {}); })
        x.each_pointer(tx_, [this](auto* to) { this->reached(to); });
    } else if constexpr (is_field<T>) {
      if constexpr (std::is_pointer_v<typename T::value_type>) reached(tx_.read(x));
    } else if constexpr (opened_by_fields<T>) {
      std::size_t index = 0;
      for_each_field(x, [&](const auto& field) {
        object(field, path + (path.empty() ? "" : ".") + std::to_string(index++));
      });
    }
  }

  void rest() {
    while (!open_.empty()) {
      const auto [where, enter] = open_.back();
      open_.pop_back();
      enter(*this, where);
    }
  }

 private:
  using Enter = void (*)(Walk&, const void*);
  /// An object that the one before owns: its block is known.
  template <class T>
  void later(const T& inner) {
    open_.emplace_back(std::addressof(inner), [](Walk& walk, const void* where) {
      walk.object(*static_cast<const T*>(where), "[]");
    });
  }
  template <class T>
  void reached(T* to) {
    if (to == nullptr || !f_(static_cast<const void*>(to), false)) return;
    if constexpr (!std::is_void_v<T>) {
      open_.emplace_back(to, [](Walk& walk, const void* where) {
        walk.object(*static_cast<const T*>(where), "*");
      });
    }
  }

  Tx& tx_;
  F& f_;
  Audit& audit_;
  std::vector<std::pair<const void*, Enter>> open_;
};

}  // namespace detail

/// Calls `f(block, owned) -> bool` for every block that `object` leads to, except those of
/// containers that report a problem. A block is owned by a container (the result of f is not used),
/// or reached through a pointer (f returns whether it was new; only then it is entered).
/// `problem(path, text)` receives what containers report.
template <class Tx, class T, class F, class Problem>
void walk_blocks(Tx& tx, const T& object, F f, Problem problem) {
  detail::Walk<Tx, F, Problem> walk(tx, f, problem);
  walk.object(object, "");
  walk.rest();
}
template <class Tx, class T, class F>
void walk_blocks(Tx& tx, const T& object, F f) {
  walk_blocks(tx, object, std::move(f), [](const std::string&, const std::string&) {});
}

/// Returns the problems of the containers that `object` leads to, each with its field; empty when
/// there are none. `f` as for walk_blocks.
template <class Tx, class T, class F>
[[nodiscard]] std::vector<std::string> audit(Tx& tx, const T& object, F f) {
  std::vector<std::string> problems;
  walk_blocks(tx, object, std::move(f), [&](const std::string& path, const std::string& text) {
    problems.push_back("field " + path + ": " + text);
  });
  return problems;
}

/// What check() compares with the heap: the blocks that `root` leads to; a block that is owned
/// twice is listed twice.
struct OwnedBlocks {
  std::vector<std::uint64_t> offsets;  ///< in the data region
  std::vector<std::string> problems;   ///< reported by containers
  bool whole = true;                   ///< the walk has seen every block
};

namespace detail {
/// Audits a root object: calls `block` for each block, and returns the problems.
using AuditRoot = std::vector<std::string> (*)(void* arg,
                                               const std::function<bool(const void*, bool)>& block);
/// owned_blocks(), the part that needs no types.
[[nodiscard]] OwnedBlocks owned_by(const std::byte* data, std::uint64_t data_bytes,
                                   AuditRoot audit_root, void* arg);
}  // namespace detail

/// `data`: the address of the data region, which is `data_bytes` long. Whatever is in it, no read
/// leaves it (checked.hpp). A walk that finds more blocks than it can hold goes in circles and is
/// ended.
template <class AnyTx, class Root>
[[nodiscard]] OwnedBlocks owned_blocks(AnyTx& any, const Root& root, const std::byte* data,
                                       std::uint64_t data_bytes) {
  detail::CheckedTransaction<AnyTx> transaction(any, data, data_bytes);
  rtx checked(transaction);
  struct Walked {
    rtx& tx;
    const Root& root;
  } walked{checked, root};
  return detail::owned_by(
      data, data_bytes,
      [](void* arg, const std::function<bool(const void*, bool)>& block) {
        auto& of = *static_cast<Walked*>(arg);
        return audit(of.tx, of.root, block);
      },
      &walked);
}

}  // namespace perdure
