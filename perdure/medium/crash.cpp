// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/medium/crash.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include "perdure/medium/call_sites.hpp"

namespace perdure::medium {

using Kind = TraceEvent::Kind;

CrashMedium::CrashMedium(const CrashOptions& o) : options_(o) {
  path_ = o.path;
  log_bytes_ = o.log_bytes;
  append_unit_ = o.append_unit;
  fence_is_sync_ = o.fence_is_sync;
  map_flags_ = MAP_SHARED;
}

Result<std::unique_ptr<CrashMedium>> CrashMedium::make(const CrashOptions& options) {
  if (options.log_bytes == 0 || options.log_bytes % page_bytes != 0 || options.home_bytes % page_bytes != 0)
    return failure(Code::invalid, options.path, "sizes that are not whole pages", "multiples of 4096");
  std::unique_ptr<CrashMedium> m(new CrashMedium(options));
  if (Status s = m->init(); !s.ok()) return s;
  return m;
}

Status CrashMedium::init() {
  auto memory = make_memory_file("perdure-crash", log_bytes_ + options_.home_bytes);
  if (!memory.ok()) return memory.status();
  memory_ = std::move(*memory);
  if (options_.sparse)
    if (Status s = keep_page_map(log_bytes_ + std::max(options_.home_bytes, options_.max_home_bytes)); !s.ok()) return s;
  return map_all(memory_.get(), memory_.get(), options_.home_bytes, options_.max_home_bytes);
}

void CrashMedium::write(Kind kind, std::uint64_t offset, const void* src, std::size_t n) {
  if (n == 0) return;
  assert(allocated(offset, n));
  copy_words(address(offset), src, n);
  if (tracing_) trace_.wrote(kind, base::thread_slot(), offset, n, address(offset));
}

void CrashMedium::store(std::uint64_t offset, const void* src, std::size_t n) noexcept {
  if (options_.before) options_.before();
  const std::lock_guard lock(mutex_);
  event();
  write(Kind::store, offset, src, n);
  add(row().stores, 1);
  add(row().stored_bytes, n);
}

void CrashMedium::stream(std::uint64_t offset, const void* src, std::size_t n) noexcept {
  if (options_.before) options_.before();
  assert(offset % line_bytes == 0 && n % line_bytes == 0);
  const std::lock_guard lock(mutex_);
  event();
  write(Kind::stream, offset, src, n);
  add(row().streamed_lines, n / line_bytes);
}

void CrashMedium::append(const RingMap& ring, std::uint64_t pos, const void* src, std::size_t n) noexcept {
  if (options_.before) options_.before();
  const std::uint64_t at = ring_index(ring, pos);
  assert(at % line_bytes == 0 && n % line_bytes == 0 && n <= ring.bytes);
  const std::uint64_t first = n < ring.bytes - at ? n : ring.bytes - at;
  const std::lock_guard lock(mutex_);
  event();
  write(Kind::stream, ring.offset + at, src, first);
  write(Kind::stream, ring.offset, static_cast<const std::byte*>(src) + first, n - first);
  add(row().streamed_lines, n / line_bytes);
}

void CrashMedium::flush(std::uint64_t offset, std::size_t n) noexcept {
  if (options_.before) options_.before();
  if (n == 0 || CallSites::of_process().skip("flush", __builtin_return_address(0))) return;
  const std::lock_guard lock(mutex_);
  event();
  if (tracing_) trace_.flushed(base::thread_slot(), offset, n);
  add(row().flushed_lines, lines_touched(offset, n));
}

Status CrashMedium::fence() noexcept {
  if (options_.before) options_.before();
  if (CallSites::of_process().skip("fence", __builtin_return_address(0))) return {};
  const std::lock_guard lock(mutex_);
  event();
  if (tracing_) trace_.note(Kind::fence, base::thread_slot());
  add(row().fences, 1);
  return {};
}

Status CrashMedium::flush_all() noexcept {
  if (options_.before) options_.before();
  if (CallSites::of_process().skip("flush_all", __builtin_return_address(0))) return {};
  const std::lock_guard lock(mutex_);
  event();
  if (tracing_) trace_.note(Kind::flush_all, base::thread_slot());
  return {};
}

std::vector<std::uint64_t> CrashMedium::begin_trace() {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> image((log_bytes_ + max_home_bytes_) / 8);
  std::memcpy(image.data(), log_, log_bytes_);
  std::memcpy(image.data() + log_bytes_ / 8, home_, home_bytes());
  trace_.clear();
  tracing_ = true;
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
  options.home_bytes = home_bytes();
  heir_ = make(options).value();
  std::memcpy(heir_->log_, log_, log_bytes_);
  std::memcpy(heir_->home_, home_, options.home_bytes);
  if (options.sparse) {  // as a file system tells that takes pages for holes until they are written
    each_page_in_use(log_, log_bytes_, [this](std::uint64_t at) { heir_->note_allocated(at, at + page_bytes); });
    each_page_in_use(home_, options.home_bytes,
                     [this](std::uint64_t at) { heir_->note_allocated(log_bytes_ + at, log_bytes_ + at + page_bytes); });
  }
  if (tracing_) trace_.note(Kind::killed, base::thread_slot());
  heir_->trace_ = std::exchange(trace_, {});
  heir_->tracing_ = std::exchange(tracing_, false);
}

void CrashMedium::event() {
  if (left_ != never && left_-- == 0) leave();
}

void CrashMedium::kill_after(std::uint64_t events) {
  const std::lock_guard lock(mutex_);
  left_ = events;
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

Status CrashMedium::extend(std::uint64_t from, std::uint64_t to) {
  // cut and grown again: zero, whatever lay there
  if (::ftruncate(memory_.get(), static_cast<off_t>(log_bytes_ + from)) != 0 ||
      ::ftruncate(memory_.get(), static_cast<off_t>(log_bytes_ + to)) != 0)
    return system_failure(path_, "ftruncate", errno);
  const std::lock_guard lock(mutex_);
  if (tracing_) trace_.note(Kind::grow, base::thread_slot(), to);
  return {};
}

void CrashMedium::shrink(std::uint64_t to) noexcept {
  if (::ftruncate(memory_.get(), static_cast<off_t>(log_bytes_ + to)) != 0) return;  // only room is lost
}

}  // namespace perdure::medium
