// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/store.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <utility>

#include "perdure/base/descriptor.hpp"
#include "perdure/medium/file_handle.hpp"

namespace perdure::backup {
namespace {

constexpr std::string_view temporary = ".new-";  // of files without their name
constexpr const char* lock_name = "/lock";

Status failed(const std::string& path, const char* call) {
  const int err = errno;
  if (err == ENOSPC || err == EDQUOT)
    return failure(Code::full, path,
                   std::string(call) + ": " + std::generic_category().message(err), "space",
                   "make room on the archive's disk");
  return system_failure(path, call, err);
}

Status sync_folder(const std::string& path) {
  const medium::Descriptor fd(base::open_file(path.c_str(), O_RDONLY | O_DIRECTORY));
  if (!fd) return failed(path, "open");
  return ::fsync(fd.get()) == 0 || errno == EINVAL ? Status() : failed(path, "fsync");
}

class Folder final : public Store {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {}
  ~Folder() override {
    for (const auto& [from, to] : soon_) (void)::unlink(from.c_str());
  }

  Result<bool> put(const std::string& name, const void* bytes, std::uint64_t n) override {
    const std::string to = path_ + "/" + name;
    Result<bool> made = false;
    if (::access(to.c_str(), F_OK) != 0) {
      auto from = write_unnamed(to, bytes, n, true);
      if (!from) return from.status();
      made = give_name(*from, to);
      if (!made) return made.status();
    }
    // A name that is there already may not be durable: its maker may have been killed.
    if (Status s = sync_folder(folder_of(to)); !s.ok()) return s;
    return made;
  }

  Status put_soon(const std::string& name, const void* bytes, std::uint64_t n) override {
    std::string to = path_ + "/" + name;
    if (::access(to.c_str(), F_OK) == 0) return {};
    auto from = write_unnamed(to, bytes, n, false);
    if (!from) return from.status();
    const std::lock_guard lock(mutex_);
    soon_.emplace_back(std::move(*from), std::move(to));
    return {};
  }

  Status flush() override {
    const std::lock_guard lock(mutex_);
    // STORE-1: the contents are durable before any of them has its name.
    if (!soon_.empty())
      // mutant: store-flush-syncs-first
      if (Status s = sync_all(); !s.ok()) return s;
    for (; !soon_.empty(); soon_.pop_back())
      if (auto made = give_name(soon_.back().first, soon_.back().second); !made)
        return made.status();
    // Also the names that an earlier process has made.
    return sync_all();
  }

  Result<std::vector<std::byte>> get(const std::string& name) override {
    const std::string path = path_ + "/" + name;
    const medium::Descriptor fd(base::open_file(path.c_str(), O_RDONLY));
    if (!fd && errno == ENOENT)
      return failure(Code::not_found, path, "no such file", "a file of the archive",
                     "take it from another copy of the archive");
    if (!fd) return failed(path, "open");
    struct stat st = {};
    if (::fstat(fd.get(), &st) != 0) return failed(path, "fstat");
    std::vector<std::byte> bytes(static_cast<std::size_t>(st.st_size));
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t n = ::read(fd.get(), bytes.data() + at, bytes.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed(path, "read");
      if (n == 0) {
        bytes.resize(at);
        break;
      }
      at += static_cast<std::size_t>(n);
    }
    return bytes;
  }

  Result<bool> has(const std::string& name) override {
    const std::string path = path_ + "/" + name;
    if (::access(path.c_str(), F_OK) == 0) return true;
    if (errno == ENOENT) return false;
    return failed(path, "access");
  }

  Result<std::vector<std::string>> list(std::string_view prefix) override {
    std::vector<std::string> names;
    const std::size_t slash = prefix.rfind('/');
    const std::string inner(slash == std::string_view::npos ? "" : prefix.substr(0, slash + 1));
    if (Status s = list_in(inner, prefix, names); !s.ok()) return s;
    std::sort(names.begin(), names.end());
    return names;
  }

  Status remove(const std::string& name) override {
    const std::string path = path_ + "/" + name;
    if (::unlink(path.c_str()) != 0) return errno == ENOENT ? Status() : failed(path, "unlink");
    return sync_folder(path.substr(0, path.rfind('/')));
  }

  Result<std::shared_ptr<void>> lock() override {
    const std::string path = path_ + lock_name;
    auto fd =
        std::make_shared<medium::Descriptor>(base::open_file(path.c_str(), O_RDWR | O_CREAT, 0600));
    if (!*fd) return failed(path, "open");
    if (::flock(fd->get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return failed(path, "flock");
      return failure(Code::busy, path_, "an archive that another open pool writes",
                     "one writer for each archive", "close that pool, or name another folder");
    }
    remove_left_files("");
    return std::shared_ptr<void>(fd);
  }

  [[nodiscard]] const std::string& name() const noexcept override { return path_; }

 private:
  static Status make_folder(const std::string& folder) {
    if (::mkdir(folder.c_str(), 0700) == 0) return sync_folder(folder.substr(0, folder.rfind('/')));
    if (errno == EEXIST) return {};
    if (errno != ENOENT) return failed(folder, "mkdir");
    if (Status s = make_folder(folder.substr(0, folder.rfind('/'))); !s.ok()) return s;
    return make_folder(folder);
  }

  static std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

  // Writes a file that has a temporary name in the folder of `to`; returns that name.
  Result<std::string> write_unnamed(const std::string& to, const void* bytes, std::uint64_t n,
                                    bool durable) {
    const std::string folder = folder_of(to);
    if (folder != path_)
      if (Status s = make_folder(folder); !s.ok()) return s;
    std::string path = folder + "/" + std::string(temporary) + std::to_string(::getpid()) + "-" +
                       std::to_string(made_.fetch_add(1, std::memory_order_relaxed));
    if (Status s = write_whole(path, bytes, n, durable); !s.ok()) {
      (void)::unlink(path.c_str());
      return s;
    }
    return path;
  }

  // STORE-1: link() refuses a name that is taken. Returns whether it was free.
  static Result<bool> give_name(const std::string& from, const std::string& to) {
    const bool made = ::link(from.c_str(), to.c_str()) == 0;
    Status s = made || errno == EEXIST ? Status() : failed(to, "link");
    (void)::unlink(from.c_str());
    if (!s.ok()) return s;
    return made;
  }

  [[nodiscard]] Status sync_all() const {
    const medium::Descriptor fd(base::open_file(path_.c_str(), O_RDONLY | O_DIRECTORY));
    if (!fd) return failed(path_, "open");
    return ::syncfs(fd.get()) == 0 ? Status() : failed(path_, "syncfs");
  }

  static Status write_whole(const std::string& path, const void* bytes, std::uint64_t n,
                            bool durable) {
    const medium::Descriptor fd(base::open_file(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
    if (!fd) return failed(path, "open");
    for (std::uint64_t at = 0; at < n;) {
      const ssize_t w = ::write(fd.get(), static_cast<const std::byte*>(bytes) + at, n - at);
      if (w < 0 && errno == EINTR) continue;
      if (w < 0) return failed(path, "write");
      at += static_cast<std::uint64_t>(w);
    }
    // mutant: store-syncs-first
    if (durable && ::fsync(fd.get()) != 0) return failed(path, "fsync");
    return {};
  }

  // Removes the files that a process has left which ended while it wrote them.
  void remove_left_files(const std::string& inner) {
    const std::string folder = inner.empty() ? path_ : path_ + "/" + inner;
    DIR* const dir = base::open_folder(folder.c_str());
    if (dir == nullptr) return;
    const std::unique_ptr<DIR, int (*)(DIR*)> closed(dir, ::closedir);
    std::vector<std::string> folders;
    while (const dirent* const e = ::readdir(dir)) {
      const std::string_view name = e->d_name;
      if (name == "." || name == "..") continue;
      if (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN)
        folders.push_back(inner + std::string(name) + "/");
      if (!name.starts_with(temporary)) continue;
      const auto pid = static_cast<pid_t>(std::atol(e->d_name + temporary.size()));
      if (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH)
        (void)::unlink((folder + "/" + std::string(name)).c_str());
    }
    for (const std::string& f : folders) remove_left_files(f);
  }

  Status list_in(const std::string& inner, std::string_view prefix,
                 std::vector<std::string>& names) {
    const std::string folder = inner.empty() ? path_ : path_ + "/" + inner;
    DIR* const dir = base::open_folder(folder.c_str());
    if (dir == nullptr) return errno == ENOENT ? Status() : failed(folder, "opendir");
    const std::unique_ptr<DIR, int (*)(DIR*)> closed(dir, ::closedir);
    std::vector<std::string> folders;
    for (;;) {
      errno = 0;
      const dirent* const e = ::readdir(dir);
      if (e == nullptr && errno != 0) return failed(folder, "readdir");
      if (e == nullptr) break;
      const std::string name = inner + e->d_name;
      if (e->d_name[0] == '.') continue;
      const std::size_t n = std::min(name.size(), prefix.size());
      if (name.compare(0, n, prefix.substr(0, n)) != 0) continue;
      struct stat st = {};
      if (::stat((path_ + "/" + name).c_str(), &st) != 0) continue;
      if (S_ISDIR(st.st_mode))
        folders.push_back(name + "/");
      else if (name.starts_with(prefix) && name != lock_name + 1)
        names.push_back(name);
    }
    for (const std::string& f : folders)
      if (Status s = list_in(f, prefix, names); !s.ok()) return s;
    return {};
  }

  const std::string path_;
  std::atomic<std::uint64_t> made_{0};
  std::mutex mutex_;                                       // guards soon_
  std::vector<std::pair<std::string, std::string>> soon_;  // written, without their names
};

}  // namespace

Status Store::put_soon(const std::string& name, const void* bytes, std::uint64_t n) {
  return put(name, bytes, n).status();
}
Status Store::flush() { return {}; }

Result<std::shared_ptr<Store>> open_folder(const std::string& path, bool create) {
  struct stat st = {};
  if (::stat(path.c_str(), &st) != 0) {
    if (errno != ENOENT) return failed(path, "stat");
    if (!create)
      return failure(Code::not_found, path, "no such folder", "a folder with backups",
                     "name the folder that Options::archive names");
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return failed(path, "mkdir");
    if (Status s = sync_folder(medium::folder_of(path)); !s.ok()) return s;
  } else if (!S_ISDIR(st.st_mode)) {
    return failure(Code::invalid, path, "a file that is no folder", "a folder", "name another one");
  }
  return std::shared_ptr<Store>(std::make_shared<Folder>(path));
}

}  // namespace perdure::backup
