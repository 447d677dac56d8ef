// SPDX-License-Identifier: BSD-3-Clause
#include "testing/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "perdure/base/thread_slot.hpp"
#include "perdure/medium/words.hpp"
#include "testing/call_sites.hpp"

namespace perdure::crash {

using Kind = medium::TraceEvent::Kind;

// The medium that recovery sees. All of its memory is the arena's. It is destroyed with the
// recovered pool.
class Arena::View final : public medium::Medium {
 public:
  View(Arena& arena, std::uint64_t data_bytes, medium::Trace* trace)
      : arena_(arena), trace_(trace) {
    path_ = "image";
    log_ = arena.log_;
    data_ = arena.data_;
    log_bytes_ = arena.geometry_.log_bytes;
    max_data_bytes_ = arena.geometry_.max_data_bytes;
    data_bytes_.store(data_bytes, std::memory_order_relaxed);  // only one thread
    append_unit_ = arena.geometry_.append_unit;
    fence_is_sync_ = arena.geometry_.fence_is_sync;
    pages_ = &arena.pages_;
  }
  std::string_view kind() const noexcept override { return "image"; }
  std::string describe() const override { return "an image of a power cut"; }

  void store(std::uint64_t offset, const void* src, std::size_t n) noexcept override {
    write(Kind::store, offset, src, n);
  }
  void stream(std::uint64_t offset, const void* src, std::size_t n) noexcept override {
    write(Kind::stream, offset, src, n);
  }
  void flush(std::uint64_t offset, std::size_t n) noexcept override {
    if (n != 0 && trace_ != nullptr &&
        !medium::CallSites::of_process().skip("flush", __builtin_return_address(0)))
      trace_->flushed(base::thread_slot(), offset, n);
  }
  void flush_lines(std::uint64_t base, std::span<const std::uint64_t> lines) noexcept override {
    if (trace_ == nullptr ||
        medium::CallSites::of_process().skip("flush_lines", __builtin_return_address(0)))
      return;
    each_run(lines, [&](std::uint64_t first, std::uint64_t count) {
      trace_->flushed(base::thread_slot(), base + first * 64, count * 64);
    });
  }
  void flush_ring(const medium::RingMap& ring, std::uint64_t pos, std::size_t n) noexcept override {
    if (n == 0 || trace_ == nullptr ||
        medium::CallSites::of_process().skip("flush_ring", __builtin_return_address(0)))
      return;
    const std::uint64_t at = pos % ring.bytes, first = std::min<std::uint64_t>(n, ring.bytes - at);
    trace_->flushed(base::thread_slot(), ring.offset + at, first);
    if (first != n) trace_->flushed(base::thread_slot(), ring.offset, n - first);
  }
  Status fence() noexcept override {
    if (trace_ != nullptr &&
        !medium::CallSites::of_process().skip("fence", __builtin_return_address(0)))
      trace_->note(Kind::fence, base::thread_slot());
    return {};
  }
  Status flush_all() noexcept override {
    if (trace_ == nullptr ||
        medium::CallSites::of_process().skip("flush_all", __builtin_return_address(0)))
      return {};
    // It covers all that recovery has stored: recovery is one thread, and what it started from is
    // durable.
    std::sort(stored_.begin(), stored_.end());
    stored_.erase(std::unique(stored_.begin(), stored_.end()), stored_.end());
    for (const std::uint64_t line : std::exchange(stored_, {}))
      trace_->flushed(base::thread_slot(), line * 64, 64);
    trace_->note(Kind::fence, base::thread_slot());
    return {};
  }
  Result<medium::RingMap> map_ring(std::uint64_t offset, std::uint64_t bytes) override;
  void append(const medium::RingMap& ring, std::uint64_t pos, const void* src,
              std::size_t n) noexcept override {
    const std::uint64_t at = medium::ring_index(ring, pos);
    const std::uint64_t first = n < ring.bytes - at ? n : ring.bytes - at;
    write(Kind::stream, ring.offset + at, src, first);
    write(Kind::stream, ring.offset, static_cast<const std::byte*>(src) + first, n - first);
  }
  Status allocate(std::uint64_t offset, std::uint64_t n) override {
    if (n != 0)
      arena_.pages_.set(offset / medium::page_bytes, (offset + n - 1) / medium::page_bytes + 1);
    return {};
  }
  Status grow(std::uint64_t) override {
    return failure(Code::unsupported, path_, "growth in recovery",
                   "a data region of the size it had");
  }
  Status map_view(std::byte*, std::uint64_t, std::uint64_t, medium::ViewKind) override {
    return failure(Code::unsupported, path_, "a view of an image",
                   "ViewPolicy::none: the data region itself lies at the base");
  }

 private:
  void write(Kind kind, std::uint64_t offset, const void* src, std::size_t n) {
    if (n == 0) return;
    assert(allocated(offset, n));
    std::byte* const to = arena_.address(offset);
    medium::copy_words(to, src, n);
    for (std::uint64_t line = offset / 64; line <= (offset + n - 1) / 64; ++line)
      arena_.dirty_.mark(line);
    if (trace_ == nullptr) return;
    trace_->wrote(kind, base::thread_slot(), offset, n, to);
    if (kind == Kind::store)
      for (std::uint64_t line = offset / 64; line <= (offset + n - 1) / 64; ++line)
        stored_.push_back(line);
  }
  Arena& arena_;
  medium::Trace* const trace_;
  std::vector<std::uint64_t> stored_;  // lines stored to since the last flush_all
};

Result<medium::RingMap> Arena::View::map_ring(std::uint64_t offset, std::uint64_t bytes) {
  for (const medium::RingMap& r : arena_.rings_)
    if (r.offset == offset && r.bytes == bytes) return r;
  if (bytes == 0 || offset % medium::page_bytes != 0 || bytes % medium::page_bytes != 0 ||
      offset + bytes > log_bytes_)
    return failure(Code::invalid, path_,
                   "a ring of " + std::to_string(bytes) + " bytes at " + std::to_string(offset),
                   "whole pages of the log");
  void* const space =
      ::mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return system_failure(path_, "mmap", errno);
  auto* const base = static_cast<std::byte*>(space);
  for (const std::uint64_t half : {std::uint64_t{0}, bytes})
    if (::mmap(base + half, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, arena_.memory_.get(),
               static_cast<off_t>(offset)) == MAP_FAILED) {
      const int err = errno;
      ::munmap(base, 2 * bytes);
      return system_failure(path_, "mmap", err);
    }
  arena_.rings_.push_back({base, offset, bytes});
  return arena_.rings_.back();
}

Arena::Arena(const Geometry& geometry)
    : geometry_(geometry),
      dirty_((geometry.log_bytes + geometry.max_data_bytes) / 64),
      in_use_((geometry.log_bytes + geometry.max_data_bytes) / 64),
      lines_in_use_((geometry.log_bytes + geometry.max_data_bytes) / medium::page_bytes + 1) {}

Result<std::unique_ptr<Arena>> Arena::make(const Geometry& geometry) {
  std::unique_ptr<Arena> arena(new Arena(geometry));
  if (Status s = arena->init(); !s.ok()) return s;
  return arena;
}

Status Arena::init() {
  if (Status s = pages_.reserve("image", geometry_.log_bytes + geometry_.max_data_bytes); !s.ok())
    return s;
  auto memory =
      medium::make_memory_file("perdure-image", geometry_.log_bytes + geometry_.max_data_bytes);
  if (!memory.ok()) return memory.status();
  memory_ = std::move(*memory);
  const int both = PROT_READ | PROT_WRITE;
  void* const log = ::mmap(nullptr, geometry_.log_bytes, both, MAP_SHARED, memory_.get(), 0);
  if (log == MAP_FAILED) return system_failure("image", "mmap", errno);
  log_ = static_cast<std::byte*>(log);
  void* const wanted = reinterpret_cast<void*>(geometry_.base);
  void* const data =
      ::mmap(wanted, geometry_.max_data_bytes, both, MAP_SHARED | MAP_FIXED_NOREPLACE,
             memory_.get(), static_cast<off_t>(geometry_.log_bytes));
  if (data == MAP_FAILED)
    return system_failure("image", "mmap at the pool's base", errno,
                          "close the pool before its images are explored");
  data_ = static_cast<std::byte*>(data);
  return {};
}

Arena::~Arena() {
  for (const medium::RingMap& r : rings_) ::munmap(r.base, 2 * r.bytes);
  if (log_ != nullptr) ::munmap(log_, geometry_.log_bytes);
  if (data_ != nullptr) ::munmap(data_, geometry_.max_data_bytes);
}

void Arena::load(Image& image, const std::vector<Word>& overlay) {
  const auto copy = [&](std::uint64_t line) {
    std::memcpy(address(line * 64), image.words() + line * 8, 64);
    note_line(line);
  };
  dirty_.take(copy);
  image.dirty().take(copy);
  for (const Word& w : overlay) {
    std::memcpy(address(std::uint64_t{w.index} * 8), &w.value, 8);
    note_line(w.index / 8);
    dirty_.mark(w.index / 8);
  }
}

void Arena::note_line(std::uint64_t line) noexcept {
  std::uint64_t words[8], any = 0;
  std::memcpy(words, address(line * 64), sizeof words);
  for (const std::uint64_t w : words) any |= w;
  if (in_use_[line] == (any != 0)) return;
  in_use_[line] = any != 0;
  std::uint8_t& lines = lines_in_use_[line * 64 / medium::page_bytes];
  lines = static_cast<std::uint8_t>(any != 0 ? lines + 1 : lines - 1);
}

std::unique_ptr<medium::Medium> Arena::open(std::uint64_t data_bytes, medium::Trace* trace) {
  const std::uint64_t pages = (geometry_.log_bytes + data_bytes) / medium::page_bytes;
  pages_.clear(0, (geometry_.log_bytes + geometry_.max_data_bytes) / medium::page_bytes);
  for (std::uint64_t p = 0; p < pages; ++p)
    if (lines_in_use_[p] != 0) pages_.set(p, p + 1);
  return std::make_unique<View>(*this, data_bytes, trace);
}

}  // namespace perdure::crash
