// SPDX-License-Identifier: BSD-3-Clause
#include "sqlite/vfs.hpp"
#include "perdure/pool/open_pool.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "perdure/base/at_fork.hpp"
#include "perdure/pool/header.hpp"
#include "sqlite/parameters.hpp"
#include "sqlite/vfs_files.hpp"

namespace perdure::sqlite {
namespace {

// For temporary files, super-journals, and everything that is not a file.
sqlite3_vfs* system_vfs = nullptr;

/// The Store of a journal: that of an open database or, when SQLite looks through a super-journal's
/// children, of a database that is opened for the look.
/// Returns null if `path` is not a pool. Throws error.
std::shared_ptr<Store> store_of_journal(const std::string& path) {
  if (path.empty()) return nullptr;
  if (Store::find(path) == nullptr && !is_pool(path)) return nullptr;
  // This throws here if there are too many threads, and not inside a call of a medium.
  (void)base::thread_slot();
  if (auto open = Store::find(path)) return open;
  Options options;
  options.create = false;
  return Store::open(path, options);
}

constexpr std::string_view journal_end = "-journal", wal_end = "-wal", plain_magic = "SQLite f";

/// Whether a name is that of a pool's WAL, which does not exist; the WAL of a plain database
/// belongs to the system's VFS.
bool wal_of_pool(std::string_view name) {
  if (!name.ends_with(wal_end)) return false;
  const std::string of(name.substr(0, name.size() - wal_end.size()));
  return Store::find(of) != nullptr || is_pool(of);
}

/// The open pool of which the pool `path` is a copy: it has the same magic, version and UUID. Empty
/// if there is none.
std::string original_of(const std::string& path) {
  const std::string mine = beginning_of(path, offsetof(pool::Header, engine));
  if (!mine.empty())
    for (const std::string& other : Store::open_paths())
      if (other != path && beginning_of(other, mine.size()) == mine) return other;
  return {};
}

std::shared_ptr<Store> open_store(const Opening& how) {
  try {
    return Store::open(how.name, how.options, how.design);
  } catch (const error& e) {
    if (e.code() == Code::busy || e.code() == Code::too_many_threads) {
      // SQLite has no busy handler yet: each transaction tries again, and calls it.
      code_of(e);
      return nullptr;
    }
    if (const std::string original =
            e.code() == Code::incompatible ? original_of(how.name) : std::string();
        !original.empty())
      throw error(failure(
          Code::incompatible, how.name,
          "a copy of the pool " + original + ", which is open: both have the same addresses",
          "one of them at a time",
          "to have both, make a plain file of the copy, and attach that: perdure sqlite export " +
              how.name + " PLAIN"));
    throw;
  }
}

/// Returns false for a plain database, which belongs to the system's VFS. ATTACH and VACUUM INTO
/// pass their connection's VFS on; a URI that names this VFS asks for a pool.
bool open_main(const char* name, sqlite3_file* file, int flags) {
  const auto value = [name](const char* key) { return sqlite3_uri_parameter(name, key); };
  Options options = options_of(name, value);
  options.read_only = (flags & SQLITE_OPEN_READONLY) != 0;
  options.readers.beside_writer = false;  // SQLite expects that nobody else changes the database
  std::error_code failed;  // an empty file is a new database for SQLite, with mode=rw too
  options.create = (flags & SQLITE_OPEN_CREATE) != 0 ||
                   (!options.read_only && std::filesystem::file_size(name, failed) == 0 && !failed);
  if (Store::find(name) == nullptr && beginning_of(name, plain_magic.size()) == plain_magic) {
    const char* const vfs = value("vfs");
    if (vfs == nullptr) return false;
    throw error(failure(Code::incompatible, name, "a plain database of SQLite's", "a pool",
                        "open it with vfs=unix, or bring it into a pool: perdure sqlite import"));
  }
  for (const char* key : {"nolock", "immutable"})
    if (sqlite3_uri_boolean(name, key, 0) != 0)
      throw error(
          failure(Code::invalid, name, std::string(key) + "=1",
                  "a connection that takes SQLite's locks: a pool has one opening per process",
                  "leave it out"));
  auto how = std::make_unique<const Opening>(Opening{name, options, design_of(name, value)});
  auto store = open_store(*how);
  open_database(file, std::move(how), std::move(store));
  return true;
}

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  if ((flags & SQLITE_OPEN_WAL) != 0 && wal_of_pool(name))
    return told(
        SQLITE_CANTOPEN,
        std::string(name) +
            ": WAL is not for a pool, which needs no log of SQLite's: use journal_mode=DELETE");
  // A super-journal is named by several databases' journals, other databases than ours among them:
  // it is an ordinary file. Its children are opened with its flag.
  const std::string of =
      name != nullptr && (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL)) != 0
          ? journaled(name)
          : std::string();
  bool ours = true;
  const int code = guarded([&] {
    if ((flags & SQLITE_OPEN_MAIN_DB) != 0) {
      ours = open_main(name, file, flags);
      return SQLITE_OK;
    }
    if (auto store = store_of_journal(of)) {
      File* journal = nullptr;
      {
        const std::lock_guard held(store->journal_mutex());
        journal = store->journal((flags & SQLITE_OPEN_CREATE) != 0);
      }
      if (journal == nullptr) {
        Store::release(store);
        return SQLITE_CANTOPEN;
      }
      open_journal(file, std::move(store), *journal, (flags & SQLITE_OPEN_DELETEONCLOSE) != 0);
      return SQLITE_OK;
    }
    ours = false;
    return SQLITE_OK;
  });
  if (!ours) return system_vfs->xOpen(system_vfs, name, file, flags, out_flags);
  if (code == SQLITE_OK && out_flags != nullptr) *out_flags = flags;
  return code;
}

int delete_file(sqlite3_vfs*, const char* name, int sync_directory) {
  bool ours = true;
  const int code = guarded([&] {
    auto store = store_of_journal(journaled(name));
    ours = store != nullptr;
    if (!ours) return SQLITE_OK;
    bool there = false;
    {
      const std::lock_guard held(store->journal_mutex());
      there = store->journal(false) != nullptr;
      if (there) store->remove_journal();
    }
    Store::release(store);
    return there ? SQLITE_OK : SQLITE_IOERR_DELETE_NOENT;
  });
  return ours ? code : system_vfs->xDelete(system_vfs, name, sync_directory);
}

int access_file(sqlite3_vfs*, const char* name, int flags, int* yes) {
  *yes = 0;
  if (wal_of_pool(name)) return SQLITE_OK;  // an existing one belongs to another database
  bool ours = true;
  const int code = guarded([&] {
    auto store = store_of_journal(journaled(name));
    ours = store != nullptr;
    if (!ours) return SQLITE_OK;
    {
      const std::lock_guard held(store->journal_mutex());
      *yes = store->journal(false) != nullptr ? 1 : 0;
    }
    Store::release(store);
    return SQLITE_OK;
  });
  return ours ? code : system_vfs->xAccess(system_vfs, name, flags, yes);
}

}  // namespace

// It reads through the system's VFS: if this code opened and closed a plain database itself, the
// process would lose the locks that SQLite has on it.
std::string beginning_of(const std::string& path, std::size_t n) {
  auto* const name = sqlite3_create_filename(path.c_str(), "", "", 0, nullptr);
  std::vector<std::max_align_t> room(
      static_cast<std::size_t>(system_vfs->szOsFile) / sizeof(std::max_align_t) + 1);
  auto* const file = reinterpret_cast<sqlite3_file*>(room.data());
  std::string bytes(n, '\0');
  int flags = 0;
  if (name == nullptr ||
      system_vfs->xOpen(system_vfs, name, file, SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB,
                        &flags) != SQLITE_OK ||
      file->pMethods->xRead(file, bytes.data(), static_cast<int>(bytes.size()), 0) != SQLITE_OK)
    bytes.clear();
  if (name != nullptr && file->pMethods != nullptr) file->pMethods->xClose(file);
  sqlite3_free_filename(name);
  return bytes;
}

std::string journaled(std::string_view name) {
  return name.ends_with(journal_end) ? std::string(name.substr(0, name.size() - journal_end.size()))
                                     : std::string();
}

bool is_pool(const std::string& path) {
  return beginning_of(path, sizeof pool::magic) ==
         std::string_view(pool::magic, sizeof pool::magic);
}

void refuse_inherited(const std::string& path) {
  throw error(failure(Code::closed, path, "a connection that was carried through fork()",
                      "one that this process has opened",
                      "connect anew, when the parent has closed the database"));
}

int code_of(const error& e) {
  const int code = [&] {
    switch (e.code()) {
      case Code::busy:
      // The busy handler may wait until a thread ends.
      case Code::too_many_threads: return SQLITE_BUSY;
      case Code::corrupt: return SQLITE_CORRUPT;
      case Code::full: return SQLITE_FULL;
      case Code::too_big: return SQLITE_TOOBIG;
      case Code::read_only: return SQLITE_READONLY;
      case Code::out_of_memory: return SQLITE_IOERR_NOMEM;
      case Code::not_found:
      case Code::incompatible:
      case Code::invalid:
      case Code::exists: return SQLITE_CANTOPEN;
      default: return SQLITE_IOERR;
    }
  }();
  return told(code, e.what());
}

namespace {
struct Told {
  std::mutex mutex;
  std::string last;
};
Told& all_told() {
  static Told* const told = new Told;
  return *told;
}
const int anew = base::anew_in_child<all_told>();
}  // namespace

int told(int code, const std::string& what) {
  {
    const std::lock_guard lock(all_told().mutex);
    all_told().last = what;
  }
  sqlite3_log(code, "perdure: %s", what.c_str());
  return code;
}

std::string last_told() {
  const std::lock_guard lock(all_told().mutex);
  return all_told().last;
}

int register_vfs() {
  if (sqlite3_vfs_find("perdure") != nullptr) return SQLITE_OK;
  system_vfs = sqlite3_vfs_find(nullptr);
  if (system_vfs == nullptr) return SQLITE_ERROR;
  static sqlite3_vfs vfs;
  // What does not concern files is the system's: paths, randomness, sleep, time, dynamic libraries.
  vfs = *system_vfs;
  vfs.iVersion = std::min(system_vfs->iVersion, 2);
  vfs.szOsFile =
      std::max({system_vfs->szOsFile, bytes_of_database_file(), bytes_of_journal_file()});
  vfs.pNext = nullptr;
  vfs.zName = "perdure";
  vfs.xOpen = open_file;
  vfs.xDelete = delete_file;
  vfs.xAccess = access_file;
  return sqlite3_vfs_register(&vfs, 0);
}

}  // namespace perdure::sqlite
