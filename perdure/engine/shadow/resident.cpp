// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/engine/shadow/resident.hpp"

#include <algorithm>
#include <cstring>

#include "perdure/pool/heap_apply.hpp"

namespace perdure::engine::shadow {
namespace {

constexpr std::uint64_t chunk_pages = pool::chunk_bytes / Resident::page_bytes;
constexpr std::uint64_t most_words = 64;  // of 64 pages each, that next_run() looks at

}  // namespace

Resident::Resident(medium::Medium& medium, const Marks& marks, std::byte* view,
                   const pool::Directory& directory, std::uint64_t limit)
    : medium_(medium),
      marks_(marks),
      view_(view),
      directory_(directory),
      limit_(limit / page_bytes),
      copies_(directory.max_data_bytes() / page_bytes / 64 + 1),
      recent_(directory.max_data_bytes() / page_bytes / 64 + 1),
      begin_at_(limit_ / 8 * 7) {}

Resident::Run Resident::next_run() noexcept {
  const std::uint64_t end = data_pages();
  for (std::uint64_t words = 0; words < most_words && left_ != 0; ++words) {
    if (hand_ >= end) hand_ = 0;
    const std::uint64_t word = hand_ / 64, stop = std::min((word + 1) * 64, end);
    const std::uint64_t copies = __atomic_load_n(copies_.data() + word, __ATOMIC_RELAXED);
    Run run{hand_, 0};
    for (; hand_ < stop && left_ != 0; ++hand_, --left_) {
      const std::uint64_t bit = std::uint64_t{1} << hand_ % 64;
      const bool recent = (recent_.data()[word] & bit) != 0;
      recent_.data()[word] &= ~bit;
      if ((copies & bit) != 0 && !recent && !marks_.any(hand_)) {
        if (run.pages++ == 0) run.page = hand_;
        if ((hand_ + 1) % chunk_pages != 0) continue;
        ++hand_, --left_;
        return run;
      }
      if (run.pages != 0) return run;
    }
    if (run.pages != 0) return run;
  }
  return {};
}

std::unique_lock<std::mutex> Resident::without_heap_words(Run& run) const {
  const ViewTarget view(view_, nullptr);
  auto lock = pool::detail::lock_directory(view);
  const std::uint64_t chunk = run.page / chunk_pages;
  std::uint64_t heap_words =
      directory_.holds_words(chunk) ? chunk_pages : 0;  // pages from the chunk's first
  if (heap_words == 0)
    if (const pool::ChunkWord word{view.load(directory_.word(chunk))};
        word.kind() == pool::ChunkWord::small && word.size_class() < pool::small_classes)
      heap_words = (pool::classes[word.size_class()].first + page_bytes - 1) / page_bytes;
  const std::uint64_t from = std::max(run.page, chunk * chunk_pages + heap_words);
  run.pages = run.page + run.pages > from ? run.page + run.pages - from : 0;
  run.page = from;
  return lock;
}

// RESIDENT-1, of a page that is held.
bool Resident::may_go(std::uint64_t page) const noexcept {
  const std::uint64_t at = page * page_bytes;
  // mutant: resident-marks
  if (marks_.any(page)) return false;
  // A hole is zeros in the data region and in the copy (TRIM-4). It is not read: on tmpfs a read
  // would allocate a page.
  if (!medium_.allocated(medium_.log_bytes() + at, page_bytes)) return true;
  // mutant: resident-compares
  return std::memcmp(view_ + at, medium_.data() + at, page_bytes) == 0;
}

// Called while the run's pages are held. Neighbours are dropped in one call, because each call
// interrupts the other processors.
void Resident::drop(Run run) noexcept {
  const std::uint64_t end = run.page + run.pages;
  for (std::uint64_t page = run.page, from = page; page <= end; ++page) {
    if (page < end && may_go(page)) continue;
    if (page > from && medium_.drop_copies(view_ + from * page_bytes, (page - from) * page_bytes)) {
      for (std::uint64_t p = from; p < page; ++p)
        __atomic_fetch_and(copies_.data() + p / 64, ~(std::uint64_t{1} << p % 64),
                           __ATOMIC_RELAXED);
      count_.fetch_sub(page - from, std::memory_order_relaxed);
      given_back_.fetch_add(page - from, std::memory_order_relaxed);
    }
    from = page + 1;
  }
}

// Where the pages that are stored to again and again take more than the limit, the next round
// begins when more have been added: an idle pool comes to rest, and a busy one does not do
// checkpoints all the time.
void Resident::end_round() noexcept {
  begin_at_.store(std::max(limit_ / 8 * 7, pages() + limit_ / 16), std::memory_order_relaxed);
}

}  // namespace perdure::engine::shadow
