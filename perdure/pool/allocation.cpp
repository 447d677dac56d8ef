// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/allocation.hpp"

#include <algorithm>

#include "perdure/pool/size_classes.hpp"

namespace perdure::pool {
namespace {

std::uint64_t chunks_of(std::uint64_t data_bytes) noexcept { return data_bytes / chunk_bytes; }

// The bytes of these chunks that the data region has: its last chunk may be incomplete.
std::uint64_t bytes_of(const medium::Medium& medium, std::uint64_t chunk,
                       std::uint64_t count) noexcept {
  return std::min(medium.data_bytes(), (chunk + count) * chunk_bytes) -
         std::min(medium.data_bytes(), chunk * chunk_bytes);
}

}  // namespace

Status allocate_directory(medium::Medium& medium, const Directory& directory,
                          std::uint64_t data_bytes) {
  // Replay reads this many words around a span.
  constexpr std::uint64_t beyond = classes[small_classes - 1].chunks;
  Status s;
  directory.each_run_of_words(medium.data_bytes(), [&](std::uint64_t begin, std::uint64_t) {
    const std::uint64_t end =
        std::min(directory.section_end(begin), std::max(chunks_of(data_bytes) + beyond, begin));
    const std::uint64_t words = directory.word(begin),
                        to = std::min(words + (end - begin) * 8, medium.data_bytes()),
                        from = begin == 0 ? 0 : words;
    if (s.ok() && to > from) s = medium.allocate(medium.log_bytes() + from, to - from);
  });
  const DataRange sums = directory.checksums();
  const std::uint64_t end = std::min(sums.offset + std::min(data_bytes / 512, sums.bytes),
                                     medium.data_bytes());  // 8 bytes for each page of 4096
  if (s.ok() && end > sums.offset)
    s = medium.allocate(medium.log_bytes() + sums.offset, end - sums.offset);
  return s;
}

Status allocate_chunks(medium::Medium& medium, std::uint64_t chunk, std::uint64_t count) {
  return medium.allocate(medium.log_bytes() + chunk * chunk_bytes, bytes_of(medium, chunk, count));
}

Status allocate_frame(medium::Medium& medium, const Header& header) {
  for (const std::uint64_t copy : {header_a, header_b})
    if (Status s = medium.allocate(copy, sizeof(Header)); !s.ok()) return s;
  for (std::uint32_t i = 0; i < header.ring_count; ++i)
    if (Status s = medium.allocate(ring_offset(header, i),
                                   std::min<std::uint64_t>(header.ring_bytes, medium::page_bytes));
        !s.ok())
      return s;
  return allocate_directory(medium, header, header.data_bytes);
}

Status allocate_used(medium::Medium& medium, const Header& header) {
  if (Status s = allocate_frame(medium, header); !s.ok()) return s;
  const std::uint64_t data = medium.log_bytes(), end = chunks_of(header.data_bytes);
  const Directory directory(header);
  const auto used = [&](std::uint64_t chunk) {
    return __atomic_load_n(
               reinterpret_cast<const std::uint64_t*>(medium.at(data + directory.word(chunk))),
               __ATOMIC_RELAXED) != 0;
  };
  // Goes from one gap in the allocation to the next: most pools have none, and their directory is
  // not read.
  for (std::uint64_t chunk = directory.first_chunk(); chunk < end; ++chunk) {
    const std::uint64_t at = chunk * chunk_bytes, left = end * chunk_bytes - at;
    const std::uint64_t whole = medium.allocated_from(data + at, left);
    if (whole == left) break;
    chunk += whole / chunk_bytes;
    std::uint64_t count = 0;
    while (chunk + count < end && used(chunk + count)) ++count;
    if (count == 0) continue;
    if (Status s = allocate_chunks(medium, chunk, count); !s.ok()) return s;
    chunk += count - 1;
  }
  return {};
}

Targets::Targets(medium::Medium& medium, const Header& header)
    : medium_(medium), directory_(header) {
  const std::uint64_t first = directory_.first_chunk() * chunk_bytes,
                      data_bytes = medium.data_bytes();
  if (data_bytes <= first || medium.allocated(medium.log_bytes() + first, data_bytes - first))
    return;
  chunks_.resize((data_bytes + chunk_bytes - 1) / chunk_bytes);
  data_bytes_ = data_bytes;
}

void Targets::mark(std::uint64_t chunk, std::uint64_t count) noexcept {
  for (const std::uint64_t end = std::min<std::uint64_t>(chunks_.size(), chunk + count);
       chunk < end; ++chunk)
    name(chunk);
}

void Targets::many_words(std::uint64_t offset, std::uint64_t n) noexcept {
  if (n == 0 || offset >= data_bytes_ || n > (data_bytes_ - offset) / 8) return;
  const std::uint64_t first = offset / chunk_bytes;
  mark(first, (offset + n * 8 - 1) / chunk_bytes + 1 - first);
}

void Targets::block(const HeapOp& op) noexcept {
  if (!possible(op, medium_.data_bytes(), directory_)) return;
  const bool large = op.cls == large_class;
  const std::uint64_t own = op.offset / chunk_bytes;
  mark(large ? own : span_chunk_of(op.offset, classes[op.cls].chunks, directory_.first_chunk()),
       large ? op.chunks : classes[op.cls].chunks);
}

Status Targets::allocate() {
  for (std::uint64_t chunk = 0; chunk < chunks_.size();) {
    std::uint64_t count = 0;
    while (chunk + count < chunks_.size() && chunks_[chunk + count] != 0) ++count;
    if (count != 0)
      if (Status s = allocate_chunks(medium_, chunk, count); !s.ok()) return s;
    chunk += count + 1;
  }
  return {};
}

}  // namespace perdure::pool
