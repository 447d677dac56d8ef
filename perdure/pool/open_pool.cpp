// SPDX-License-Identifier: BSD-3-Clause
//
// Opening: lock, header, medium, in this order. Each step refuses what it can't continue with. See
// pool_file.hpp; session.cpp has what follows.
#include "perdure/pool/open_pool.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "perdure/base/descriptor.hpp"
#include "perdure/pool/allocation.hpp"
#include "perdure/pool/create.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/heap.hpp"

namespace perdure::pool {
namespace {

Status needs_recovery(const std::string& path) {
  return failure(
      Code::read_only, path,
      "a pool that was not closed in order: its log has to be applied, and recovery needs to write",
      "a cleanly closed pool", "open it once for writing (`perdure recover`), then read it");
}

// Whether the path names a pool that is to be followed. Whatever is wrong with it is found later.
bool follows_pool(const OpenFile& how) {
  if (!how.read_only || !how.may_follow) return false;
  const int fd = base::open_file(how.path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return false;
  struct stat st = {};
  bool follows = false;
  if (::fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
    const auto chosen = read_header_beside(how.path, fd);
    follows = chosen.ok() && how.may_follow(chosen->header);
  }
  ::close(fd);
  return follows;
}

}  // namespace

OpenPool::OpenPool() = default;

OpenPool::~OpenPool() {
  // The log may have a TERM frame of it: without the file nobody could go on there.
  provisional_ = provisional_ && !is_replicated(header_);
  if (provisional_ && !was_empty_file_) remove_file();
  heap_.reset();
  unmap_reader_words();
  if (space_) note_view(path_, space_.base(), 0);
  if (provisional_ && was_empty_file_) {
    medium_.reset();  // the mappings go first: nothing may be mapped beyond a file's end
    space_ = AddressRange();
    if (lock_.held()) (void)!::ftruncate(lock_.fd(), 0);
  }
}

// While it is locked: a process that opened it meanwhile finds its name gone.
void OpenPool::remove_file() noexcept {
  char real[PATH_MAX];  // the file behind a symbolic link
  struct stat st = {};
  bool is_it = false;
  if (lock_.held() && ::fstat(lock_.fd(), &st) == 0 && S_ISREG(st.st_mode) &&
      ::realpath(path_.c_str(), real) != nullptr && lock_.look_at(real, is_it).ok() && is_it)
    ::unlink(real);
}

// Decides whether to raise the limit, and writes nothing: start_session raises it.
Status OpenPool::plan_raise(const OpenFile& how) {
  if (!how.raise_max || read_only_ || created_) return {};
  if (how.max_bytes > max_data_limit)
    return failure(Code::invalid, path_,
                   "a raise of max_size to " + std::to_string(how.max_bytes) + " bytes",
                   "at most " + std::to_string(max_data_limit), "ask for less");
  struct stat st = {};
  const bool device = lock_.held() && ::fstat(lock_.fd(), &st) == 0 && S_ISCHR(st.st_mode);
  const std::uint64_t unit = device ? medium::region_align : chunk_bytes,
                      wanted = (how.max_bytes + unit - 1) / unit * unit;
  if (wanted > Directory(header_).max_data_bytes()) raise_to_ = wanted;
  return {};
}

Result<std::unique_ptr<OpenPool>> OpenPool::open(const OpenFile& how, const Identity& who) {
  std::unique_ptr<OpenPool> pool(new OpenPool);
  pool->path_ = how.path;
  pool->read_only_ = how.read_only;
  if (how.path.empty())
    return failure(Code::invalid, "", "an empty path", "the path of a pool file");
  if (how.read_only && how.must_create)
    return failure(Code::invalid, how.path, "read_only and must_create together", "one of them");

  const auto mode = how.read_only ? FileLock::Mode::read : FileLock::Mode::write;
  const bool follows = follows_pool(how);
  auto lock = FileLock::acquire(how.path, follows ? FileLock::Mode::follow : mode, how.path);
  const bool empty =
      lock.ok() && !how.read_only && how.create && !how.must_create && empty_file(lock->fd());
  if (empty ||
      (lock.code() == Code::not_found && !how.read_only && (how.create || how.must_create))) {
    auto made = create_file(how, who, empty ? &*lock : nullptr);
    if (made.ok()) {
      lock = std::move(made->lock);
      lock->renamed(how.path);
      pool->space_ = std::move(made->space);
      pool->created_ = pool->provisional_ = true;
      pool->was_empty_file_ = empty;
    } else if (made.code() == Code::exists && !how.must_create) {
      bool is_it = false;
      if (empty)
        if (Status s = lock->look_at(how.path.c_str(), is_it); !s.ok()) return s;
      if (!is_it) lock = FileLock::acquire(how.path, mode, how.path);  // another creator won
    } else {
      return made.status();
    }
  }
  if (!lock.ok()) return lock.status();
  pool->lock_ = std::move(*lock);
  const bool format_device = !pool->created_ && !how.read_only && (how.create || how.must_create) &&
                             blank_device(pool->lock_.fd());
  if (how.must_create && !pool->created_ && !format_device)
    return failure(Code::exists, how.path, "the file exists already", "no such file",
                   "open it without must_create, or remove it");
  if (format_device) {
    if (Status s = create_on_device(pool->lock_, how, who, pool->space_); !s.ok()) return s;
    pool->created_ = true;
  }

  auto chosen = follows ? read_header_beside(how.path, pool->lock_.fd())
                        : read_header(how.path, pool->lock_.fd());
  if (!chosen.ok()) return chosen.status();
  if (follows && !how.may_follow(chosen->header))
    return failure(Code::busy, how.path, "a file that another pool has replaced", {},
                   "open it again");
  pool->header_ = chosen->header;
  pool->write_b_first_ = chosen->write_b_first;
  // The features come first: one of them may change the meaning of everything else.
  if (Status s = check_features(how.path, pool->header_, !how.read_only); !s.ok()) return s;
  if (Status s = check_identity(how.path, pool->header_, who); !s.ok()) return s;
  if (Status s = pool->must_have_log(how); !s.ok()) return s;
  if (Status s = pool->plan_raise(how); !s.ok()) return s;
  if (how.read_only && !follows && pool->header_.clean != 1) return needs_recovery(how.path);
  if (!how.read_only && !pool->created_ &&
      // The pool was never opened: its creator may have been killed before the name was durable.
      pool->header_.epoch == 0)
    if (Status s = sync_folder(how.path); !s.ok()) return s;

  medium::OpenMedium m;
  m.path = how.path;
  m.kind = how.medium;
  m.read_only = how.read_only;
  m.direct = how.direct;
  m.log_bytes = pool->header_.log_bytes;
  m.data_bytes = pool->header_.data_bytes;
  m.max_data_bytes =
      std::max(Directory(pool->header_).max_data_bytes(), pool->raise_to_);  // 0: it is not raised
  m.delays = how.delays;
  // The rings hold nothing: the next session's seeds match none of their contents.
  // A follower reads them itself.
  if (pool->header_.clean == 1 || follows) m.load_bytes = first_ring;
  auto medium = medium::open_medium(m);
  if (!medium.ok()) return medium.status();
  bool is_it = false;
  if (Status s = pool->lock_.look_at(how.path.c_str(), is_it); !s.ok()) return s;
  if (!is_it)
    return failure(Code::busy, how.path,
                   "the file was replaced by another while it was being opened", {},
                   "open it again");
  pool->medium_ = std::move(*medium);
  pool->tells_readers_ = !how.read_only && pool->medium_->can_give_back();
  if (follows) {
    pool->may_follow_ = how.may_follow;
    if (Status s = pool->map_reader_words(); !s.ok()) return s;
  }
  auto opened = finish_open(std::move(pool), who);
  if (opened.ok()) (*opened)->keep();
  return opened;
}

Result<std::unique_ptr<OpenPool>> OpenPool::open_on(std::unique_ptr<medium::Medium> medium,
                                                    bool fresh, const OpenFile& how,
                                                    const Identity& who) {
  std::unique_ptr<OpenPool> pool(new OpenPool);
  pool->path_ = how.path.empty() ? medium->path() : how.path;
  pool->medium_ = std::move(medium);
  pool->read_only_ = how.read_only || pool->medium_->read_only();
  if (fresh) {
    if (pool->read_only_)
      return failure(Code::read_only, pool->path_, "a read-only medium",
                     "one that a new pool can be written to");
    OpenFile sized = how;
    sized.path = pool->path_;
    const auto plan = plan_on(*pool->medium_, sized, who);
    if (!plan.ok()) return plan.status();
    if (Status s = format_pool(*pool->medium_, *plan, sized, who, true, pool->space_); !s.ok())
      return s;
    pool->created_ = true;
  }
  auto chosen = read_header(*pool->medium_);
  if (!chosen.ok()) return chosen.status();
  pool->header_ = chosen->header;
  pool->write_b_first_ = chosen->write_b_first;
  if (Status s = check_features(pool->path_, pool->header_, !pool->read_only_); !s.ok()) return s;
  if (Status s = check_identity(pool->path_, pool->header_, who); !s.ok()) return s;
  if (Status s = pool->must_have_log(how); !s.ok()) return s;
  if (Status s = pool->plan_raise(how); !s.ok()) return s;
  if (pool->read_only_ && pool->header_.clean != 1) return needs_recovery(pool->path_);
  return finish_open(std::move(pool), who);
}

Status OpenPool::must_have_log(const OpenFile& how) const {
  // mutant: replicated-pool-needs-its-log
  if (how.read_only || read_only_ || how.with_log || !is_replicated(header_)) return {};
  return failure(
      Code::incompatible, path_,
      "a pool that is replicated over a log, in term " + std::to_string(header_.replication.term),
      "the log with it (Options::replicate), for what changes the pool",
      "name the log, or end the replication of this copy for good (`perdure replicate "
      "leave`)");
}

Result<std::unique_ptr<OpenPool>> OpenPool::finish_open(std::unique_ptr<OpenPool> pool,
                                                        const Identity& who) {
  pool->set_root(pool->header_.root_offset, pool->header_.root_bytes);
  // Relaxed: no other thread sees this object yet.
  pool->data_bytes_.store(pool->header_.data_bytes, std::memory_order_relaxed);
  if (pool->space_)
    note_view(pool->path_, pool->space_.base(), Directory(pool->header_).max_data_bytes());
  if (!who.layout_any) {
    pool->layout_ = who.layout;
    pool->field_names_ = who.field_names;
    if (Status s = pool->reserve_view(); !s.ok()) return s;
  } else if (pool->raise_to_ != 0) {
    // If there is no address space for a raise, it is refused here, before recovery writes.
    if (Status s = pool->reserve_view(); !s.ok()) return s;
  }
  // ALLOC-1: before anything is stored. A file that was copied without its holes may lack blocks
  // where its directory says that it has data.
  if (!pool->read_only_)
    if (Status s = allocate_used(*pool->medium_, pool->header_); !s.ok()) return s;
  if (!pool->read_only_ && !pool->created_) {  // the creation has fenced the header already
    // HEADER-3: the copy that was read is durable before the other is written: a killed process may
    // have left it visible but not durable, and a power cut could then tear both.
    pool->medium_->flush(pool->write_b_first_ ? header_a : header_b, sizeof(Header));
    if (Status s = pool->medium_->fence(); !s.ok()) return s;
  }
  return pool;
}

}  // namespace perdure::pool
