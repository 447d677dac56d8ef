// SPDX-License-Identifier: BSD-3-Clause
//
// What plain.hpp and plain.h call.
#include <utility>

#include "perdure/api/c_api.hpp"
#include "perdure/api/pool_base.hpp"
#include "plain/plain.h"
#include "plain/thread.hpp"

namespace perdure::plain {
namespace {

// What a pool runs its transactions with: a protected member, reached as a derived class does.
struct Door : PoolBase {
  static engine::DynamicRunner* runner(PoolBase& pool) { return pool.*(&Door::runner_); }
};

std::shared_ptr<Binding> bound(engine::DynamicRunner* runner, pool::OpenPool& file,
                               Durability durability) {
  if (runner == nullptr)
    throw error(failure(Code::unsupported, file.path(), "a pool whose engine is compiled in",
                        "one whose engine was chosen at opening", "open it as Pool<Root>"));
  return bind(*runner, file, durability);
}

}  // namespace

std::shared_ptr<Binding> bind(PoolBase& pool, Durability durability) {
  return bound(Door::runner(pool), pool.file(), durability);
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
    plain::use(pool == nullptr
                   ? nullptr
                   : plain::bind(pool->impl->runner(), pool->impl->file(), pool->durability));
    return PERDURE_OK;
  });
}

void* perdure_plain_root(perdure_pool* pool) { return pool->root; }

int perdure_plain_failure(void) {
  return perdure::c::guarded([] { return perdure::c::fail(plain::last_failure()); });
}

void perdure_plain_end(perdure_pool* pool) {
  (void)perdure::c::guarded([&] {
    if (const auto binding = plain::binding_of(pool->impl->file()); binding != nullptr)
      plain::end(binding);
    return PERDURE_OK;
  });
}

}  // extern "C"
