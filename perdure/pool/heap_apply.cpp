// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/heap_apply.hpp"

#include <algorithm>

#include "perdure/base/at_fork.hpp"

namespace perdure::pool {
namespace detail {
namespace {

struct DirectoryLock {
  std::mutex mutex;
};
DirectoryLock& directory_lock() {
  static DirectoryLock* const one = new DirectoryLock;
  return *one;
}
// A child has no pool open, so there is nothing that the mutex guards. It is not held over fork():
// the thread that holds it may wait for a transaction that forks.
const int anew = base::anew_in_child<directory_lock>();

bool heads(ChunkWord word) {
  return word.kind() == ChunkWord::small || word.kind() == ChunkWord::large;
}
ChunkWord load_word(const HeapTarget& target, std::uint64_t chunk, const Directory& directory) {
  return {target.load(directory.word(chunk))};
}

// Sets free what lies outside [from, to) of the structure at `head`.
void dissolve(HeapTarget& target, std::uint64_t head, std::uint64_t from, std::uint64_t to,
              const Directory& directory) {
  const std::uint64_t end = head + std::min(load_word(target, head, directory).count(),
                                            directory.section_end(head) - head);
  for (std::uint64_t c = head; c < end; ++c) {
    if (c >= from && c < to) continue;
    if (c == head ||
        load_word(target, c, directory) == ChunkWord::make(ChunkWord::rest, 0, c - head))
      target.store(directory.word(c), 0);
  }
}

// Dissolves every structure that lies partly in [chunk, end), as far as it lies outside.
void clear_overlaps(HeapTarget& target, std::uint64_t chunk, std::uint64_t end,
                    const Directory& directory) {
  const ChunkWord first = load_word(target, chunk, directory);
  if (first.kind() == ChunkWord::rest && first.count() <= chunk) {
    // This is the tail of a structure that begins earlier.
    const std::uint64_t before = chunk - first.count();
    const ChunkWord word = load_word(target, before, directory);
    if (heads(word) && before + word.count() > chunk)
      dissolve(target, before, chunk, end, directory);
  }
  for (std::uint64_t c = chunk; c < end; ++c) {
    const ChunkWord word = load_word(target, c, directory);
    if (heads(word) && c + word.count() > end) dissolve(target, c, chunk, end, directory);
  }
}

bool covers(const HeapTarget& target, std::uint64_t head, std::uint64_t chunk,
            const Directory& directory) {
  const ChunkWord word = load_word(target, head, directory);
  return heads(word) && head + word.count() > chunk;
}

// Only for replay: frees what torn lines around [chunk, end) still show of spans without blocks
// that gave way to what lies there now.
// It looks at one section: no structure reaches into another, and the data region need not have the
// next section's words yet.
void clear_debris(HeapTarget& target, std::uint64_t chunk, std::uint64_t end,
                  const Directory& directory) {
  constexpr std::uint64_t longest = classes[small_classes - 1].chunks;
  const std::uint64_t first = directory.first_object(chunk),
                      from = chunk > first + longest ? chunk - longest : first,
                      to = std::min(end + longest, directory.section_end(chunk));
  for (std::uint64_t c = from; c < chunk; ++c)
    if (load_word(target, c, directory).kind() == ChunkWord::small &&
        covers(target, c, chunk, directory))
      dissolve(target, c, chunk, end, directory);
  for (std::uint64_t c = from; c < to; ++c) {
    if (c == chunk) c = end;  // the structure that lies there now is right
    if (c >= to) break;
    const ChunkWord word = load_word(target, c, directory);
    if (word.kind() == ChunkWord::rest &&
        (word.count() > c || !covers(target, c - word.count(), c, directory)))
      target.store(directory.word(c), 0);
  }
}

void store_words(HeapTarget& target, std::uint64_t chunk, std::uint64_t end, ChunkWord head,
                 const Directory& directory) {
  for (std::uint64_t c = chunk + 1; c < end; ++c) {
    const ChunkWord rest = ChunkWord::make(ChunkWord::rest, 0, c - chunk);
    if (load_word(target, c, directory) != rest) target.store(directory.word(c), rest.bits);
  }
  // The head comes last: a thread that sees the head sees the zeroed bitmap and the rest.
  if (load_word(target, chunk, directory) != head) target.store(directory.word(chunk), head.bits);
}

}  // namespace

std::unique_lock<std::mutex> lock_directory() {
  return std::unique_lock<std::mutex>(directory_lock().mutex);
}
std::unique_lock<std::mutex> lock_directory(const HeapTarget& target) {
  return target.replay() ? std::unique_lock<std::mutex>() : lock_directory();
}

void make_span(HeapTarget& target, std::uint64_t chunk, std::uint32_t cls,
               const Directory& directory) {
  const ClassInfo& info = classes[cls];
  const std::uint64_t end = std::min(chunk + info.chunks, directory.section_end(chunk));
  // Another thread has made it meanwhile.
  if (!target.replay() && load_word(target, chunk, directory) == span_word(cls)) return;
  clear_overlaps(target, chunk, end, directory);
  // A correct head stands over a correct bitmap (HEAP-4): only its rest was torn off, by a crash
  // between directory lines.
  // mutant: span-word-differs
  if (load_word(target, chunk, directory) != span_word(cls)) {
    for (std::uint64_t at = 0; at < info.first; at += 8) target.store(chunk * chunk_bytes + at, 0);
    // mutant: span-bitmap-fence
    // HEAP-4: the zeroed bitmap is durable before the word that names its span.
    target.fence(chunk * chunk_bytes, info.first);
  }
  store_words(target, chunk, end, span_word(cls), directory);
  if (target.replay()) clear_debris(target, chunk, end, directory);
}

void set_free(HeapTarget& target, std::uint64_t chunk, std::uint64_t count,
              const Directory& directory) {
  const std::uint64_t end = std::min(chunk + count, directory.section_end(chunk));
  // A newer structure that also lies beside these chunks is made again, whole, by its own ops.
  for (std::uint64_t c = chunk; c < end; ++c)
    if (target.load(directory.word(c)) != 0) target.store(directory.word(c), 0);
}

void apply_large(HeapTarget& target, const HeapOp& op, const Directory& directory) {
  const std::uint64_t chunk = op.offset / chunk_bytes;
  const auto lock = lock_directory(target);
  const ChunkWord head = ChunkWord::make(ChunkWord::large, 0, op.chunks);
  if (!op.set) {
    // A trim clears the words of a span without blocks in the same way (claim.hpp).
    const auto is_there = [&] {
      const ChunkWord now = load_word(target, chunk, directory);
      return now == head || (now.kind() == ChunkWord::small && now.count() == op.chunks);
    };
    if (target.replay() || is_there()) set_free(target, chunk, op.chunks, directory);
    return;
  }
  const std::uint64_t end = std::min(chunk + op.chunks, directory.section_end(chunk));
  clear_overlaps(target, chunk, end, directory);
  store_words(target, chunk, end, head, directory);
  if (target.replay()) clear_debris(target, chunk, end, directory);
}

}  // namespace detail

HeapTarget::~HeapTarget() = default;

void StagedTarget::write() {
  const auto put = [this](std::uint64_t offset, std::uint64_t value) {
    if (data_.load(offset) != value) data_.store(offset, value);
  };
  const auto in_directory = [this](std::uint64_t offset) {
    return directory_.holds_words(offset / chunk_bytes);
  };
  const auto in_bitmap = [this](std::uint64_t offset) {
    // The bitmap belongs to the span that is there in the end; blocks lie behind it.
    const ChunkWord word{load(directory_.word(offset / chunk_bytes))};
    return word.kind() == ChunkWord::small && word.size_class() < small_classes &&
           offset % chunk_bytes < classes[word.size_class()].first;
  };
  for (const auto& [offset, value] : words_)
    // mutant: span-bitmaps-present
    if (!in_directory(offset) && in_bitmap(offset)) put(offset, value);
  const std::uint64_t begin = directory_.first_chunk() * chunk_bytes,
                      end = std::max(begin, words_.empty() ? 0 : words_.rbegin()->first + 8);
  // mutant: staged-bitmaps-fence
  // HEAP-4: the bitmaps are durable before the words that name their spans.
  data_.fence(begin, end - begin);
  for (const auto& [offset, value] : words_)
    if (in_directory(offset)) put(offset, value);
}

void apply(HeapTarget& target, const HeapOp& op, const Directory& directory) {
  apply_op(target, op, directory);
}

bool possible(const HeapOp& op, std::uint64_t data_bytes, const Directory& directory) noexcept {
  const std::uint64_t chunk = op.offset / chunk_bytes;
  // mutant: possible-not-in-directory
  if (op.offset >= data_bytes || directory.holds_words(chunk)) return false;
  const std::uint64_t first = directory.first_object(chunk),
                      end = std::min(directory.section_end(chunk), data_bytes / chunk_bytes);
  if (op.cls == large_class)
    return op.offset % chunk_bytes == 0 && op.chunks != 0 && chunk < end &&
           op.chunks <= end - chunk;
  if (op.cls >= small_classes) return false;
  const ClassInfo& info = classes[op.cls];
  const std::uint64_t span = span_chunk_of(op.offset, info.chunks, directory.first_chunk());
  return span >= first && span + info.chunks <= end &&
         block_index(info, op.offset - span * chunk_bytes) < info.blocks;
}

Status check_op(const HeapOp& op, const Header& header, const std::string& path) {
  if (possible(op, header.data_bytes, header)) return {};
  return failure(
      Code::corrupt, path,
      "a heap record of class " + std::to_string(op.cls) + " at data offset " +
          std::to_string(op.offset),
      "a block of the heap, in a data region of " + std::to_string(header.data_bytes) + " bytes",
      "restore the pool from a copy");
}

}  // namespace perdure::pool
