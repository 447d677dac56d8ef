// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/heap_central.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace perdure::pool {

// --- runs ----------------------------------------------------------------------------------------

// Commits and rollbacks give runs back and must not fail: if there is no memory to note a run, it
// stays out of use until the next opening.
void ChunkRuns::insert(std::uint64_t chunk, std::uint64_t count) noexcept {
  try {
    const auto run = by_start_.emplace(chunk, count).first;
    try {
      by_length_.emplace(count, chunk);
      return;
    } catch (const std::bad_alloc&) {
      by_start_.erase(run);
    }
  } catch (const std::bad_alloc&) {}
  chunks_ -= count;
}

std::map<std::uint64_t, std::uint64_t>::iterator ChunkRuns::erase(
    std::map<std::uint64_t, std::uint64_t>::iterator run) {
  by_length_.erase({run->second, run->first});
  return by_start_.erase(run);
}

void ChunkRuns::add(std::uint64_t chunk, std::uint64_t count) {
  chunks_ += count;
  auto next = by_start_.lower_bound(chunk);
  if (next != by_start_.end() && next->first == chunk + count) {
    count += next->second;
    next = erase(next);
  }
  if (next != by_start_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == chunk) {
      chunk = before->first;
      count += before->second;
      erase(before);
    }
  }
  insert(chunk, count);
}

std::uint64_t ChunkRuns::take(std::uint64_t count, std::uint64_t align, std::uint64_t origin,
                              const Allocate& allocate, Status& refused) {
  for (auto fit = by_length_.lower_bound({count, 0}); fit != by_length_.end(); ++fit) {
    const auto [length, start] = *fit;
    const std::uint64_t at = origin + (start - origin + align - 1) / align * align;
    if (at + count > start + length) continue;
    if (Status s = allocate(at, count); !s.ok()) {
      // Allocated chunks are not asked for again, so another run may succeed.
      refused = std::move(s);
      continue;
    }
    erase(by_start_.find(start));
    chunks_ -= count;
    if (at > start) insert(start, at - start);
    if (at + count < start + length) insert(at + count, start + length - at - count);
    return at;
  }
  return 0;
}

void ChunkRuns::remove(std::uint64_t chunk, std::uint64_t count) noexcept {
  const auto run = std::prev(by_start_.upper_bound(chunk));
  const auto [start, length] = *run;
  erase(run);
  chunks_ -= count;
  if (chunk > start) insert(start, chunk - start);
  if (chunk + count < start + length) insert(chunk + count, start + length - chunk - count);
}

ChunkRange ChunkRuns::from(std::uint64_t chunk) const noexcept {
  auto run = by_start_.upper_bound(chunk);
  if (run != by_start_.begin())
    if (const auto before = std::prev(run); before->first + before->second > chunk)
      return {chunk, before->first + before->second - chunk};
  return run == by_start_.end() ? ChunkRange{} : ChunkRange{run->first, run->second};
}

// --- spans ---------------------------------------------------------------------------------------

Central::Central(std::byte* view, const Directory& directory, ChunkRuns::Allocate allocate)
    : view_(view),
      directory_(directory),
      first_(directory.first_chunk()),
      chunks_(directory.chunks()),
      cursor_(first_),
      allocate_(std::move(allocate)) {
  void* table = ::mmap(nullptr, chunks_ * sizeof *table_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) throw std::bad_alloc();
  // Zero bytes are null atomics on every platform we know.
  table_ = static_cast<std::atomic<std::uintptr_t>*>(table);
}

Central::~Central() { ::munmap(static_cast<void*>(table_), chunks_ * sizeof *table_); }

void Central::enter(Span& span, bool in) noexcept {
  for (std::uint64_t c = span.chunk; c < span.chunk + span.info().chunks; ++c)
    table_[c].store(in ? reinterpret_cast<std::uintptr_t>(&span) : std::uintptr_t{known_free},
                    std::memory_order_release);  // pairs with the acquire in span_at()
}

void Central::list(Span& span) noexcept {
  Class& c = classes_[span.cls];
  span.listed = true;
  span.before = nullptr;
  span.after = c.listed;
  if (c.listed != nullptr) c.listed->before = &span;
  c.listed = &span;
}

void Central::unlist(Span& span) noexcept {
  (span.before != nullptr ? span.before->after : classes_[span.cls].listed) = span.after;
  if (span.after != nullptr) span.after->before = span.before;
  span.listed = false;
}

// A Span object for a span of the class at `chunk`. It is not listed yet, and not in the table:
// prepare_free reads the table without the mutex, and must find initialized states.
Span* Central::make_span(std::uint32_t cls, std::uint64_t chunk) {
  Class& c = classes_[cls];
  Span* span = nullptr;
  if (c.retired.empty()) {
    if (c.retired.capacity() <= c.made) c.retired.reserve(2 * c.made + 8);  // retire() can't fail
    auto made = std::make_unique<Span>();
    made->cls = cls;
    made->state = std::make_unique<std::atomic<std::uint8_t>[]>(classes[cls].blocks);
    spans_.push_back(std::move(made));
    span = spans_.back().get();
    ++c.made;
  } else {
    span = c.retired.back();
    c.retired.pop_back();
  }
  span->chunk.store(chunk, std::memory_order_relaxed);
  span->free = 0;
  span->hint = 0;
  return span;
}

// Is the directory word at `head` that of a span, at a place where a span of its class may lie?
bool Central::is_whole(std::uint64_t head, ChunkWord word,
                       std::uint64_t data_bytes) const noexcept {
  if (word.kind() != ChunkWord::small || word.size_class() >= small_classes) return false;
  const std::uint64_t chunks = classes[word.size_class()].chunks;
  return word.count() == chunks && (head + chunks) * chunk_bytes <= data_bytes &&
         (head - first_) % chunks == 0 && !directory_.holds_words(head) &&
         head + chunks <= directory_.section_end(head);
}

bool Central::any_block(std::uint64_t head, const ClassInfo& info, bool used) const noexcept {
  const auto* const bitmap = reinterpret_cast<const std::uint64_t*>(view_ + head * chunk_bytes);
  for (std::uint32_t i = 0; i < info.blocks; i += 64) {
    const std::uint32_t in_word = std::min(info.blocks - i, 64U);
    const std::uint64_t all = in_word == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << in_word) - 1;
    // Relaxed: nothing changes the bitmap of a span that is unopened.
    const std::uint64_t bits = __atomic_load_n(bitmap + i / 64, __ATOMIC_RELAXED);
    if (((used ? bits : ~bits) & all) != 0) return true;
  }
  return false;
}

Span* Central::open_span(std::uint64_t head, std::uint64_t data_bytes) {
  if (Span* known = span_at(head)) return known;
  // A nonzero entry: free chunks, or a large object. Relaxed: the table is written under the mutex,
  // which we hold.
  if (table_[head].load(std::memory_order_relaxed) != 0) return nullptr;
  const ChunkWord w = word(head);
  if (!is_whole(head, w, data_bytes)) return nullptr;
  const ClassInfo& info = classes[w.size_class()];
  ++spans_opened_;
  Span* const span = make_span(w.size_class(), head);
  for (std::uint32_t i = 0; i < info.blocks; ++i) {
    const bool used = bit(span->offset(), i);
    span->state[i].store(used ? Span::taken : Span::available, std::memory_order_relaxed);
    span->free += used ? 0 : 1;
  }
  enter(*span, true);
  if (span->free > 0) list(*span);
  if (span->free == info.blocks) ++classes_[span->cls].empty;
  return span;
}

void Central::retire(Span& span) {
  unlist(span);
  --classes_[span.cls].empty;
  classes_[span.cls].retired.push_back(&span);
  enter(span, false);
  runs_.add(span.chunk, span.info().chunks);
}

void Central::drop_empty_spans() {
  for (Class& c : classes_) {
    for (Span* s = c.empty > 0 ? c.listed : nullptr; s != nullptr;) {
      Span* const after = s->after;
      if (s->free == s->info().blocks) retire(*s);
      s = after;
    }
  }
}

std::uint64_t Central::look_for_empty(std::uint64_t most, std::uint64_t data_bytes) {
  std::uint64_t looked = 0;
  for (std::uint32_t cls = 0; cls < small_classes && looked < most; ++cls) {
    Class& c = classes_[cls];
    const ClassInfo& info = classes[cls];
    while (c.looked_at < c.unopened.size() && looked < most) {
      ++looked;
      const std::uint64_t head = c.unopened[c.looked_at];
      // A free may have opened it since: now it is listed, or full, or has been given up.
      const bool opened = table_[head].load(std::memory_order_relaxed) != 0;
      if (!opened && (!is_whole(head, word(head), data_bytes) || any_block(head, info, true))) {
        ++c.looked_at;
        continue;
      }
      c.unopened[c.looked_at] = c.unopened.back();
      c.unopened.pop_back();
      if (opened) continue;
      for (std::uint64_t chunk = head; chunk < head + info.chunks; ++chunk)
        table_[chunk].store(known_free, std::memory_order_release);  // pairs with span_at()
      runs_.add(head, info.chunks);
    }
  }
  bitmaps_ += looked;
  return looked;
}

std::uint64_t Central::claim(std::uint64_t chunk, std::uint64_t most, std::uint64_t max_chunks,
                             const std::function<bool(std::uint64_t chunk)>& has_blocks,
                             FreeClaim& claim) {
  std::uint64_t claimed = 0;
  for (const ChunkRange& run : claim.runs) claimed += run.count;
  const std::uint64_t stop = chunk + most;
  while (chunk < stop) {
    const ChunkRange run = runs_.from(chunk);
    if (run.count == 0) return 0;
    const std::uint64_t end = run.first + run.count;
    for (chunk = run.first; chunk < end && chunk < stop;) {
      const ChunkWord w = word(chunk);
      std::uint64_t count = 1;
      bool whole = w.kind() == ChunkWord::free;
      // An empty span keeps its words until another structure lies there. If a part of its chunks
      // has been reserved, the transaction that has them will clear the other words.
      if (w.kind() == ChunkWord::small && w.size_class() < small_classes) {
        count = classes[w.size_class()].chunks;
        whole = w.count() == count && chunk + count <= end;
        if (!whole) count = 1;
      }
      bool blocks = false;
      for (std::uint64_t c = chunk; whole && c < chunk + count; ++c) blocks |= has_blocks(c);
      if (blocks) {
        if (claimed != 0 && claimed + count > max_chunks) return chunk;
        // The insertions come first, since they may fail.
        if (claim.runs.empty() || claim.runs.back().first + claim.runs.back().count != chunk)
          claim.runs.push_back({chunk, 0});
        if (w.kind() != ChunkWord::free) claim.spans.push_back({chunk, count});
        runs_.remove(chunk, count);
        claim.runs.back().count += count;
        claimed += count;
      }
      chunk += count;
      // remove() may have lacked memory for the rest of the run: look for the next run again.
      if (blocks) break;
    }
  }
  return chunk;
}

// Continues reading the directory, by a page or to the end of a section; false at the data region's
// end. A run of free chunks ends with its section: the next one begins with its words.
bool Central::look_further(std::uint64_t data_bytes) {
  const std::uint64_t have = std::min(data_bytes / chunk_bytes, chunks_);
  if (cursor_ >= have) return false;
  // Checksums may follow directory words, and these may follow checksums.
  // mutant: cursor-skips-words
  while (cursor_ < have && directory_.holds_words(cursor_))
    cursor_ = directory_.first_object(cursor_);
  if (cursor_ >= have) return false;
  const std::uint64_t end = std::min(have, directory_.section_end(cursor_)),
                      stop = std::min(end, cursor_ + 512);
  std::uint64_t run = 0;
  const auto end_run = [&](std::uint64_t at) {
    if (run > 0) runs_.add(at - run, run);
    run = 0;
  };
  while (cursor_ < stop) {
    // Relaxed: it is written under the mutex, which we hold.
    const std::uintptr_t known = table_[cursor_].load(std::memory_order_relaxed);
    if (known != 0) {
      // A free made it known before the cursor came here.
      end_run(cursor_);
      if (known % 8 == 0) {
        const Span& span = *reinterpret_cast<const Span*>(known);
        cursor_ = span.chunk + span.info().chunks;
      } else {
        cursor_ += known % 8 == known_free ? 1 : std::max<std::uint64_t>(known >> 3, 1);
      }
      continue;
    }
    const ChunkWord w = word(cursor_);
    ++words_;
    if (w.kind() == ChunkWord::free) {
      ++run;
      ++cursor_;
      continue;
    }
    end_run(cursor_);
    if (w.kind() == ChunkWord::small && w.size_class() < small_classes)
      classes_[w.size_class()].unopened.push_back(cursor_);
    const bool head = w.kind() == ChunkWord::small || w.kind() == ChunkWord::large;
    // Other kinds are damage and are left alone.
    cursor_ += head ? std::clamp<std::uint64_t>(w.count(), 1, end - cursor_) : 1;
  }
  end_run(cursor_);
  return true;
}

Span* Central::usable_span(std::uint32_t cls, std::uint64_t data_bytes) {
  Class& c = classes_[cls];
  const std::uint32_t n = classes[cls].chunks;
  for (;;) {
    if (c.listed != nullptr) return c.listed;
    while (!c.unopened.empty()) {
      const std::uint64_t head = c.unopened.back();
      c.unopened.pop_back();
      c.looked_at = std::min(c.looked_at, c.unopened.size());
      // A free has opened it meanwhile (and it is full again, or listed).
      if (table_[head].load(std::memory_order_relaxed) != 0) continue;
      // A full span stays unopened: it takes no memory until something in it is freed.
      if (any_block(head, classes[cls], false)) (void)open_span(head, data_bytes);
      if (c.listed != nullptr) return c.listed;
    }
    if (const std::uint64_t chunk = runs_.take(n, n, first_, allocate_, refused_); chunk != 0) {
      Span* const span = make_span(cls, chunk);
      for (std::uint32_t i = 0; i < span->info().blocks; ++i)
        span->state[i].store(Span::available, std::memory_order_relaxed);
      span->free = span->info().blocks;
      enter(*span, true);
      list(*span);
      ++c.empty;
      return span;
    }
    if (!look_further(data_bytes)) return nullptr;
  }
}

std::uint32_t Central::take_blocks(std::uint32_t cls, std::uint32_t want, std::uint64_t* to,
                                   std::uint64_t data_bytes) {
  std::uint32_t got = 0;
  while (got < want) {
    Span* const span = usable_span(cls, data_bytes);
    if (span == nullptr) break;
    const ClassInfo& info = span->info();
    if (span->free == info.blocks) --classes_[cls].empty;
    for (std::uint32_t i = span->hint; got < want && span->free > 0 && i < info.blocks; ++i) {
      if (span->state[i].load(std::memory_order_relaxed) != Span::available) continue;
      span->state[i].store(Span::taken, std::memory_order_relaxed);
      --span->free;
      span->hint = i + 1;
      to[got++] = span->offset() + info.first + std::uint64_t{i} * info.bytes;
    }
    if (span->free == 0 || got == 0) unlist(*span);
    if (got > 0) break;  // all blocks come from one span, so that they are neighbours
  }
  std::reverse(to, to + got);  // the caller takes them from the end: ascending addresses
  return got;
}

std::uint64_t Central::take_chunks(std::uint64_t count, std::uint64_t data_bytes) {
  for (;;) {
    if (const std::uint64_t chunk = runs_.take(count, 1, 0, allocate_, refused_); chunk != 0) {
      // The release pairs with the acquire in span_at().
      table_[chunk].store(count << 3 | large_taken, std::memory_order_release);
      return chunk;
    }
    if (!look_further(data_bytes)) return 0;
  }
}

void Central::give_block(std::uint64_t offset) {
  Span* const span = span_at(offset / chunk_bytes);
  if (span == nullptr) return;
  const std::uint32_t index = block_index(span->info(), offset - span->offset());
  span->state[index].store(Span::available, std::memory_order_relaxed);
  span->hint = std::min(span->hint, index);
  ++span->free;
  if (!span->listed) list(*span);
  if (span->free != span->info().blocks) return;
  // One empty span per class is retained: making and dropping one at every other transaction would
  // cost a bitmap each time.
  if (classes_[span->cls].empty++ > 0) retire(*span);
}

void Central::give_chunks(std::uint64_t chunk, std::uint64_t count) {
  // The release pairs with the acquire in span_at().
  for (std::uint64_t c = chunk; c < chunk + count; ++c)
    table_[c].store(known_free, std::memory_order_release);
  runs_.add(chunk, count);
}

bool Central::mark_large(std::uint64_t chunk, std::uint64_t count, bool freeing) {
  const std::uintptr_t now = table_[chunk].load(std::memory_order_relaxed);
  // 0: an object of an earlier session, of which nothing is known yet.
  if (now % 8 != (freeing ? large_taken : large_freeing) && !(freeing && now == 0)) return false;
  // The release pairs with the acquire in span_at().
  table_[chunk].store(count << 3 | (freeing ? large_freeing : large_taken),
                      std::memory_order_release);
  return true;
}

}  // namespace perdure::pool
