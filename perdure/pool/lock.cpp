// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/lock.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "perdure/base/at_fork.hpp"
#include "perdure/base/descriptor.hpp"
#include "perdure/pool/follow_here.hpp"

namespace perdure::pool {
namespace {

// What identifies a file under all its names. A device node is its device, whatever its name.
struct Identity {
  std::uint64_t device = 0, inode = 0;
  bool operator==(const Identity&) const = default;
};
Identity identity_of(const struct stat& st) {
  if (S_ISCHR(st.st_mode)) return {~std::uint64_t{0}, st.st_rdev};
  return {st.st_dev, st.st_ino};
}

struct Entry {
  std::uint64_t id;
  Identity file;
  int fd;
  std::string path;
  bool followed_here = false;  // let_follow_here()
};
struct Registry {
  std::mutex mutex;
  std::vector<Entry> open;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::string>> views;  // by base: end, path
  std::uint64_t last_id = 0;
};
Registry& registry() {
  // It is never destroyed: a pool may be closed by a static object's destructor.
  static Registry* const r = new Registry;
  return *r;
}

// Held over fork(): the child sees a whole registry, and no open descriptor that is not yet in it.
const int held = base::hold_over_fork<registry>();
void empty_in_child() {  // the child has one thread, so no lock is needed
  Registry& r = registry();
  for (const Entry& e : r.open) ::close(e.fd);
  r.open.clear();  // last_id stays: a copied FileLock must not mistake a new entry for its own
  r.views.clear();
}
const int emptied = ::pthread_atfork(nullptr, nullptr, empty_in_child);

struct CloseFolder {
  void operator()(DIR* d) const noexcept { ::closedir(d); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

// "process 4711 (loader)" for every other process that has the file open, as far as this process
// can see it in /proc.
std::string who_has(const Identity& file) {
  std::string found;
  const Folder proc(base::open_folder("/proc"));
  if (!proc) return found;
  int named = 0;
  while (const dirent* p = ::readdir(proc.get())) {
    char* end = nullptr;
    const long pid = std::strtol(p->d_name, &end, 10);
    if (end == p->d_name || *end != '\0' || pid == ::getpid()) continue;
    const std::string folder = std::string("/proc/") + p->d_name + "/fd";
    const Folder fds(base::open_folder(folder.c_str()));
    if (!fds) continue;
    bool has = false;
    while (const dirent* f = has ? nullptr : ::readdir(fds.get())) {
      struct stat st = {};
      if (f->d_name[0] != '.' && ::fstatat(::dirfd(fds.get()), f->d_name, &st, 0) == 0)
        has = identity_of(st) == file;
    }
    if (!has) continue;
    if (++named > 4) {
      found += ", ...";
      break;
    }
    std::string name = base::read_whole_file(std::string("/proc/") + p->d_name + "/comm");
    name.resize(std::min(name.size(), name.find('\n')));
    found += (found.empty() ? "process " : ", process ") + std::to_string(pid) +
             (name.empty() ? "" : " (" + name + ")");
  }
  return found;
}

Status busy(const std::string& shown, FileLock::Mode mode, const Identity& file) {
  const std::string who = who_has(file);
  const std::string owner = who.empty() ? "another process" : who;
  switch (mode) {
    case FileLock::Mode::create:
      return failure(Code::busy, shown, owner + " is creating it", "no other process",
                     "try again when it is done");
    case FileLock::Mode::read:
      return failure(Code::busy, shown, owner + " has it open for writing", "no writer",
                     "wait until it is closed there");
    case FileLock::Mode::follow:
      return failure(Code::busy, shown,
                     owner + " has it open with a build that serves no reader processes",
                     "no writer, or one of this build", "wait until it is closed there");
    case FileLock::Mode::write: break;
  }
  return failure(Code::busy, shown, owner + " has it open", "no other process",
                 "close it there, or wait");
}

Status open_failure(const std::string& shown, FileLock::Mode mode, int err) {
  if (mode == FileLock::Mode::write && (err == EACCES || err == EPERM || err == EROFS)) {
    return failure(
        Code::read_only, shown,
        err == EROFS ? "the file system is mounted read-only" : "no permission to write the file",
        {}, "open it with read_only, or make it writable");
  }
  if (err == ENOENT && mode == FileLock::Mode::create)
    return failure(Code::not_found, shown, "its folder does not exist", {},
                   "make the folder first");
  if (err == ENOENT)
    return failure(Code::not_found, shown, "no such file", {},
                   "correct the path, or open it with create");
  if (err == EISDIR)
    return failure(Code::incompatible, shown, "a folder", "a pool file", "correct the path");
  return system_failure(shown, "open", err);
}

}  // namespace

Result<FileLock> FileLock::acquire(const std::string& path, Mode mode, const std::string& shown) {
  Registry& r = registry();
  const std::lock_guard guard(r.mutex);
  Entry entry{r.last_id + 1, {}, -1, shown};
  // Nothing is allocated from here on, so nothing throws while the file is open and the guard held.
  r.open.reserve(r.open.size() + 1);
  const bool reads = mode == Mode::read || mode == Mode::follow;
  const int flags = reads                  ? O_RDONLY | O_NONBLOCK
                    : mode == Mode::create ? O_RDWR | O_CREAT
                                           : O_RDWR;
  const int fd = base::open_file(path.c_str(), flags | O_NOCTTY, 0666);
  if (fd < 0) return open_failure(shown, mode, errno);
  struct Closer {
    int fd;
    ~Closer() {
      if (fd >= 0) ::close(fd);
    }
  } unless_locked{fd};
  struct stat st = {};
  if (::fstat(fd, &st) != 0) return system_failure(shown, "fstat", errno);
  if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) {
    return failure(Code::incompatible, shown,
                   S_ISDIR(st.st_mode) ? "a folder" : "not a regular file",
                   "a pool file or a /dev/dax device", "correct the path");
  }
  const Identity file = identity_of(st);
  for (const Entry& e : r.open) {
    if (e.file != file || (mode == Mode::follow && e.followed_here)) continue;
    return failure(Code::busy, shown,
                   e.path == shown ? "this process has it open already"
                                   : "this process has it open already, as " + e.path,
                   "one opening a process", "share the pool object between threads");
  }
  const Range range = mode == Mode::follow ? followers : writers;
  struct flock bytes = {};
  bytes.l_type = reads ? F_RDLCK : F_WRLCK;
  bytes.l_whence = SEEK_SET;
  bytes.l_start = range.from;
  bytes.l_len = range.bytes;
  int r_lock = 0;
  do {
    r_lock = ::fcntl(fd, F_OFD_SETLK, &bytes);
  } while (r_lock != 0 && errno == EINTR);
  if (r_lock != 0) {
    const int err = errno;
    if (err == EAGAIN || err == EACCES) return busy(shown, mode, file);
    return system_failure(shown, "fcntl(F_OFD_SETLK)", err,
                          "the file system must support file locks");
  }
  FileLock lock;
  lock.id_ = r.last_id = entry.id;
  lock.fd_ = fd;
  unless_locked.fd = -1;
  entry.file = file;
  entry.fd = fd;
  r.open.push_back(std::move(entry));
  return lock;
}

Status FileLock::look_at(const char* path, bool& is_it) const noexcept {
  struct stat mine = {}, theirs = {};
  is_it = false;
  if (!held()) return {};
  if (::fstat(fd_, &mine) != 0) return system_failure(path, "fstat", errno);
  if (::stat(path, &theirs) != 0)
    return errno == ENOENT || errno == ENOTDIR ? Status() : system_failure(path, "stat", errno);
  is_it = identity_of(mine) == identity_of(theirs);
  return {};
}

Result<bool> FileLock::other_has(Range range, short against) const noexcept {
  struct flock bytes = {};
  bytes.l_type = against;
  bytes.l_whence = SEEK_SET;
  bytes.l_start = range.from;
  bytes.l_len = range.bytes;
  if (!held()) return false;
  if (::fcntl(fd_, F_OFD_GETLK, &bytes) != 0)
    return system_failure("", "fcntl(F_OFD_GETLK)", errno,
                          "the file system must support file locks");
  return bytes.l_type != F_UNLCK;
}

void FileLock::mark(Range range, bool on) noexcept {
  if (!held()) return;
  struct flock bytes = {};
  bytes.l_type = on ? F_WRLCK : F_UNLCK;
  bytes.l_whence = SEEK_SET;
  bytes.l_start = range.from;
  bytes.l_len = range.bytes;
  (void)::fcntl(fd_, F_OFD_SETLK, &bytes);
}

void FileLock::show_position(std::uint64_t id) noexcept {
  if (!held() || id == position_) return;
  const std::uint64_t before = std::exchange(position_, id);
  struct flock byte = {};
  byte.l_type = F_RDLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = positions + static_cast<std::int64_t>(id);
  byte.l_len = 1;
  (void)::fcntl(fd_, F_OFD_SETLK, &byte);
  if (before == nowhere) return;
  byte.l_type = F_UNLCK;
  byte.l_start = positions + static_cast<std::int64_t>(before);
  (void)::fcntl(fd_, F_OFD_SETLK, &byte);
}

void FileLock::hide_position() noexcept {
  if (!held() || position_ == nowhere) return;
  struct flock byte = {};
  byte.l_type = F_UNLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = positions + static_cast<std::int64_t>(std::exchange(position_, nowhere));
  byte.l_len = 1;
  (void)::fcntl(fd_, F_OFD_SETLK, &byte);
}

bool FileLock::shows_position(std::uint64_t from, std::uint64_t to) const noexcept {
  if (from >= to) return false;
  const auto found = other_has(
      {positions + static_cast<std::int64_t>(from), static_cast<std::int64_t>(to - from)}, F_WRLCK);
  return found.ok() && *found;
}

std::string FileLock::others() const {
  struct stat st = {};
  if (!held() || ::fstat(fd_, &st) != 0) return {};
  return who_has(identity_of(st));
}

void FileLock::renamed(const std::string& path) {
  const std::lock_guard guard(registry().mutex);
  for (Entry& e : registry().open)
    if (e.id == id_) e.path = path;
}

void FileLock::release() noexcept {
  if (id_ == 0) return;
  Registry& r = registry();
  const std::lock_guard guard(r.mutex);
  for (auto e = r.open.begin(); e != r.open.end(); ++e) {
    if (e->id != id_) continue;
    // The kernel drops the lock with the last descriptor of its open file. A child that another
    // library, for example, has just forked still has a descriptor, so the lock is released
    // explicitly first.
    struct flock none = {};
    none.l_type = F_UNLCK;
    none.l_whence = SEEK_SET;
    (void)::fcntl(e->fd, F_OFD_SETLK, &none);
    ::close(e->fd);
    r.open.erase(e);
    break;
  }
  id_ = 0;
  fd_ = -1;
}

void let_follow_here(int fd) noexcept {
  const std::lock_guard guard(registry().mutex);
  for (Entry& e : registry().open)
    if (e.fd == fd) e.followed_here = true;
}

std::string pool_viewed_at(std::uint64_t address) {
  const std::lock_guard guard(registry().mutex);
  const auto& views = registry().views;
  auto v = views.upper_bound(address);
  if (v == views.begin()) return {};
  --v;
  return address < v->second.first ? v->second.second : std::string();
}

void note_view(const std::string& path, std::uint64_t base, std::uint64_t bytes) {
  const std::lock_guard guard(registry().mutex);
  if (bytes == 0) {
    registry().views.erase(base);
  } else {
    registry().views[base] = {base + bytes, path};
  }
}

}  // namespace perdure::pool
