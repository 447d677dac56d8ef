// SPDX-License-Identifier: BSD-3-Clause
#include "papers/dudetm/paging.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace perdure::papers::dudetm {
namespace {

// Eviction begins this many pages below the limit: one batch, or a quarter of a small limit.
constexpr std::uint64_t reserve(std::uint64_t limit) {
  return std::min<std::uint64_t>(Paging::batch, limit / 4);
}

}  // namespace

Paging::Paging(std::byte* view, std::uint64_t max_data_bytes, std::uint64_t unpaged,
               std::uint64_t limit, bool software)
    : view_(view),
      first_page_((unpaged + page_bytes - 1) / page_bytes),
      limit_(std::max<std::uint64_t>(limit / page_bytes, 4)),
      begin_at_(limit_ - reserve(limit_)),
      frames_(software ? std::make_unique<Frames>(view, max_data_bytes, limit_) : nullptr),
      states_(max_data_bytes / page_bytes + 1) {
  tm::prepare_asymmetric_fence();
  victims_.reserve(batch);
}

Paging::Use::~Use() {
  if (frame_ != Frames::no_frame) paging_.frames_->give(frame_);
}

// seen_ replaces a page by another with the same low bits, so a page may be noted more than once.
void Paging::Use::room_for_one() {
  if (touched_.size() == touched_.capacity()) {
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    if (touched_.size() * 2 >= touched_.capacity())
      touched_.reserve(std::max<std::size_t>(64, touched_.capacity() * 2));
  }
  if (copied_.size() == copied_.capacity())
    copied_.reserve(std::max<std::size_t>(64, copied_.capacity() * 2));
  if (paging_.frames_ != nullptr && frame_ == Frames::no_frame) frame_ = paging_.frames_->take();
}

bool Paging::Use::note(std::uint64_t page, std::uint64_t& seen) {
  room_for_one();  // before anything is changed
  if (touched_.empty()) {
    // An odd count says that the thread is inside.
    inside_.count.store(inside_.count.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
    // PAGING-1: pairs with quiesce()'s heavy fence: the load of the state below sees `evicting`, or
    // the evictor sees this thread inside.
    tm::light_fence();
  }
  std::uint64_t* const state = &paging_.state(page);
  touched_.push_back(page);
  // pairs with the release in evict(): a page that was dropped shows the data region again
  std::uint64_t now = __atomic_load_n(state, __ATOMIC_ACQUIRE);
  // mutant: writer-sees-eviction
  if (now & evicting) return false;
  if ((now & (copy | used)) != (copy | used)) {
    now = __atomic_fetch_or(state, copy | used, __ATOMIC_RELAXED);
    if ((now & copy) == 0) {
      copied_.push_back(page);
      if (paging_.in_frame(page)) {
        if (paging_.before_swap_in) paging_.before_swap_in();
        paging_.frames_->swap_in(page, std::exchange(frame_, Frames::no_frame));
      }
    }
  }
  // PAGING-4: another thread may be swapping the page in.
  // mutant: page-swap-in-wait
  if (paging_.in_frame(page)) paging_.frames_->wait(page);
  seen = page + 1;
  return true;
}

void Paging::Use::committed(std::uint64_t id) noexcept {
  for (const std::uint64_t page : touched_) {
    std::uint64_t* const state = &paging_.state(page);
    std::uint64_t now = __atomic_load_n(state, __ATOMIC_RELAXED);
    while (now >> 8 < id && !__atomic_compare_exchange_n(state, &now, id << 8 | (now & flags), true,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  }
}

void Paging::Use::leave() noexcept {
  if (touched_.empty()) return;
  if (!copied_.empty()) {
    paging_.copies_.fetch_add(copied_.size(), std::memory_order_relaxed);
    const std::lock_guard lock(paging_.list_);
    try {
      paging_.pages_.insert(paging_.pages_.end(), copied_.begin(), copied_.end());
    } catch (const std::bad_alloc&) {  // then these pages are never evicted
      paging_.copies_.fetch_sub(copied_.size(), std::memory_order_relaxed);
    }
    copied_.clear();
  }
  for (const std::uint64_t page : touched_) seen_[page % seen_.size()] = 0;
  touched_.clear();
  // PAGING-2: pairs with quiesce(), after which the evictor sees the ids.
  inside_.count.store(inside_.count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  inside_.waiters.notify();  // pairs with quiesce()
}

// The clock algorithm: a page that was used since the hand last passed it is skipped. So is a page
// whose newest id replay has not reached, while there are others.
void Paging::choose(std::uint64_t reproduced) {
  const std::lock_guard lock(list_);
  const std::size_t wanted =
      std::min<std::size_t>(batch, std::max<std::size_t>(pages_.size() / 4, 1));
  for (int round = 0; round < 3 && victims_.empty(); ++round)
    for (std::size_t left = pages_.size(); left != 0 && victims_.size() < wanted && !pages_.empty();
         --left) {
      if (hand_ >= pages_.size()) hand_ = 0;
      std::uint64_t* const state = &this->state(pages_[hand_]);
      const std::uint64_t now = __atomic_load_n(state, __ATOMIC_RELAXED);
      if ((now & used) != 0 && round < 2) {
        __atomic_fetch_and(state, ~used, __ATOMIC_RELAXED);
        ++hand_;
      } else if (now >> 8 > reproduced && round < 2) {
        ++hand_;
      } else {
        victims_.push_back(pages_[hand_]);
        pages_[hand_] = pages_.back();
        pages_.pop_back();
      }
    }
}

// PAGING-1: after this, a thread that stores to a page has looked at its state after `evicting` was
// set.
void Paging::quiesce() noexcept {
  tm::heavy_fence();  // pairs with note()'s light fence
  for (Inside& thread : inside_) {
    const std::uint64_t seen = thread.count.load(std::memory_order_acquire);  // pairs with leave()
    if (seen % 2 == 0) continue;
    // pairs with leave()
    thread.waiters.wait(
        [&thread, seen] { return thread.count.load(std::memory_order_acquire) != seen; });
  }
}

Status Paging::drop() {
  // Frames are dropped last: what can fail comes before what can't, and a page whose frame is gone
  // must not count as a copy.
  std::sort(victims_.begin(), victims_.end());
  const auto frames = std::stable_partition(victims_.begin(), victims_.end(),
                                            [this](std::uint64_t page) { return !in_frame(page); });
  const auto mapped = static_cast<std::size_t>(frames - victims_.begin());
  for (std::size_t i = 0, j = 0; i < mapped; i = j) {
    for (j = i + 1; j < mapped && victims_[j] == victims_[j - 1] + 1; ++j) {}
    if (::madvise(view_ + victims_[i] * page_bytes, (j - i) * page_bytes, MADV_DONTNEED) != 0)
      return failure(
          Code::io, "",
          std::string("madvise(MADV_DONTNEED) of a page of the shadow: ") + std::strerror(errno));
  }
  std::for_each(frames, victims_.end(), [this](std::uint64_t page) { frames_->drop(page); });
  return {};
}

Result<bool> Paging::evict(const std::function<std::uint64_t()>& reproduced,
                           const std::function<Status(std::uint64_t)>& reproduce) {
  const std::unique_lock lock(evicting_, std::try_to_lock);
  if (!lock.owns_lock()) {
    wait();
    return true;
  }
  choose(reproduced());
  if (victims_.empty()) return false;
  for (const std::uint64_t page : victims_)
    __atomic_fetch_or(&state(page), evicting, __ATOMIC_SEQ_CST);
  // mutant: eviction-waits-for-writers
  quiesce();
  std::uint64_t newest = 0;
  for (const std::uint64_t page : victims_)
    newest = std::max(newest, __atomic_load_n(&state(page), __ATOMIC_RELAXED) >> 8);
  // mutant: eviction-waits-for-replay
  Status s = reproduced() >= newest ? Status() : reproduce(newest);  // PAGING-2
  if (s.ok()) s = drop();
  if (s.ok()) {
    copies_.fetch_sub(victims_.size(), std::memory_order_relaxed);
    evictions_.fetch_add(victims_.size(), std::memory_order_relaxed);
  } else {
    const std::lock_guard list(list_);
    pages_.insert(pages_.end(), victims_.begin(), victims_.end());
  }
  // The release pairs with note(): a thread that finds the page dropped copies what the data region
  // has now.
  for (const std::uint64_t page : victims_)
    __atomic_fetch_and(&state(page), s.ok() ? ~flags : ~evicting, __ATOMIC_RELEASE);
  victims_.clear();
  if (!s.ok()) return s;
  return true;
}

}  // namespace perdure::papers::dudetm
