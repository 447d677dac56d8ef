// SPDX-License-Identifier: BSD-3-Clause
//
// Heap: which bytes of the data region are objects. Persistent state: one directory word per chunk
// and one bitmap per span. Volatile state: free lists.
//
// A transaction reserves a block (volatile only) and logs a logical HeapOp (set or clear one bit).
// At its commit the op is applied: to the view by the engine, to the data region by replay or
// recovery. Two transactions may thus share a bitmap word, and an abort erases no other
// transaction's bit. An op names its block's offset and size class, so that applying it can also
// make the span that holds it: a span needs no transaction of its own. Applying ops in id order,
// over a data region that is as new or newer, ends in the newest state (idempotent).
//
// Crash invariants:
//   HEAP-1 a bit is applied only for a transaction that has its id, and reaches the data region
//          only once that transaction is as durable as its order requires;
//   HEAP-2 a freed block is reserved again only after its free was applied: so the next transaction
//          that uses its chunk has a higher id;
//   HEAP-3 a span's list is built from the view before its first allocation or free. So a span of
//          an earlier session that has no list yet has no block reserved by a transaction, and no
//          ops in this session's log: if its bitmap is empty, its chunks may be given to any class;
//   HEAP-4 the data region never shows a span's directory word before the span's zeroed bitmap
//          (chunks are reused: the bitmap's bytes were data before). Ops applied to the data region
//          fence between the two (HeapTarget::fence). A checkpoint that copies changed lines of the
//          view to the data region takes the changed lines of the directory
//          (Directory::holds_words) FIRST, into memory of its own, and writes them LAST, after a
//          fence over all the others: a span that the copy names was zeroed, and its lines marked,
//          before the checkpoint looked for the others.
// Thread safety: any thread may make all calls; each thread has its own cache of blocks reserved in
// advance.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/pool/claim.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/format.hpp"
#include "perdure/pool/size_classes.hpp"

namespace perdure::medium {
class Medium;
}

namespace perdure::pool {

class OpenPool;

/// One block set or cleared. `cls` is a size class, or large_class with `chunks` whole chunks.
struct HeapOp {
  static constexpr std::uint32_t large_class = pool::large_class;
  std::uint64_t offset = 0;  ///< of the block, in the data region
  std::uint32_t cls = 0;
  std::uint32_t chunks = 0;  ///< only for a large block
  bool set = true;           ///< true: allocate; false: free
};
/// The size in bytes of the block that an op sets or clears.
[[nodiscard]] constexpr std::uint64_t op_bytes(const HeapOp& op) noexcept {
  return op.cls == large_class ? op.chunks * chunk_bytes : class_bytes(op.cls);
}

/// Where ops are applied: 8-byte words of the data region, by offset. The engine's view target
/// preserves every other transaction's bits and marks the line; targets for the data region store
/// through the medium. Existing targets: MemoryTarget, StagedTarget (heap_apply.hpp),
/// log::DataWriter.
class HeapTarget {
 public:
  virtual ~HeapTarget();
  /// An acquire load; it pairs with store().
  [[nodiscard]] virtual std::uint64_t load(std::uint64_t offset) const = 0;
  /// A release store, of directory words and of the bitmap words of a new span.
  virtual void store(std::uint64_t offset, std::uint64_t value) = 0;
  virtual void set_bits(std::uint64_t offset, std::uint64_t mask) = 0;
  virtual void clear_bits(std::uint64_t offset, std::uint64_t mask) = 0;
  /// True for the data region, which may be newer than the ops, as a whole or in parts (a crash
  /// tore it), and is used by one thread: ops then also examine the neighbouring chunks.
  [[nodiscard]] virtual bool replay() const noexcept { return false; }
  /// HEAP-4: what was stored to [offset, offset + n) is durable before what is stored next. A
  /// target whose replay() is true must override it.
  virtual void fence(std::uint64_t /*offset*/, std::uint64_t /*n*/) {}
};
/// Applies one op. A header converts to `directory`. If a clear's span has meanwhile become
/// something else (the data region was newer), the clear sets that structure free: the ops that
/// made it are replayed after this one. Hot paths use apply_op (heap_apply.hpp), the same without
/// virtual calls.
void apply(HeapTarget& target, const HeapOp& op, const Directory& directory);
/// Can this be an op of a pool of that size? Recovery asks before it applies what a log says.
[[nodiscard]] bool possible(const HeapOp& op, std::uint64_t data_bytes,
                            const Directory& directory) noexcept;
/// The same, as a Status: `corrupt` if it can't.
Status check_op(const HeapOp& op, const Header& header, const std::string& path);

class Heap {
 public:
  Heap(OpenPool& pool, std::byte* view);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// Reserves a block of at least `bytes` bytes, aligned as any C++ type of that size may require,
  /// up to 64 (at least 16; 64 if `bytes` is a multiple of 64). It belongs to the calling thread
  /// until it is released or committed. Grows the pool when needed; `full` if that is impossible.
  /// The caller logs the `HeapOp` (set) and applies it at commit, or calls release.
  Result<HeapOp> reserve(std::uint64_t bytes) {
    HeapOp op;
    if (__builtin_expect(reserve_cached(bytes, op), 1)) return op;
    return reserve_slow(bytes);
  }
  /// Does the same if the calling thread's cache has such a block: a few instructions.
  [[nodiscard]] bool reserve_cached(std::uint64_t bytes, HeapOp& op) noexcept {
    const std::uint32_t cls = size_class(bytes);
    Row* const row = this_row();
    if (row == nullptr || cls >= small_classes || row->count[cls] == 0) return false;
    op.offset = row->blocks[cls][--row->count[cls]];
    op.cls = cls;
    op.chunks = 0;
    op.set = true;
    return true;
  }
  /// Undoes an op of an aborted transaction: a reserved block is given back (set), a block that was
  /// to be freed may be freed by another transaction (clear). Call it for EVERY op of an aborted
  /// transaction, reserved or prepared.
  void release(const HeapOp& op) noexcept;
  /// Returns the op that frees the block at `offset`. Errors: `invalid` if no allocated block
  /// starts there (double free, also within one transaction; foreign pointer), `busy` while another
  /// transaction is freeing it. A block that the calling transaction itself has reserved is not
  /// allocated yet: it is released instead.
  Result<HeapOp> prepare_free(std::uint64_t offset);
  /// A free was applied (and is durable, where the order requires it): its block may be reserved
  /// again (HEAP-2).
  void reusable(const HeapOp& op) noexcept;

  /// Size in bytes of the allocated block that starts at offset, according to the view; `invalid`
  /// if none starts there.
  Result<std::uint64_t> block_bytes(std::uint64_t offset) const;
  /// Bytes in allocated blocks: the header's count at opening plus what was applied since (a hint
  /// unless the pool was clean).
  [[nodiscard]] std::uint64_t used_bytes() const noexcept;
  void note_applied(const HeapOp& op) noexcept {  ///< updates used_bytes
    const auto bytes = static_cast<std::int64_t>(op_bytes(op));
    if (Row* const row = this_row(); __builtin_expect(row != nullptr, 1)) {
      // Only this thread writes it; it is atomic so that used_bytes may read it meanwhile.
      row->used.store(row->used.load(std::memory_order_relaxed) + (op.set ? bytes : -bytes),
                      std::memory_order_relaxed);
    } else {
      note_slow(op.set ? bytes : -bytes);
    }
  }

  /// The calls by which a trim handles free chunks while transactions run, in the order of their
  /// use; claim.hpp has the protocol. claim_free() waits for another thread's trim to end, and
  /// takes up to `max_chunks` chunks out of use. It reads the rest of the directory, and up to 4096
  /// bitmaps of earlier sessions' spans. Errors: `out_of_memory`, with nothing claimed. Call
  /// end_claim() after it, whatever it returned.
  Result<FreeClaim> claim_free(std::uint64_t max_chunks);
  /// Called in a transaction, before it frees each of FreeClaim::spans by the offset of its first
  /// chunk. Returns false if another transaction has taken the chunks back; the trim is over then.
  [[nodiscard]] bool begin_clearing();
  /// Called when the body of that transaction ends, also by an exception.
  void cleared() noexcept;
  /// Called before the chunks' file blocks are given back. Returns false as begin_clearing().
  [[nodiscard]] bool begin_punching();
  /// Ends the claim: the chunks may be reserved again.
  void end_claim() noexcept;
  /// Whether the data offset is that of a span that the calling thread is clearing.
  [[nodiscard]] bool is_clearing(std::uint64_t offset) const;

  /// How much opening and reserving have read so far: tests bound the cost of opening with it.
  struct Looked {
    std::uint64_t directory_words = 0, spans = 0;
    std::uint64_t bitmaps = 0;  ///< of earlier sessions' spans, in the search for empty ones
  };
  [[nodiscard]] Looked looked() const;

 private:
  static constexpr std::uint32_t row_blocks = 128;
  /// One thread's cache: one stack of blocks per class. It belongs to a thread slot: the slot's
  /// next owner continues with it.
  struct Row {
    std::uint32_t count[small_classes] = {};
    std::atomic<std::int64_t> used{0};
    std::uint64_t blocks[small_classes][row_blocks];  // written only as far as count says
  };
  struct Impl;
  struct Search;

  [[nodiscard]] Row* this_row() const noexcept {
    // Relaxed: a slot's row is made and used by the slot's owner; its next owner synchronizes with
    // that one by taking the slot.
    return rows_[static_cast<std::size_t>(base::thread_slot())].load(std::memory_order_relaxed);
  }
  Row* make_row() noexcept;
  void note_slow(std::int64_t bytes) noexcept;
  Result<HeapOp> reserve_slow(std::uint64_t bytes);
  Result<HeapOp> reserve_chunks(std::uint64_t chunks);
  bool find_more(Search& search, std::unique_lock<std::mutex>& lock, std::uint64_t grow_by);
  bool look(std::unique_lock<std::mutex>& lock);
  void give_cache_back();
  bool take_claim_back(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool grows_without_a_search() const noexcept;
  void give_back(std::uint64_t offset, std::uint32_t cls) noexcept;

  std::unique_ptr<std::atomic<Row*>[]> rows_;  // one per thread slot
  std::unique_ptr<Impl> impl_;
};

/// The result of an audit of the heap's persistent state. The audit is a plain function of the
/// bytes; no pool need be open (`data` = start of the data region, or of a view of it). `medium` is
/// the one that `data` lies on. Pages that it knows to be holes count as zeros and are not read: on
/// tmpfs reading one through a mapping would take a page, which a full disk does not have. With
/// null everything is read.
struct HeapAudit {
  std::uint64_t blocks = 0, bytes = 0, chunks_free = 0, chunks_small = 0, chunks_large = 0;
  /// each names the chunk, what was found and what was expected; empty if the heap is sound
  std::vector<std::string> problems;
};
HeapAudit audit_heap(
    const std::byte* data, const Header& header,
    const std::function<void(std::uint64_t offset, std::uint64_t bytes)>& each_block = {},
    const medium::Medium* medium = nullptr);
/// The same, given the op that allocates each block.
HeapAudit audit_heap_ops(const std::byte* data, const Header& header,
                         const std::function<void(const HeapOp&)>& each_block,
                         const medium::Medium* medium = nullptr);
/// The same of an open pool's view while transactions run. Each structure is read at one moment of
/// the call, and each block's bit: those of transactions that run may be in the result or not. What
/// only a pool at rest has is not compared: the root's block, and the sum of all blocks. Heap ops
/// that make or dissolve a structure wait while the words of some others are read. `bits` returns
/// the bitmap's word at an offset. It must know which of them are data: the chunks of a span
/// without blocks may have been reserved, and stored to, by a transaction that has not committed.
/// each_block() is given the op that allocates the block.
HeapAudit audit_heap_beside(const OpenPool& pool,
                            const std::function<std::uint64_t(std::uint64_t offset)>& bits,
                            const std::function<void(const HeapOp&)>& each_block);

}  // namespace perdure::pool
