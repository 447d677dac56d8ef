// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <utility>

#include "sqlite/vfs_files.hpp"

namespace perdure::sqlite {
namespace {

struct JournalFile : FileCalls<JournalFile> {
  sqlite3_file base;
  std::shared_ptr<Store> store;
  File* journal = nullptr;
  bool remove = false;

  static JournalFile& of(sqlite3_file* at) { return *reinterpret_cast<JournalFile*>(at); }
  [[nodiscard]] File& file() const noexcept { return *journal; }

  static int close(sqlite3_file* at) {
    JournalFile& me = of(at);
    const int code = guarded([&] {
      if (me.remove) me.store->remove_journal();
      return SQLITE_OK;
    });
    Store::release(me.store);
    me.~JournalFile();
    return code;
  }
  static int lock(sqlite3_file*, int) { return SQLITE_OK; }
  static int reserved(sqlite3_file*, int* yes) {
    *yes = 0;
    return SQLITE_OK;
  }
  static int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
  static int sector(sqlite3_file*) { return 512; }
  static int characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }
};

static_assert(offsetof(JournalFile, base) == 0);  // SQLite has a pointer to that

const sqlite3_io_methods methods = {1,
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

}  // namespace

void open_journal(sqlite3_file* file, std::shared_ptr<Store> store, File& journal, bool remove) noexcept {
  auto* const me = ::new (static_cast<void*>(file)) JournalFile{};
  me->store = std::move(store);
  me->journal = &journal;
  me->remove = remove;
  me->base.pMethods = &methods;
}

int bytes_of_journal_file() noexcept { return static_cast<int>(sizeof(JournalFile)); }

}  // namespace perdure::sqlite
