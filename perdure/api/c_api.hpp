// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of perdure.h share: the handles, how a failure becomes a code and a text, and how
// a body runs. c_api.cpp implements it, and all calls but perdure_open() (c_open.cpp) and those of
// snapshots (c_snapshot.cpp) and standbys (c_standby.cpp).
// Thread safety: as perdure.h says. A thread's open transactions form a chain, through which nested
// calls join.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "perdure/api/erased.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/perdure.h"

struct perdure_pool {
  std::unique_ptr<perdure::ErasedPool> impl;
  perdure::Durability durability;
  std::byte* view = nullptr;
  std::byte* root = nullptr;
  std::uint64_t first_data = 0;  // an offset; the heap's own structures lie below
  bool raised = false;           // directory words, or checksums, lie above `first_data`, too
  bool of_standby = false;       // it ends with it
  perdure::base::Owner owner = {};
};

struct perdure_tx {
  perdure::ErasedTx& tx;
  perdure_pool& pool;
  perdure_tx* const outer;
  bool writable;
  const bool of_snapshot;  // no transaction: no call joins it
  int code = PERDURE_OK;
  std::exception_ptr failure = {};
};

namespace perdure::c {

/// Keeps the text for perdure_message(), and returns the code.
int fail(int code, const char* text) noexcept;
/// The same for a Status; PERDURE_OK for success.
int fail(const Status& s) noexcept;
/// Returns the code of the exception in flight, and keeps its text.
int caught() noexcept;
/// Runs f() -> code.
template <class F>
int guarded(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    return caught();
  }
}

/// Returns whether this handle was carried through fork(): no call may be made on such a pool,
/// since other threads of the parent may have held its mutexes.
bool inherited(const perdure_pool* pool) noexcept;
/// The failure of a call on such a handle.
int refuse_inherited() noexcept;

/// The calling thread's innermost transaction on the pool or, with `snapshots`, the innermost of
/// all bodies that it runs on the pool; null: it is in none.
perdure_tx* open_on(const perdure_pool* pool, bool snapshots = false) noexcept;

/// A body, and what it runs on.
struct Call {
  perdure_pool* pool;
  perdure_body* body;
  void* arg;
  bool of_snapshot = false;
};
/// Runs the body of the Call at `arg`, and throws what has failed in it.
void run_body(ErasedTx& erased, void* arg);

/// What perdure_options say.
struct Opening {
  std::string path;
  Options options;
  ErasedPool::Root root;
};
/// Reads the options of the call `call`; null: the default ones. Errors: `invalid`.
Result<Opening> read_opening(const char* call, const char* path, const perdure_options* given);
/// Opens the pool. Errors: as ErasedPool::open().
Result<std::unique_ptr<perdure_pool>> open_pool(const Opening& opening);
/// Milliseconds of a C caller, who may name any number.
std::chrono::milliseconds milliseconds_of(std::uint64_t n) noexcept;

/// Sets `out` to what `when` means, where `own` is the default. False: it is no durability, which
/// perdure_message() then says.
bool understood(perdure_durability when, Durability own, Durability& out) noexcept;

}  // namespace perdure::c
