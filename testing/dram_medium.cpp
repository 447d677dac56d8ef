// SPDX-License-Identifier: BSD-3-Clause
#include "testing/dram_medium.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace perdure::medium {

DramMedium::DramMedium(const DramOptions& o) : options_(o) {
  path_ = o.path;
  log_bytes_ = o.log_bytes;
  append_unit_ = o.append_unit;
  fence_is_sync_ = o.fence_is_sync;
  read_only_ = o.read_only;
  map_flags_ = MAP_SHARED;
}

DramMedium::~DramMedium() = default;

Status DramMedium::init(const char* name, std::span<const std::byte> image) {
  if (log_bytes_ == 0 || log_bytes_ % page_bytes != 0 || options_.data_bytes % page_bytes != 0)
    return failure(Code::invalid, path_, "sizes that are not whole pages", "multiples of 4096");
  if (image.size() > log_bytes_ + options_.data_bytes)
    return failure(Code::invalid, path_, "an image of " + std::to_string(image.size()) + " bytes",
                   "at most log_bytes + data_bytes");
  auto memory = make_memory_file(name, log_bytes_ + options_.data_bytes);
  if (!memory.ok()) return memory.status();
  memory_ = std::move(*memory);
  if (options_.sparse)
    if (Status s =
            keep_page_map(log_bytes_ + std::max(options_.data_bytes, options_.max_data_bytes));
        !s.ok())
      return s;
  static constexpr std::array<std::byte, page_bytes> zeros{};
  // A page of zeros stays a hole, and most pages of a small pool are zeros.
  for (std::size_t at = 0; at < image.size(); at += page_bytes) {
    const std::size_t n = std::min(page_bytes, image.size() - at);
    if (std::memcmp(image.data() + at, zeros.data(), n) == 0) continue;
    const ssize_t written = ::pwrite(memory_.get(), image.data() + at, n, static_cast<off_t>(at));
    if (written != static_cast<ssize_t>(n))
      return system_failure(path_, "pwrite to a memory file", written < 0 ? errno : EIO);
    if (options_.sparse) note_allocated(at, at + page_bytes);
  }
  if (Status s = init_marks(std::max(options_.data_bytes, options_.max_data_bytes)); !s.ok())
    return s;
  return map_all(memory_.get(), memory_.get(), options_.data_bytes, options_.max_data_bytes);
}

void DramMedium::put_part(std::uint64_t offset, const std::byte* src, std::size_t n,
                          bool past_cache) {
  if (n == 0) return;
  const std::lock_guard lock(mutex_);
  const std::size_t reported = storing(offset, n);
  copy_words(address(offset), src, reported);
  if (reported != 0) stored(offset, reported, past_cache);
  if (reported == n) return;
  interrupted();
  copy_words(address(offset + reported), src + reported, n - reported);
}

void DramMedium::put(std::uint64_t offset, const void* src, std::size_t n,
                     bool past_cache) noexcept {
  const auto* const from = static_cast<const std::byte*>(src);
  // Other threads may run while a long store is half done, as on the real hardware.
  const std::uint64_t middle =
      options_.step && n > line_bytes ? (offset + n / 2) / line_bytes * line_bytes : offset;
  const std::size_t first = middle > offset ? middle - offset : n;
  put_part(offset, from, first, past_cache);
  if (first == n) return;
  step(past_cache ? Step::stream : Step::store);
  put_part(middle, from + first, n - first, past_cache);
}

void DramMedium::put_past_ring(const RingMap& ring, std::uint64_t at, const void* src,
                               std::size_t n) noexcept {
  const std::uint64_t first = std::min<std::uint64_t>(n, ring.bytes - at);
  put(ring.offset + at, src, first, true);
  if (first == n) return;
  step(Step::stream);
  put(ring.offset, static_cast<const std::byte*>(src) + first, n - first, true);
}

void DramMedium::write_back(std::uint64_t first, std::uint64_t count) noexcept {
  const std::lock_guard lock(mutex_);
  flushed(first, count);
}

void DramMedium::write_back_ring(const RingMap& ring, std::uint64_t at,
                                 std::uint64_t count) noexcept {
  const std::uint64_t begin = ring.offset / line_bytes, first = at / line_bytes;
  const std::uint64_t before_end = std::min(count, ring.bytes / line_bytes - first);
  write_back(begin + first, before_end);
  if (before_end != count) write_back(begin, count - before_end);
}

void DramMedium::fence_now(bool everything) {
  const std::lock_guard lock(mutex_);
  fenced(everything);
}

Status DramMedium::extend(std::uint64_t from, std::uint64_t to) {
  // Truncated and grown again, the range is zero, whatever its old contents were.
  if (::ftruncate(memory_.get(), static_cast<off_t>(log_bytes_ + from)) != 0 ||
      ::ftruncate(memory_.get(), static_cast<off_t>(log_bytes_ + to)) != 0)
    return system_failure(path_, "ftruncate", errno);
  const std::lock_guard lock(mutex_);
  grown(to);
  return {};
}

// After a crash each word is the old one or zero: that is what a streamed line is until its fence.
Status DramMedium::make_hole(std::uint64_t from, std::uint64_t to) {
  static constexpr std::array<std::byte, page_bytes> zeros{};
  for (std::uint64_t at = from; at < to; at += page_bytes) put(at, zeros.data(), page_bytes, true);
  return {};
}

void DramMedium::shrink(std::uint64_t to) noexcept {
  // A failure only wastes space.
  if (::ftruncate(memory_.get(), static_cast<off_t>(log_bytes_ + to)) != 0) return;
}

}  // namespace perdure::medium
