// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/stat_page.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "perdure/base/descriptor.hpp"
#include "perdure/base/process.hpp"

namespace perdure::engine {
namespace {

bool owner_runs(const StatHead& page) { return base::process_runs(page.pid, page.pid_start); }

/// A page, mapped in the length of its file.
struct Mapped {
  StatHead* head = nullptr;
  std::size_t bytes = 0;
  [[nodiscard]] bool ok() const noexcept { return head != nullptr; }
  void unmap() const noexcept {
    ::munmap(const_cast<void*>(static_cast<const void*>(head)), bytes);
  }
};

// Maps the file in `fd`; not ok() where it is too short for a head or can't be mapped.
Mapped map_page(int fd, int protection) {
  struct stat status = {};
  constexpr std::size_t most = 1 << 20;
  if (::fstat(fd, &status) != 0 || status.st_size < static_cast<off_t>(sizeof(StatHead))) return {};
  const std::size_t bytes = std::min<std::size_t>(static_cast<std::size_t>(status.st_size), most);
  void* p = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) return {};
  return {static_cast<StatHead*>(p), bytes};
}

bool is_page(const StatHead& head) {
  // Acquire: pairs with the release in StatWriter's constructor: the head is complete.
  return head.magic.load(std::memory_order_acquire) == StatHead::magic_value &&
         head.version == StatHead::current_version;
}

// Removes pages that killed processes left an hour ago or more: their pools may never be opened
// again. It is best effort and checks at most 256 pages.
void sweep() {
  constexpr std::uint64_t hour = 3'600'000'000'000U;
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> folder(base::open_folder("/dev/shm"), close);
  if (!folder) return;
  int looked_at = 0;
  while (const dirent* entry = looked_at < 256 ? ::readdir(folder.get()) : nullptr) {
    const std::string name = std::string("/") + entry->d_name;
    // "/perdure-", a uuid, and of a further copy 17 characters at most.
    if (!name.starts_with("/perdure-") || name.size() < 45 || name.size() > 62) continue;
    ++looked_at;
    const int fd = base::open_shared_memory(name.c_str(), O_RDONLY | O_NOFOLLOW);
    if (fd < 0) continue;
    const Mapped page = map_page(fd, PROT_READ);
    ::close(fd);
    if (!page.ok()) continue;
    // It has no partner: it is a time stamp.
    const std::uint64_t updated = page.head->updated_ns.load(std::memory_order_relaxed);
    const bool old =
        is_page(*page.head) && updated + hour < monotonic_ns() && !owner_runs(*page.head);
    page.unmap();
    if (old) ::shm_unlink(name.c_str());
  }
}

// Creates the page's file, replacing one whose owner is gone. Returns -1 and sets `why` when it
// can't; and `of_other` where the page is that of another file than the one with these numbers.
int create_page(const std::string& name, std::uint64_t device, std::uint64_t inode,
                std::string& why, bool& of_other) {
  of_other = false;
  for (int attempt = 0; attempt < 2; ++attempt) {
    int fd = base::open_shared_memory(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
    if (fd >= 0) {
      // Allocated now, so that a full /dev/shm is an error here and never a SIGBUS later.
      if (const int err = ::posix_fallocate(fd, 0, sizeof(StatPage)); err != 0) {
        why = std::string("no space in /dev/shm: ") + std::strerror(err);
        ::close(fd);
        ::shm_unlink(name.c_str());
        return -1;
      }
      return fd;
    }
    if (errno != EEXIST) break;
    fd = base::open_shared_memory(name.c_str(), O_RDONLY);
    if (fd < 0) break;
    const Mapped old = map_page(fd, PROT_READ);
    ::close(fd);
    const bool taken = old.ok() && is_page(*old.head) && owner_runs(*old.head);
    const std::uint32_t pid = old.ok() ? old.head->pid : 0;
    of_other = taken && (old.head->device != device || old.head->inode != inode);
    if (old.ok()) old.unmap();
    if (taken) {
      why = "process " + std::to_string(pid) + " has " +
            (of_other ? "another copy of this pool" : "this pool") + " open for writing";
      return -1;
    }
    // This process holds the pool's lock, so the page's writer is dead; a reader keeps its mapping.
    ::shm_unlink(name.c_str());
  }
  why = "/dev/shm" + name + " can't be created: " + std::strerror(errno);
  return -1;
}

}  // namespace

std::string stat_page_name(const std::uint8_t (&uuid)[16], std::uint64_t inode) {
  static constexpr char hex[] = "0123456789abcdef";
  std::string name = "/perdure-";
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) name += '-';
    name += hex[uuid[i] >> 4];
    name += hex[uuid[i] & 15];
  }
  if (inode != 0) {
    char text[18];
    (void)std::snprintf(text, sizeof text, "-%llx", static_cast<unsigned long long>(inode));
    name += text;
  }
  return name;
}

StatWriter::StatWriter(const std::uint8_t (&uuid)[16], const std::string& pool_path,
                       const std::string& engine)
    : page_(&private_page_), owner_pid_(static_cast<std::uint32_t>(::getpid())) {
  struct stat file = {};
  try {
    if (pool_path.empty() || ::stat(pool_path.c_str(), &file) != 0)
      why_ = "the pool has no file, or is open for reading only";
    else
      share(uuid, static_cast<std::uint64_t>(file.st_dev), static_cast<std::uint64_t>(file.st_ino));
  } catch (const std::bad_alloc&) {  // counters are not worth a failed opening
  }
  StatHead& head = page_->head;
  head.version = StatHead::current_version;
  head.pid = owner_pid_;
  head.pid_start = base::process_start(owner_pid_);
  std::memcpy(head.uuid, uuid, sizeof head.uuid);
  head.device = static_cast<std::uint64_t>(file.st_dev);
  head.inode = static_cast<std::uint64_t>(file.st_ino);
  engine.copy(head.engine, sizeof head.engine - 1);
  head.bytes = sizeof(StatPage);
  head.sections = StatPage::sections;
  // Release: pairs with the acquire in is_page().
  head.magic.store(StatHead::magic_value, std::memory_order_release);
}

void StatWriter::share(const std::uint8_t (&uuid)[16], std::uint64_t device, std::uint64_t inode) {
  sweep();
  name_ = stat_page_name(uuid);
  bool of_other = false;
  int fd = create_page(name_, device, inode, why_, of_other);
  if (fd < 0 && of_other) {
    name_ = stat_page_name(uuid, inode);
    fd = create_page(name_, device, inode, why_, of_other);
  }
  if (fd < 0) return;
  const Mapped page = map_page(fd, PROT_READ | PROT_WRITE);
  const int err = errno;
  ::close(fd);
  if (page.ok()) {
    page_ = new (page.head) StatPage;
  } else {
    ::shm_unlink(name_.c_str());
    why_ = std::string("mmap failed: ") + std::strerror(err);
  }
}

StatWriter::~StatWriter() {
  if (page_ == &private_page_) return;
  ::munmap(page_, sizeof(StatPage));
  if (static_cast<std::uint32_t>(::getpid()) == owner_pid_) ::shm_unlink(name_.c_str());
}

void StatWriter::touch() noexcept {
  page_->head.updated_ns.store(monotonic_ns(),
                               std::memory_order_relaxed);  // no partner: a time stamp
}

Result<StatReader> StatReader::open(const std::uint8_t (&uuid)[16]) {
  return open_page(stat_page_name(uuid));
}

Result<StatReader> StatReader::open(const std::uint8_t (&uuid)[16], const std::string& pool_path) {
  struct stat status = {};
  if (::stat(pool_path.c_str(), &status) != 0) return system_failure(pool_path, "stat", errno);
  // A page of its own is newer where its owner runs; a killed one may have left it.
  auto own = open_page(stat_page_name(uuid, static_cast<std::uint64_t>(status.st_ino)));
  const bool is_own = own.ok() && own->belongs_to(pool_path);
  if (is_own && own->alive()) return own;
  auto first = open(uuid);
  if (first.ok() ? first->belongs_to(pool_path) : !is_own) return first;
  if (is_own) return own;
  return failure(Code::not_found, pool_path,
                 "no counters: no program has this copy of the pool open for writing");
}

Result<StatReader> StatReader::open_page(const std::string& name) {
  const std::string file = "/dev/shm" + name;
  const int fd = base::open_shared_memory(name.c_str(), O_RDONLY);
  if (fd < 0) {
    if (errno == ENOENT)
      return failure(Code::not_found, file,
                     "no counters: no program has the pool open for writing");
    return system_failure(file, "shm_open", errno);
  }
  const Mapped page = map_page(fd, PROT_READ);
  ::close(fd);
  if (page.ok() && is_page(*page.head)) return StatReader(page.head, page.bytes);
  std::string found = page.ok() ? "counters of another version" : "a file too short for counters";
  if (page.ok()) page.unmap();
  return failure(Code::incompatible, file, found,
                 "version " + std::to_string(StatHead::current_version),
                 "use the perdure command of the program's own build");
}

StatReader::StatReader(StatReader&& other) noexcept
    : head_(std::exchange(other.head_, nullptr)), mapped_(other.mapped_) {}

StatReader::~StatReader() {
  if (head_ != nullptr) ::munmap(const_cast<void*>(static_cast<const void*>(head_)), mapped_);
}

const void* StatReader::find(std::uint32_t tag, std::size_t bytes) const noexcept {
  const auto* const page = reinterpret_cast<const std::byte*>(head_);
  const std::size_t end = std::min<std::uint64_t>(head_->bytes, mapped_);
  std::size_t at = sizeof(StatHead);
  for (std::uint64_t n = 0; n < head_->sections && end >= at && end - at >= sizeof(StatSection);
       ++n) {
    const auto* const section = reinterpret_cast<const StatSection*>(page + at);
    if (section->bytes < sizeof(StatSection) || section->bytes % 8 != 0 ||
        section->bytes > end - at)
      return nullptr;
    if (section->tag == tag) return section->bytes >= bytes ? section : nullptr;
    at += section->bytes;
  }
  return nullptr;
}

bool StatReader::alive() const { return owner_runs(*head_); }

bool StatReader::belongs_to(const std::string& pool_path) const {
  struct stat file = {};
  return ::stat(pool_path.c_str(), &file) == 0 &&
         head_->device == static_cast<std::uint64_t>(file.st_dev) &&
         head_->inode == static_cast<std::uint64_t>(file.st_ino);
}

}  // namespace perdure::engine
