// SPDX-License-Identifier: BSD-3-Clause
#include "papers/dudetm/frames.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <thread>

#include "perdure/base/thread_slot.hpp"

namespace perdure::papers::dudetm {

// There is one frame per page, and one more that each thread holds ready.
Frames::Frames(std::byte* view, std::uint64_t max_data_bytes, std::uint64_t kept)
    : view_(view),
      kept_(std::min(kept, max_data_bytes / page_bytes)),
      table_(max_data_bytes / page_bytes + 1),
      frames_(max_data_bytes + base::slot_count * page_bytes) {
  const std::uint64_t bytes = max_data_bytes + base::slot_count * page_bytes,
                      first_extra = kept_ * page_bytes;
  // A huge page would bring back the memory of frames that were given back. A child of fork() has
  // no use for frames, and the parent's next store to each would copy it.
  (void)::madvise(frames_.data() + first_extra, bytes - first_extra, MADV_NOHUGEPAGE);
  (void)::madvise(frames_.data(), bytes, MADV_DONTFORK);
  (void)::madvise(frames_.data(), bytes, MADV_DONTDUMP);
}

std::uint32_t Frames::take() {
  const std::lock_guard lock(free_list_);
  const auto pop = [](std::vector<std::uint32_t>& frames) {
    const std::uint32_t frame = frames.back();
    frames.pop_back();
    return frame;
  };
  if (!free_.empty()) return pop(free_);
  if (generations_.size() >= kept_ && !extra_.empty()) return pop(extra_);
  if (generations_.size() == generations_.capacity())
    generations_.reserve(std::max<std::size_t>(256, generations_.capacity() * 2));
  const std::uint64_t most = generations_.capacity();
  free_.reserve(std::min(most, kept_));
  extra_.reserve(most - std::min(most, kept_));
  generations_.push_back(0);
  return static_cast<std::uint32_t>(generations_.size() - 1);
}

void Frames::give(std::uint32_t frame) noexcept {
  if (frame >= kept_) (void)::madvise(this->frame(frame), page_bytes, MADV_DONTNEED);
  const std::lock_guard lock(free_list_);
  (frame < kept_ ? free_ : extra_).push_back(frame);
}

void Frames::swap_in(std::uint64_t page, std::uint32_t frame) noexcept {
  std::uint64_t generation;
  {
    const std::lock_guard lock(free_list_);
    // mutant: frame-entry-generation
    generation = generations_[frame]++;
  }
  const auto* from = reinterpret_cast<const std::uint64_t*>(view_ + page * page_bytes);
  auto* to = reinterpret_cast<std::uint64_t*>(this->frame(frame));
  // PAGING-5: each store is a release, so that a late reader of the frame's last page that sees one
  // of them sees that page's entry gone.
  // mutant: page-entry-after-words
  for (std::uint64_t i = 0; i < page_bytes / 8; ++i)
    tm::store_word(to + i, tm::load_word(from + i));
  // mutant: page-entry-after-words-late
  // PAGING-4: pairs with entry()
  __atomic_store_n(table_.data() + page, generation << 32 | (frame + 1ULL), __ATOMIC_RELEASE);
}

void Frames::wait(std::uint64_t page) const noexcept {
  while (entry(page) == 0) std::this_thread::yield();
}

void Frames::drop(std::uint64_t page) noexcept {
  const Entry was = entry(page);
  __atomic_store_n(table_.data() + page, Entry{0},
                   // The entry is gone before the frame is free. It pairs with load() through
                   // swap_in's stores.
                   __ATOMIC_RELEASE);
  give(static_cast<std::uint32_t>((was & low) - 1));
}

}  // namespace perdure::papers::dudetm
