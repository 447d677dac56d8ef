// SPDX-License-Identifier: BSD-3-Clause
//
// MemoryMedium: byte-addressable durable memory, real (`dax`) or played by a MAP_SHARED file (`emulated`). Both are this one class.
//
// The commit path is append() and fence(): wide non-temporal stores, one sfence, three counters. With NoDelay nothing else is compiled in.
// Crash invariants are M1-M4 as the hardware gives them: a flush is a clwb (or what there is), a fence an sfence. An sfence can't fail,
// so neither does this medium once it is open; only growth can.
// Thread safety: as medium.hpp says. flush_all and grow: one caller at a time, and not both at once.
#pragma once

#include <cassert>
#include <string>
#include <utility>

#include "perdure/base/cpu.hpp"
#include "perdure/base/pmemcheck.hpp"
#include "perdure/medium/delay.hpp"
#include "perdure/medium/line_marks.hpp"
#include "perdure/medium/mapped.hpp"

namespace perdure::medium {

/// What tells one memory medium from another.
struct MemoryTraits {
  std::string_view kind;  // "dax", "emulated"
  std::string about;      // for describe()
  base::FlushInstruction flush = base::FlushInstruction::none;
  int map_flags = 0;
  bool sync_metadata = false;  // flush_all and growth fsync the file
  std::uint64_t map_unit = page_bytes;
};

template <class Delay>
class MemoryMedium final : public MappedMedium {
 public:
  MemoryMedium(MemoryTraits traits, PoolFile file, const OpenMedium& how)
      : all_allocated_(how.create && !how.sparse),
        sparse_(how.create && how.sparse),
        traits_(std::move(traits)),
        file_(std::move(file)),
        flush_(base::flush_lines(traits_.flush)),
        stream_(base::stream_lines(base::best_stream())),
        delay_(how.delays) {
    path_ = how.path;
    log_bytes_ = how.log_bytes;
    read_only_ = how.read_only;
    map_flags_ = traits_.map_flags;
    map_unit_ = traits_.map_unit;
    private_views_ = !file_.character_device;
  }

  Status init(std::uint64_t max_home_bytes) {
    const std::uint64_t most = log_bytes_ + std::max(file_.home_bytes, max_home_bytes);
    if (Status s = learn_pages(most); !s.ok()) return s;
    if (Status s = marks_.reserve(path_, most); !s.ok()) return s;
    if (Status s = marks_.cover(path_, log_bytes_); !s.ok()) return s;
    Status s = map_all(file_.fd.get(), file_.fd.get(), file_.home_bytes, max_home_bytes);
    if (s.ok()) base::note_mapped(log_, log_bytes_);
    return s;
  }
  ~MemoryMedium() override {
    if (home_ == nullptr) return;
    base::note_unmapped(log_, log_bytes_);
    base::note_unmapped(home_, home_bytes());
    each_ring([](const std::byte* at, std::uint64_t n) { base::note_unmapped(at, 2 * n); });
  }

  std::string_view kind() const noexcept override { return traits_.kind; }
  std::string describe() const override { return traits_.about; }

  void store(std::uint64_t offset, const void* src, std::size_t n) noexcept override {
    assert(allocated(offset, n));
    Row& r = row();
    copy_words(address(offset), src, n);
    marks_.mark(offset, n);
    add(r.stores, 1);
    add(r.stored_bytes, n);
  }

  void stream(std::uint64_t offset, const void* src, std::size_t n) noexcept override {
    assert(offset % line_bytes == 0 && n % line_bytes == 0 && allocated(offset, n));
    stream_(address(offset), src, n);
    base::note_flushed(address(offset), n);
    delay_.written(offset / line_bytes, n / line_bytes);
    count_streamed(row(), n);
  }

  void flush(std::uint64_t offset, std::size_t n) noexcept override {
    if (n != 0) flush_run(offset / line_bytes, lines_touched(offset, n));
  }

  void flush_lines(std::uint64_t base, std::span<const std::uint64_t> lines) noexcept override {
    const std::uint64_t first = base / line_bytes;
    for (const std::uint64_t l : lines)
      (void)marks_.take_line(first + l);  // all before the first write-back, for which an exchange would wait
    each_run(lines, [&](std::uint64_t l, std::uint64_t count) { flush_taken(first + l, count); });
  }

  /// By the addresses at which the ring was just read: the log's own mapping would be faulted in for it, page by page.
  void flush_ring(const RingMap& ring, std::uint64_t pos, std::size_t n) noexcept override {
    const std::uint64_t at = pos % ring.bytes, count = lines_touched(at, n), whole = ring.bytes / line_bytes;
    for (std::uint64_t l = at / line_bytes; l < at / line_bytes + count; ++l) (void)marks_.take_line(ring.offset / line_bytes + l % whole);
    const std::uint64_t before = at % line_bytes, first = std::min(count, whole - at / line_bytes);
    std::byte* const from = ring.base + (at - before);  // past the ring's end lies its beginning
    flush_(from, count);
    base::note_flushed(from, count * line_bytes);
    Row& r = row();
    add(r.flushed_lines, count);
    add(r.written_bytes, count * line_bytes);
    delay_.written((ring.offset + at) / line_bytes, first);
    if (first != count) delay_.written(ring.offset / line_bytes, count - first);
  }

  Status fence() noexcept override {
    add(row().fences, 1);  // a store that comes after the fence waits for it in the processor's store buffer, which then fills up
    // what this thread flushed or streamed is durable before whatever the caller does next
    base::store_fence();
    base::note_fenced();
    delay_.fenced();
    return {};
  }

  Status flush_all() noexcept override {
    if (delay_.flush_all_is_one()) {
      marks_.take_all([this](std::uint64_t first, std::uint64_t count) { write_back(first, count); });
      delay_.written(0, 1);
    } else {
      marks_.take_all([this](std::uint64_t first, std::uint64_t count) { flush_taken(first, count); });
    }
    base::store_fence();
    base::note_fenced();
    delay_.fenced();
    return sync_metadata();
  }

  Result<RingMap> map_ring(std::uint64_t offset, std::uint64_t bytes) override {
    auto ring = MappedMedium::map_ring(offset, bytes);
    if (ring.ok()) base::note_mapped(ring->base, 2 * bytes);
    return ring;
  }
  void append(const RingMap& ring, std::uint64_t pos, const void* src, std::size_t n) noexcept override {
    append_lines(ring, pos, src, n);
    count_streamed(row(), n);
  }

 private:
  std::byte* address(std::uint64_t offset) const noexcept { return offset < log_bytes_ ? log_ + offset : home_ + (offset - log_bytes_); }

  static void count_streamed(Row& r, std::size_t n) noexcept {
    add(r.streamed_lines, n / line_bytes);
    add(r.written_bytes, n);
  }

  void append_lines(const RingMap& ring, std::uint64_t pos, const void* src, std::size_t n) noexcept {
    const std::uint64_t at = ring_index(ring, pos);
    assert(at % line_bytes == 0 && n % line_bytes == 0 && n <= ring.bytes && allocated_in(ring, at, n));
    stream_(ring.base + at, src, n);  // past the ring's end lies its beginning
    base::note_flushed(ring.base + at, n);
    if constexpr (Delay::active) {
      const std::uint64_t first = n < ring.bytes - at ? n : ring.bytes - at;
      delay_.written((ring.offset + at) / line_bytes, first / line_bytes);
      if (first != n) delay_.written(ring.offset / line_bytes, (n - first) / line_bytes);
    }
  }

  void flush_run(std::uint64_t first, std::uint64_t count) noexcept {
    for (std::uint64_t l = first; l < first + count; ++l) (void)marks_.take_line(l);  // before the write-back: K2
    flush_taken(first, count);
  }

  void flush_taken(std::uint64_t first, std::uint64_t count) noexcept {
    write_back(first, count);
    delay_.written(first, count);
  }

  void write_back(std::uint64_t first, std::uint64_t count) noexcept {
    flush_(address(first * line_bytes), count);
    base::note_flushed(address(first * line_bytes), count * line_bytes);
    Row& r = row();
    add(r.flushed_lines, count);
    add(r.written_bytes, count * line_bytes);
  }

  Status learn_pages(std::uint64_t most);
  Status sync_metadata() noexcept;
  Status give_blocks(std::uint64_t from, std::uint64_t to) override;
  Status extend(std::uint64_t from, std::uint64_t to) override;
  void shrink(std::uint64_t to) noexcept override;
  Status mapped(std::uint64_t from, std::uint64_t to) override {
    base::note_mapped(home_ + from, to - from);
    return marks_.cover(path_, log_bytes_ + to);
  }

  const bool all_allocated_;  // a new file, not a sparse one
  const bool sparse_;         // a new file of holes
  MemoryTraits traits_;
  PoolFile file_;
  base::FlushLines flush_;
  base::StreamLines stream_;
  LineMarks marks_;
  [[no_unique_address]] Delay delay_;
};

Result<std::unique_ptr<Medium>> open_dax(const OpenMedium& how);
Result<std::unique_ptr<Medium>> open_emulated(const OpenMedium& how);

/// Is the processor's cache inside the power-fail domain (eADR)? CPUID can't tell; the kernel says so for each NVDIMM region.
bool cache_is_durable();
/// Does a file at `path` (or a new one in its folder) accept MAP_SYNC? Writes nothing.
bool map_sync_works(const std::string& path);

}  // namespace perdure::medium
