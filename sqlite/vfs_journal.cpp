// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "perdure/base/descriptor.hpp"
#include "sqlite/vfs_files.hpp"

namespace perdure::sqlite {
namespace {

constexpr std::string_view magic =
    // The magic of a journal's header, which also ends a journal that names a super-journal.
    "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";

/// The name that precedes the magic at a journal's end, which is to be written at `offset`
/// (SQLite's file format: the number of the page of the lock bytes, the name, its length, a
/// checksum, the magic); empty if there is none.
std::string super_journal_at(File& journal, std::uint64_t offset) {
  std::array<unsigned char, 4> n{};
  if (offset < 8 || journal.read(offset - 8, n.data(), n.size()) != n.size()) return {};
  const std::uint64_t length =
      std::uint64_t{n[0]} << 24 | std::uint64_t{n[1]} << 16 | std::uint64_t{n[2]} << 8 | n[3];
  if (length == 0 || length > 4096 || length + 8 > offset) return {};
  std::string name(length, '\0');
  journal.read(offset - 8 - length, name.data(), length);
  return name;
}

/// A journal named in a super-journal that does not belong to a pool; empty if there is none.
std::string plain_file_in(const std::string& super_journal) {
  if (super_journal.empty()) return {};
  std::istringstream in(base::read_whole_file(super_journal));
  for (std::string child; std::getline(in, child, '\0');)
    if (const std::string of = journaled(child);
        of.empty() || (Store::find(of) == nullptr && !is_pool(of)))
      return of.empty() ? child : of;
  return {};
}

struct JournalFile : FileCalls<JournalFile> {
  sqlite3_file base;
  std::shared_ptr<Store> store;
  File* journal = nullptr;
  bool remove = false;
  base::Owner owner;

  static JournalFile& of(sqlite3_file* at) { return *reinterpret_cast<JournalFile*>(at); }
  [[nodiscard]] File& file() const noexcept { return *journal; }

  [[nodiscard]] std::unique_lock<std::mutex> guard() const {
    if (owner.is_parent()) refuse_inherited(store->path());
    // This throws here if there are too many threads, and not inside a call of a medium.
    (void)base::thread_slot();
    return std::unique_lock(store->journal_mutex());
  }

  /// Design A: if a journal names a super-journal, that of a transaction over several databases,
  /// all of these must be in pools. A process that opens a plain file among them first after a
  /// crash, through SQLite's own VFS, sees no journal of a pool, and takes the transaction for
  /// committed. The write of the last word of the name is refused: then the journal has no name,
  /// and SQLite rolls back.
  static int write(sqlite3_file* at, const void* from, int n, sqlite3_int64 offset) {
    JournalFile& me = of(at);
    const int code = guarded([&] {
      if (n != static_cast<int>(magic.size()) ||
          std::memcmp(from, magic.data(), magic.size()) != 0 || me.store->design() != Design::a)
        return SQLITE_OK;
      std::string stranger;
      {
        const auto held = me.guard();
        stranger = plain_file_in(super_journal_at(*me.journal, static_cast<std::uint64_t>(offset)));
      }
      if (stranger.empty()) return SQLITE_OK;
      return told(SQLITE_IOERR_WRITE, "a transaction over a pool of design A and the plain file " +
                                          stranger +
                                          ": put the file into a pool, or use two transactions");
    });
    return code != SQLITE_OK ? code : FileCalls::write(at, from, n, offset);
  }
  static int close(sqlite3_file* at) {
    JournalFile& me = of(at);
    if (me.owner.is_parent()) {
      Store::abandon(me.store);
      me.~JournalFile();
      return SQLITE_OK;
    }
    const int code = guarded([&] {
      const auto held = me.guard();
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

void open_journal(sqlite3_file* file, std::shared_ptr<Store> store, File& journal,
                  bool remove) noexcept {
  auto* const me = ::new (static_cast<void*>(file)) JournalFile{};
  me->store = std::move(store);
  me->journal = &journal;
  me->remove = remove;
  me->base.pMethods = &methods;
}

int bytes_of_journal_file() noexcept { return static_cast<int>(sizeof(JournalFile)); }

}  // namespace perdure::sqlite
