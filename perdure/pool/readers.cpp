// SPDX-License-Identifier: BSD-3-Clause
//
// OpenPool: what a writer tells the readers in other processes, and a pool that follows a writer.
// See open_pool.hpp and reader_words.hpp.
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "perdure/pool/directory.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::pool {
namespace {

constexpr std::uint64_t page = 4096;

Status cannot_map(const std::string& path, std::uint64_t bytes, int err) {
  return system_failure(path, "mmap of " + std::to_string(bytes) + " bytes", err,
                        "give the process more address space, or open the pool with "
                        "ReaderOptions::beside_writer = false while nobody writes it");
}

Status expired(const std::string& path, const char* what) {
  return failure(Code::expired, path, what, "the pool that was opened", "open it again");
}

}  // namespace

Status OpenPool::allocate_reader_words() {
  if (!tells_readers_ || words_ != nullptr) return {};
  // ALLOC-1: a store to a hole is a SIGBUS when the disk is full.
  if (Status s = medium_->allocate(medium_->log_bytes(), page); !s.ok()) return s;
  auto* const data = const_cast<std::byte*>(medium_->data());
  words_ = reinterpret_cast<ReaderWords*>(data + reader_words_offset);
  return {};
}

Status OpenPool::make_reader_words() {
  if (Status s = allocate_reader_words(); !s.ok()) return s;
  kept_ = words_;
  return {};
}

Status OpenPool::hold_readers() {
  if (!tells_readers_) return {};
  lock_.closed(false);
  // Dekker's pattern, over the locks: a reader has its lock before it looks for a writer, and this
  // process has the writer's lock before it looks for readers. So a reader that is not seen here
  // sees the writer, and that it does not serve.
  const auto followed = lock_.has_followers();
  if (!followed.ok()) return followed.status();
  if (!*followed) return {};
  if (Status s = allocate_reader_words(); !s.ok()) return s;
  // READER-2. Pairs with the reader's acquire of the sequence, behind its load of the data.
  // mutant: opening-tells-readers
  words_->sequence.store((words_->sequence.load(std::memory_order_relaxed) + 2) | 1,
                         std::memory_order_seq_cst);
  return {};
}

void OpenPool::serve_readers() noexcept {
  if (kept_ == nullptr) return;
  // Even, and another one: whoever attached before this session attaches anew.
  kept_->sequence.store((kept_->sequence.load(std::memory_order_relaxed) + 2) & ~std::uint64_t{1},
                        std::memory_order_seq_cst);
  lock_.serve(true);
}

// The pool is as it will be until somebody opens it.
void OpenPool::end_serving() noexcept {
  lock_.serve(false);
  lock_.closed(true);
}

Status OpenPool::map_reader_words() {
  void* const at = ::mmap(nullptr, page, PROT_READ, MAP_SHARED, lock_.fd(),
                          static_cast<off_t>(header_.log_bytes));
  if (at == MAP_FAILED) return cannot_map(path_, page, errno);
  followed_ =
      reinterpret_cast<const ReaderWords*>(static_cast<const std::byte*>(at) + reader_words_offset);
  return {};
}

void OpenPool::unmap_reader_words() noexcept {
  if (followed_ == nullptr) return;
  auto* const at = reinterpret_cast<const std::byte*>(followed_) - reader_words_offset;
  ::munmap(const_cast<std::byte*>(at), page);
  followed_ = nullptr;
}

Result<OpenPool::Writer> OpenPool::writer() const {
  const auto has = lock_.has_writer();
  if (!has.ok()) return has.status();
  if (!*has) return Writer::none;
  const auto served = lock_.is_served(), closed = lock_.is_closed();
  if (!served.ok()) return served.status();
  if (!closed.ok()) return closed.status();
  return *closed ? Writer::none : *served ? Writer::serves : Writer::silent;
}

bool OpenPool::is_at_path() const noexcept {
  bool is_it = false;
  return !lock_.look_at(path_.c_str(), is_it).ok() || is_it;
}

Result<Header> OpenPool::newest_header() const {
  auto chosen = read_header_beside(path_, lock_.fd());
  if (!chosen.ok()) return chosen.status();
  return chosen->header;
}

Status OpenPool::follow_from(const Header& header) {
  if (Status s = check_features(path_, header, false); !s.ok()) return s;
  if (std::memcmp(header.uuid, header_.uuid, sizeof header.uuid) != 0 ||
      header.base != header_.base || header.log_bytes != header_.log_bytes ||
      engine_name(header) != engine_name(header_))
    return expired(path_, "a file that has become another pool");
  if (may_follow_ && !may_follow_(header))
    return expired(path_, "a pool that an engine has written that serves no readers");
  if (header.root_offset != header_.root_offset || header.root_bytes != header_.root_bytes)
    return expired(path_, "a pool that got a catalog meanwhile");
  if (space_ && Directory(header).max_data_bytes() > Directory(header_).max_data_bytes())
    return expired(path_, "a pool whose limit was raised");
  if (Status s = reserve_view(); !s.ok()) return s;
  view_ = space_.begin();
  policy_ = ViewPolicy::shadow;
  if (followed_bytes_ != 0 && ::madvise(view_, followed_bytes_, MADV_DONTNEED) != 0)
    return system_failure(path_, "madvise(MADV_DONTNEED)", errno);
  {
    const std::lock_guard guard(header_mutex_);
    header_ = header;
  }
  return follow_growth(header.data_bytes);
}

Status OpenPool::follow_growth(std::uint64_t to) {
  const std::uint64_t from = followed_bytes_;
  if (to > Directory(header_).max_data_bytes())
    return expired(path_, "a pool whose limit was raised");
  if (to > from) {
    void* const at = ::mmap(view_ + from, to - from, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, lock_.fd(),
                            static_cast<off_t>(header_.log_bytes + from));
    if (at == MAP_FAILED) return cannot_map(path_, to - from, errno);
    // Advice: a core dump would have a range as large as the pool.
    (void)::madvise(at, to - from, MADV_DONTDUMP);
    if (::madvise(at, to - from, MADV_DONTFORK) != 0)
      return system_failure(path_, "madvise(MADV_DONTFORK)", errno);
    followed_bytes_ = to;
  }
  data_bytes_.store(to, std::memory_order_release);  // pairs with the acquire in data_bytes()
  return {};
}

void OpenPool::adopt_growth() noexcept {
  const std::lock_guard guard(header_mutex_);
  set_data_bytes(header_, data_bytes());
}

}  // namespace perdure::pool
