// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/redo_team.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "perdure/log/team.hpp"
#include "perdure/log/word_buckets.hpp"
#include "perdure/pool/allocation.hpp"
#include "perdure/pool/size_classes.hpp"

namespace perdure::log {
namespace {

constexpr std::uint64_t page_bytes = 4096, worth_a_team = 4 << 20;
// Neighbouring pages have one owner: a medium marks what was stored to with one byte per page, and
// two threads that store to one cache line of such bytes steal it from each other.
constexpr std::uint64_t pages_together = 64;

// The size of the largest bitmap of the heap. A chunk begins with its bitmap.
constexpr std::uint64_t bitmap_bytes = [] {
  std::uint64_t most = 0;
  for (const pool::ClassInfo& c : pool::classes) most = c.first > most ? c.first : most;
  return most;
}();
// Two words of a pair have one owner (ReplayedChecksums).
static_assert(bitmap_bytes <= page_bytes && bitmap_bytes % 16 == 0);

unsigned owner_of(std::uint64_t page, unsigned threads) noexcept {
  return static_cast<unsigned>((page / pages_together * 0x9e3779b97f4a7c15ULL >> 32) * threads >>
                               32);
}

}  // namespace

void name_targets(const Payload& payload, pool::Targets& targets) noexcept {
  (void)each_entry(payload.words, payload.n, [&](const Entry& e) {
    if (e.kind == EntryKind::words) targets.words(e.offset, e.count);
    if (e.kind == EntryKind::alloc || e.kind == EntryKind::free) targets.block(e.heap_op());
  });
}

// The part of one thread. Its stores are gathered in buckets (word_buckets.hpp), and those of one
// page are made in their order.
class Redo::Part {
 public:
  Part(medium::Medium& medium, const pool::Directory& directory, DataWriter::Use use, unsigned me,
       unsigned threads, LineMasks* masks, std::uint64_t stores, ReplayedChecksums* sums)
      : data_(medium, directory, use, masks, sums),
        data_bytes_(medium.data_bytes()),
        objects_(directory.first_chunk() * pool::chunk_bytes),
        directory_(directory),
        has_more_words_(directory.word(directory.chunks() - 1) >= objects_ ||
                        directory.checksums().offset >= objects_),
        me_(me),
        threads_(threads),
        buckets_(data_bytes_, stores, WordBuckets::max_blocks / threads) {}

  /// Returns the index of a payload with an entry outside the data region, or over the heap's own
  /// words, whose state is then undefined, or no_strange.
  std::size_t apply(std::span<const Payload> payloads) {
    return threads_ == 1 ? apply<true>(payloads) : apply<false>(payloads);
  }
  void store() {
    buckets_.drain([this](std::span<const medium::WordStore> words) { data_.words(words); },
                   [this](std::uint64_t offset, std::uint64_t n, const std::uint64_t* values) {
                     data_.words(offset, values, n);
                   });
  }
  void flush() {
    store();
    // mutant: redo-part-flush
    data_.flush();
  }

 private:
  template <bool Alone>
  std::size_t apply(std::span<const Payload> payloads) {
    for (std::size_t i = 0; i < payloads.size(); ++i)
      if (!entries<Alone>(payloads[i])) return i;
    return no_strange;
  }
  template <bool Alone>
  bool entries(const Payload& payload) {
    bool good = true;
    const bool whole = each_entry(payload.words, payload.n, [&](const Entry& e) {
      if (e.kind != EntryKind::words) {
        // The first thread's ops and words of the same bytes keep their order.
        if (me_ == 0) good = data_.entry(e) && good;
        return;
      }
      const std::uint64_t end = e.offset + e.count * 8;
      // mutant: redo-within-data-region
      // What pool::possible_words() says, which most pools need not be asked for each entry.
      if (e.count == 0 || end > data_bytes_ ||
          (e.offset < objects_ && end > pool::directory_offset) ||
          (has_more_words_ && !pool::possible_words(e.offset, e.count, data_bytes_, directory_))) {
        good = false;
        return;
      }
      if ((e.offset ^ (end - 8)) < page_bytes) {
        add<Alone>(e.offset, e.count, e.values);
        return;
      }
      for (std::uint64_t at = e.offset; at < end;) {
        const std::uint64_t next = std::min(end, (at / page_bytes + 1) * page_bytes);
        add<Alone>(at, (next - at) / 8, e.values + (at - e.offset) / 8);
        at = next;
      }
    });
    return whole && good;
  }

  // Words of one page.
  template <bool Alone>
  void add(std::uint64_t offset, std::uint64_t words, const std::uint64_t* values) {
    if (const std::uint64_t at = offset % pool::chunk_bytes; at < bitmap_bytes) {
      // Ops change these bytes, too, at once.
      const std::uint64_t n = std::min(words, (bitmap_bytes - at) / 8);
      if (me_ == 0) data_.words(offset, values, n);
      if (n == words) return;
      offset += n * 8;
      values += n;
      words -= n;
    }
    if (!buckets_.has_space()) store();
    buckets_.add(offset, words, values, Alone || owner_of(offset / page_bytes, threads_) == me_);
  }

  DataWriter data_;
  const std::uint64_t data_bytes_, objects_;
  const pool::Directory directory_;
  const bool has_more_words_;  // the heap has words behind the first objects: of a raised limit
  const unsigned me_, threads_;
  WordBuckets buckets_;
};

unsigned redo_threads(std::uint64_t log_bytes) noexcept {
  if (log_bytes < worth_a_team) return 1;
  return std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
}

Redo::Redo(medium::Medium& medium, const pool::Directory& directory, DataWriter::Use use,
           unsigned threads, std::uint64_t stores, std::span<LineMasks> masks,
           ReplayedChecksums* sums)
    : medium_(medium), masked_(!masks.empty()) {
  threads = std::max(threads, 1U);
  for (unsigned me = 0; me < threads; ++me)
    parts_.push_back(std::make_unique<Part>(medium, directory, use, me, threads,
                                            me < masks.size() ? &masks[me] : nullptr, stores,
                                            sums));
}
Redo::~Redo() = default;

std::size_t Redo::apply(std::span<const Payload> payloads) {
  std::atomic<std::size_t> strange{no_strange};
  in_team(static_cast<unsigned>(parts_.size()), [&](unsigned me) {
    if (const std::size_t i = parts_[me]->apply(payloads); i != no_strange)
      strange.store(i, std::memory_order_relaxed);
  });
  return strange.load(std::memory_order_relaxed);
}

void Redo::store() {
  in_team(static_cast<unsigned>(parts_.size()), [&](unsigned me) { parts_[me]->store(); });
}

void Redo::finish() {
  in_team(static_cast<unsigned>(parts_.size()), [&](unsigned me) {
    parts_[me]->flush();
    // What this thread has written back is durable before the caller goes on: a thread's fence
    // covers its own write-backs only.
    // mutant: redo-team-fence
    // A failed medium fails again at the caller's fence.
    if (me != 0 && !masked_) (void)medium_.fence();
  });
}

std::size_t redo(medium::Medium& medium, const pool::Directory& directory,
                 std::span<const Payload> payloads, DataWriter::Use use, unsigned threads,
                 std::span<LineMasks> masks) {
  std::uint64_t stores = 0;  // at most: an entry takes two words, or more
  for (const Payload& p : payloads) stores += p.n / 2;
  if (threads <= 1) {
    // The replay of dudetm calls this for every few transactions: so it takes no memory.
    Redo::Part all(medium, directory, use, 0, 1, masks.empty() ? nullptr : masks.data(), stores,
                   nullptr);
    const std::size_t strange = all.apply(payloads);
    if (strange == no_strange) all.flush();
    return strange;
  }
  Redo all(medium, directory, use, threads, stores, masks);
  const std::size_t strange = all.apply(payloads);
  if (strange == no_strange) all.finish();
  return strange;
}

}  // namespace perdure::log
