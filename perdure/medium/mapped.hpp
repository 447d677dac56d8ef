// SPDX-License-Identifier: BSD-3-Clause
//
// MappedMedium: what every medium here shares: the data region in reserved address space, rings
// mapped twice, and the four kinds of view.
//
// Address space for the data region's largest size is reserved once (PROT_NONE). Extents are mapped
// into it as the data region grows, so nothing ever moves, and growth is safe beside readers and
// writers. The log range may be mapped from another file than the data region (the `file` medium's
// stage). Holes of a mapped log are not mapped from the file: zero pages of DRAM stand for them
// until they are allocated. On tmpfs even reading a hole takes a page, and is a SIGBUS where none
// is left; a scan of the log after a crash reads all of it.
// Thread safety: one caller at a time for map_ring and grow; any thread may call allocate; any
// thread may call map_view (with disjoint addresses).
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "perdure/medium/file_handle.hpp"
#include "perdure/medium/medium.hpp"
#include "perdure/medium/words.hpp"

namespace perdure::medium {

class MappedMedium : public Medium {
 public:
  ~MappedMedium() override;
  Result<RingMap> map_ring(std::uint64_t offset, std::uint64_t bytes) override;
  Status allocate(std::uint64_t offset, std::uint64_t n) override;
  Status grow(std::uint64_t data_bytes) override;
  bool can_give_back() const noexcept override { return map_unit_ == page_bytes; }
  Result<std::uint64_t> give_back(std::uint64_t offset, std::uint64_t n) override;
  Status cut(std::uint64_t data_bytes) override;
  Status map_view(std::byte* address, std::uint64_t data_offset, std::uint64_t n,
                  ViewKind kind) override;

 protected:
  MappedMedium() = default;

  /// Starts without any page known to be allocated; call it before map_all. `bytes` is the file's
  /// largest size. Without this call everything counts as allocated, always.
  Status keep_page_map(std::uint64_t bytes);
  [[nodiscard]] const PageMap& page_map() const noexcept { return page_map_; }
  /// Notes that bytes [from, to) are allocated, as far as they are whole pages.
  void note_allocated(std::uint64_t from, std::uint64_t to) noexcept {
    page_map_.set(round_up(from, page_bytes) / page_bytes, to / page_bytes);
  }
  /// Notes that the whole pages in [from, to) of the log are holes, which zero pages will stand
  /// for; call it before map_all.
  void note_hole(std::uint64_t from, std::uint64_t to);
  /// Are the pages allocated that n bytes of the ring touch, beginning with its byte `at`? The
  /// ring's beginning follows its end.
  [[nodiscard]] bool allocated_in(const RingMap& ring, std::uint64_t at,
                                  std::uint64_t n) const noexcept {
    const std::uint64_t first = n < ring.bytes - at ? n : ring.bytes - at;
    return allocated(ring.offset + at, first) && allocated(ring.offset, n - first);
  }
  /// Maps the log from `log_fd` at 0, reserves address space for the data region and maps its first
  /// `data_bytes` from `data_fd` at log_bytes. path_, log_bytes_, read_only_ and map_flags_ must be
  /// set before.
  Status map_all(int log_fd, int data_fd, std::uint64_t data_bytes, std::uint64_t max_data_bytes);

  /// ALLOC-1: the file system gives bytes [from, to), whole pages of the log or the data region,
  /// their blocks; `full` if it has none left. Existing contents stay.
  virtual Status give_blocks(std::uint64_t from, std::uint64_t to) = 0;
  /// Gives [from, to) of the data region its space on the medium, filled with zeros, and makes the
  /// new length durable; changes nothing when it fails.
  virtual Status extend(std::uint64_t from, std::uint64_t to) = 0;
  /// Makes a hole of bytes [from, to), whole pages of the data region; `unsupported` where that is
  /// impossible, and nothing has changed then.
  virtual Status make_hole(std::uint64_t from, std::uint64_t to) = 0;
  /// Gives the space behind `to` back: after extend(), when the new range could not be mapped, and
  /// in cut().
  virtual void shrink(std::uint64_t to) noexcept = 0;
  /// Calls f(base, bytes) for each ring that was mapped (twice in a row).
  template <class F>
  void each_ring(F&& f) const {
    for (const Ring& r : rings_) f(r.base, r.bytes);
  }
  /// Called when [from, to) of the data region has been mapped.
  virtual Status mapped(std::uint64_t /*from*/, std::uint64_t /*to*/) { return {}; }

  int map_flags_ = 0;          // MAP_SHARED, or MAP_SHARED_VALIDATE | MAP_SYNC
  bool private_views_ = true;  // a device-dax refuses MAP_PRIVATE
  // A mapping's offset and length must be multiples of this: a device-dax requires 2 MiB.
  std::uint64_t map_unit_ = page_bytes;

 private:
  Status map_extent(std::uint64_t from, std::uint64_t to);
  Status map_log(std::byte* address, std::uint64_t offset, std::uint64_t n);
  Status stand_in_for_holes(std::byte* address, std::uint64_t offset, std::uint64_t n);
  Status map_allocated(std::uint64_t from, std::uint64_t n);

  int log_fd_ = -1, data_fd_ = -1;  // owned by the concrete medium
  std::byte* reserve_ = nullptr;
  std::uint64_t reserve_bytes_ = 0;
  struct Ring {
    std::byte* base;
    std::uint64_t offset, bytes;
  };
  std::vector<Ring> rings_;  // changed under allocating_
  std::mutex allocating_;
  PageMap page_map_;
  // Holes of the log as it was opened: [first, second), whole pages.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> holes_;
};

}  // namespace perdure::medium
