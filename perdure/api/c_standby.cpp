// SPDX-License-Identifier: BSD-3-Clause
//
// Standbys in perdure.h: perdure::Standby with a pool whose root is a number of bytes.
// Thread safety: as perdure.h says.
#include <algorithm>
#include <memory>
#include <utility>

#include "perdure/api/c_api.hpp"
#include "perdure/replication/standby.hpp"

struct perdure_standby {
  perdure::c::Opening opening;  // of the pool when it is promoted
  std::unique_ptr<perdure::replication::StandbyCopy> copy;
  std::unique_ptr<perdure_pool> pool;  // after it: it ends first
  perdure::base::Owner owner = {};
};

using namespace perdure;
using namespace perdure::c;

namespace {

// Ends the object of a forked child, whose threads are the parent's: nothing of it ends here.
int end_inherited(std::unique_ptr<perdure_standby> standby) noexcept {
  (void)standby->pool->impl.release();
  (void)standby->copy.release();
  return refuse_inherited();
}

// Runs f(), which may end the standby, unless this is a forked child or a body.
template <class F>
int end(const char* call, perdure_standby* standby, F&& f) noexcept {
  return guarded([&]() -> int {
    if (open_on(standby->pool.get(), true) != nullptr)
      return fail(failure(Code::invalid, call, "a body on the standby's pool that makes this call",
                          "a call outside of it"));
    std::unique_ptr<perdure_standby> owned(standby);
    if (owned->owner.is_parent()) return end_inherited(std::move(owned));
    (void)owned->pool->impl->close();
    owned->pool.reset();
    return f(*owned);
  });
}

}  // namespace

extern "C" {

int perdure_standby_open(const char* path, const perdure_options* given, const char* backups,
                         uint64_t take_over_after, perdure_standby** out) {
  return guarded([&]() -> int {
    if (out == nullptr)
      return fail(PERDURE_INVALID,
                  "perdure_standby_open: found no place for the standby, expected the address of a "
                  "perdure_standby*");
    *out = nullptr;
    auto opening = read_opening("perdure_standby_open", path, given);
    if (!opening) return fail(opening.status());
    const Options& o = opening->options;
    if (o.read_only || o.must_create)
      return fail(failure(Code::invalid, path,
                          "a standby with PERDURE_OPEN_READ_ONLY or PERDURE_MUST_CREATE",
                          "neither: it is written by its log, and read through its pool", {}));
    StandbyOptions follows;
    follows.replicate = o.replicate;
    follows.medium = o.medium;
    follows.readers = o.readers;
    follows.archive = o.archive;
    if (backups != nullptr) follows.backups = backups;
    follows.take_over_after = milliseconds_of(take_over_after);
    auto standby = std::make_unique<perdure_standby>();
    auto copy = replication::StandbyCopy::open(path, follows);
    if (!copy) return fail(copy.status());
    standby->copy = std::move(*copy);
    Opening reads{opening->path, {}, opening->root};
    reads.options.read_only = true;
    reads.options.medium = o.medium;
    reads.options.readers = o.readers;
    auto pool = open_pool(reads);
    if (!pool) return fail(pool.status());
    standby->pool = std::move(*pool);
    standby->pool->of_standby = true;
    standby->opening = std::move(*opening);
    standby->opening.options.create = false;
    *out = standby.release();
    return PERDURE_OK;
  });
}

perdure_pool* perdure_standby_pool(perdure_standby* standby) {
  return standby->owner.is_parent() ? nullptr : standby->pool.get();
}

int perdure_standby_get_status(perdure_standby* standby, perdure_standby_status* out) {
  if (standby->owner.is_parent()) return refuse_inherited();
  return guarded([&]() -> int {
    const StandbyStatus s = standby->copy->status();
    *out = {s.follows ? 1 : 0,
            s.caught_up ? 1 : 0,
            s.took_over ? 1 : 0,
            static_cast<std::uint64_t>(s.behind.count()),
            s.id,
            s.term,
            s.sequence,
            s.messages,
            s.bytes,
            s.checkpoint_id};
    return s.end.ok() ? fail(PERDURE_OK, s.problem.c_str()) : fail(s.end);
  });
}

int perdure_standby_catch_up(perdure_standby* standby, uint64_t milliseconds) {
  if (standby->owner.is_parent()) return refuse_inherited();
  return guarded([&] { return fail(standby->copy->catch_up(milliseconds_of(milliseconds))); });
}

int perdure_standby_took_over(perdure_standby* standby, uint64_t milliseconds) {
  if (standby->owner.is_parent()) return refuse_inherited();
  return guarded([&]() -> int {
    const auto took = standby->copy->took_over(milliseconds_of(milliseconds));
    if (!took) return fail(took.status());
    return *took ? PERDURE_OK
                 : fail(PERDURE_EXPIRED, "perdure_standby_took_over: the copy still follows");
  });
}

int perdure_standby_promote(perdure_standby* standby, perdure_pool** out) {
  if (out == nullptr)
    return fail(PERDURE_INVALID,
                "perdure_standby_promote: found no place for the pool, expected the address of a "
                "perdure_pool*");
  *out = nullptr;
  return end("perdure_standby_promote", standby, [out](perdure_standby& owned) -> int {
    if (Status s = owned.copy->claim(); !s.ok()) return fail(s);
    owned.copy.reset();
    auto pool = open_pool(owned.opening);
    if (!pool) return fail(pool.status());
    *out = pool->release();
    return PERDURE_OK;
  });
}

int perdure_standby_close(perdure_standby* standby) {
  if (standby == nullptr) return PERDURE_OK;
  return end("perdure_standby_close", standby,
             [](perdure_standby& owned) { return fail(owned.copy->close()); });
}

}  // extern "C"
