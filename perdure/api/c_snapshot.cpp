// SPDX-License-Identifier: BSD-3-Clause
//
// Snapshots in perdure.h. A snapshot's body has a perdure_tx like any other, through which it can
// only read; but it is no transaction, so updates and views inside it are transactions of their
// own. Thread safety: as perdure.h says.
#include <memory>
#include <utility>

#include "perdure/api/c_api.hpp"
#include "perdure/api/snapshot.hpp"
#include "perdure/backup/restore.hpp"

struct perdure_snapshot {
  std::shared_ptr<perdure::engine::OpenSnapshot> impl;
  perdure_pool* pool;  // to be used only while the snapshot is read: it may be closed otherwise
};

using namespace perdure;
using namespace perdure::c;

extern "C" {

int perdure_snapshot_open(perdure_pool* pool, perdure_durability when, perdure_snapshot** out) {
  if (out == nullptr)
    return fail(PERDURE_INVALID,
                "perdure_snapshot_open: found no place for the snapshot, expected the address of a "
                "perdure_snapshot*");
  *out = nullptr;
  if (inherited(pool)) return refuse_inherited();
  Durability durability;
  if (!understood(when, Durability::async, durability)) return PERDURE_INVALID;
  return guarded([&]() -> int {
    auto snapshot = std::make_unique<perdure_snapshot>();
    auto opened = pool->impl->snapshot(durability);
    if (!opened.ok()) return fail(opened.status());
    snapshot->impl = std::move(*opened);
    snapshot->pool = pool;
    *out = snapshot.release();
    return PERDURE_OK;
  });
}

int perdure_snapshot_view(perdure_snapshot* snapshot, perdure_body* body, void* arg) {
  return guarded([&] {
    const detail::SnapshotReader inside(*snapshot->impl);
    ErasedTx erased(*snapshot->impl);
    Call call{snapshot->pool, body, arg, true};
    run_body(erased, &call);
    snapshot->impl->must_be_sound();
    return PERDURE_OK;
  });
}

perdure_id perdure_snapshot_id(const perdure_snapshot* snapshot) { return snapshot->impl->id(); }

int perdure_snapshot_expired(const perdure_snapshot* snapshot) {
  return snapshot->impl->expired() ? 1 : 0;
}

int perdure_snapshot_copy(perdure_snapshot* snapshot, const char* path) {
  if (path == nullptr)
    return fail(PERDURE_INVALID, "perdure_snapshot_copy: found no path, expected a new file's");
  return guarded([&] {
    const detail::SnapshotReader inside(*snapshot->impl);
    detail::copy_to(*snapshot->impl, path, {});
    return PERDURE_OK;
  });
}

int perdure_snapshot_backup(perdure_snapshot* snapshot, const char* folder) {
  return guarded([&] {
    const detail::SnapshotReader inside(*snapshot->impl);  // the pool is open from here on
    (void)snapshot->pool->impl->back_up(*snapshot->impl, folder != nullptr ? folder : "", {});
    return PERDURE_OK;
  });
}

int perdure_restore(const char* folder, const char* path, perdure_id id) {
  if (folder == nullptr || path == nullptr)
    return fail(PERDURE_INVALID, "perdure_restore: found no folder or no path, expected both");
  return guarded([&] {
    RestorePoint to;
    if (id != PERDURE_NO_ID) to.id = id;
    (void)restore(folder, path, to);
    return PERDURE_OK;
  });
}

void perdure_snapshot_close(perdure_snapshot* snapshot) { delete snapshot; }

}  // extern "C"
