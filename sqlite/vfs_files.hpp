// SPDX-License-Identifier: BSD-3-Clause
//
// What SQLite holds of an open file of the VFS "perdure": a database (vfs_database.cpp), or a
// journal (vfs_journal.cpp).
// Thread safety: that of SQLite: one thread at a time uses a connection's files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "perdure/base/status.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/pool/open_pool.hpp"
#include "sqlite/sqlite_api.hpp"
#include "sqlite/store.hpp"

namespace perdure::sqlite {

/// A file's first `n` bytes; empty if it has none.
std::string beginning_of(const std::string& path, std::size_t n);
bool is_pool(const std::string& path);
/// The database whose rollback journal `name` would be; empty if there is no such database.
std::string journaled(std::string_view name);
/// SQLite's code for a failure, which is reported with told().
int code_of(const error& e);
/// Reports a failure to sqlite3_log() and keeps it for last_told(): SQLite's own messages contain
/// only the code. Returns the code.
int told(int code, const std::string& what);
/// The last failure of the process; empty if nothing has failed. Thread safety: any thread.
std::string last_told();

// What SQLite holds of a file has an owner (base::Owner), the process that has opened it. In a
// forked child its Store belongs to the parent: another thread of the parent may have held its
// mutexes, and its pool's memory does not exist in the child. The child uses it only to close it,
// which abandons it.

/// Throws error(closed).
[[noreturn]] void refuse_inherited(const std::string& path);

/// Calls f(), which returns SQLite's code; an exception becomes such a code.
template <class F>
int guarded(F&& f) noexcept {
  try {
    return f();
  } catch (const error& e) {
    return code_of(e);
  } catch (const std::bad_alloc&) {
    return SQLITE_IOERR_NOMEM;
  } catch (const std::exception& e) {
    return told(SQLITE_IOERR, e.what());
  }
}

/// SQLite's calls on a File. `Held` has of(sqlite3_file*), file(), and guard(), which returns what
/// is held during the call. It throws error(closed) if the file belongs to the parent.
template <class Held>
struct FileCalls {
  static int read(sqlite3_file* at, void* to, int n, sqlite3_int64 offset) {
    return guarded([&] {
      [[maybe_unused]] const auto held = Held::of(at).guard();
      const auto wanted = static_cast<std::uint64_t>(n);
      return Held::of(at).file().read(static_cast<std::uint64_t>(offset), to, wanted) == wanted
                 ? SQLITE_OK
                 : SQLITE_IOERR_SHORT_READ;
    });
  }
  static int write(sqlite3_file* at, const void* from, int n, sqlite3_int64 offset) {
    return guarded([&] {
      [[maybe_unused]] const auto held = Held::of(at).guard();
      Held::of(at).file().write(static_cast<std::uint64_t>(offset), from,
                                static_cast<std::uint64_t>(n));
      return SQLITE_OK;
    });
  }
  static int truncate(sqlite3_file* at, sqlite3_int64 bytes) {
    return guarded([&] {
      [[maybe_unused]] const auto held = Held::of(at).guard();
      Held::of(at).file().truncate(static_cast<std::uint64_t>(bytes));
      return SQLITE_OK;
    });
  }
  static int sync_as(sqlite3_file* at, Durability durability) {
    return guarded([&] {
      [[maybe_unused]] const auto held = Held::of(at).guard();
      Held::of(at).file().sync(durability);
      return SQLITE_OK;
    });
  }
  static int sync(sqlite3_file* at, int) { return sync_as(at, Durability::durable); }
  static int size(sqlite3_file* at, sqlite3_int64* bytes) {
    return guarded([&] {
      [[maybe_unused]] const auto held = Held::of(at).guard();
      *bytes = static_cast<sqlite3_int64>(Held::of(at).file().size());
      return SQLITE_OK;
    });
  }
};

/// The number of bytes that SQLite must allocate for a database file.
[[nodiscard]] int bytes_of_database_file() noexcept;
[[nodiscard]] int bytes_of_journal_file() noexcept;
/// How a connection opens its Store: at once, and again after its Store was closed for the sake of
/// another connection.
struct Opening {
  std::string name;
  Options options;
  std::optional<Design> design;
};
/// Neither function throws; `file` is a closed one if they fail. Without a store (because it is
/// busy) each transaction tries to open it, so that SQLite's busy handler is called when that
/// fails.
void open_database(sqlite3_file* file, std::unique_ptr<const Opening> how,
                   std::shared_ptr<Store> store) noexcept;
/// `remove`: when it is closed. The journal exists.
void open_journal(sqlite3_file* file, std::shared_ptr<Store> store, File& journal,
                  bool remove) noexcept;

}  // namespace perdure::sqlite
