// SPDX-License-Identifier: BSD-3-Clause
#include "testing/crash_medium.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace perdure::medium {

using Kind = TraceEvent::Kind;

Result<std::unique_ptr<CrashMedium>> CrashMedium::make(const CrashOptions& options) {
  CrashOptions named = options;
  if (named.path.empty()) named.path = "crash";
  std::unique_ptr<CrashMedium> m(new CrashMedium(named));
  if (Status s = m->init("perdure-crash", {}); !s.ok()) return s;
  if (options.fence_is_sync) m->written_.resize(options.log_bytes);
  return m;
}

std::size_t CrashMedium::storing(std::uint64_t offset, std::size_t n) {
  if (!killed_now()) return n;
  // Whole words happen, since each is one machine store, and never the last one: otherwise the
  // store would not have been interrupted.
  const std::uint64_t end = std::min((offset / 8 + part_) * 8, (offset + n - 1) / 8 * 8);
  return end <= offset ? 0 : end - offset;
}

void CrashMedium::stored(std::uint64_t offset, std::size_t n, bool past_cache) {
  if (tracing_)
    trace_.wrote(past_cache ? Kind::stream : Kind::store, base::thread_slot(), offset, n,
                 address(offset));
  if (past_cache) stage(offset, n);
}

void CrashMedium::flushed(std::uint64_t first, std::uint64_t count) {
  if (killed_now()) leave();
  if (tracing_) trace_.flushed(base::thread_slot(), first * line_bytes, count * line_bytes);
  stage(first * line_bytes, count * line_bytes);
}

void CrashMedium::fenced(bool everything) {
  if (killed_now(true)) {
    write_staged(part_, everything);
    leave();
  }
  if (tracing_) trace_.note(Kind::fence, base::thread_slot());
  write_staged(~std::uint64_t{0}, everything);
}

// Like FileMedium: when a thread that has flushed or streamed a part of a block fences, the block
// is written with its whole contents at that time.
void CrashMedium::stage(std::uint64_t offset, std::uint64_t n) {
  if (!fence_is_sync_ || n == 0 || offset >= log_bytes_) return;
  for (std::uint64_t b = offset / page_bytes; b <= (offset + n - 1) / page_bytes; ++b)
    staged_[base::thread_slot()].insert(b);
}

void CrashMedium::write_staged(std::uint64_t most, bool everything) {
  if (!fence_is_sync_) return;
  auto& mine = staged_[base::thread_slot()];
  if (everything)
    for (std::uint64_t b = 0; b < log_bytes_ / page_bytes; ++b) mine.insert(b);
  for (; most != 0 && !mine.empty(); --most) {
    const std::uint64_t at = *mine.begin() * page_bytes;
    std::memcpy(written_.data() + at, log_ + at, page_bytes);
    mine.erase(mine.begin());
  }
}

void CrashMedium::grown(std::uint64_t data_bytes) {
  if (tracing_) trace_.note(Kind::grow, base::thread_slot(), data_bytes);
}

std::vector<std::uint64_t> CrashMedium::begin_trace() {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> image((log_bytes_ + max_data_bytes_) / 8);
  std::memcpy(image.data(), log_, log_bytes_);
  std::memcpy(image.data() + log_bytes_ / 8, data_, data_bytes());
  trace_.clear();
  tracing_ = true;
  if (fence_is_sync_) written_.assign(log_, log_ + log_bytes_);
  return image;
}

void CrashMedium::begin(std::uint64_t step, std::uint32_t of) {
  const std::lock_guard lock(mutex_);
  if (tracing_) trace_.note(Kind::begin, base::thread_slot(), step, of);
}

void CrashMedium::done(std::uint64_t steps, std::uint32_t of) {
  const std::lock_guard lock(mutex_);
  if (tracing_) trace_.note(Kind::done, base::thread_slot(), steps, of);
}

void CrashMedium::leave() {
  CrashOptions options = options_;
  options.data_bytes = data_bytes();
  heir_ = make(options).value();
  const std::byte* const log = fence_is_sync_ ? written_.data() : log_;
  std::memcpy(heir_->log_, log, log_bytes_);
  std::memcpy(heir_->data_, data_, options.data_bytes);
  // A page that the killed process had allocated is no hole, even if it holds zeros: these may not
  // be durable.
  for (std::uint64_t at = 0; options.sparse && at < log_bytes_ + options.data_bytes;
       at += page_bytes)
    if (allocated(at, page_bytes)) heir_->note_allocated(at, at + page_bytes);
  if (tracing_) trace_.note(Kind::killed, base::thread_slot());
  if (fence_is_sync_) {
    heir_->written_ = written_;
    // What was staged and not written is lost, though a thread of the killed process may have read
    // it.
    for (std::uint64_t at = 0; tracing_ && at < log_bytes_; at += line_bytes)
      if (std::memcmp(log + at, log_ + at, line_bytes) != 0)
        trace_.wrote(Kind::lost, base::thread_slot(), at, line_bytes, log + at);
  }
  heir_->trace_ = std::exchange(trace_, {});
  heir_->tracing_ = std::exchange(tracing_, false);
}

bool CrashMedium::killed_now(bool fence) {
  return left_ != never && (fence || !at_fence_) && left_-- == 0;
}

void CrashMedium::kill_after(std::uint64_t events, std::uint64_t part) {
  const std::lock_guard lock(mutex_);
  left_ = events;
  part_ = part;
  at_fence_ = false;
}

void CrashMedium::kill_at_fence(std::uint64_t fences) {
  const std::lock_guard lock(mutex_);
  left_ = fences;
  part_ = 0;
  at_fence_ = true;
}

bool CrashMedium::survives() {
  const std::lock_guard lock(mutex_);
  left_ = never;
  return heir_ == nullptr;
}

std::unique_ptr<CrashMedium> CrashMedium::heir() {
  const std::lock_guard lock(mutex_);
  if (heir_ == nullptr) leave();
  left_ = never;
  return std::move(heir_);
}

Trace CrashMedium::end_trace() {
  const std::lock_guard lock(mutex_);
  tracing_ = false;
  return std::exchange(trace_, {});
}

}  // namespace perdure::medium
