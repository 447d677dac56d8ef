// SPDX-License-Identifier: BSD-3-Clause
//
// Medium: where a pool's bytes live, and when they are durable. EVERY byte that reaches a pool goes
// through one.
//
// A pool file has two ranges: the log range [0, log_bytes) with the header copies and the logs, and
// the data region [log_bytes, log_bytes + data_bytes). Both are whole multiples of 2 MiB where the
// medium maps huge pages or writes directly. Offsets are file offsets.
//
// Perdure assumes of the hardware exactly this:
//   MEDIUM-1 an aligned 8-byte store is never torn (on a file: tears fall between aligned 8-byte
//            words);
//   MEDIUM-2 a cache line may be written back at any time, holding any prefix of its stores;
//   MEDIUM-3 flush + fence makes a line durable; a streamed line is durable after the fence of the
//            thread that streamed it;
//   MEDIUM-4 nothing orders two lines but a fence;
//   MEDIUM-5 on a file nothing is durable before its sync, and until then pages may be lost, torn
//            and reordered.
//
// ALLOC-1: no byte is stored in a page of the file that is not allocated. A store to a hole through
// a mapping is a SIGBUS when the disk is full, and a write to a hole is an error that would come
// too late. So allocate() is called earlier, at a point where `full` can still be refused without
// harm. Media assert this in every store. An allocation need not be durable by itself: on a file
// the sync that makes the bytes durable makes their blocks durable too, and on `dax` MAP_SYNC does
// so before the first store to a page. After a crash a page whose allocation was lost is a hole of
// zeros again, and the next session asks anew.
//
// Thread safety: any thread may call store, stream, flush, fence and append; two threads must not
// write one 8-byte word at the same time. fence() covers the calling thread's earlier flushes and
// streams (it may cover those of other threads too). Any thread may call allocate and flush_all;
// concurrent calls of flush_all wait for each other. grow allows one caller at a time. All three
// run concurrently with any other calls. Counters are per thread and are summed on reading.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "perdure/base/status.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/medium/page_map.hpp"
#include "perdure/medium/values.hpp"

namespace perdure::medium {

inline constexpr std::size_t line_bytes = 64;  ///< one cache line: the unit of flush()
/// The log range and the data region start at multiples of this.
inline constexpr std::uint64_t region_align = 2ULL << 20;

/// A part of the log range that is mapped twice in a row, so that no access wraps: byte i of the
/// ring is at base[i] and at base[i + bytes].
struct RingMap {
  std::byte* base = nullptr;  ///< for READING; writes go through stream/append
  std::uint64_t offset = 0;   ///< file offset of the ring's byte 0
  std::uint64_t bytes = 0;    ///< a multiple of 4096
  /// Which pages of the file are allocated; null: all may be. A page of a log that is not is zero.
  const PageMap* pages = nullptr;

  /// Whether the page with this position (bytes, of any generation) is known to hold only zeros.
  [[nodiscard]] bool hole(std::uint64_t position) const noexcept {
    return pages != nullptr && !pages->bit((offset + position % bytes) / page_bytes);
  }
};

/// One 8-byte word to be stored, and where, relative to a base.
struct WordStore {
  std::uint64_t offset = 0;  ///< bytes from the base
  std::uint64_t value = 0;   ///< what is stored there
};

/// How a range of the data region appears in memory at the address that transactions use.
enum class ViewKind : std::uint8_t {
  shared,         ///< the data region itself (undo, redo: stores still go through the medium)
  shared_read,    ///< the data region itself, read-only
  copy_on_write,  ///< MAP_PRIVATE: an unwritten page shows the data region, a written one is DRAM
  /// anonymous zero memory, with huge pages where the system gives them: for a range of the data
  /// region that holds only zeros
  fresh,
};

/// Where a pool's bytes live, and when they are durable; open_medium() makes one. Thread safety and
/// what is assumed of the hardware: at the head of this file.
class Medium {
 public:
  Medium();
  Medium(const Medium&) = delete;
  Medium& operator=(const Medium&) = delete;
  /// Unmaps and closes. Makes nothing durable.
  virtual ~Medium();

  /// "file", "dax", "emulated", "recording"
  [[nodiscard]] virtual std::string_view kind() const noexcept = 0;
  /// One line: the instructions or calls used, the delays, direct or not.
  [[nodiscard]] virtual std::string describe() const = 0;
  /// The file's path, as it was opened.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Bytes of the log range; the data region begins at this offset.
  [[nodiscard]] std::uint64_t log_bytes() const noexcept { return log_bytes_; }
  /// Bytes that the data region has now.
  [[nodiscard]] std::uint64_t data_bytes() const noexcept {
    // The acquire pairs with the release in grow(): the new range is mapped.
    return data_bytes_.load(std::memory_order_acquire);
  }
  /// Bytes that the data region may grow to.
  [[nodiscard]] std::uint64_t max_data_bytes() const noexcept { return max_data_bytes_; }
  /// Whether it was opened for reading only.
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }

  /// The unit in which a log must be appended, so that a write in flight never touches durable
  /// records: 64 bytes on memory, 4096 on a file.
  [[nodiscard]] std::size_t append_unit() const noexcept { return append_unit_; }
  /// True if a fence costs a device's sync (100 us) and not a memory barrier (100 ns). Engines then
  /// share fences.
  [[nodiscard]] bool fence_is_sync() const noexcept { return fence_is_sync_; }
  /// The time that a fence of appended records has taken lately, in nanoseconds: where a thread
  /// decides whether to wait for others that it could share one with. 0 where nothing is known, and
  /// where a fence is a memory barrier.
  [[nodiscard]] virtual std::uint64_t sync_ns() const noexcept { return 0; }

  /// The bytes at a file offset as this process sees them now, durable or not. For READING only.
  /// The log range and the data region are each contiguous.
  [[nodiscard]] const std::byte* at(std::uint64_t offset) const noexcept {
    return offset < log_bytes_ ? log_ + offset : data_ + (offset - log_bytes_);
  }
  /// The data region's first byte, as at() gives it.
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }

  /// A cached store: visible to at() at once; durable after flush + fence, or at any earlier time
  /// (MEDIUM-2).
  virtual void store(std::uint64_t offset, const void* src, std::size_t n) noexcept = 0;
  /// The same as store() of each word, in order, at `base` + its offset; both are multiples of 8.
  virtual void store_words(std::uint64_t base, std::span<const WordStore> words) noexcept {
    for (const WordStore& w : words) store(base + w.offset, &w.value, sizeof w.value);
  }
  /// The same as store_words(), and flush() of their lines; where the processor can, the words are
  /// stored past its cache. They are durable after the fence.
  virtual void stream_words(std::uint64_t base, std::span<const WordStore> words) noexcept {
    store_words(base, words);
    each_line(base, words, [&](std::uint64_t line) { flush(line * line_bytes, line_bytes); });
  }
  /// A non-temporal store of whole lines (offset and n are multiples of 64, src is 8-aligned). It
  /// is durable after the fence.
  virtual void stream(std::uint64_t offset, const void* src, std::size_t n) noexcept = 0;
  /// Starts the write-back of every line that [offset, offset + n) touches.
  virtual void flush(std::uint64_t offset, std::size_t n) noexcept = 0;
  /// Does the same for the lines at `base` + 64 * each of `lines`, which names no line twice;
  /// neighbours that follow each other are one run. `base` is a multiple of 64.
  virtual void flush_lines(std::uint64_t base, std::span<const std::uint64_t> lines) noexcept {
    each_run(lines, [&](std::uint64_t first, std::uint64_t count) {
      flush(base + first * 64, count * 64);
    });
  }
  /// When this returns ok, everything that the calling thread has flushed or streamed is durable.
  /// After a failure every later call fails too (LAW-9).
  virtual Status fence() noexcept = 0;
  /// When this returns ok, every store() that had returned on any thread before this call began is
  /// durable, flushed or not, fenced or not. REWIND and Blurred Persistence need this flush of
  /// everything. What the calling thread has streamed or appended is durable as well, and so is the
  /// file's metadata. What another thread has streamed or appended is not, before that thread's own
  /// fence: no instruction of this thread reaches another processor's write-combining buffers.
  /// Errors: as for fence().
  virtual Status flush_all() noexcept = 0;

  /// Returns what every later durable call returns if a call has failed, on any thread; ok before.
  [[nodiscard]] virtual Status usable() const { return {}; }

  /// Maps a part of the log range as a ring (see RingMap). The mapping lives as long as the medium.
  virtual Result<RingMap> map_ring(std::uint64_t offset, std::uint64_t bytes) = 0;
  /// Streams n bytes (a multiple of 64) to ring position `pos` (bytes, of any generation; taken
  /// modulo the ring) and wraps where needed. `src` is copied.
  virtual void append(const RingMap& ring, std::uint64_t pos, const void* src,
                      std::size_t n) noexcept = 0;
  /// Starts the write-back of ring positions [pos, pos + n), n at most the ring: bytes that a
  /// killed process may have left visible but not durable.
  virtual void flush_ring(const RingMap& ring, std::uint64_t pos, std::size_t n) noexcept {
    const std::uint64_t at = pos % ring.bytes, first = n < ring.bytes - at ? n : ring.bytes - at;
    if (first != 0) flush(ring.offset + at, first);
    if (first != n) flush(ring.offset, n - first);
  }
  /// Appends, then fences.
  Status append_fence(const RingMap& ring, std::uint64_t pos, const void* src,
                      std::size_t n) noexcept {
    append(ring, pos, src, n);
    return fence();
  }

  /// ALLOC-1: when this returns ok, the pages that bytes [offset, offset + n) touch are allocated,
  /// and their contents are unchanged. Returns `full` where the disk has no block left: some of the
  /// pages may be allocated then, the contents are unchanged, nothing is poisoned, and a later call
  /// may succeed. On a file, pages of the log are written once (with their present contents) and
  /// synced, so that a commit's sync changes no metadata. Returns `read_only`, or the medium's own
  /// failure, where the request is impossible.
  virtual Status allocate(std::uint64_t offset, std::uint64_t n) = 0;
  /// Are the pages that bytes [offset, offset + n) touch allocated? This costs a few instructions.
  [[nodiscard]] bool allocated(std::uint64_t offset, std::uint64_t n) const noexcept {
    return pages_ == nullptr || pages_->all(offset, n);
  }
  /// The number of the n bytes from `offset` on that are allocated without a gap.
  [[nodiscard]] std::uint64_t allocated_from(std::uint64_t offset, std::uint64_t n) const noexcept;
  /// The end of the last allocated part of bytes [offset, offset + n), relative to `offset`; 0 if
  /// there is none.
  [[nodiscard]] std::uint64_t allocated_end(std::uint64_t offset, std::uint64_t n) const noexcept;
  /// Null means that everything is allocated, always.
  [[nodiscard]] const PageMap* pages() const noexcept { return pages_; }

  /// Makes the data region `data_bytes` long: allocated on the medium (a full disk is an error here
  /// and never a SIGBUS later), zero, and mapped. On a device-dax it ends at a multiple of 2 MiB,
  /// and so may become longer. Existing contents stay where they are. The new length is durable
  /// before this returns.
  virtual Status grow(std::uint64_t data_bytes) = 0;
  /// Whether give_back() and cut() are worth a call: not on a device.
  [[nodiscard]] virtual bool can_give_back() const noexcept { return false; }
  /// Gives the blocks of the whole pages in bytes [offset, offset + n), a part of the data region,
  /// back to the file system. They are not allocated afterwards (ALLOC-1) and read as zeros; after
  /// a crash each word is the old one or zero, until a flush_all() that began later has returned
  /// ok. Returns the bytes that were allocated there. Nothing may store there meanwhile. Errors:
  /// `unsupported` where the medium or its file system can't do it, `read_only`, `invalid`, the
  /// system's; nothing is poisoned. One caller at a time, like grow.
  virtual Result<std::uint64_t> give_back(std::uint64_t offset, std::uint64_t n);
  /// Ends the data region at `data_bytes`, a multiple of 4096 and not more than it has; what lies
  /// behind it must not be read or written any more. Durable after the next flush_all. Errors as
  /// for give_back. One caller at a time, and no caller of grow.
  virtual Status cut(std::uint64_t data_bytes);
  /// Makes [data_offset, data_offset + n) of the data region appear at `address` (page-aligned),
  /// replacing what is mapped there.
  virtual Status map_view(std::byte* address, std::uint64_t data_offset, std::uint64_t n,
                          ViewKind kind) = 0;
  /// Gives back the memory of what was stored to n bytes at `address` of a copy_on_write view, both
  /// in whole pages: they show the data region again. The caller ensures that this makes no
  /// difference to those who read there, and that nobody stores there meanwhile. Returns false
  /// where the system refuses: nothing has changed then.
  [[nodiscard]] virtual bool drop_copies(std::byte* address, std::uint64_t n) noexcept;

  /// What has been asked of it since it was opened, by all threads.
  [[nodiscard]] virtual Counters counters() const noexcept;  ///< virtual for decorators only

 protected:
  /// The counters of one thread, on lines of their own. Only the owner writes them; they are atomic
  /// so that counters() may read them meanwhile.
  struct alignas(128) Row {
    /// As in Counters.
    std::atomic<std::uint64_t> stores{0}, stored_bytes{0}, streamed_lines{0}, flushed_lines{0},
        fences{0}, syncs{0}, written_bytes{0};
  };
  /// The calling thread's row.
  [[nodiscard]] Row& row() const noexcept { return row_of(base::thread_slot()); }
  /// The row of the thread with this slot.
  [[nodiscard]] Row& row_of(int slot) const noexcept {
    return rows_[static_cast<std::size_t>(slot)];
  }
  /// Calls f(first, count) for each run of neighbours.
  template <class F>
  static void each_run(std::span<const std::uint64_t> lines, F&& f) {
    for (std::size_t i = 0, j = 0; i < lines.size(); i = j) {
      for (j = i + 1; j < lines.size() && lines[j] == lines[j - 1] + 1; ++j) {}
      f(lines[i], j - i);
    }
  }
  /// Calls f(line number) for the line of each word, once for neighbours in one line.
  template <class F>
  static void each_line(std::uint64_t base, std::span<const WordStore> words, F&& f) {
    std::uint64_t before = ~std::uint64_t{0};
    for (const WordStore& w : words)
      if (const std::uint64_t line = (base + w.offset) / line_bytes; line != before)
        f(before = line);
  }
  /// Adds to a counter of the calling thread's own row by a load, an add and a store instead of a
  /// locked instruction.
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t n) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  /// What path() returns. This and what follows is set by the medium that derives from this class.
  std::string path_;
  /// What pages() returns; null: everything is allocated, always.
  const PageMap* pages_ = nullptr;
  /// The log range's first byte, as at() gives it.
  std::byte* log_ = nullptr;
  /// The data region's first byte, as at() gives it.
  std::byte* data_ = nullptr;
  /// What log_bytes() and max_data_bytes() return.
  std::uint64_t log_bytes_ = 0, max_data_bytes_ = 0;
  /// What data_bytes() returns. grow() stores it, with release, when the new range is mapped.
  std::atomic<std::uint64_t> data_bytes_{0};
  /// What append_unit() returns.
  std::size_t append_unit_ = line_bytes;
  /// What fence_is_sync() returns.
  bool fence_is_sync_ = false;
  /// What read_only() returns.
  bool read_only_ = false;

 private:
  std::unique_ptr<Row[]> rows_;  // one per thread slot
};

/// How to open or create the bytes of a pool.
struct OpenMedium {
  /// The file, or the device-dax.
  std::string path;
  /// auto | file | dax | emulated; auto: dax where MAP_SYNC works, else file
  std::string kind = "auto";
  /// make the file (`exists` if it exists), log_bytes + data_bytes long, filled with zeros
  bool create = false;
  /// create: allocate nothing yet (ALLOC-1); otherwise everything, as always on a device
  bool sparse = false;
  /// Open for reading only: store() and its like must not be called.
  bool read_only = false;
  /// file: try O_DIRECT|O_DSYNC; where refused (tmpfs) write + fdatasync, as describe() reports
  bool direct = true;
  /// Bytes of the log range. When opening: what the pool's header says.
  std::uint64_t log_bytes = 0;
  /// 0 when opening: the file's length beyond log_bytes, in whole pages
  std::uint64_t data_bytes = 0;
  /// address space reserved for growth; less than data_bytes: no growth
  std::uint64_t max_data_bytes = 0;
  Delays delays;  ///< emulated only
  /// file: how much of the log's beginning is read when opening; what lies behind it reads as zero
  /// until it is written. Less than everything where nothing will read it: the rings of a pool that
  /// was closed cleanly.
  std::uint64_t load_bytes = ~std::uint64_t{0};
};

/// Opens the medium without looking at the pool's format. Never writes to an existing file.
Result<std::unique_ptr<Medium>> open_medium(const OpenMedium& how);

/// What `auto` would choose for a path, and why, line by line, for `perdure doctor`. The path need
/// not exist.
struct Diagnosis {
  /// The medium's kind, why it is that, the file system's name, and the instruction that writes a
  /// line back.
  std::string kind, reason, file_system, flush_instruction;
  /// Whether O_DIRECT works, whether MAP_SYNC does, and whether caches are inside the power-fail
  /// domain.
  bool direct = false, map_sync = false, eadr = false;
};
/// What `auto` would choose for a path. Makes and changes no file. Errors: invalid, not_found.
Result<Diagnosis> diagnose(const std::string& path);

}  // namespace perdure::medium
