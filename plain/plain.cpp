// SPDX-License-Identifier: BSD-3-Clause
//
// What plain.hpp and plain.h call.
#include <map>
#include <mutex>
#include <utility>

#include "perdure/api/c_api.hpp"
#include "perdure/api/pool_base.hpp"
#include "perdure/base/at_fork.hpp"
#include "plain/plain.h"
#include "plain/thread.hpp"

namespace perdure::plain {
namespace {

// What a pool runs its transactions with: a protected member, reached as a derived class does.
struct Door : PoolBase {
  static engine::DynamicRunner* runner(PoolBase& pool) { return pool.*(&Door::runner_); }
};

engine::DynamicRunner& runner_of(PoolBase& pool) {
  engine::DynamicRunner* const runner = Door::runner(pool);
  if (runner == nullptr)
    throw error(failure(Code::unsupported, pool.file().path(), "a pool whose engine is compiled in",
                        "one whose engine was chosen at opening", "open it as Pool<Root>"));
  return *runner;
}

// The bindings of perdure.h's pools, from perdure_plain_use() to perdure_plain_end().
struct OfC {
  std::mutex mutex;
  std::map<const perdure_pool*, std::shared_ptr<Binding>> pools;
};
OfC& of_c() {
  static OfC& bindings = *new OfC;  // never destroyed: threads may outlive statics
  return bindings;
}
[[maybe_unused]] const int held = base::hold_over_fork<of_c>();

}  // namespace

std::shared_ptr<Binding> bind(PoolBase& pool, Durability durability) {
  return bind(runner_of(pool), pool.file(), durability);
}

std::shared_ptr<Binding> make_binding(PoolBase& pool) {
  return make_binding(runner_of(pool), pool.file(), Durability::durable);
}

std::byte* root_address(PoolBase& pool) {
  pool::OpenPool& file = pool.file();
  return file.view() + file.root_offset();
}

void use(std::shared_ptr<Binding> binding) { this_thread().chosen = std::move(binding); }

void end(const std::shared_ptr<Binding>& binding) noexcept { binding->end(); }

Status last_failure() { return this_thread().last; }

}  // namespace perdure::plain

namespace plain = perdure::plain;

extern "C" {

int perdure_plain_use(perdure_pool* pool) {
  return perdure::c::guarded([&] {
    std::shared_ptr<plain::Binding> binding;
    if (pool != nullptr) {
      binding = plain::bind(pool->impl->runner(), pool->impl->file(), pool->durability);
      const std::lock_guard lock(plain::of_c().mutex);
      plain::of_c().pools.insert_or_assign(pool, binding);
    }
    plain::use(std::move(binding));
    return PERDURE_OK;
  });
}

void* perdure_plain_root(perdure_pool* pool) { return pool->root; }

int perdure_plain_failure(void) {
  return perdure::c::guarded([] { return perdure::c::fail(plain::last_failure()); });
}

int perdure_plain_run(perdure_pool* pool, perdure_durability when, int (*body)(void* arg),
                      void* arg) {
  struct RolledBack {};
  struct Call {
    int (*body)(void*);
    void* arg;
  } call{body, arg};
  if (perdure::c::inherited(pool)) return perdure::c::refuse_inherited();
  perdure::Durability durability;
  if (!perdure::c::understood(when, pool->durability, durability)) return PERDURE_INVALID;
  return perdure::c::guarded([&]() -> int {
    try {
      plain::run(
          plain::make_binding(pool->impl->runner(), pool->impl->file(), durability), durability,
          [](void* of) {
            const Call& c = *static_cast<const Call*>(of);
            if (c.body(c.arg) != 0) throw RolledBack();
          },
          &call);
      return PERDURE_OK;
    } catch (const RolledBack&) {
      return perdure::c::fail(PERDURE_ABORTED,
                              "the block was rolled back: its function returned other than 0");
    }
  });
}

void perdure_plain_end(perdure_pool* pool) {
  const std::lock_guard lock(plain::of_c().mutex);
  const auto found = plain::of_c().pools.find(pool);
  if (found == plain::of_c().pools.end()) return;
  plain::end(found->second);
  plain::of_c().pools.erase(found);
}

}  // extern "C"
