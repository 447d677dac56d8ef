// SPDX-License-Identifier: BSD-3-Clause
//
// MemoryMedium: byte-addressable durable memory, either real (`dax`) or emulated by a MAP_SHARED
// file (`emulated`). Both are this one class.
//
// The commit path is append() and fence(): wide non-temporal stores, one sfence, three counters.
// With NoDelay nothing else is compiled in. The crash invariants are MEDIUM-1 to MEDIUM-4 as the
// hardware gives them: a flush is a clwb (or the best instruction there is), a fence an sfence. An
// sfence can't fail, so this medium can't fail once it is open, except in growth.
// Thread safety: as medium.hpp says.
#pragma once

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "perdure/base/cpu.hpp"
#include "perdure/base/pmemcheck.hpp"
#include "perdure/medium/delay.hpp"
#include "perdure/medium/marked.hpp"

namespace perdure::medium {

/// The differences between the memory media.
struct MemoryTraits {
  std::string_view kind;  // "dax", "emulated"
  std::string about;      // for describe()
  base::FlushInstruction flush = base::FlushInstruction::none;
  int map_flags = 0;
  bool sync_metadata = false;  // flush_all and growth fsync the file
  std::uint64_t map_unit = page_bytes;
};

template <class Delay>
class MemoryMedium final : public MarkedMedium<MemoryMedium<Delay>> {
  using Base = MarkedMedium<MemoryMedium<Delay>>;
  using Base::address, Base::add, Base::data_, Base::log_, Base::log_bytes_, Base::map_flags_,
      Base::path_, Base::row;
  using Base::keep_page_map, Base::note_allocated, Base::note_hole;

 public:
  MemoryMedium(MemoryTraits traits, FileHandle file, const OpenMedium& how)
      : all_allocated_(how.create && !how.sparse),
        sparse_(how.create && how.sparse),
        traits_(std::move(traits)),
        file_(std::move(file)),
        flush_(base::flush_lines(traits_.flush)),
        stream_(base::stream_lines(base::best_stream())),
        delay_(how.delays) {
    path_ = how.path;
    log_bytes_ = how.log_bytes;
    this->read_only_ = how.read_only;
    map_flags_ = traits_.map_flags;
    this->map_unit_ = traits_.map_unit;
    this->private_views_ = !file_.character_device;
  }

  Status init(std::uint64_t max_data_bytes) {
    const std::uint64_t max_data = std::max(file_.data_bytes, max_data_bytes);
    if (Status s = learn_pages(log_bytes_ + max_data); !s.ok()) return s;
    if (Status s = this->init_marks(max_data); !s.ok()) return s;
    Status s = this->map_all(file_.fd.get(), file_.fd.get(), file_.data_bytes, max_data_bytes);
    if (s.ok()) base::note_mapped(log_, log_bytes_);
    return s;
  }
  ~MemoryMedium() override {
    if (data_ == nullptr) return;
    base::note_unmapped(log_, log_bytes_);
    base::note_unmapped(data_, this->data_bytes());
    this->each_ring([](const std::byte* at, std::uint64_t n) { base::note_unmapped(at, 2 * n); });
  }

  std::string_view kind() const noexcept override { return traits_.kind; }
  void stream_words(std::uint64_t base, std::span<const WordStore> words) noexcept override {
    for (const WordStore& w : words) {
      assert(this->allocated(base + w.offset, sizeof w.value));
      base::stream_word(address(base + w.offset), w.value);
    }
    auto& mine = row();
    Base::each_line(base, words, [&](std::uint64_t line) {
      base::note_flushed(address(line * line_bytes), line_bytes);
      charge(line, 1);
      this->count_streamed(mine, line_bytes);
    });
  }
  std::string describe() const override { return traits_.about; }

  Result<RingMap> map_ring(std::uint64_t offset, std::uint64_t bytes) override {
    auto ring = MappedMedium::map_ring(offset, bytes);
    if (ring.ok()) base::note_mapped(ring->base, 2 * bytes);
    return ring;
  }

 private:
  friend Base;

  void put(std::uint64_t offset, const void* src, std::size_t n) noexcept {
    copy_words(address(offset), src, n);
  }

  void put_past(std::uint64_t offset, const void* src, std::size_t n) noexcept {
    stream_(address(offset), src, n);
    base::note_flushed(address(offset), n);
    charge(offset / line_bytes, n / line_bytes);
  }

  void put_past_ring(const RingMap& ring, std::uint64_t at, const void* src,
                     std::size_t n) noexcept {
    stream_(ring.base + at, src, n);  // the ring's beginning follows its end
    base::note_flushed(ring.base + at, n);
    if constexpr (Delay::active) {
      const std::uint64_t first = n < ring.bytes - at ? n : ring.bytes - at;
      charge((ring.offset + at) / line_bytes, first / line_bytes);
      if (first != n) charge(ring.offset / line_bytes, (n - first) / line_bytes);
    }
  }

  void write_back(std::uint64_t first, std::uint64_t count) noexcept {
    flush_(address(first * line_bytes), count);
    base::note_flushed(address(first * line_bytes), count * line_bytes);
  }

  /// Uses the addresses at which the ring was just read: the log's own mapping would have to be
  /// faulted in for this, page by page.
  void write_back_ring(const RingMap& ring, std::uint64_t at, std::uint64_t count) noexcept {
    std::byte* const from = ring.base + at;  // the ring's beginning follows its end
    flush_(from, count);
    base::note_flushed(from, count * line_bytes);
  }

  void charge(std::uint64_t first, std::uint64_t count) noexcept { delay_.written(first, count); }

  /// What this thread flushed or streamed is durable before the caller's next action.
  Status wait(bool /*everything*/) noexcept {
    base::store_fence();
    base::note_fenced();
    delay_.fenced();
    return {};
  }

  [[nodiscard]] bool flush_all_is_one() const noexcept { return delay_.flush_all_is_one(); }
  Status learn_pages(std::uint64_t most);
  Status give_blocks(std::uint64_t from, std::uint64_t to) override;
  Status sync_metadata() noexcept;
  static void step(Step) noexcept {}
  static constexpr bool leave_out(const char*, const void*) noexcept { return false; }
  void covered(std::uint64_t from, std::uint64_t to) noexcept {
    base::note_mapped(data_ + from, to - from);
  }

  Status extend(std::uint64_t from, std::uint64_t to) override;
  Status make_hole(std::uint64_t from, std::uint64_t to) override;
  void shrink(std::uint64_t to) noexcept override;

  const bool all_allocated_;  // a new file, not a sparse one
  const bool sparse_;         // a new file of holes
  MemoryTraits traits_;
  FileHandle file_;
  base::FlushLines flush_;
  base::StreamLines stream_;
  [[no_unique_address]] Delay delay_;
};

Result<std::unique_ptr<Medium>> open_dax(const OpenMedium& how);
Result<std::unique_ptr<Medium>> open_emulated(const OpenMedium& how);

/// Is the processor's cache inside the power-fail domain (eADR)? CPUID can't tell; the kernel
/// reports it for each NVDIMM region.
bool cache_is_durable();
/// Does a file at `path` (or a new one in its folder) accept MAP_SYNC? Writes nothing.
bool map_sync_works(const std::string& path);

}  // namespace perdure::medium
