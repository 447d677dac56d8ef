// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/heap.hpp"

#include <algorithm>
#include <mutex>
#include <new>

#include "perdure/pool/allocation.hpp"
#include "perdure/pool/directory.hpp"
#include "perdure/pool/heap_central.hpp"
#include "perdure/pool/open_pool.hpp"

namespace perdure::pool {
namespace {

std::string number(std::uint64_t n) { return std::to_string(n); }

// The number of blocks fetched at a time: 16 KiB of them, 1 to 64. Other threads can't use what a
// thread caches: at most twice that.
constexpr std::uint32_t batch_of(std::uint32_t cls) noexcept {
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>((16 << 10) / class_bytes(cls), 1, 64));
}

// Blocks of at least this size may be served by whole chunks where no span of their class is
// available: in small pools, and in full ones.
constexpr std::uint64_t may_be_chunk = 8 << 10;

// The number of bitmaps read before other threads may have the mutex: up to 512 lines of memory.
constexpr std::uint64_t look_step = 512;

}  // namespace

/// What has been tried so far for one reservation (find_more).
struct Heap::Search {
  enum class Step : std::uint8_t { give_back, look, take_back, grow, none } step = Step::give_back;
  bool grown = false;
  Status why;  ///< the status of the growth that failed
};

struct Heap::Impl {
  Impl(OpenPool& p, std::byte* view)
      : pool(p),
        directory(p.header()),
        central(view, directory,
                [&p](std::uint64_t chunk, std::uint64_t count) {
                  return allocate_chunks(p.medium(), chunk, count);
                }),
        max_data(directory.max_data_bytes()),
        root(p.header().root_offset),
        used_is_exact(p.header().heap_exact != 0),
        used_at_opening(p.header().heap_used) {}
  OpenPool& pool;
  mutable std::mutex mutex;
  const Directory directory;
  Central central;
  Claim claim;  // under the mutex
  // These fields of the header never change (other fields do, under a lock that we don't take).
  const std::uint64_t max_data, root;
  const bool used_is_exact;  // otherwise used_at_opening is a hint (heap_used in the header)
  const std::uint64_t used_at_opening;
  std::atomic<std::int64_t> used_apart{0};  // noted there if there was no memory for a row

  [[nodiscard]] Status invalid(std::uint64_t offset, const std::string& why) const {
    return failure(Code::invalid, pool.path(), "data offset " + number(offset) + ": " + why,
                   "the start of an allocated block");
  }
  [[nodiscard]] Status being_freed(std::uint64_t offset) const {
    return failure(Code::busy, pool.path(),
                   "data offset " + number(offset) + ": another transaction is freeing that block",
                   "a block that no other transaction frees");
  }
  // Grows the data region by `chunks`, or as far as max_data allows (free chunks at its end count
  // too).
  Status grow(std::uint64_t chunks) {
    const std::uint64_t data = pool.data_bytes();
    // mutant: growth-past-words
    Status s = pool.grow(directory.length_with(data, chunks));
    if (s.code() != Code::full || data == max_data) return s;
    const std::uint64_t half = directory.length_with(data, (chunks + 1) / 2);
    return pool.grow(std::min(max_data, half)).ok() ? Status() : s;
  }
  // The op that frees the block that starts at `offset`, according to the view.
  Result<HeapOp> find(std::uint64_t offset) const;
};

Heap::Heap(OpenPool& pool, std::byte* view)
    : rows_(std::make_unique<std::atomic<Row*>[]>(static_cast<std::size_t>(base::slot_count))),
      impl_(std::make_unique<Impl>(pool, view)) {}

Heap::~Heap() {
  for (int i = 0; i < base::slot_count; ++i)
    delete rows_[static_cast<std::size_t>(i)].load(std::memory_order_relaxed);
}

Heap::Row* Heap::make_row() noexcept {
  auto& entry = rows_[static_cast<std::size_t>(base::thread_slot())];
  if (Row* row = entry.load(std::memory_order_relaxed)) return row;
  Row* const row = new (std::nothrow) Row;
  entry.store(row, std::memory_order_release);  // pairs with the acquire in used_bytes()
  return row;
}

void Heap::note_slow(std::int64_t bytes) noexcept {
  if (Row* const row = make_row())
    row->used.store(bytes, std::memory_order_relaxed);
  else
    impl_->used_apart.fetch_add(bytes, std::memory_order_relaxed);
}

std::uint64_t Heap::used_bytes() const noexcept {
  auto sum = static_cast<std::int64_t>(impl_->used_at_opening) +
             impl_->used_apart.load(std::memory_order_relaxed);
  for (int i = 0; i < base::slot_count; ++i)
    // The acquire pairs with the release in make_row().
    if (const Row* row = rows_[static_cast<std::size_t>(i)].load(std::memory_order_acquire))
      sum += row->used.load(std::memory_order_relaxed);
  return sum > 0 ? static_cast<std::uint64_t>(sum) : 0;  // a hint can be wrong, but not negative
}

Heap::Looked Heap::looked() const {
  const std::lock_guard guard(impl_->mutex);
  return {impl_->central.words_looked_at(), impl_->central.spans_looked_at(),
          impl_->central.bitmaps_looked_at()};
}

// --- reserve -------------------------------------------------------------------------------------

Result<HeapOp> Heap::reserve_slow(std::uint64_t bytes) {
  Impl& heap = *impl_;
  if (heap.pool.read_only())
    return failure(Code::read_only, heap.pool.path(),
                   "an allocation in a pool that is open for reading only", {},
                   "open it for writing");
  const std::uint32_t cls = size_class(bytes);
  if (cls == large_class) {
    if (bytes > heap.max_data)
      return failure(Code::full, heap.pool.path(), "a block of " + number(bytes) + " bytes",
                     "less than the pool's max_size of " + number(heap.max_data));
    return reserve_chunks((bytes + chunk_bytes - 1) / chunk_bytes);
  }
  Row* const row = make_row();
  if (row == nullptr)
    return failure(Code::out_of_memory, heap.pool.path(), "no memory for a thread's block cache");
  const std::uint32_t span = span_chunks(cls);
  Search search;
  {
    std::unique_lock lock(heap.mutex);
    do {
      row->count[cls] +=
          heap.central.take_blocks(cls, batch_of(cls), row->blocks[cls], heap.pool.data_bytes());
      // Growth by 2 * span - 1 chunks: a whole span fits, wherever the data region ends.
    } while (row->count[cls] == 0 && find_more(search, lock, 2 * span - 1));
  }
  if (row->count[cls] == 0 && !search.why.ok() && search.why.code() != Code::full)
    return search.why;
  HeapOp op;
  if (reserve_cached(bytes, op)) return op;
  if (span > 1 && class_bytes(cls) >= may_be_chunk) {
    auto chunk = reserve_chunks(1);
    if (chunk.ok() || chunk.code() != Code::full) return chunk;
  }
  if (!search.why.ok()) return search.why;
  return failure(Code::full, heap.pool.path(),
                 "no space for a block of " + number(bytes) + " bytes", {}, "free objects");
}

Result<HeapOp> Heap::reserve_chunks(std::uint64_t chunks) {
  Impl& heap = *impl_;
  Search search;
  std::unique_lock lock(heap.mutex);
  do {
    if (const std::uint64_t chunk = heap.central.take_chunks(chunks, heap.pool.data_bytes());
        chunk != 0)
      return HeapOp{chunk * chunk_bytes, large_class, static_cast<std::uint32_t>(chunks), true};
  } while (find_more(search, lock, chunks));
  if (!search.why.ok()) return search.why;
  return failure(Code::full, heap.pool.path(),
                 "no " + number(chunks) + " free chunks in a row (" +
                     number(heap.central.free_chunks()) + " are free, at most " +
                     number(heap.central.longest_run()) + " in a row)",
                 {}, "free objects, or open the pool with a larger max_size and raise_max_size");
}

// Gets more free chunks or free blocks for a reservation that found none among the known ones, from
// the cheapest source first. Returns false if all sources have been tried, or one failed
// (search.why). It may release the mutex and take it again.
bool Heap::find_more(Search& search, std::unique_lock<std::mutex>& lock, std::uint64_t grow_by) {
  Central& central = impl_->central;
  for (;;) {
    switch (search.step) {
      case Search::Step::give_back:
        // The cache comes first: one block in this thread's cache keeps its span from being empty,
        // and the cache may hold 128 blocks of a class.
        search.step = Search::Step::look;
        (void)central.take_refusal();  // clears one of an earlier call that succeeded in the end
        give_cache_back();
        central.drop_empty_spans();
        return true;
      case Search::Step::look:
        if (search.grown ? look(lock) : !grows_without_a_search() && look(lock)) return true;
        search.step = search.grown ? Search::Step::none : Search::Step::take_back;
        break;
      case Search::Step::take_back:
        search.step = Search::Step::grow;
        if (take_claim_back(lock)) return true;
        break;
      case Search::Step::grow:
        search.grown = true;
        search.why = impl_->grow(grow_by);
        if (!search.why.ok() && search.why.code() != Code::full) return false;
        // This matters where it grew without a search, by less than was requested or not at all.
        search.step = Search::Step::look;
        if (search.why.ok()) return true;
        break;
      case Search::Step::none:
        // A trim may have claimed chunks meanwhile.
        if (take_claim_back(lock)) return true;
        if (Status s = central.take_refusal(); !s.ok()) search.why = std::move(s);
        return false;
    }
  }
}

// Gives the calling thread's cache of blocks back; the mutex is held.
void Heap::give_cache_back() {
  if (Row* const row = this_row())
    for (std::uint32_t c = 0; c < small_classes; ++c)
      while (row->count[c] > 0) impl_->central.give_block(row->blocks[c][--row->count[c]]);
}

// Reads the bitmaps of up to look_step spans of earlier sessions; returns false if none are left.
// After each step other threads may have the mutex: they need not wait until all of a large pool
// has been read. They may have grown the pool or given blocks back, so the caller must look again,
// whether this step found an empty span or not.
bool Heap::look(std::unique_lock<std::mutex>& lock) {
  if (impl_->central.look_for_empty(look_step, impl_->pool.data_bytes()) == 0) return false;
  lock.unlock();
  lock.lock();
  return true;
}

// Where more than half of the data region is in use, a search would yield less than half of it and
// cost a look at each of its spans. So when the region grows, either it was at most twice as large
// as what is used, or it had no span without a block.
bool Heap::grows_without_a_search() const noexcept {
  const std::uint64_t data = impl_->pool.data_bytes(),
                      objects = data - impl_->central.first() * chunk_bytes;
  return impl_->used_is_exact && data < impl_->max_data && used_bytes() > objects / 2;
}

// --- giving back ---------------------------------------------------------------------------------

void Heap::give_back(std::uint64_t offset, std::uint32_t cls) noexcept {
  Row* const row = make_row();
  if (row == nullptr || row->count[cls] >= 2 * batch_of(cls)) {
    const std::lock_guard guard(impl_->mutex);
    if (row == nullptr) return impl_->central.give_block(offset);
    // The older half goes back; the rest, used last and warm in the caches, stays on top.
    const std::uint32_t half = row->count[cls] - row->count[cls] / 2;
    for (std::uint32_t i = 0; i < half; ++i) impl_->central.give_block(row->blocks[cls][i]);
    std::copy(row->blocks[cls] + half, row->blocks[cls] + row->count[cls], row->blocks[cls]);
    row->count[cls] -= half;
  }
  row->blocks[cls][row->count[cls]++] = offset;
}

void Heap::release(const HeapOp& op) noexcept {
  if (op.cls >= small_classes) {
    const std::lock_guard guard(impl_->mutex);
    if (impl_->claim.op_ended(op)) return;
    if (op.set)
      impl_->central.give_chunks(op.offset / chunk_bytes, op.chunks);
    else
      (void)impl_->central.mark_large(op.offset / chunk_bytes, op.chunks, false);
    return;
  }
  if (op.set) return give_back(op.offset, op.cls);
  if (Span* const span = impl_->central.span_at(op.offset / chunk_bytes)) {
    // A block that the same transaction reserved was never marked.
    std::uint8_t state = Span::freeing;
    span->state[block_index(span->info(), op.offset - span->offset())].compare_exchange_strong(
        state, Span::taken, std::memory_order_relaxed);
  }
}

void Heap::reusable(const HeapOp& op) noexcept {
  if (op.cls >= small_classes) {
    const std::lock_guard guard(impl_->mutex);
    if (impl_->claim.op_ended(op)) {
      // These chunks had no block, but note_applied() has counted them as one that was freed.
      note_applied({op.offset, op.cls, op.chunks, true});
      return;
    }
    return impl_->central.give_chunks(op.offset / chunk_bytes, op.chunks);
  }
  if (Span* const span = impl_->central.span_at(op.offset / chunk_bytes))
    span->state[block_index(span->info(), op.offset - span->offset())].store(
        Span::taken, std::memory_order_release);  // taken by a cache; pairs with prepare_free
  give_back(op.offset, op.cls);
}

// --- trimming ------------------------------------------------------------------------------------

Result<FreeClaim> Heap::claim_free(std::uint64_t max_chunks) {
  // Bitmaps of earlier sessions are read from the file, at most 16 MiB per call.
  constexpr std::uint64_t max_bitmaps = 4096;
  Impl& heap = *impl_;
  medium::Medium& medium = heap.pool.medium();
  const auto has_blocks = [&medium](std::uint64_t chunk) {
    return medium.allocated_end(medium.log_bytes() + chunk * chunk_bytes, chunk_bytes) != 0;
  };
  FreeClaim found;
  std::unique_lock lock(heap.mutex);
  heap.claim.begin(lock);
  try {
    give_cache_back();
    heap.central.drop_empty_spans();
    const std::uint64_t data = heap.pool.data_bytes();
    while (heap.central.look_further(data)) lock.unlock(), lock.lock();
    for (std::uint64_t looked = 0; looked < max_bitmaps; looked += look_step) {
      found.more = heap.central.look_for_empty(look_step, data) != 0;
      if (!found.more) break;
      lock.unlock(), lock.lock();
    }
    for (std::uint64_t at = heap.central.first(); at != 0;) {
      const std::uint64_t from = at;
      at = heap.central.claim(at, look_step, max_chunks, has_blocks, found);
      if (at != 0 && at - from < look_step) {  // the claim has max_chunks
        found.more = true;
        break;
      }
      if (at != 0) {
        heap.claim.add(found);
        lock.unlock(), lock.lock();
        // Another transaction has needed what was claimed so far.
        if (!heap.claim.held() && !found.runs.empty()) return FreeClaim{{}, {}, true};
      }
    }
    heap.claim.add(found);
  } catch (const std::bad_alloc&) {
    heap.central.unclaim(found.runs);
    heap.claim.forget();
    return failure(Code::out_of_memory, heap.pool.path(), "no memory for a trim's list of chunks");
  }
  return found;
}

bool Heap::begin_clearing() {
  const std::lock_guard guard(impl_->mutex);
  return impl_->claim.begin_clearing();
}

void Heap::cleared() noexcept {
  const std::lock_guard guard(impl_->mutex);
  impl_->claim.cleared();
}

bool Heap::begin_punching() {
  const std::lock_guard guard(impl_->mutex);
  return impl_->claim.begin_punching();
}

void Heap::end_claim() noexcept {
  const std::lock_guard guard(impl_->mutex);
  impl_->central.unclaim(impl_->claim.runs());
  impl_->claim.end();
}

bool Heap::is_clearing(std::uint64_t offset) const {
  const std::lock_guard guard(impl_->mutex);
  return impl_->claim.is_clearing(offset);
}

// Called by a reservation that finds no other chunk: ends a trim's claim, so that its chunks are
// free again. If a step of the trim is in progress, waits for its end, and the mutex is released
// meanwhile. Returns false if there is no claim, or the wait was too long.
bool Heap::take_claim_back(std::unique_lock<std::mutex>& lock) {
  Claim& claim = impl_->claim;
  if (!claim.held()) return false;
  if (!claim.wait_while_used(lock)) return false;
  if (claim.held()) {
    impl_->central.unclaim(claim.runs());
    claim.forget();
  }
  return true;
}

// --- looking up ----------------------------------------------------------------------------------

Result<HeapOp> Heap::Impl::find(std::uint64_t offset) const {
  const std::uint64_t data = pool.data_bytes(), chunk = offset / chunk_bytes;
  if (offset >= data || directory.holds_words(chunk)) return invalid(offset, "not in the heap");
  ChunkWord w = central.word(chunk);
  std::uint64_t head = chunk;
  if (w.kind() == ChunkWord::rest && w.count() <= chunk - central.first()) {
    head = chunk - w.count();
    w = central.word(head);
  }
  if (w.kind() == ChunkWord::large && head == chunk && offset % chunk_bytes == 0 &&
      w.count() <= data / chunk_bytes - chunk)
    return HeapOp{offset, large_class, static_cast<std::uint32_t>(w.count()), false};
  if (w.kind() != ChunkWord::small || w.size_class() >= small_classes)
    return invalid(offset, w.kind() == ChunkWord::free ? "free memory" : "inside another block");
  const ClassInfo& info = classes[w.size_class()];
  const std::uint32_t index = block_index(info, offset - head * chunk_bytes);
  if (index >= info.blocks)
    return invalid(offset, "no block of " + number(info.bytes) + " bytes starts there");
  if (!central.bit(head * chunk_bytes, index)) return invalid(offset, "that block is free");
  return HeapOp{offset, w.size_class(), 0, false};
}

Result<HeapOp> Heap::prepare_free(std::uint64_t offset) {
  Impl& heap = *impl_;
  if (heap.pool.read_only())
    return failure(Code::read_only, heap.pool.path(),
                   "a free in a pool that is open for reading only", {}, "open it for writing");
  auto op = heap.find(offset);
  if (__builtin_expect(!op.ok(), 0)) {
    const std::lock_guard guard(heap.mutex);
    return heap.claim.clear(offset, op);
  }
  if (offset == heap.root)
    return heap.invalid(offset, "the root object, which lives as long as the pool");
  const std::uint64_t chunk = offset / chunk_bytes;
  if (op->cls == large_class) {
    const std::lock_guard guard(heap.mutex);
    // Checked again: other threads may have freed it since, and a span may have its chunks now.
    op = heap.find(offset);
    if (!op.ok()) return op;
    if (op->cls != large_class || !heap.central.mark_large(chunk, op->chunks, true))
      return heap.being_freed(offset);
    return op;
  }
  Span* span = heap.central.span_at(chunk);
  if (__builtin_expect(span == nullptr, 0)) {
    const std::lock_guard guard(heap.mutex);
    span = heap.central.open_span(span_chunk_of(offset, span_chunks(op->cls), heap.central.first()),
                                  heap.pool.data_bytes());
    // Damage, or a doomed transaction's free: the span has been given up, and what find() took for
    // its bitmap is another object's data.
    if (span == nullptr)
      return heap.invalid(
          offset, "no block of a span that is in use (if it should be one, run `perdure check`)");
  }
  // A doomed transaction may try to free a block that others have freed: its span may be gone, and
  // the object may be another span's by now.
  if (span->cls != op->cls) return heap.invalid(offset, "that block is free");
  const std::uint32_t index = block_index(span->info(), offset - span->offset());
  if (index >= span->info().blocks) return heap.invalid(offset, "that block is free");
  std::uint8_t state = Span::taken;
  // The acquire pairs with the release in reusable(): if the block was freed since find(), the bit
  // below is seen clear.
  if (!span->state[index].compare_exchange_strong(state, Span::freeing, std::memory_order_acq_rel,
                                                  std::memory_order_acquire))
    return state == Span::freeing ? heap.being_freed(offset)
                                  : heap.invalid(offset, "that block is free");
  if (__builtin_expect(
          heap.central.span_at(chunk) != span || !heap.central.bit(span->offset(), index), 0)) {
    state = Span::freeing;
    span->state[index].compare_exchange_strong(state, Span::taken, std::memory_order_relaxed);
    return heap.invalid(offset, "that block is free");
  }
  return op;
}

Result<std::uint64_t> Heap::block_bytes(std::uint64_t offset) const {
  const auto op = impl_->find(offset);
  if (!op.ok()) return op.status();
  return op_bytes(*op);
}

}  // namespace perdure::pool
