// SPDX-License-Identifier: BSD-3-Clause
//
// Gives a pool the layout of the program that opens it: the part that depends on the root type. It
// belongs to pool.hpp, which includes it at its end.
// Thread safety: only the thread that opens the pool; no other thread has it yet.
#pragma once

#include <algorithm>
#include <any>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "perdure/api/batches.hpp"
#include "perdure/api/copies.hpp"
#include "perdure/api/pool.hpp"
#include "perdure/api/row_steps.hpp"
#include "perdure/api/switch.hpp"
#include "perdure/api/value_in.hpp"
#include "perdure/pool/format.hpp"

namespace perdure {

namespace detail {

/// Tables whose rows go through their steps when they are read, and what settle() knows of them.
struct Unsettled {
  std::mutex mutex;
  std::shared_ptr<const Plan> plan;
  /// Of value/late.hpp, until the pool is closed: a view may still read a row that is settled
  /// beside it, before it is run again.
  std::vector<std::shared_ptr<const void>> held;
  std::map<std::string, std::any, std::less<>> left;  ///< by table; those that are not done
};

/// Calls f(field) for each field of an object, and for the fields of structs in it.
template <class T, class F>
void each_leaf(T& object, F&& f) {
  if constexpr (opened_by_fields<std::remove_const_t<T>>)
    for_each_field(object, [&](auto& field) { each_leaf(field, f); });
  else
    f(object);
}

}  // namespace detail

// Gives a pool without a catalog one that has this program's layout (CATALOG-2).
template <class Derived, class Root>
void TypedPool<Derived, Root>::add_catalog() {
  const std::string text = detail::root_type<Root>().text();
  detail::NewCatalog made;
  // mutant: late-catalog-before-header
  update(Durability::durable, [&](auto& tx, Root& root) {
    made = detail::store_catalog(tx, const_cast<std::byte*>(this->data()),
                                 reinterpret_cast<std::byte*>(&root), sizeof(Root), text);
  });
  this->adopt_catalog(made.at, made.bytes);
}

// Gives the pool this program's layout (switch.hpp). A pool that never had a transaction has no
// initial values yet, and gets those of this program's root type.
template <class Derived, class Root>
void TypedPool<Derived, Root>::change_layout(const detail::Plan& plan) {
  refuse_duplicates(plan);
  std::unique_ptr<detail::Copies> copies;
  if (!plan.copied.empty() && !this->empty_)
    copies = std::make_unique<detail::Copies>(plan, this->catalog());
  const detail::RootType type = detail::root_type<Root>();
  detail::Plan moved = plan;
  if (this->empty_) moved.moves.clear();
  std::byte* root = nullptr;
  try {
    if (copies != nullptr) copy_objects(plan, *copies);
    update(Durability::durable, [&](auto& tx, Root&) {
      detail::Image<Root> image;
      if constexpr (std::is_default_constructible_v<Root>)
        ::new (static_cast<void*>(image.at())) Root();
      root = detail::switch_layout(tx, this->catalog(), moved, image.at(), sizeof(Root),
                                   type.text(), this->header().root_bytes, copies.get());
    });
  } catch (const error& e) {
    // Rolled back, so that the list has the copies, which the next opening could not use either.
    if (copies == nullptr || (e.code() != Code::full && e.code() != Code::too_big)) throw;
    // mutant: copies-without-room
    drop_copies(plan.migrate.batch);
    this->refuse_copies(*copies, e);
  }
  this->move_root(root, sizeof(Root));
}

// Copies the objects behind pointers whose structs differ (MOVE-1).
template <class Derived, class Root>
void TypedPool<Derived, Root>::copy_objects(const detail::Plan& plan, detail::Copies& copies) {
  checked_view([&](rtx& tx, const Root& root) {
    const auto* const old = reinterpret_cast<const std::byte*>(&root);
    copies.begin();
    detail::each_leaf(root, [&]<class Field>(const Field& field) {
      if constexpr (detail::holds_pointers<Field>) {
        const auto at = static_cast<std::uint64_t>(
            reinterpret_cast<const std::byte*>(std::addressof(field)) - old);
        for (const detail::PointerContainer& one : plan.root_containers)
          if (one.to == at)
            reinterpret_cast<const Field*>(old + one.from)->each_place(tx, [&](const auto& place) {
              copies.lead_from(one, tx.read(place));
            });
      }
    });
    copies.find(tx, old);
    if (copies.none()) return;
    // What the root's containers own, where they lie in the old root object. Rows that need a step
    // can't be read yet, so the containers are not audited.
    detail::each_leaf(root, [&]<class Field>(const Field& field) {
      const auto own = [&](const void* block) { copies.owned(block); };
      if constexpr (requires { field.each_block(tx, own); }) {
        const auto at = static_cast<std::uint64_t>(
            reinterpret_cast<const std::byte*>(std::addressof(field)) - old);
        if (const auto place = plan.old_place(at, sizeof(Field)))
          reinterpret_cast<const Field*>(old + *place)->each_block(tx, own);
      }
    });
    this->owned_by_catalog(copies, [&](void* to, const std::byte* from, std::size_t n) {
      tx.read_bytes(to, from, n);
    });
  });
  this->expect_blocks(copies);
  if (!copies.go_on()) {
    drop_copies(plan.migrate.batch);
    copies.drop();
  }
  if (!copies.none()) this->will_have_copies();
  detail::Batches reserving(plan.migrate.batch), copying(plan.migrate.batch);
  const auto run = [&](auto&& f) { update(Durability::async, [&](auto& tx, Root&) { f(tx); }); };
  while (!copies.all_reserved()) {
    reserving.once(run, [&](auto& tx, std::uint64_t n) {
      detail::CopyTxOver over(tx);
      copies.reserve(over, n);
    });
    copies.reserved();
  }
  while (!copies.all_copied()) {
    copying.once(run, [&](auto& tx, std::uint64_t n) {
      detail::CopyTxOver over(tx);
      copies.copy(over, n);
    });
    copies.copied(plan.migrate);
  }
}

// Makes the pointers that are values of the root's containers lead to the copies (MOVE-1). It takes
// memory for a list of these pointers.
template <class Derived, class Root>
void TypedPool<Derived, Root>::lead_containers_to_copies(std::uint64_t batch) {
  const auto run = [&](auto&& f) { update(Durability::async, [&](auto& tx, Root&) { f(tx); }); };
  std::unordered_map<std::uint64_t, std::uint64_t> copies;
  bool read = false;
  detail::each_leaf(root(), [&]<class Field>(Field& field) {
    if constexpr (detail::holds_pointers<Field>) {
      if (!std::exchange(read, true))
        view([&](auto& tx, const Root&) {
          copies = this->copied_objects(
              [&](void* to, const std::byte* from, std::size_t n) { tx.read_bytes(to, from, n); });
        });
      if (copies.empty()) return;
      std::vector<std::pair<std::byte*, std::uint64_t>> places;
      view([&](auto& tx, const Root&) {
        places.clear();
        field.each_place(tx, [&](const auto& place) {
          const auto found = copies.find(reinterpret_cast<std::uint64_t>(tx.read(place)));
          if (found != copies.end())
            places.emplace_back(
                reinterpret_cast<std::byte*>(
                    const_cast<std::remove_cvref_t<decltype(place)>*>(std::addressof(place))),
                found->second);
        });
      });
      detail::Batches batches(batch);
      std::size_t to = 0;
      for (std::size_t from = 0; from < places.size(); from = to)
        batches.once(run, [&](auto& tx, std::uint64_t n) {
          to = from + std::min<std::size_t>(places.size() - from, n);
          for (std::size_t i = from; i < to; ++i)
            tx.write_bytes(places[i].first, &places[i].second, sizeof places[i].second);
        });
    }
  });
}

// Frees what the list of copies owns: copies that are of no use, or objects that were copied.
template <class Derived, class Root>
void TypedPool<Derived, Root>::drop_copies(std::uint64_t batch) {
  detail::Batches batches(batch);
  const auto run = [&](auto&& f) { update(Durability::async, [&](auto& tx, Root&) { f(tx); }); };
  bool done = false;
  while (!done)
    batches.once(run, [&](auto& tx, std::uint64_t n) {
      detail::CopyTxOver over(tx);
      done = detail::free_copies(over, this->catalog(), n);
    });
}

// Throws error(exists) if rows would share a unique member, or elements a key, after the change.
template <class Derived, class Root>
void TypedPool<Derived, Root>::refuse_duplicates(const detail::Plan& plan) {
  std::string problems;
  for (const detail::NewPart& part : plan.parts) {
    if (!part.is_unique) continue;
    const detail::RowSteps steps(plan.migrate.steps, part.path.substr(0, part.path.rfind('.')));
    view([&](auto& tx, const Root& root) {
      const auto* const old = reinterpret_cast<const std::byte*>(&root);
      detail::each_leaf(root, [&](const auto& field) {
        const auto at = static_cast<std::uint64_t>(
            reinterpret_cast<const std::byte*>(std::addressof(field)) - old);
        if constexpr (requires { field.shared_values(tx, old, part.path, steps); })
          if (at == part.table_to) {
            const std::uint64_t n =
                field.shared_values(tx, old + part.table_from, part.path, steps);
            if (n != 0)
              problems += (problems.empty() ? "" : "; ") + std::to_string(n) +
                          " rows share their '" + part.path + "' with an earlier row";
          }
      });
    });
  }
  for (const detail::RebuiltField& one : plan.rebuilt) {
    view([&](auto& tx, const Root& root) {
      const auto* const old = reinterpret_cast<const std::byte*>(&root);
      detail::each_leaf(root, [&]<class Field>(const Field& field) {
        const auto at = static_cast<std::uint64_t>(
            reinterpret_cast<const std::byte*>(std::addressof(field)) - old);
        if constexpr (requires { Field::shared_after(tx, old, plan.migrate.steps, one.path); })
          if (at == one.to) {
            const std::string shared =
                Field::shared_after(tx, old + one.from, plan.migrate.steps, one.path);
            if (!shared.empty()) problems += (problems.empty() ? "" : "; ") + shared;
          }
      });
    });
  }
  if (!problems.empty()) this->refuse_rows(problems);
}

// Does the work that follows a switch, one update per batch, and then clears the catalog's mark of
// pending work (SWITCH-2).
template <class Derived, class Root>
void TypedPool<Derived, Root>::catch_up(const std::shared_ptr<const detail::Plan>& plan) {
  const Migration& migrate = plan->migrate;
  const std::uint64_t batch = std::max<std::uint64_t>(migrate.batch, 1);
  // mutant: containers-before-old-objects
  lead_containers_to_copies(batch);
  drop_copies(batch);
  const detail::RootType type = detail::root_type<Root>();
  const auto run = [&](auto&& f) { update(Durability::async, [&](auto& tx, Root&) { f(tx); }); };
  const auto look = [&](auto&& f) { view([&](auto& tx, const Root&) { f(tx); }); };
  detail::each_leaf(root(), [&](auto& field) {
    const auto at = static_cast<std::uint64_t>(
        reinterpret_cast<const std::byte*>(std::addressof(field)) - this->root_);
    const std::string path = detail::path_at(type, at);
    const auto done = [&](std::uint64_t n) {
      if (migrate.progress) migrate.progress(path, n);
    };
    if constexpr (requires { field.read_late(this->data(), 0, detail::RowSteps({}, {}), plan); }) {
      if (std::find(plan->lazy.begin(), plan->lazy.end(), path) != plan->lazy.end()) {
        if (this->unsettled_ == nullptr) this->unsettled_ = std::make_shared<detail::Unsettled>();
        // No record of an earlier version will lie behind the data region's end.
        this->unsettled_->held.push_back(field.read_late(
            this->data(), this->data_bytes(), detail::RowSteps(migrate.steps, path), plan));
        this->unsettled_->plan = plan;
        this->unsettled_->left[path];
      }
    }
    if (this->unsettled_ != nullptr && this->unsettled_->left.contains(path)) return;
    if constexpr (requires { field.catch_up_rebuilt(run, look, batch, migrate.steps, path, done); })
      field.catch_up_rebuilt(run, look, batch, migrate.steps, path, done);
    else if constexpr (requires { field.catch_up(run, batch); })
      field.catch_up(run, batch);
    else if constexpr (requires { field.catch_up_rows(run, look, batch); })
      field.catch_up_rows(run, look, batch, detail::RowSteps(migrate.steps, path), done);
    else if constexpr (requires {
                         catch_up_records(field, run, look, batch, detail::RowSteps({}, {}), done);
                       })
      catch_up_records(field, run, look, batch, detail::RowSteps(migrate.steps, path), done);
  });
  if (this->unsettled_ == nullptr) finish_catching_up();
}

template <class Derived, class Root>
bool TypedPool<Derived, Root>::settle(std::uint64_t n) {
  const std::shared_ptr<detail::Unsettled> unsettled = this->unsettled_;
  if (unsettled == nullptr) return true;
  const std::lock_guard lock(unsettled->mutex);
  const detail::RootType type = detail::root_type<Root>();
  const auto run = [&](auto&& f) { update(Durability::async, [&](auto& tx, Root&) { f(tx); }); };
  const auto look = [&](auto&& f) { view([&](auto& tx, const Root&) { f(tx); }); };
  detail::each_leaf(root(), [&](auto& field) {
    std::any keys;
    if constexpr (requires { field.settle_some(run, look, n, detail::RowSteps({}, {}), keys); }) {
      const auto at = static_cast<std::uint64_t>(
          reinterpret_cast<const std::byte*>(std::addressof(field)) - this->root_);
      const auto left = unsettled->left.find(detail::path_at(type, at));
      if (left == unsettled->left.end()) return;
      const detail::RowSteps steps(unsettled->plan->migrate.steps, left->first);
      if (field.settle_some(run, look, n, steps, left->second)) unsettled->left.erase(left);
    }
  });
  if (!unsettled->left.empty()) return false;
  if (unsettled->plan != nullptr) finish_catching_up();
  unsettled->plan = nullptr;
  return true;
}

// The work that follows a switch is done.
template <class Derived, class Root>
void TypedPool<Derived, Root>::finish_catching_up() {
  update(Durability::durable, [&](auto& tx, Root&) {
    const std::uint64_t none = 0;
    tx.write_bytes(this->catalog() + offsetof(pool::Catalog, pending), &none, sizeof none);
  });
}

}  // namespace perdure
