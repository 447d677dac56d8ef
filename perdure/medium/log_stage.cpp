// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/medium/log_stage.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "perdure/base/descriptor.hpp"

namespace perdure::medium {
namespace {

constexpr std::uint64_t chunk_bytes = 1ULL << 20;

struct Free {
  void operator()(void* p) const noexcept { std::free(p); }
};
using Buffer = std::unique_ptr<std::byte, Free>;
Buffer aligned_buffer(std::uint64_t n) {
  return Buffer(static_cast<std::byte*>(std::aligned_alloc(page_bytes, n)));
}

bool all_zero(const std::byte* p, std::uint64_t n) noexcept {
  // The first byte is zero, and each byte equals the one before it.
  return p[0] == std::byte{0} && std::memcmp(p, p + 1, n - 1) == 0;
}

}  // namespace

Result<std::unique_ptr<LogStage>> LogStage::make(const OpenMedium& how, int buffered,
                                                 FileSync& sync, Poison& poison) {
  std::unique_ptr<LogStage> s(new LogStage(sync, poison));
  s->path_ = how.path;
  s->bytes_ = how.log_bytes;
  s->buffered_ = buffered;
  auto memory = make_memory_file("perdure-log", how.log_bytes);
  if (!memory.ok()) return memory.status();
  s->memory_ = std::move(*memory);
  const std::uint64_t blocks = how.log_bytes / block_bytes;
  s->dirty_ = std::make_unique<std::atomic<std::uint64_t>[]>(
      static_cast<std::size_t>((blocks + bits - 1) / bits));
  s->in_flight_.resize(static_cast<std::size_t>(blocks));
  // Direct writes beside a mapping are safe only where no page-cache folio (at most 2 MiB, aligned)
  // holds both log and data region: writing back such a folio for the data region's sake would put
  // a stale copy of the log over what was written directly.
  if (how.direct && !how.read_only && how.log_bytes % region_align == 0) {
    s->direct_ = Descriptor(base::open_file(how.path.c_str(), O_RDWR | O_DIRECT));
    if (s->direct_ && !how.create) {
      const Buffer probe = aligned_buffer(page_bytes);
      if (!probe || ::pread(s->direct_.get(), probe.get(), page_bytes, 0) < 0)
        s->direct_ = Descriptor();
    }
  }
  return s;
}

Status LogStage::claim(std::uint64_t from, std::uint64_t to) {
  const Buffer buffer = aligned_buffer(chunk_bytes);
  if (!buffer) return failure(Code::out_of_memory, path_, "no memory for a 1 MiB buffer");
  for (std::uint64_t at = from; at < to;) {
    const int fd = direct_ ? direct_.get() : buffered_;
    const auto offset = static_cast<off_t>(at);
    // The present contents are written, not zeros: a file system's blocks may be smaller than ours,
    // and a copy's hole may be only a part of one of ours.
    ssize_t n = ::pread(fd, buffer.get(), std::min(chunk_bytes, to - at), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || static_cast<std::uint64_t>(n) % block_bytes != 0)
      return system_failure(path_, "reading the log", n < 0 ? errno : EIO,
                            "look for device errors in dmesg");
    n = ::pwrite(fd, buffer.get(), static_cast<std::size_t>(n), offset);
    if (n > 0) {
      at += static_cast<std::uint64_t>(n);
    } else if (n < 0 && errno == EINVAL && direct_) {
      direct_ = Descriptor();  // the open succeeded, but a direct write is refused
    } else if (n == 0 || errno != EINTR) {
      return no_log_space(path_, "pwrite", n == 0 ? EIO : errno, to - at);
    }
  }
  return {};
}

Status LogStage::load(std::uint64_t most) {
  // bytes_ is a multiple of the block size.
  const std::uint64_t wanted =
      (std::min(bytes_, most) + block_bytes - 1) / block_bytes * block_bytes;
  const Buffer buffer = aligned_buffer(chunk_bytes);
  if (!buffer) return failure(Code::out_of_memory, path_, "no memory for a 1 MiB buffer");
  void* p = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (p == MAP_FAILED) return system_failure(path_, "mmap of the log stage", errno);
  Status status;
  std::uint64_t done = 0;
  for (const auto& [first, past] : data_) {  // holes are zero in the file and in the stage
    const std::uint64_t end =
        std::min((past + block_bytes - 1) / block_bytes * block_bytes, wanted);
    for (std::uint64_t at = std::max(first / block_bytes * block_bytes, done);
         at < end && status.ok();) {
      const int fd = direct_ ? direct_.get() : buffered_;
      const ssize_t n =
          ::pread(fd, buffer.get(), std::min(chunk_bytes, end - at), static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0 || static_cast<std::uint64_t>(n) % block_bytes != 0) {
        status = system_failure(path_, "reading the log", n < 0 ? errno : EIO,
                                "look for device errors in dmesg");
        break;
      }
      const auto got = static_cast<std::uint64_t>(n);
      for (std::uint64_t b = 0; b < got; b += block_bytes) {
        if (!all_zero(buffer.get() + b, block_bytes))
          std::memcpy(static_cast<std::byte*>(p) + at + b, buffer.get() + b, block_bytes);
      }
      at += got;
      done = at;
    }
  }
  data_ = {};
  ::munmap(p, bytes_);
  // The kernel would have to drop cached copies at the first direct write of each page.
  if (direct_) (void)::posix_fadvise(buffered_, 0, static_cast<off_t>(bytes_), POSIX_FADV_DONTNEED);
  return status;
}

void LogStage::mark(std::uint64_t offset, std::uint64_t n) noexcept {
  if (n == 0) return;
  for (std::uint64_t b = offset / block_bytes; b <= (offset + n - 1) / block_bytes; ++b) {
    const std::uint64_t bit = 1ULL << (b % bits);
    // acq_rel: the bytes were stored before the bit; this pairs with take(), STAGE-3. It is not
    // skipped when the bit is set already: that read could be older than a take() which did not see
    // our bytes.
    dirty_[b / bits].fetch_or(bit, std::memory_order_acq_rel);
  }
}

bool LogStage::take(std::uint64_t block) noexcept {
  const std::uint64_t bit = 1ULL << (block % bits);
  // This pairs with mark().
  return (dirty_[block / bits].fetch_and(~bit, std::memory_order_acq_rel) & bit) != 0;
}

int LogStage::write_run(Run run, bool sync) noexcept {
  std::uint64_t at = run.first * block_bytes;
  const std::uint64_t end = run.end * block_bytes;
  while (at < end) {
    ssize_t n = 0;
    if (direct_) {
      struct iovec piece = {const_cast<std::byte*>(stage_ + at), end - at};
      n = ::pwritev2(direct_.get(), &piece, 1, static_cast<off_t>(at), sync ? RWF_DSYNC : 0);
    } else {
      // Not ::pwrite: thread sanitizers would report the kernel's read of a block as a race with
      // stores to its other words.
      n = ::syscall(SYS_pwrite64, buffered_, stage_ + at, end - at, at);
    }
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    at += static_cast<std::uint64_t>(n);
  }
  return 0;
}

void LogStage::take_free(const Run* first, const Run* last, Runs& mine, bool& more) {
  std::unique_lock lock(mutex_);
  const auto none_in_flight = [&] {
    for (const Run* r = first; r != last; ++r) {
      for (std::uint64_t b = r->first; b < r->end; ++b) {
        if (in_flight_[static_cast<std::size_t>(b)]) return false;
      }
    }
    return true;
  };
  // STAGE-2. This thread has nothing in flight here, so no thread waits for it meanwhile.
  landed_.wait(lock, none_in_flight);
  for (const Run* r = first; r != last; ++r) {
    for (std::uint64_t b = r->first; b < r->end; ++b) {
      if (mine.full_for(b)) {
        more = true;
        return;
      }
      if (!take(b)) continue;
      mine.add(b, b + 1);
      in_flight_[static_cast<std::size_t>(b)] = true;
    }
  }
}

Status LogStage::write(const Runs& runs, bool sync_file, Written& done) {
  const Run everything{0, bytes_ / block_bytes};
  const Run* const first = runs.all() ? &everything : runs.begin();
  const Run* const last = runs.all() ? &everything + 1 : runs.end();
  Status status;
  for (bool more = true; more && status.ok();) {
    // One pass, unless there are more separate runs than `mine` holds.
    more = false;
    Runs mine;
    take_free(first, last, mine, more);
    status = poison_.check();  // a block may be clean because its write failed
    const bool carry_sync = direct_ && mine.size() == 1 && !more && !sync_file;
    for (const Run& r : mine) {
      if (!status.ok()) break;
      const int err = write_run(r, carry_sync);
      if (err != 0)
        status = poison_.fail(system_failure(path_, direct_ ? "direct write" : "write", err,
                                             "reopen the pool to recover"));
      done.bytes += r.blocks() * block_bytes;
    }
    if (status.ok() && carry_sync) {
      ++done.syncs;
    } else if (status.ok() && (sync_file || mine.size() != 0)) {
      status = sync_.wait(done.syncs);
      done.file_synced = true;
    }
    const std::lock_guard lock(mutex_);  // the blocks are durable or the medium poisoned: STAGE-3
    for (const Run& r : mine) {
      for (std::uint64_t b = r.first; b < r.end; ++b)
        in_flight_[static_cast<std::size_t>(b)] = false;
    }
    if (mine.size() != 0) landed_.notify_all();
  }
  return status;
}

}  // namespace perdure::medium
