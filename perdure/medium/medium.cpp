// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/medium/medium.hpp"

#include <sys/mman.h>

namespace perdure::medium {

Counters& Counters::operator+=(const Counters& o) noexcept {
  stores += o.stores;
  stored_bytes += o.stored_bytes;
  streamed_lines += o.streamed_lines;
  flushed_lines += o.flushed_lines;
  fences += o.fences;
  syncs += o.syncs;
  written_bytes += o.written_bytes;
  return *this;
}

Counters operator-(Counters a, const Counters& b) noexcept {
  a.stores -= b.stores;
  a.stored_bytes -= b.stored_bytes;
  a.streamed_lines -= b.streamed_lines;
  a.flushed_lines -= b.flushed_lines;
  a.fences -= b.fences;
  a.syncs -= b.syncs;
  a.written_bytes -= b.written_bytes;
  return a;
}

std::uint64_t Medium::allocated_from(std::uint64_t offset, std::uint64_t n) const noexcept {
  if (pages_ == nullptr || n == 0) return n;
  const std::uint64_t end = (offset + n - 1) / page_bytes + 1,
                      gap = pages_->next(offset / page_bytes, end, false);
  return gap == end ? n : gap * page_bytes > offset ? gap * page_bytes - offset : 0;
}

std::uint64_t Medium::allocated_end(std::uint64_t offset, std::uint64_t n) const noexcept {
  if (pages_ == nullptr || n == 0) return n;
  const std::uint64_t first = offset / page_bytes,
                      last = pages_->end_of_last(first, (offset + n - 1) / page_bytes + 1);
  return last * page_bytes <= offset       ? 0
         : last * page_bytes >= offset + n ? n
                                           : last * page_bytes - offset;
}

Medium::Medium() : rows_(std::make_unique<Row[]>(static_cast<std::size_t>(base::slot_count))) {}

Medium::~Medium() = default;

Result<std::uint64_t> Medium::give_back(std::uint64_t, std::uint64_t) {
  return failure(Code::unsupported, path_, "a medium that gives no blocks back", "a regular file");
}

Status Medium::cut(std::uint64_t) {
  return failure(Code::unsupported, path_, "a medium whose length is fixed", "a regular file");
}

bool Medium::drop_copies(std::byte* address, std::uint64_t n) noexcept {
  return ::madvise(address, n, MADV_DONTNEED) == 0;
}

Counters Medium::counters() const noexcept {
  // Relaxed: each counter is exact once its thread's calls happened before this one; the counters
  // order nothing.
  constexpr auto relaxed = std::memory_order_relaxed;
  Counters sum;
  for (std::size_t i = 0; i < static_cast<std::size_t>(base::slot_count); ++i) {
    const Row& r = rows_[i];
    sum.stores += r.stores.load(relaxed);
    sum.stored_bytes += r.stored_bytes.load(relaxed);
    sum.streamed_lines += r.streamed_lines.load(relaxed);
    sum.flushed_lines += r.flushed_lines.load(relaxed);
    sum.fences += r.fences.load(relaxed);
    sum.syncs += r.syncs.load(relaxed);
    sum.written_bytes += r.written_bytes.load(relaxed);
  }
  return sum;
}

}  // namespace perdure::medium
