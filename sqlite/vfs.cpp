// SPDX-License-Identifier: BSD-3-Clause
#include "sqlite/vfs.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "sqlite/database.hpp"
#include "sqlite/dram_file.hpp"
#include "sqlite/parameters.hpp"
#include "sqlite/sqlite_api.hpp"

namespace perdure::sqlite {
namespace {

sqlite3_vfs* system_vfs = nullptr;  // temporary files, and everything that is no file

/// SQLite's code for what has failed; what it was goes to sqlite3_log().
int code_of(const error& e) {
  const int code = [&] {
    switch (e.code()) {
      case Code::busy: return SQLITE_BUSY;
      case Code::corrupt: return SQLITE_CORRUPT;
      case Code::full:
      case Code::too_big: return SQLITE_FULL;
      case Code::read_only: return SQLITE_READONLY;
      case Code::out_of_memory: return SQLITE_IOERR_NOMEM;
      case Code::not_found:
      case Code::incompatible:
      case Code::invalid:
      case Code::exists: return SQLITE_CANTOPEN;
      default: return SQLITE_IOERR;
    }
  }();
  sqlite3_log(code, "perdure: %s", e.what());
  return code;
}
template <class F>
int guarded(F&& f) noexcept {
  try {
    return f();
  } catch (const error& e) {
    return code_of(e);
  } catch (const std::bad_alloc&) {
    return SQLITE_IOERR_NOMEM;
  } catch (const std::exception& e) {
    sqlite3_log(SQLITE_IOERR, "perdure: %s", e.what());
    return SQLITE_IOERR;
  }
}

// --- a database ----------------------------------------------------------------------------------------------------------------------

struct DatabaseFile {
  sqlite3_file base;
  std::shared_ptr<Database> database;
  Lock lock = Lock::none;
  bool waits = true;  // synchronous is not OFF

  static DatabaseFile& of(sqlite3_file* file) { return *reinterpret_cast<DatabaseFile*>(file); }

  static int close(sqlite3_file* file) {
    DatabaseFile& me = of(file);
    if (me.lock != Lock::none) unlock(file, SQLITE_LOCK_NONE);
    Database::release(me.database);
    me.~DatabaseFile();
    return SQLITE_OK;
  }
  static int read(sqlite3_file* file, void* to, int n, sqlite3_int64 offset) {
    return guarded([&] {
      const auto wanted = static_cast<std::uint64_t>(n);
      return of(file).database->read(static_cast<std::uint64_t>(offset), to, wanted) == wanted ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
    });
  }
  static int write(sqlite3_file* file, const void* from, int n, sqlite3_int64 offset) {
    return guarded([&] {
      of(file).database->write(static_cast<std::uint64_t>(offset), from, static_cast<std::uint64_t>(n));
      return SQLITE_OK;
    });
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 bytes) {
    return guarded([&] {
      of(file).database->truncate(static_cast<std::uint64_t>(bytes));
      return SQLITE_OK;
    });
  }
  static int commit(sqlite3_file* file, Durability durability) {
    return guarded([&] {
      of(file).database->commit(durability);
      return SQLITE_OK;
    });
  }
  // SQLite syncs the database once a transaction: in the first phase of its commit, where what fails can still be rolled back.
  static int sync(sqlite3_file* file, int) { return commit(file, Durability::durable); }
  static int size(sqlite3_file* file, sqlite3_int64* bytes) {
    *bytes = static_cast<sqlite3_int64>(of(file).database->size());
    return SQLITE_OK;
  }
  static int lock_to(sqlite3_file* file, int level) {
    DatabaseFile& me = of(file);
    const auto to = static_cast<Lock>(level);
    if (to <= me.lock) return SQLITE_OK;
    if (to >= Lock::reserved && me.database->read_only()) return SQLITE_READONLY;
    const Lock from = me.lock;
    if (!me.database->lock(from, to)) {
      if (to == Lock::exclusive && from < Lock::pending && from >= Lock::reserved) me.lock = Lock::pending;
      return SQLITE_BUSY;
    }
    me.lock = to;
    return SQLITE_OK;
  }
  static int unlock(sqlite3_file* file, int level) {
    DatabaseFile& me = of(file);
    const auto to = static_cast<Lock>(level);
    if (to >= me.lock) return SQLITE_OK;
    if (me.lock >= Lock::reserved && me.database->dirty()) me.database->discard();  // nobody has committed it
    me.database->unlock(me.lock, to);
    me.lock = to;
    return SQLITE_OK;
  }
  static int reserved(sqlite3_file* file, int* yes) {
    *yes = of(file).database->reserved() ? 1 : 0;
    return SQLITE_OK;
  }
  static int control(sqlite3_file* file, int op, void* argument) {
    DatabaseFile& me = of(file);
    switch (op) {
      case SQLITE_FCNTL_PRAGMA: {
        auto** const words = static_cast<char**>(argument);  // the answer, the name, the value or null
        if (sqlite3_stricmp(words[1], "synchronous") == 0 && words[2] != nullptr)
          me.waits = sqlite3_stricmp(words[2], "off") != 0 && std::strcmp(words[2], "0") != 0 && sqlite3_stricmp(words[2], "no") != 0 &&
                     sqlite3_stricmp(words[2], "false") != 0;
        return SQLITE_NOTFOUND;  // SQLite does it
      }
      case SQLITE_FCNTL_SYNC: return me.waits ? SQLITE_OK : commit(file, Durability::async);
      case SQLITE_FCNTL_COMMIT_PHASETWO:
        return commit(file, me.waits ? Durability::durable : Durability::async);  // nothing is left but in odd cases
      case SQLITE_FCNTL_VFSNAME: *static_cast<char**>(argument) = sqlite3_mprintf("perdure"); return SQLITE_OK;
      default: return SQLITE_NOTFOUND;
    }
  }
  static int sector(sqlite3_file*) { return static_cast<int>(block_bytes); }
  static int characteristics(sqlite3_file*) {
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE | SQLITE_IOCAP_SAFE_APPEND | SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN;
  }
};

// Version 1: no shared memory, so SQLite keeps out of WAL by itself.
const sqlite3_io_methods database_methods = {1,
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

// --- a journal -----------------------------------------------------------------------------------------------------------------------

struct JournalFile {
  sqlite3_file base;
  std::shared_ptr<DramFile> bytes;
  std::string gone;  // removed when it is closed, where SQLite asks for that

  static JournalFile& of(sqlite3_file* file) { return *reinterpret_cast<JournalFile*>(file); }
  static int close(sqlite3_file* file) {
    JournalFile& me = of(file);
    if (!me.gone.empty()) DramFiles::of_process().remove(me.gone);
    me.~JournalFile();
    return SQLITE_OK;
  }
  static int read(sqlite3_file* file, void* to, int n, sqlite3_int64 offset) {
    const DramFile& bytes = *of(file).bytes;
    const auto at = static_cast<std::size_t>(offset), wanted = static_cast<std::size_t>(n);
    const std::size_t there = at >= bytes.size() ? 0 : std::min(wanted, bytes.size() - at);
    if (there != 0) std::memcpy(to, bytes.data() + at, there);
    std::memset(static_cast<std::byte*>(to) + there, 0, wanted - there);
    return there == wanted ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
  }
  static int write(sqlite3_file* file, const void* from, int n, sqlite3_int64 offset) {
    return guarded([&] {
      DramFile& bytes = *of(file).bytes;
      const auto at = static_cast<std::size_t>(offset), size = static_cast<std::size_t>(n);
      if (bytes.size() < at + size) bytes.resize(at + size);
      std::memcpy(bytes.data() + at, from, size);
      return SQLITE_OK;
    });
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    return guarded([&] {
      of(file).bytes->resize(static_cast<std::size_t>(size));
      return SQLITE_OK;
    });
  }
  static int sync(sqlite3_file*, int) { return SQLITE_OK; }
  static int size(sqlite3_file* file, sqlite3_int64* bytes) {
    *bytes = static_cast<sqlite3_int64>(of(file).bytes->size());
    return SQLITE_OK;
  }
  static int lock(sqlite3_file*, int) { return SQLITE_OK; }
  static int reserved(sqlite3_file*, int* yes) {
    *yes = 0;
    return SQLITE_OK;
  }
  static int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
  static int sector(sqlite3_file*) { return 512; }
  static int characteristics(sqlite3_file*) {
    return SQLITE_IOCAP_SAFE_APPEND | SQLITE_IOCAP_SEQUENTIAL | SQLITE_IOCAP_POWERSAFE_OVERWRITE;
  }
};

const sqlite3_io_methods journal_methods = {1,
                                            JournalFile::close,
                                            JournalFile::read,
                                            JournalFile::write,
                                            JournalFile::truncate,
                                            JournalFile::sync,
                                            JournalFile::size,
                                            JournalFile::lock,
                                            JournalFile::lock,
                                            JournalFile::reserved,
                                            JournalFile::control,
                                            JournalFile::sector,
                                            JournalFile::characteristics,
                                            nullptr,
                                            nullptr,
                                            nullptr,
                                            nullptr,
                                            nullptr,
                                            nullptr};

// --- the VFS -------------------------------------------------------------------------------------------------------------------------

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  if ((flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL)) == 0)
    return system_vfs->xOpen(system_vfs, name, file, flags, out_flags);
  if ((flags & SQLITE_OPEN_WAL) != 0) {
    sqlite3_log(SQLITE_CANTOPEN, "perdure: %s: WAL is not for a pool, which needs no log of SQLite's: use journal_mode=DELETE", name);
    return SQLITE_CANTOPEN;
  }
  return guarded([&] {
    if ((flags & SQLITE_OPEN_MAIN_DB) == 0) {
      auto* const me = ::new (static_cast<void*>(file)) JournalFile{};
      file->pMethods = nullptr;
      me->bytes = DramFiles::of_process().make(name);
      if ((flags & SQLITE_OPEN_DELETEONCLOSE) != 0) me->gone = name;
      me->base.pMethods = &journal_methods;
    } else {
      Options options = options_of(name, [name](const char* key) { return sqlite3_uri_parameter(name, key); });
      options.create = (flags & SQLITE_OPEN_CREATE) != 0;
      options.read_only = (flags & SQLITE_OPEN_READONLY) != 0;
      auto database = Database::open(name, options);
      auto* const me = ::new (static_cast<void*>(file)) DatabaseFile{};
      me->database = std::move(database);
      me->base.pMethods = &database_methods;
      if (me->database->read_only() && out_flags != nullptr) flags = (flags & ~SQLITE_OPEN_READWRITE) | SQLITE_OPEN_READONLY;
    }
    if (out_flags != nullptr) *out_flags = flags;
    return SQLITE_OK;
  });
}

int delete_file(sqlite3_vfs*, const char* name, int sync_directory) {
  if (DramFiles::of_process().remove(name)) return SQLITE_OK;
  return system_vfs->xDelete(system_vfs, name, sync_directory);
}

int access_file(sqlite3_vfs*, const char* name, int flags, int* yes) {
  if (DramFiles::of_process().find(name) != nullptr) {
    *yes = 1;
    return SQLITE_OK;
  }
  const std::size_t n = std::strlen(name);
  const auto ends = [&](const char* with) { return n >= std::strlen(with) && std::strcmp(name + n - std::strlen(with), with) == 0; };
  if (ends("-journal") || ends("-wal")) {  // a pool has none on disk; one that lies there is another database's
    *yes = 0;
    return SQLITE_OK;
  }
  return system_vfs->xAccess(system_vfs, name, flags, yes);
}

}  // namespace

int register_vfs() {
  if (sqlite3_vfs_find("perdure") != nullptr) return SQLITE_OK;
  system_vfs = sqlite3_vfs_find(nullptr);
  if (system_vfs == nullptr) return SQLITE_ERROR;
  static sqlite3_vfs vfs;
  vfs = *system_vfs;  // what is not a file's is the system's: paths, randomness, sleep, time, dynamic libraries
  vfs.iVersion = std::min(system_vfs->iVersion, 2);
  vfs.szOsFile = std::max({system_vfs->szOsFile, static_cast<int>(sizeof(DatabaseFile)), static_cast<int>(sizeof(JournalFile))});
  vfs.pNext = nullptr;
  vfs.zName = "perdure";
  vfs.xOpen = open_file;
  vfs.xDelete = delete_file;
  vfs.xAccess = access_file;
  return sqlite3_vfs_register(&vfs, 0);
}

}  // namespace perdure::sqlite
