// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/medium/file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <new>
#include <type_traits>

namespace perdure::medium {

FileMedium::FileMedium(FileHandle file, const OpenMedium& how)
    : file_(std::move(file)), sync_(how.path, file_.fd.get(), poison_) {
  path_ = how.path;
  log_bytes_ = how.log_bytes;
  read_only_ = how.read_only;
  map_flags_ = MAP_SHARED;
  append_unit_ = LogStage::block_bytes;
  fence_is_sync_ = true;
  static_assert(std::is_trivially_copyable_v<Marked>);
  marked_.reset(static_cast<Marked*>(
      std::calloc(static_cast<std::size_t>(base::slot_count), sizeof(Marked))));
  if (!marked_) throw std::bad_alloc();
}

Result<std::unique_ptr<Medium>> FileMedium::open(const OpenMedium& how) {
  auto file = open_pool_file(how);
  if (!file.ok()) return file.status();
  if (file->character_device)
    return failure(Code::invalid, how.path, "a character device", "a regular file",
                   "use the dax medium");
  std::unique_ptr<FileMedium> m(new FileMedium(std::move(*file), how));
  const auto build = [&]() -> Status {
    auto stage = LogStage::make(how, m->file_.fd.get(), m->sync_, m->poison_);
    if (!stage.ok()) return stage.status();
    m->stage_ = std::move(*stage);
    // REDO-4 (log/redo.hpp): what a killed process wrote is in the page cache, or in the device's
    // cache. It is made durable before anything relies on it.
    if (std::uint64_t calls = 0; !how.create && !how.read_only)
      if (Status s = m->sync_.wait_with_metadata(calls); !s.ok()) return s;
    if (Status s = m->learn_pages(how); !s.ok()) return s;
    if (Status s = !how.create  ? m->stage_->load(how.load_bytes)
                   : how.sparse ? Status()
                                : m->stage_->claim(0, how.log_bytes);
        !s.ok())
      return s;
    if (Status s = m->map_all(m->stage_->memory(), m->file_.fd.get(), m->file_.data_bytes,
                              how.max_data_bytes);
        !s.ok())
      return s;
    m->stage_->mapped_at(m->log_);
    return how.create ? sync_file_and_folder(m->file_.fd.get(), how.path) : Status();
  };
  if (Status s = build(); !s.ok()) {
    discard_new_file(how);
    return s;
  }
  return std::unique_ptr<Medium>(std::move(m));
}

std::string FileMedium::describe() const {
  std::string text = "file on " + file_system_name(path_) + ": log staged in DRAM, written ";
  if (read_only_) return "file on " + file_system_name(path_) + ": read-only";
  text += stage_->direct() ? "O_DIRECT with RWF_DSYNC" : "through the page cache, then fdatasync";
  if (!stage_->direct() && log_bytes_ % region_align != 0) text += " (the log is not whole 2 MiB)";
  return text + "; data mapped, fdatasync";
}

FileMedium::Marked& FileMedium::marked() noexcept {
  return marked_[static_cast<std::size_t>(base::thread_slot())];
}

void FileMedium::mark(std::uint64_t offset, std::uint64_t n) noexcept {
  if (n == 0) return;
  if (offset < log_bytes_) {
    marked().log.add(offset / page_bytes, (offset + n - 1) / page_bytes + 1);
  } else {
    marked().data.add(offset / page_bytes, (offset + n - 1) / page_bytes + 1);
  }
}

void FileMedium::store(std::uint64_t offset, const void* src, std::size_t n) noexcept {
  assert(!read_only_ && allocated(offset, n));
  if (offset < log_bytes_) {
    copy_words(log_ + offset, src, n);
    stage_->mark(offset, n);
  } else {
    // Nothing is marked in the data region: the kernel knows which pages are dirty.
    copy_words(data_ + (offset - log_bytes_), src, n);
  }
  Row& r = row();
  add(r.stores, 1);
  add(r.stored_bytes, n);
}

void FileMedium::stream(std::uint64_t offset, const void* src, std::size_t n) noexcept {
  assert(!read_only_ && offset % line_bytes == 0 && n % line_bytes == 0 && allocated(offset, n));
  if (offset < log_bytes_) {
    copy_words(log_ + offset, src, n);
    stage_->mark(offset, n);
  } else {
    copy_words(data_ + (offset - log_bytes_), src, n);
  }
  mark(offset, n);
  add(row().streamed_lines, n / line_bytes);
}

void FileMedium::flush(std::uint64_t offset, std::size_t n) noexcept {
  add(row().flushed_lines, lines_touched(offset, n));
  if (n == 0 || offset >= log_bytes_ || allocated(offset, n)) return flush_pages(offset, n);
  // A hole in a log that was copied: its zeros are as durable as the copy, and writing them would
  // need blocks.
  const std::uint64_t end = offset + n;
  page_map().each_run(offset / page_bytes, (end - 1) / page_bytes + 1, true,
                      [&](std::uint64_t first, std::uint64_t past) {
                        const std::uint64_t from = std::max(offset, first * page_bytes);
                        flush_pages(from, std::min(end, past * page_bytes) - from);
                      });
}

void FileMedium::flush_pages(std::uint64_t offset, std::uint64_t n) noexcept {
  mark(offset, n);
  // A block is written even if it was only read so far: REDO-4, after a write-back that failed.
  if (n != 0 && offset < log_bytes_) stage_->mark(offset, n);
}

void FileMedium::append(const RingMap& ring, std::uint64_t pos, const void* src,
                        std::size_t n) noexcept {
  const std::uint64_t at = ring_index(ring, pos);
  assert(!read_only_ && at % line_bytes == 0 && n % line_bytes == 0 && n <= ring.bytes &&
         allocated_in(ring, at, n));
  copy_words(ring.base + at, src, n);  // past the ring's end lies its beginning
  const std::uint64_t first = n < ring.bytes - at ? n : ring.bytes - at;
  stage_->mark(ring.offset + at, first);
  mark(ring.offset + at, first);
  if (first != n) {
    stage_->mark(ring.offset, n - first);
    mark(ring.offset, n - first);
  }
  add(row().streamed_lines, n / line_bytes);
}

Status FileMedium::make_durable() noexcept {
  if (Status s = poison_.check(); !s.ok()) return s;
  Marked& mine = marked();
  if (mine.log.empty() && mine.data.empty()) return {};
  if (read_only_)
    return failure(Code::read_only, path_, "a write asked of a pool opened read-only", {},
                   "open it for writing");
  mine.log.merge();
  mine.data.merge();
  const bool data = !mine.data.empty();
  const bool record = !data && !mine.log.empty();
  const auto start =
      record ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
  LogStage::Written done;
  // The log's blocks are written before the pages of the data region, though nothing may rely on
  // that order: both are durable only when this returns.
  Status s = mine.log.empty() ? Status() : stage_->write(mine.log, data, done);
  if (s.ok() && data && !done.file_synced) s = sync_.wait(done.syncs);
  if (data) done.bytes += mine.data.blocks() * page_bytes;
  if (record) {
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
    // The mean of the last few. No partner: a hint.
    const std::uint64_t before = sync_ns_.load(std::memory_order_relaxed);
    sync_ns_.store((3 * before + static_cast<std::uint64_t>(took.count())) / 4,
                   std::memory_order_relaxed);
  }
  mine.log.clear();
  mine.data.clear();
  Row& r = row();
  add(r.syncs, done.syncs);
  add(r.written_bytes, done.bytes);
  return s;
}

Status FileMedium::fence() noexcept {
  add(row().fences, 1);
  return make_durable();
}

Status FileMedium::flush_all() noexcept {
  if (Status s = poison_.check(); !s.ok()) return s;
  if (read_only_) return {};
  Runs everything;
  everything.add_all();
  LogStage::Written done;
  Status s = stage_->write(everything, false, done);
  if (s.ok()) s = sync_.wait_with_metadata(done.syncs);
  Marked& mine = marked();
  mine.log.clear();
  mine.data.clear();
  Row& r = row();
  add(r.syncs, done.syncs);
  add(r.written_bytes, done.bytes);
  return s;
}

// Finds out which pages of the file are allocated, and where its log has data.
Status FileMedium::learn_pages(const OpenMedium& how) {
  if (Status s = keep_page_map(log_bytes_ + std::max(file_.data_bytes, how.max_data_bytes));
      !s.ok())
    return s;
  const std::uint64_t end = log_bytes_ + file_.data_bytes;
  if (how.create && !how.sparse) note_allocated(0, end);
  if (how.create) return {};
  each_data(file_.fd.get(), 0, log_bytes_, [&](std::uint64_t from, std::uint64_t to) {
    note_allocated(from, to);
    stage_->note_data(from, to);
  });
  each_allocated(file_.fd.get(), log_bytes_, end,
                 [&](std::uint64_t from, std::uint64_t to) { note_allocated(from, to); });
  return {};
}

Status FileMedium::give_blocks(std::uint64_t from, std::uint64_t to) {
  // The sync after a store makes the store's block durable, too.
  if (from >= log_bytes_) return allocate_blocks(file_.fd.get(), path_, from, to);
  if (Status s = stage_->claim(from, to); !s.ok()) return s;
  // Synced now: otherwise the next commit's sync would also wait for the file system's journal.
  std::uint64_t calls = 0;
  Status s = sync_.wait(calls);
  add(row().syncs, calls);
  add(row().written_bytes, to - from);
  return s;
}

Status FileMedium::extend(std::uint64_t from, std::uint64_t to) {
  if (Status s = allocate_zero(file_.fd.get(), path_, log_bytes_ + from, log_bytes_ + to); !s.ok())
    return s;
  std::uint64_t calls = 0;
  // The length is durable before the caller publishes it.
  Status s = sync_.wait_with_metadata(calls);
  add(row().syncs, calls);
  if (!s.ok()) shrink(from);
  return s;
}

Status FileMedium::make_hole(std::uint64_t from, std::uint64_t to) {
  return punch_hole(file_.fd.get(), path_, from, to);
}

void FileMedium::shrink(std::uint64_t to) noexcept {
  // A failure only wastes disk space.
  if (::ftruncate(file_.fd.get(), static_cast<off_t>(log_bytes_ + to)) != 0) return;
}

}  // namespace perdure::medium
