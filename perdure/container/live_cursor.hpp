// SPDX-License-Identifier: BSD-3-Clause
//
// live_cursor: the list of an update's cursors, with which a walk continues correctly while its
// container changes. One rule holds for all containers, for cursors and for for_each:
//
//   An element that is there from the beginning of a walk to its end is visited once. One that is
//   erased is not visited afterwards. One that is added may be visited or not.
//
// A cursor whose element was erased stands before the next one: next() leads there, and reading the
// element throws error(invalid). map, rb_tree, hash_map and list keep the cursors of their thread
// in a list, and each change updates those that it concerns; without a cursor a change costs one
// comparison. vector and queue count their elements, and read the counts in each step. Cursors of a
// view are in no list, because nothing changes during a view.
// Thread safety: a cursor belongs to the thread of its transaction.
// Invariants:
// CURSOR-1 Between two calls a cursor of an update leads to an element that is there, or to none.
#pragma once

#include <utility>

#include "perdure/api/persistent.hpp"

namespace perdure::detail {

class live_cursor {
 public:
  /// `live`: the cursor belongs to an update, so that its container may change.
  live_cursor(const void* container, bool live) noexcept : container_(container) {
    if (live) enter();
  }
  live_cursor(const live_cursor& other) noexcept : container_(other.container_) {
    if (other.self_ != nullptr) enter();
  }
  live_cursor& operator=(const live_cursor& other) noexcept {
    container_ = other.container_;
    if ((other.self_ != nullptr) != (self_ != nullptr)) other.self_ != nullptr ? enter() : leave();
    return *this;
  }
  ~live_cursor() {
    if (self_ != nullptr) leave();
  }

  /// Calls f(cursor) for each live cursor of this container on this thread.
  template <class F>
  static void each(const void* container, F&& f) {
    for (live_cursor* c = first_; c != nullptr; c = c->next_) {
      if (c->container_ == container) f(*c);
    }
  }
  /// Returns whether the thread has any live cursor: called before each change.
  [[nodiscard]] static bool any() noexcept { return first_ != nullptr; }

  /// Throws: the element of a cursor was read after it was erased.
  [[noreturn]] static void erased() {
    throw error(Status(Code::invalid,
                       "perdure: found a cursor whose element was erased, expected one with an "
                       "element: call next(), or look up another"));
  }

 protected:
  [[nodiscard]] const void* container() const noexcept { return container_; }
  /// Makes this a cursor of another container, or of none.
  void move_to(const void* container) noexcept { container_ = container; }

 private:
  void enter() noexcept {
    next_ = first_;
    if (next_ != nullptr) next_->self_ = &next_;
    self_ = &first_;
    live_cursor* self = this;
    // Without this GCC warns of a dangling pointer; the destructor takes it back.
    asm("" : "+r"(self));
    first_ = self;
  }
  void leave() noexcept {
    *self_ = next_;
    if (next_ != nullptr) next_->self_ = self_;
    self_ = nullptr;
  }

  const void* container_;
  live_cursor* next_ = nullptr;
  live_cursor** self_ = nullptr;  ///< the pointer to this; null when it is in no list
  static inline constinit thread_local live_cursor* first_ = nullptr;
};

/// While update() runs its function, the changed value's place must stay: the value is stored there
/// afterwards. `what`, an address under which no cursor is listed, is the element or its container.
class being_changed : private live_cursor {
 public:
  explicit being_changed(const void* what) noexcept : live_cursor(what, true) {}

  /// Throws error(invalid) while there is one of these for `what`.
  static void refuse(const void* what) {
    live_cursor::each(what, [](auto&) {
      throw error(Status(Code::invalid,
                         "perdure: found an element added or erased by the function that is given "
                         "to update(), expected one that changes only its value: add and erase "
                         "before or after"));
    });
  }
};

}  // namespace perdure::detail
