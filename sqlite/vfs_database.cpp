// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "sqlite/blocks.hpp"
#include "sqlite/vfs_files.hpp"

namespace perdure::sqlite {
namespace {

// Fields of a database's header (SQLite's file format, 1.3): the versions that are needed to write
// and to read it, 2 for WAL; and the field that the pager compares to find out whether the pages in
// its cache are still those of the file.
constexpr std::uint64_t versions_at = 18, versions_end = 20, change_counter_at = 24,
                        change_counter_bytes = 16;
constexpr unsigned char wal = 2, rollback = 1;

/// Whether bytes [offset, offset + n) of a database say that it is in WAL mode.
bool says_wal(const unsigned char* bytes, std::uint64_t n, std::uint64_t offset) noexcept {
  for (std::uint64_t at = versions_at; at < versions_end; ++at)
    if (at >= offset && at - offset < n && bytes[at - offset] == wal) return true;
  return false;
}
void say_rollback(unsigned char* bytes, std::uint64_t n, std::uint64_t offset) noexcept {
  for (std::uint64_t at = versions_at; at < versions_end; ++at)
    if (at >= offset && at - offset < n && bytes[at - offset] == wal) bytes[at - offset] = rollback;
}

struct DatabaseFile : FileCalls<DatabaseFile> {
  sqlite3_file base;
  std::unique_ptr<const Opening> how;  // separate, so that this has standard layout
  std::shared_ptr<Store> store;        // null: it was busy at the last attempt
  Lock lock = Lock::none;
  bool waits = true;             // synchronous is not OFF
  sqlite3* const* db = nullptr;  // the connection
  base::Owner owner;
  bool cached_wal = false;  // SQLite's cached page 1 is older than write()'s change of it

  static DatabaseFile& of(sqlite3_file* at) { return *reinterpret_cast<DatabaseFile*>(at); }
  /// Call this only under a lock that acquire() gave: then the store exists.
  [[nodiscard]] File& file() const noexcept { return *store; }
  void must_be_own() const {
    if (owner.is_parent()) refuse_inherited(how->name);
  }
  struct Nothing {};
  [[nodiscard]] Nothing guard() const {  // SQLite's own lock is held
    must_be_own();
    // This throws here if there are too many threads, and not inside a call of a medium.
    (void)base::thread_slot();
    return {};
  }

  // A backup copies page 1 of a database in WAL mode as it is. A pool has no WAL, and SQLite could
  // no longer open the copy, so the header says rollback: in what is written and, for pools to
  // which an earlier build wrote it, in what is read.
  static int write(sqlite3_file* at, const void* from, int n, sqlite3_int64 offset) {
    const auto* const bytes = static_cast<const unsigned char*>(from);
    const auto size = static_cast<std::uint64_t>(n), place = static_cast<std::uint64_t>(offset);
    if (!says_wal(bytes, size, place)) return FileCalls::write(at, from, n, offset);
    return guarded([&] {
      std::vector<unsigned char> changed(bytes, bytes + size);
      say_rollback(changed.data(), size, place);
      of(at).cached_wal = true;
      return FileCalls::write(at, changed.data(), n, offset);
    });
  }
  static int read(sqlite3_file* at, void* to, int n, sqlite3_int64 offset) {
    DatabaseFile& me = of(at);
    if (me.owner.is_parent()) return FileCalls::read(at, to, n, offset);  // the call refuses it
    // Without a lock SQLite reads only the header, when it opens the file, to learn the size of a
    // page; it looks again in each transaction.
    const bool unlocked = me.lock == Lock::none;
    const bool can =
        me.store != nullptr && guarded([&] { return (void)me.guard(), SQLITE_OK; }) == SQLITE_OK;
    if (unlocked && (!can || !me.store->locks().lock(Lock::none, Lock::shared))) {
      std::memset(to, 0, static_cast<std::size_t>(n));
      return SQLITE_IOERR_SHORT_READ;
    }
    const int code = FileCalls::read(at, to, n, offset);
    if (unlocked) me.store->locks().unlock(Lock::shared, Lock::none);
    auto* const bytes = static_cast<unsigned char*>(to);
    say_rollback(bytes, static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(offset));
    // The cached page 1 still says WAL. It is dropped when the next transaction finds a change
    // counter other than the one it remembers.
    if (me.cached_wal && offset == change_counter_at && n == change_counter_bytes) {
      me.cached_wal = false;
      bytes[0] = static_cast<unsigned char>(~bytes[0]);
    }
    return code;
  }
  static int close(sqlite3_file* at) {
    DatabaseFile& me = of(at);
    if (me.lock != Lock::none) unlock(at, SQLITE_LOCK_NONE);
    me.owner.is_parent() ? Store::abandon(me.store) : Store::release(me.store);
    me.~DatabaseFile();
    return SQLITE_OK;
  }
  /// The first lock of a transaction: opens the store if it was busy, or was closed so that another
  /// connection could write.
  static int acquire(DatabaseFile& me) {
    return guarded([&] {
      (void)me.guard();
      for (;;) {
        if (me.store != nullptr && me.store->locks().closed()) Store::release(me.store);
        if (me.store == nullptr)
          me.store = Store::open(me.how->name, me.how->options, me.how->design);
        if (me.store->locks().lock(Lock::none, Lock::shared)) return SQLITE_OK;
        if (!me.store->locks().closed()) return SQLITE_BUSY;
      }
    });
  }
  static int size(sqlite3_file* at, sqlite3_int64* bytes) {
    DatabaseFile& me = of(at);
    if (me.lock != Lock::none) return FileCalls::size(at, bytes);
    // VACUUM INTO asks whether the file has content before its first transaction.
    if (const int code = acquire(me); code != SQLITE_OK) return code;
    const int code = FileCalls::size(at, bytes);
    me.store->locks().unlock(Lock::shared, Lock::none);
    return code;
  }
  static int lock_to(sqlite3_file* at, int level) {
    DatabaseFile& me = of(at);
    const auto to = static_cast<Lock>(level);
    if (to <= me.lock) return SQLITE_OK;
    if (me.owner.is_parent()) return acquire(me);  // the call refuses it
    if (to >= Lock::reserved && me.how->options.read_only) return SQLITE_READONLY;
    if (me.lock == Lock::none) {
      if (const int code = acquire(me); code != SQLITE_OK) return code;
      me.lock = Lock::shared;
      if (to == Lock::shared) return SQLITE_OK;
    }
    const Lock from = me.lock;
    if (!me.store->locks().lock(from, to)) {
      if (to == Lock::exclusive && from < Lock::pending && from >= Lock::reserved)
        me.lock = Lock::pending;
      return SQLITE_BUSY;
    }
    me.lock = to;
    if (to >= Lock::reserved) me.store->set_waits(me.waits);
    return SQLITE_OK;
  }
  static int unlock(sqlite3_file* at, int level) {
    DatabaseFile& me = of(at);
    const auto to = static_cast<Lock>(level);
    if (to >= me.lock) return SQLITE_OK;
    if (!me.owner.is_parent()) {
      // It was not committed; in the other case nothing was written.
      if (me.lock == Lock::exclusive) me.store->discard();
      me.store->locks().unlock(me.lock, to);
    }
    me.lock = to;
    return SQLITE_OK;
  }
  static int reserved(sqlite3_file* at, int* yes) {
    const DatabaseFile& me = of(at);
    *yes = !me.owner.is_parent() && me.store != nullptr && me.store->locks().reserved() ? 1 : 0;
    return SQLITE_OK;
  }
  // SQLite syncs the database once per transaction: in the first phase of its commit, where a
  // failure can still be rolled back.
  static int sync(sqlite3_file* at, int) {
    of(at).waits = true;  // whatever a PRAGMA set before; SQLite syncs under EXCLUSIVE
    of(at).store->set_waits(true);
    return sync_as(at, Durability::durable);
  }
  static sqlite3* db_of(const DatabaseFile& me) noexcept {
    return me.db != nullptr ? *me.db : nullptr;
  }
  static int control(sqlite3_file* at, int op, void* argument) {
    DatabaseFile& me = of(at);
    switch (op) {
      case SQLITE_FCNTL_PRAGMA: {
        // The answer, the name, and the value or null.
        auto** const words = static_cast<char**>(argument);
        if (sqlite3_stricmp(words[1], "perdure_error") == 0) {
          words[0] = sqlite3_mprintf("%s", last_told().c_str());
          return SQLITE_OK;
        }
        // Whether it is inside a transaction.
        const bool refused = db_of(me) != nullptr && sqlite3_get_autocommit(db_of(me)) == 0;
        if (sqlite3_stricmp(words[1], "synchronous") == 0 && words[2] != nullptr && !refused)
          me.waits = sqlite3_stricmp(words[2], "off") != 0 && std::strcmp(words[2], "0") != 0 &&
                     sqlite3_stricmp(words[2], "no") != 0 &&
                     sqlite3_stricmp(words[2], "false") != 0;
        return SQLITE_NOTFOUND;  // SQLite does it
      }
      case SQLITE_FCNTL_SYNC:
        return me.waits || me.lock == Lock::none ? SQLITE_OK : sync_as(at, Durability::async);
      case SQLITE_FCNTL_COMMIT_PHASETWO:
        if (me.lock == Lock::none) return SQLITE_OK;
        // Something remains only in odd cases.
        return sync_as(at, me.waits ? Durability::durable : Durability::async);
      case SQLITE_FCNTL_PDB: me.db = static_cast<sqlite3* const*>(argument); return SQLITE_NOTFOUND;
      case SQLITE_FCNTL_HAS_MOVED:
        *static_cast<int*>(argument) = me.store != nullptr && me.store->moved() ? 1 : 0;
        return SQLITE_OK;
      case SQLITE_FCNTL_VFSNAME:
        *static_cast<char**>(argument) = sqlite3_mprintf("perdure");
        return SQLITE_OK;
      default: return SQLITE_NOTFOUND;
    }
  }
  static int sector(sqlite3_file*) { return static_cast<int>(block_bytes); }
  static int characteristics(sqlite3_file*) {
    // Not SAFE_APPEND, although a size becomes durable after what it counts (BLOCKSTORE-1): SQLite
    // would rely on that for a journal in PERSIST mode too, where it overwrites existing bytes, and
    // would play a torn page back.
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
  }
};

static_assert(offsetof(DatabaseFile, base) == 0);  // SQLite has a pointer to that

// Version 1: no shared memory, so SQLite itself does not use WAL.
const sqlite3_io_methods methods = {1,
                                    DatabaseFile::close,
                                    DatabaseFile::read,
                                    DatabaseFile::write,
                                    DatabaseFile::truncate,
                                    DatabaseFile::sync,
                                    DatabaseFile::size,
                                    DatabaseFile::lock_to,
                                    DatabaseFile::unlock,
                                    DatabaseFile::reserved,
                                    DatabaseFile::control,
                                    DatabaseFile::sector,
                                    DatabaseFile::characteristics,
                                    nullptr,
                                    nullptr,
                                    nullptr,
                                    nullptr,
                                    nullptr,
                                    nullptr};

}  // namespace

void open_database(sqlite3_file* file, std::unique_ptr<const Opening> how,
                   std::shared_ptr<Store> store) noexcept {
  auto* const me = ::new (static_cast<void*>(file)) DatabaseFile{};
  me->how = std::move(how);
  me->store = std::move(store);
  me->base.pMethods = &methods;
}

int bytes_of_database_file() noexcept { return static_cast<int>(sizeof(DatabaseFile)); }

}  // namespace perdure::sqlite
