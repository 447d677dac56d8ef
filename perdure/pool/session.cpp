// SPDX-License-Identifier: BSD-3-Clause
//
// A session: from mapping the view to the clean close. See pool_file.hpp.
#include <sys/stat.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "perdure/pool/allocation.hpp"
#include "perdure/pool/catalog.hpp"
#include "perdure/pool/create.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/header.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/heap_apply.hpp"
#include "perdure/pool/open_pool.hpp"
#include "perdure/pool/page_checksums.hpp"

namespace perdure::pool {
namespace {

constexpr std::uint64_t min_step = 4ULL << 20;

std::string number(std::uint64_t n) { return std::to_string(n); }

}  // namespace

Status OpenPool::publish(const std::function<void(Header&)>& change) {
  const std::lock_guard guard(header_mutex_);
  if (read_only_)
    return failure(Code::read_only, path_, "a change of a pool that is open for reading only", {},
                   "open it for writing");
  if (change) change(header_);
  return write_header_locked();
}

// Before start_session's header the checkpoint id that is written is the one that belongs to the
// ring heads: recovery would begin again there.
Status OpenPool::write_header_locked() {
  const std::uint64_t id = header_.checkpoint_id;
  if (before_recovery_) header_.checkpoint_id = *before_recovery_;
  Status s = write_header(*medium_, header_, write_b_first_);
  header_.checkpoint_id = id;
  return s;
}

Status OpenPool::require_feature(Feature feature) {
  return with_feature(feature, [](Header&) {});
}

Status OpenPool::archive_log() {
  return with_feature(Feature::archived_log, [](Header& h) { set_log_from(h, h.checkpoint_id); });
}

Status OpenPool::replicate(const ReplicationWords& words) {
  const auto change = [&](Header& h) { h.replication = words; };
  if (!has_feature(Feature::replication_words))
    return with_feature(Feature::replication_words, change);
  return publish(change);
}

void OpenPool::note_replication(const ReplicationWords& words) noexcept {
  const std::lock_guard guard(header_mutex_);
  header_.replication = words;
}

Status OpenPool::adopt_catalog(std::uint64_t offset, std::uint64_t bytes) {
  return with_feature(Feature::catalog_root, [&](Header& h) {
    h.root_offset = offset;
    h.root_bytes = bytes;
  });
}

// Sets the feature and makes the change that belongs to it in one header, unless the pool has it.
Status OpenPool::with_feature(Feature feature, const std::function<void(Header&)>& change) {
  assert(info(feature).implemented);
  auto changed = with_feature_locked(feature, change);
  if (!changed) return changed.status();
  return *changed ? when_header_changes.call() : Status();
}

// Returns whether the pool did not have it.
Result<bool> OpenPool::with_feature_locked(Feature feature,
                                           const std::function<void(Header&)>& change) {
  const std::lock_guard guard(header_mutex_);
  if (pool::has_feature(header_, feature)) return false;
  if (read_only_)
    return failure(Code::read_only, path_,
                   "a pool without the feature '" + std::string(info(feature).name) +
                       "', open for reading only",
                   {}, "open it for writing");
  const Header before = header_;
  set_feature(header_, feature);
  change(header_);
  Status s = write_header_locked();
  if (!s.ok()) {
    // A later header must not claim what was never used. The sequence stays raised, since a copy
    // may have it.
    const std::uint64_t sequence = header_.sequence;
    header_ = before;
    header_.sequence = sequence;
    return s;
  }
  return true;
}

Header OpenPool::header_now() const {
  const std::lock_guard guard(header_mutex_);
  return header_;
}

bool OpenPool::has_feature(Feature feature) const {
  const std::lock_guard guard(header_mutex_);
  return pool::has_feature(header_, feature);
}

Status OpenPool::reserve_view() {
  if (space_) return {};
  const std::uint64_t limit = raise_to_ != 0 ? raise_to_ : Directory(header_).max_data_bytes();
  auto range = AddressRange::reserve(header_.base, limit, path_);
  if (!range.ok() && raise_to_ != 0)
    return failure(range.code(), path_,
                   "a raise of max_size to " + number(raise_to_) + " bytes for which there is no " +
                       "address space: " + range.status().message(),
                   {}, "open it without raise_max_size; nothing was written");
  if (!range.ok()) return range.status();
  space_ = std::move(*range);
  note_view(path_, space_.base(), limit);
  return {};
}

// Makes space for the checksums of pages behind the end of the data region, and copies those that
// the pool has. The medium is longer than the header says until start_session's header, which is
// sound. Returns the place; no bytes: the pool needs none, or has one.
Status OpenPool::place_checksums(DataRange& place, std::uint64_t& data_bytes) {
  data_bytes = header_.data_bytes;
  const std::uint64_t limit = raise_to_ != 0 ? raise_to_ : Directory(header_).max_data_bytes();
  const bool has = PageChecksums::has(header_);
  // More pages, of a raised limit, may need a longer place.
  if (read_only_ ||
      (has ? checksums_of_new_pool(limit).bytes <= header_.checksums_bytes : !wants_checksums_))
    return {};
  Header with = header_;
  if (raise_to_ != 0) raise_limit(with, raise_to_);
  place = checksums_of_old_pool(header_, limit);
  if (place.bytes == 0)
    return failure(Code::full, path_,
                   "a limit of " + number(limit) + " bytes, of which the data region has " +
                       number(header_.data_bytes),
                   "space for the checksums of its pages: 1/512 of the limit, or 1 MiB",
                   "raise the limit (Creation::max_size with raise_max_size), or open it without "
                   "checksums");
  with.checksums_offset = place.offset;
  with.checksums_bytes = place.bytes;
  set_feature(with, Feature::data_checksums);
  with.data_bytes = std::max(header_.data_bytes, place.offset + place.bytes);
  // They take blocks as the pages need them, if the file system has holes; in steps, so that the
  // disk needs no space for all of them.
  constexpr std::uint64_t step = 8 << 20;
  for (std::uint64_t at = header_.data_bytes; at < with.data_bytes;) {
    const std::uint64_t to = std::min(with.data_bytes, at + step),
                        from = std::max(at, place.offset);
    if (Status s = medium_->grow(to); !s.ok()) return s;
    if (to > from) (void)medium_->give_back(medium_->log_bytes() + from, to - from);
    at = to;
  }
  // On a device-dax it is whole 2 MiB long.
  data_bytes = with.data_bytes = std::min(std::max(with.data_bytes, medium_->data_bytes()), limit);
  if (Status s = allocate_directory(*medium_, with, with.data_bytes); !s.ok()) return s;
  if (has) {
    const PageChecksums old(*medium_, header_);
    PageChecksums made(*medium_, with);
    for (std::uint64_t page = 0; page < header_.data_bytes / PageChecksums::page_bytes; ++page)
      if (old.covers(page) && made.covers(page))
        if (const std::uint64_t sum = old.load(page); sum != 0) made.set(page, sum);
  }
  // The holes, and what was copied, are durable before the header that names the place.
  // mutant: checksums-moved-durable, call checksums-moved-durable
  return medium_->flush_all();
}

Status OpenPool::start_session(ViewPolicy policy, bool paged) {
  policy_ = policy;
  paged_ = paged;
  DataRange place;
  std::uint64_t data_bytes = 0;
  if (Status s = place_checksums(place, data_bytes); !s.ok()) return s;
  if (policy != ViewPolicy::none) {
    if (Status s = reserve_view(); !s.ok()) return s;
    view_ = space_.begin();
    if (Status s = map_data(0, data_bytes); !s.ok()) return s;
  }
  before_recovery_.reset();
  if (!read_only_) {
    // HEADER-2: durable before the first record of this epoch; a record of an earlier epoch never
    // passes its check again.
    Status s = publish([&](Header& h) {
      // Recovery applied heap records to a data region that may have been newer: it can't count.
      if (h.clean != 1) h.heap_exact = 0;
      // mutant: session-raises-epoch
      ++h.epoch;
      // mutant: session-not-clean
      h.clean = 0;
      set_log_from(h, h.checkpoint_id);
      // mutant: session-empty-rings
      std::fill(std::begin(h.ring_head), std::end(h.ring_head), 0);
      h.append_unit = static_cast<std::uint32_t>(medium_->append_unit());
      // RAISE-1: the limit is raised together with the epoch, after recovery.
      if (raise_to_ != 0) raise_limit(h, raise_to_);
      if (place.bytes == 0) return;
      set_feature(h, Feature::data_checksums);
      h.checksums_offset = place.offset;
      h.checksums_bytes = place.bytes;
      set_data_bytes(h, data_bytes);
    });
    if (!s.ok()) return s;
    raise_to_ = 0;
    // Relaxed: no other thread sees this object yet.
    data_bytes_.store(data_bytes, std::memory_order_relaxed);
  }
  if (policy != ViewPolicy::none) heap_ = std::make_unique<Heap>(*this, view_);
  return {};
}

// Makes [from, to) of the data region appear in the view, as policy_ prescribes.
Status OpenPool::map_data(std::uint64_t from, std::uint64_t to) {
  std::byte* const at = view_ + from;
  if (read_only_) return medium_->map_view(at, from, to - from, medium::ViewKind::shared_read);
  if (policy_ == ViewPolicy::shared)
    return medium_->map_view(at, from, to - from, medium::ViewKind::shared);
  if (!paged_ && (created_ || from != 0)) {
    if (Status s = medium_->map_view(at, from, to - from, medium::ViewKind::fresh); !s.ok())
      return s;
    if (from == 0 && header_.root_bytes != 0) {  // all that a new data region holds
      MemoryTarget view(view_);
      apply(view, root_op(header_), header_);
      if (pool::has_feature(header_, Feature::catalog_root)) {
        const std::uint64_t begin = header_.root_offset;
        Catalog catalog;
        std::memcpy(&catalog, medium_->data() + begin, sizeof catalog);
        const std::uint64_t end = catalog.root - header_.base;
        std::memcpy(at + begin, medium_->data() + begin, end - begin);
      }
    }
    return {};
  }
  Status s = medium_->map_view(at, from, to - from, medium::ViewKind::copy_on_write);
  if (s.code() != Code::unsupported || paged_) return s;
  if (s = medium_->map_view(at, from, to - from, medium::ViewKind::fresh); !s.ok()) return s;
  return copy_data(from, to);
}

// Fills an anonymous view from the data region: the directory's chunks, and those that are in use.
Status OpenPool::copy_data(std::uint64_t from, std::uint64_t to) {
  const std::byte* const data = medium_->data();
  const Directory directory(header_);
  for (std::uint64_t at = from; at < to; at += chunk_bytes) {
    ChunkWord word;
    std::memcpy(&word, data + directory.word(at / chunk_bytes), sizeof word);
    const std::uint64_t chunk = at / chunk_bytes;
    if (word.kind() != ChunkWord::free ||
        (directory.holds_words(chunk) && !directory.holds_checksums(chunk)))
      std::memcpy(view_ + at, data + at, std::min(chunk_bytes, to - at));
  }
  return {};
}

Status OpenPool::grow(std::uint64_t wanted) {
  const std::lock_guard guard(grow_mutex_);
  const std::uint64_t now = data_bytes();
  if (wanted <= now) return {};
  if (read_only_)
    return failure(Code::read_only, path_, "growth of a pool that is open for reading only", {},
                   "open it for writing");
  // The header fields that the directory is made from do not change in a session.
  const Directory directory(header_);
  const std::uint64_t max = directory.max_data_bytes();
  if (wanted > max) {
    return failure(Code::full, path_,
                   "the pool is full: its data region has " + number(now) + " of at most " +
                       number(max) + " bytes",
                   number(wanted - now) + " more",
                   "free objects, or open it with a larger max_size and raise_max_size");
  }
  const auto in_chunks = [](std::uint64_t n) {
    return (n + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
  };
  const std::uint64_t least = in_chunks(wanted);
  // The steps grow with the pool: a pool of n bytes has grown about 8 log2(n) times.
  std::uint64_t to = now + std::max(min_step, now / 8);
  if (to % medium::region_align != 0) to += medium::region_align - to % medium::region_align;
  to = std::min(std::max(to, least), max);
  // ALLOC-1: the directory's words for the added chunks come first, before any of them can be used.
  if (Status s = allocate_directory(*medium_, directory, to); !s.ok()) return s;
  while (medium_->data_bytes() < to) {
    Status s = medium_->grow(to);
    if (s.ok()) break;
    if (s.code() != Code::full || to == least) return s;
    to = std::max(least, in_chunks(now + (to - now) / 2));  // a smaller step may still fit the disk
  }
  // It is more if an earlier growth got no further than the medium.
  to = std::min(std::max(to, medium_->data_bytes()), max);
  if (policy_ != ViewPolicy::none) {
    if (Status s = map_data(now, to); !s.ok()) return s;
  }
  // GROW-1: the order is medium, mapping, header: a record names only what a recovery finds in the
  // data region.
  // mutant: growth-in-header
  if (Status s = publish([to](Header& h) { set_data_bytes(h, to); }); !s.ok()) return s;
  data_bytes_.store(to, std::memory_order_release);  // pairs with the acquire in data_bytes()
  return {};
}

void OpenPool::say_clean(Header& h, std::uint64_t id) const {
  h.checkpoint_id = id;
  h.clean = 1;
  set_log_from(h, id);
  std::fill(std::begin(h.ring_head), std::end(h.ring_head), 0);
  if (said_ && !field_names_.empty() && !has_field_names(h, field_names_))
    set_field_names(h, field_names_);
  if (said_ && !layout_.empty() && pool::has_feature(h, Feature::catalog_root))
    set_layout(h, layout_);
}

Header OpenPool::header_of_clean_close(std::uint64_t id) const {
  Header h = header_now();
  say_clean(h, id);
  return h;
}

std::uint32_t OpenPool::file_mode() const noexcept {
  struct stat st = {};
  if (lock_.fd() < 0 || ::fstat(lock_.fd(), &st) != 0 || !S_ISREG(st.st_mode)) return 0;
  return st.st_mode & 0777;
}

Status OpenPool::close_clean(std::uint64_t id) {
  Status s = publish([&](Header& h) {
    say_clean(h, id);
    if (heap_) h.heap_used = heap_->used_bytes();
  });
  if (s.ok()) end_serving();
  return s;
}

}  // namespace perdure::pool
