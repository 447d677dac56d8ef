// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/medium/mapped.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

namespace perdure::medium {
namespace {

// A mapping's pieces count against vm.max_map_count. Where a log has more holes than this, which
// only a copying program makes, the short ones stay as they are: reading one on tmpfs takes a page.
constexpr std::size_t max_holes = 1024;
constexpr std::uint64_t short_hole = 64 << 10;

std::string number(std::uint64_t n) { return std::to_string(n); }

Status map_failure(const std::string& path, std::uint64_t bytes, int err) {
  if (err == ENOMEM) {
    return failure(Code::out_of_memory, path,
                   "no address space for a mapping of " + number(bytes) + " bytes", {},
                   "raise vm.max_map_count or `ulimit -v`: the size is max_size, which a pool "
                   "keeps; a new one may have a smaller one");
  }
  return system_failure(path, "mmap of " + number(bytes) + " bytes", err);
}

}  // namespace

MappedMedium::~MappedMedium() {
  for (const Ring& r : rings_) ::munmap(r.base, 2 * r.bytes);
  if (log_ != nullptr) ::munmap(log_, log_bytes_);
  if (reserve_ != nullptr) ::munmap(reserve_, reserve_bytes_);
}

Status MappedMedium::map_all(int log_fd, int data_fd, std::uint64_t data_bytes,
                             std::uint64_t max_data_bytes) {
  log_fd_ = log_fd;
  data_fd_ = data_fd;
  max_data_bytes_ = std::max(data_bytes, max_data_bytes);
  const int protection = PROT_READ | (read_only_ ? 0 : PROT_WRITE);
  // The log of a read-only medium may be staged; it is still only read.
  void* log = ::mmap(nullptr, log_bytes_, protection, log_fd == data_fd ? map_flags_ : MAP_SHARED,
                     log_fd, 0);
  if (log == MAP_FAILED) return map_failure(path_, log_bytes_, errno);
  log_ = static_cast<std::byte*>(log);
  if (holes_.size() > max_holes)
    std::erase_if(holes_, [](const auto& h) { return h.second - h.first < short_hole; });
  if (Status s = stand_in_for_holes(log_, 0, log_bytes_); !s.ok()) return s;

  reserve_bytes_ = max_data_bytes_ + 2 * region_align;
  void* space = ::mmap(nullptr, reserve_bytes_, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) {
    reserve_bytes_ = 0;
    return map_failure(path_, max_data_bytes_, errno);
  }
  reserve_ = static_cast<std::byte*>(space);
  // The distance from a 2 MiB boundary is the same as in the file, so huge pages can be mapped.
  const std::uint64_t phase = log_bytes_ % region_align;
  const auto at = reinterpret_cast<std::uintptr_t>(reserve_);
  data_ = reserve_ + (round_up(at, region_align) + phase - at);
  data_bytes_.store(0, std::memory_order_relaxed);  // no other thread sees this object yet
  if (data_bytes != 0) {
    if (Status s = map_extent(0, data_bytes); !s.ok()) return s;
    if (Status s = mapped(0, data_bytes); !s.ok()) return s;
  }
  data_bytes_.store(data_bytes, std::memory_order_release);
  return {};
}

Status MappedMedium::map_extent(std::uint64_t from, std::uint64_t to) {
  const int protection = PROT_READ | (read_only_ ? 0 : PROT_WRITE);
  void* p = ::mmap(data_ + from, to - from, protection, map_flags_ | MAP_FIXED, data_fd_,
                   static_cast<off_t>(log_bytes_ + from));
  if (p == MAP_FAILED) return map_failure(path_, to - from, errno);
  // Advice only. Checkpoints and recovery store here, to pages in no order: reading ahead would not
  // help them. It would fill a new file's part of the page cache with folios of many
  // pages, and a file system may write back a whole folio for one store (ext4 does: 20 times the
  // bytes were seen). What threads read is a mapping of its own, which is read ahead.
  if (!read_only_) (void)::madvise(p, to - from, MADV_RANDOM);
  return {};
}

Result<RingMap> MappedMedium::map_ring(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0 || offset % map_unit_ != 0 || bytes % map_unit_ != 0 || offset > log_bytes_ ||
      bytes > log_bytes_ - offset) {
    return failure(
        Code::invalid, path_, "a ring of " + number(bytes) + " bytes at " + number(offset),
        "multiples of " + number(map_unit_) + " within the log's " + number(log_bytes_) + " bytes");
  }
  // Recovery and the session use the same ones.
  for (const Ring& r : rings_)
    if (r.offset == offset && r.bytes == bytes) return RingMap{r.base, offset, bytes, pages_};
  // A device-dax can be mapped only at addresses of its alignment.
  const std::uint64_t room = 2 * bytes + map_unit_ - page_bytes;
  void* space =
      ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return map_failure(path_, room, errno);
  const auto start = reinterpret_cast<std::uintptr_t>(space);
  const std::uint64_t before = round_up(start, map_unit_) - start,
                      after = room - before - 2 * bytes;
  auto* base = static_cast<std::byte*>(space) + before;
  if (before != 0) ::munmap(space, before);
  if (after != 0) ::munmap(base + 2 * bytes, after);
  // Under the lock, a page that is allocated meanwhile is mapped either here or in allocate().
  const std::lock_guard lock(allocating_);
  rings_.reserve(rings_.size() + 1);
  Status mapped;
  for (const std::uint64_t half : {std::uint64_t{0}, bytes}) {
    if (mapped.ok()) mapped = map_log(base + half, offset, bytes);
    if (mapped.ok()) mapped = stand_in_for_holes(base + half, offset, bytes);
  }
  if (!mapped.ok()) {
    ::munmap(base, 2 * bytes);
    return mapped;
  }
  rings_.push_back({base, offset, bytes});
  return RingMap{base, offset, bytes, pages_};
}

Status MappedMedium::keep_page_map(std::uint64_t bytes) {
  if (Status s = page_map_.reserve(path_, bytes); !s.ok()) return s;
  pages_ = &page_map_;
  return {};
}

void MappedMedium::note_hole(std::uint64_t from, std::uint64_t to) {
  from = round_up(from, page_bytes);
  to = to / page_bytes * page_bytes;
  if (from < to) holes_.emplace_back(from, to);
}

// Maps [offset, offset + n) of the log at `address`, from its file.
Status MappedMedium::map_log(std::byte* address, std::uint64_t offset, std::uint64_t n) {
  const int protection = PROT_READ | (read_only_ ? 0 : PROT_WRITE);
  const int flags = (log_fd_ == data_fd_ ? map_flags_ : MAP_SHARED) | MAP_FIXED;
  void* const p = ::mmap(address, n, protection, flags, log_fd_, static_cast<off_t>(offset));
  return p == MAP_FAILED ? map_failure(path_, n, errno) : Status();
}

// Maps zero pages for what is still a hole in [offset, offset + n) of the log, which is mapped at
// `address`. No thread may store to them (ALLOC-1).
Status MappedMedium::stand_in_for_holes(std::byte* address, std::uint64_t offset, std::uint64_t n) {
  for (const auto& [from, to] : holes_) {
    const std::uint64_t first = std::max(from, offset), end = std::min(to, offset + n);
    if (first >= end) continue;
    Status s;
    page_map_.each_run(
        first / page_bytes, end / page_bytes, false, [&](std::uint64_t page, std::uint64_t past) {
          const std::uint64_t bytes = (past - page) * page_bytes;
          std::byte* const at = address + (page * page_bytes - offset);
          if (s.ok() &&
              ::mmap(at, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
                     -1, 0) == MAP_FAILED)
            s = map_failure(path_, bytes, errno);
        });
    if (!s.ok()) return s;
  }
  return {};
}

// The log's pages [from, from + n) have their blocks now: the file itself replaces the zero pages
// that stood for its holes, wherever they are mapped.
Status MappedMedium::map_allocated(std::uint64_t from, std::uint64_t n) {
  if (Status s = map_log(log_ + from, from, n); !s.ok()) return s;
  for (const Ring& r : rings_) {
    const std::uint64_t first = std::max(from, r.offset),
                        end = std::min(from + n, r.offset + r.bytes);
    if (first >= end) continue;
    for (const std::uint64_t half : {std::uint64_t{0}, r.bytes})
      if (Status s = map_log(r.base + half + (first - r.offset), first, end - first); !s.ok())
        return s;
  }
  return {};
}

Status MappedMedium::allocate(std::uint64_t offset, std::uint64_t n) {
  if (allocated(offset, n)) return {};
  if (read_only_)
    return failure(Code::read_only, path_, "an allocation in a pool opened read-only", {},
                   "open it for writing");
  if (Status s = usable(); !s.ok()) return s;
  const std::uint64_t end = round_up(offset + n, page_bytes);
  if (end > log_bytes_ + data_bytes())
    return failure(Code::invalid, path_,
                   "an allocation of " + number(n) + " bytes at " + number(offset),
                   "bytes of the file's " + number(log_bytes_ + data_bytes()));
  const std::lock_guard lock(allocating_);
  Status s;
  page_map_.each_run(offset / page_bytes, end / page_bytes, false,
                     [&](std::uint64_t first, std::uint64_t past) {
                       if (!s.ok()) return;
                       const std::uint64_t from = first * page_bytes, to = past * page_bytes,
                                           middle = std::clamp(log_bytes_, from, to);
                       if (from < middle) s = give_blocks(from, middle);
                       if (s.ok() && from < middle && !holes_.empty())
                         s = map_allocated(from, middle - from);
                       if (s.ok() && middle < to) s = give_blocks(middle, to);
                       if (s.ok()) page_map_.set(first, past);
                     });
  return s;
}

Result<std::uint64_t> MappedMedium::give_back(std::uint64_t offset, std::uint64_t n) {
  if (read_only_)
    return failure(Code::read_only, path_, "blocks to be given back in a pool opened read-only", {},
                   "open it for writing");
  if (Status s = usable(); !s.ok()) return s;
  if (offset < log_bytes_ || n > log_bytes_ + data_bytes() - offset)
    return failure(Code::invalid, path_,
                   "blocks to be given back: " + number(n) + " bytes at " + number(offset),
                   "bytes of the data region");
  const std::uint64_t from = round_up(offset, page_bytes),
                      to = (offset + n) / page_bytes * page_bytes;
  if (from >= to) return std::uint64_t{0};
  const std::lock_guard lock(allocating_);
  std::uint64_t pages = 0;
  if (pages_ == nullptr)
    pages = (to - from) / page_bytes;
  else
    page_map_.each_run(from / page_bytes, to / page_bytes, true,
                       [&](std::uint64_t first, std::uint64_t end) { pages += end - first; });
  // The map forgets the pages first: where it errs, it says "not allocated", which costs a call.
  if (pages_ != nullptr) page_map_.clear(from / page_bytes, to / page_bytes);
  if (Status s = make_hole(from, to); !s.ok()) return s;
  return pages * page_bytes;
}

Status MappedMedium::cut(std::uint64_t to) {
  const std::uint64_t now = data_bytes();
  if (read_only_)
    return failure(Code::read_only, path_, "an end to be cut off in a pool opened read-only", {},
                   "open it for writing");
  if (Status s = usable(); !s.ok()) return s;
  if (to % page_bytes != 0 || to > now)
    return failure(Code::invalid, path_, "a data region cut to " + number(to) + " bytes",
                   "a multiple of " + number(page_bytes) + ", at most " + number(now));
  if (map_unit_ != page_bytes)
    return failure(Code::unsupported, path_, "a device, whose length is fixed", "a regular file");
  if (to == now) return {};
  // The address space stays reserved.
  if (::mmap(data_ + to, now - to, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    return map_failure(path_, now - to, errno);
  // Relaxed: only grow() and cut() store it, and one of them runs at a time.
  data_bytes_.store(to, std::memory_order_relaxed);
  const std::lock_guard lock(allocating_);
  if (pages_ != nullptr)
    page_map_.clear((log_bytes_ + to) / page_bytes, (log_bytes_ + now) / page_bytes);
  shrink(to);
  return {};
}

Status MappedMedium::grow(std::uint64_t wanted) {
  const std::uint64_t now = data_bytes();
  if (read_only_)
    return failure(Code::read_only, path_, "growth asked of a pool opened read-only", {},
                   "open it for writing");
  if (Status s = usable(); !s.ok()) return s;
  if (wanted % page_bytes != 0 || wanted < now) {
    return failure(
        Code::invalid, path_, "growth to " + number(wanted) + " bytes",
        "a multiple of " + number(page_bytes) + ", not less than the present " + number(now));
  }
  wanted = round_up(wanted, map_unit_);
  if (wanted == now) return {};
  if (wanted > max_data_bytes_) {
    return failure(Code::full, path_, "growth to " + number(wanted) + " bytes",
                   "at most " + number(max_data_bytes_),
                   "export the pool and load it into one with a larger max_size");
  }
  if (Status s = extend(now, wanted); !s.ok()) return s;
  Status s = map_extent(now, wanted);
  if (s.ok()) s = mapped(now, wanted);
  if (!s.ok()) {
    shrink(now);
    return s;
  }
  if (pages_ != nullptr) {
    const std::lock_guard lock(allocating_);
    note_allocated(log_bytes_ + now, log_bytes_ + wanted);
  }
  // The release pairs with the acquire in data_bytes(): the range is mapped before it is seen.
  data_bytes_.store(wanted, std::memory_order_release);
  return {};
}

Status MappedMedium::map_view(std::byte* address, std::uint64_t data_offset, std::uint64_t n,
                              ViewKind kind) {
  const std::uint64_t have = data_bytes();
  if (n == 0 || n % page_bytes != 0 || data_offset % page_bytes != 0 ||
      reinterpret_cast<std::uintptr_t>(address) % page_bytes != 0 || data_offset > have ||
      n > have - data_offset) {
    return failure(Code::invalid, path_,
                   "a view of " + number(n) + " bytes at " + number(data_offset),
                   "whole pages within the data region's " + number(have) + " bytes");
  }
  const auto offset = static_cast<off_t>(log_bytes_ + data_offset);
  const int both = PROT_READ | PROT_WRITE;
  void* p = MAP_FAILED;
  switch (kind) {
    case ViewKind::shared:
      p = ::mmap(address, n, read_only_ ? PROT_READ : both, map_flags_ | MAP_FIXED, data_fd_,
                 offset);
      break;
    case ViewKind::shared_read:
      p = ::mmap(address, n, PROT_READ, map_flags_ | MAP_FIXED, data_fd_, offset);
      break;
    case ViewKind::copy_on_write:
      if (!private_views_) {
        return failure(Code::unsupported, path_, "a device-dax, which refuses MAP_PRIVATE",
                       "a file", "keep the shadow in anonymous memory");
      }
      p = ::mmap(address, n, both, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, data_fd_, offset);
      break;
    case ViewKind::fresh:
      p = ::mmap(address, n, both, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
      break;
  }
  if (p == MAP_FAILED) return map_failure(path_, n, errno);
  // This is advice only: a kernel without huge pages refuses it.
  if (kind == ViewKind::fresh) (void)::madvise(address, n, MADV_HUGEPAGE);
  // A core dump would contain a range that may be as large as the pool.
  if (kind == ViewKind::fresh || kind == ViewKind::copy_on_write)
    (void)::madvise(address, n, MADV_DONTDUMP);
  // A forked child that writes a shared view would change the pool beside its parent; a private
  // view would double the child's memory.
  if (::madvise(address, n, MADV_DONTFORK) != 0)
    return system_failure(path_, "madvise(MADV_DONTFORK)", errno);
  return {};
}

}  // namespace perdure::medium
