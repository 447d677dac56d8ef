// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/backup/store.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "perdure/backup/folder_watch.hpp"
#include "perdure/base/descriptor.hpp"
#include "perdure/medium/file_handle.hpp"
#include "perdure/pool/lock.hpp"

namespace perdure::backup {
namespace {

constexpr std::string_view temporary = ".new-";  // of files without their name
constexpr const char *log_lock = "/.lock-log", *chunks_lock = "/.lock-chunks";
// A file without its name that was not written to for so long belongs to nobody.
constexpr std::time_t left_after = 24 * 60 * 60;

Status failed(const std::string& path, const char* call) {
  const int err = errno;
  if (err == ENOSPC || err == EDQUOT)
    return failure(Code::full, path,
                   std::string(call) + ": " + std::generic_category().message(err), "space",
                   "make room on the archive's disk");
  return system_failure(path, call, err);
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

Status sync_folder(const std::string& path) {
  const medium::Descriptor fd(base::open_file(path.c_str(), O_RDONLY | O_DIRECTORY));
  if (!fd) return failed(path, "open");
  return ::fsync(fd.get()) == 0 || errno == EINVAL ? Status() : failed(path, "fsync");
}

Status write_whole(const std::string& path, const void* bytes, std::uint64_t n, bool durable) {
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

// STORE-1: link() refuses a name that is taken. Returns whether it was free.
Result<bool> give_name(const std::string& from, const std::string& to) {
  const bool made = ::link(from.c_str(), to.c_str()) == 0;
  if (!made && errno != EEXIST) return failed(to, "link");
  (void)::unlink(from.c_str());
  return made;
}

class Folder final : public Store {
 public:
  explicit Folder(std::string path)
      : path_(std::move(path)), fd_(base::open_file(path_.c_str(), O_RDONLY | O_DIRECTORY)) {
    (void)!::getrandom(&token_, sizeof token_, 0);
  }

  Result<bool> put(const std::string& name, const void* bytes, std::uint64_t n) override {
    const std::string to = path_ + "/" + name;
    Result<bool> made = false;
    if (::access(to.c_str(), F_OK) != 0) {
      auto from = write_unnamed(to, bytes, n, true);
      if (!from) return from.status();
      made = give_name(*from, to);
      if (!made) {
        (void)::unlink(from->c_str());
        return made.status();
      }
    }
    // A name that is there already may not be durable: its maker may have been killed.
    if (Status s = sync_folder(folder_of(to)); !s.ok()) return s;
    return made;
  }

  std::unique_ptr<Batch> batch() override { return std::make_unique<Unnamed>(*this); }

  Status sync() override {
    // By a descriptor that is older than what was written, so that no failure is missed.
    return ::syncfs(fd_.get()) == 0 ? Status() : failed(path_, "syncfs");
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

  Status keep(const std::string& name) override {
    return sync_folder(folder_of(path_ + "/" + name));
  }

  bool wait_for(const std::string& name, std::chrono::microseconds at_most) override {
    return watch_.wait_for(name, at_most);
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
    return sync_folder(folder_of(path));
  }

  Result<std::shared_ptr<void>> lock(Use use) override {
    std::shared_ptr<void> held;
    if (use == Use::log) {
      // For as long as the pool is open: a forked child does not keep it.
      const std::string path = path_ + log_lock;
      auto lock = pool::FileLock::acquire(path, pool::FileLock::Mode::create, path);
      if (lock.code() == Code::busy)
        return failure(Code::busy, path_, "an archive that another open pool writes",
                       "one writer for each archive", "close that pool, or name another folder");
      if (!lock) return lock.status();
      held = std::make_shared<pool::FileLock>(std::move(*lock));
    } else {
      auto lock = lock_chunks(use);
      if (!lock) return lock.status();
      held = std::make_shared<medium::Descriptor>(std::move(*lock));
    }
    if (use != Use::chunks)
      if (Status s = remove_left_files(""); !s.ok()) return s;
    return held;
  }

  [[nodiscard]] const std::string& name() const noexcept override { return path_; }

 private:
  class Unnamed final : public Batch {
   public:
    explicit Unnamed(Folder& folder) : folder_(folder) {}
    ~Unnamed() override {
      // In a forked child they are the parent's.
      if (::getpid() == process_)
        for (const auto& [from, to] : files_) (void)::unlink(from.c_str());
    }
    Status put(const std::string& name, const void* bytes, std::uint64_t n) override {
      std::string to = folder_.path_ + "/" + name;
      if (::access(to.c_str(), F_OK) == 0) return {};
      auto from = folder_.write_unnamed(to, bytes, n, false);
      if (!from) return from.status();
      files_.emplace_back(std::move(*from), std::move(to));
      return {};
    }
    Status flush() override {
      // STORE-1: the contents are durable before any of them has its name.
      if (!files_.empty())
        // mutant: store-flush-syncs-first
        if (Status s = folder_.sync(); !s.ok()) return s;
      for (; named_ < files_.size(); ++named_)
        if (auto made = give_name(files_[named_].first, files_[named_].second); !made)
          return made.status();
      files_.clear();
      named_ = 0;
      return folder_.sync();
    }

   private:
    Folder& folder_;
    const pid_t process_ = ::getpid();
    std::vector<std::pair<std::string, std::string>> files_;  // as they are called; their names
    std::size_t named_ = 0;
  };

  // Shared or not, by an open file description of its own: two threads of a process may back up.
  Result<medium::Descriptor> lock_chunks(Use use) {
    const std::string path = path_ + chunks_lock;
    medium::Descriptor fd(base::open_file(path.c_str(), O_RDWR | O_CREAT, 0600));
    if (!fd) return failed(path, "open");
    struct flock whole = {};
    whole.l_type = use == Use::chunks ? F_RDLCK : F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (::fcntl(fd.get(), F_OFD_SETLK, &whole) == 0) return fd;
    if (errno != EAGAIN && errno != EACCES) return failed(path, "fcntl(F_OFD_SETLK)");
    return failure(Code::busy, path_,
                   use == Use::chunks ? "a folder from which old backups are being removed"
                                      : "a folder into which a backup is being written",
                   {}, "try again when that has ended");
  }

  // Also where another one makes it at the same time.
  static Status make_folder(const std::string& folder) {
    if (::mkdir(folder.c_str(), 0700) == 0) return sync_folder(folder_of(folder));
    if (errno == EEXIST) return {};
    if (errno != ENOENT) return failed(folder, "mkdir");
    if (Status s = make_folder(folder_of(folder)); !s.ok()) return s;
    return make_folder(folder);
  }

  // Writes a file that has a temporary name in the folder of `to`; returns that name.
  Result<std::string> write_unnamed(const std::string& to, const void* bytes, std::uint64_t n,
                                    bool durable) {
    const std::string folder = folder_of(to);
    if (folder.size() > path_.size())
      if (Status s = make_folder(folder); !s.ok()) return s;
    std::string path = folder + "/" + std::string(temporary) + std::to_string(token_) + "-" +
                       std::to_string(::getpid()) + "-" +
                       std::to_string(made_.fetch_add(1, std::memory_order_relaxed));
    if (Status s = write_whole(path, bytes, n, durable); !s.ok()) {
      (void)::unlink(path.c_str());
      return s;
    }
    return path;
  }

  // Calls f(path, name, is a folder) for each entry of the folder `inner`, "" or with a '/' at its
  // end. Paths are from this folder on.
  template <class F>
  Status each_in(const std::string& inner, F&& f) {
    const std::string folder = inner.empty() ? path_ : path_ + "/" + inner;
    DIR* const dir = base::open_folder(folder.c_str());
    if (dir == nullptr) return errno == ENOENT ? Status() : failed(folder, "opendir");
    const std::unique_ptr<DIR, int (*)(DIR*)> closed(dir, ::closedir);
    for (;;) {
      errno = 0;
      const dirent* const e = ::readdir(dir);
      if (e == nullptr) return errno == 0 ? Status() : failed(folder, "readdir");
      const std::string name = e->d_name;
      if (name == "." || name == "..") continue;
      bool is_folder = e->d_type == DT_DIR;
      if (e->d_type == DT_UNKNOWN) {  // the file system does not say
        struct stat st = {};
        const std::string path = path_ + "/" + inner + name;
        if (::lstat(path.c_str(), &st) != 0) {
          if (errno == ENOENT) continue;  // removed meanwhile
          return failed(path, "lstat");
        }
        is_folder = S_ISDIR(st.st_mode);
      }
      if (Status s = f(inner + name, name, is_folder); !s.ok()) return s;
    }
  }

  // Removes the files that processes have left which ended while they wrote them.
  Status remove_left_files(const std::string& inner) {
    std::vector<std::string> folders;
    Status s =
        each_in(inner, [&](const std::string& path, const std::string& name, bool is_folder) {
          if (is_folder) folders.push_back(path + "/");
          struct stat st = {};
          const std::string file = path_ + "/" + path;
          if (name.starts_with(temporary) && ::lstat(file.c_str(), &st) == 0 &&
              st.st_mtime < std::time(nullptr) - left_after)
            (void)::unlink(file.c_str());
          return Status();
        });
    for (std::size_t i = 0; s.ok() && i < folders.size(); ++i) s = remove_left_files(folders[i]);
    return s;
  }

  Status list_in(const std::string& inner, std::string_view prefix,
                 std::vector<std::string>& names) {
    std::vector<std::string> folders;
    Status s =
        each_in(inner, [&](const std::string& path, const std::string& name, bool is_folder) {
          const std::size_t n = std::min(path.size(), prefix.size());
          if (name[0] == '.' || path.compare(0, n, prefix.substr(0, n)) != 0) return Status();
          if (is_folder)
            folders.push_back(path + "/");
          else if (path.starts_with(prefix))
            names.push_back(path);
          return Status();
        });
    for (std::size_t i = 0; s.ok() && i < folders.size(); ++i)
      s = list_in(folders[i], prefix, names);
    return s;
  }

  const std::string path_;
  const medium::Descriptor fd_;  // of the folder
  FolderWatch watch_{path_};
  std::uint64_t token_ = 0;  // in the names of this object's temporary files
  std::atomic<std::uint64_t> made_{0};
};

class Singly final : public Store::Batch {
 public:
  explicit Singly(Store& store) : store_(store) {}
  Status put(const std::string& name, const void* bytes, std::uint64_t n) override {
    return store_.put(name, bytes, n).status();
  }
  Status flush() override { return store_.sync(); }

 private:
  Store& store_;
};

}  // namespace

bool Store::wait_for(const std::string&, std::chrono::microseconds at_most) {
  std::this_thread::sleep_for(at_most);
  return false;
}

std::unique_ptr<Store::Batch> Store::batch() { return std::make_unique<Singly>(*this); }

Result<std::shared_ptr<Store>> open_folder(const std::string& given, bool create) {
  std::error_code failed_with;
  std::string path = std::filesystem::absolute(given, failed_with).lexically_normal().string();
  if (failed_with) return system_failure(given, "getcwd", failed_with.value());
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  struct stat st = {};
  if (::stat(path.c_str(), &st) != 0) {
    if (errno != ENOENT) return failed(path, "stat");
    if (!create)
      return failure(Code::not_found, path, "no such folder", "a folder with backups",
                     "name the folder that Options::archive names");
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
      return errno == ENOENT ? failure(Code::not_found, path, "no folder in which it could be made",
                                       "a folder whose parent exists", "make the parent first")
                             : failed(path, "mkdir");
    if (Status s = sync_folder(medium::folder_of(path)); !s.ok()) return s;
  } else if (!S_ISDIR(st.st_mode)) {
    return failure(Code::invalid, path, "a file that is no folder", "a folder", "name another one");
  }
  return std::shared_ptr<Store>(std::make_shared<Folder>(path));
}

}  // namespace perdure::backup
