// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/redo_team.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include "perdure/log/team.hpp"
#include "perdure/pool/size_classes.hpp"

namespace perdure::log {
namespace {

constexpr std::uint64_t page_bytes = 4096, worth_a_team = 4 << 20;
// Neighbouring pages have one owner: a medium marks what was stored to with one byte per page, and
// two threads that store to one cache line of such bytes steal it from each other.
constexpr std::uint64_t pages_together = 64;

// Bitmaps lie in the first pages of chunks.
constexpr std::uint64_t longest_bitmap = [] {
  std::uint64_t most = 0;
  for (const pool::ClassInfo& c : pool::classes) most = c.first > most ? c.first : most;
  return most;
}();
static_assert(longest_bitmap <= page_bytes);

unsigned owner_of(std::uint64_t page, unsigned threads) noexcept {
  if (page % (pool::chunk_bytes / page_bytes) == 0) return 0;
  return static_cast<unsigned>((page / pages_together * 0x9e3779b97f4a7c15ULL >> 32) * threads >>
                               32);
}

// The part of one thread. Its stores are gathered up to 64 at a time and made in their order. They
// lie anywhere in the data region, and a store takes less time than its cache miss, so the misses
// overlap.
class Part {
 public:
  Part(medium::Medium& medium, std::uint64_t max_data_bytes, DataWriter::Use use, unsigned me,
       unsigned threads, LineMasks* masks)
      : data_(medium, max_data_bytes, use, masks),
        at_(medium.data()),
        data_bytes_(medium.data_bytes()),
        me_(me),
        threads_(threads) {}

  /// Returns false for a payload with an entry outside the data region, whose state is then
  /// undefined.
  bool payload(const Payload& p) { return threads_ <= 1 ? entries<true>(p) : entries<false>(p); }
  void flush() {
    store();
    // mutant: redo-part-flush
    data_.flush();
  }

 private:
  struct Run {
    std::uint64_t offset, words;
    const std::uint64_t* values;
  };
  static constexpr std::size_t together = 64;

  template <bool Alone>
  bool entries(const Payload& payload) {
    bool good = true;
    const bool whole = each_entry(payload.words, payload.n, [&](const Entry& e) {
      if (e.kind != EntryKind::words) {
        if (me_ != 0) return;
        // The first thread's ops and words keep their order.
        if (e.kind != EntryKind::end) store();
        good = data_.entry(e) && good;
        return;
      }
      const std::uint64_t end = e.offset + e.count * 8;
      // mutant: redo-within-data-region
      if (e.count == 0 || end > data_bytes_) {
        good = false;
        return;
      }
      if (Alone || (e.offset ^ (end - 8)) < page_bytes) {
        add(e.offset, e.count, e.values, Alone || owner_of(e.offset / page_bytes, threads_) == me_);
        return;
      }
      for (std::uint64_t at = e.offset; at < end;) {
        const std::uint64_t next = std::min(end, (at / page_bytes + 1) * page_bytes);
        add(at, (next - at) / 8, e.values + (at - e.offset) / 8,
            owner_of(at / page_bytes, threads_) == me_);
        at = next;
      }
    });
    return whole && good;
  }

  // Ownership is a hash, so a branch would be mispredicted half the time or more. The slot is
  // always written, but the count advances, and the target is prefetched, only for this thread's
  // own pages: prefetching another thread's line would steal it from that thread's cache.
  void add(std::uint64_t offset, std::uint64_t words, const std::uint64_t* values, bool mine) {
    runs_[count_] = {offset, words, values};
    std::uint64_t all = mine ? ~std::uint64_t{0} : 0;
    asm("" : "+r"(all));  // otherwise the compiler makes it a branch
    const auto own = reinterpret_cast<std::uintptr_t>(runs_),
               there = reinterpret_cast<std::uintptr_t>(at_) + offset;
    __builtin_prefetch(reinterpret_cast<const void*>(own ^ ((own ^ there) & all)), 1);
    count_ += all & 1;
    if (count_ == together) store();
  }
  void store() {
    for (std::size_t i = 0; i < count_; ++i)
      data_.words(runs_[i].offset, runs_[i].values, runs_[i].words);
    count_ = 0;
  }

  DataWriter data_;
  const std::byte* const at_;
  const std::uint64_t data_bytes_;
  const unsigned me_, threads_;
  std::size_t count_ = 0;
  Run runs_[together];
};

}  // namespace

unsigned redo_threads(std::uint64_t log_bytes) noexcept {
  if (log_bytes < worth_a_team) return 1;
  return std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
}

std::size_t redo(medium::Medium& medium, std::uint64_t max_data_bytes,
                 std::span<const Payload> payloads, DataWriter::Use use, unsigned threads,
                 const std::function<void(std::size_t)>& passed, std::span<LineMasks> masks) {
  std::atomic<std::size_t> strange{no_strange};
  in_team(std::max(threads, 1U), [&](unsigned me) {
    Part part(medium, max_data_bytes, use, me, threads, me < masks.size() ? &masks[me] : nullptr);
    for (std::size_t i = 0; i < payloads.size(); ++i) {
      if (me == 0 && passed) passed(i);
      if (!part.payload(payloads[i])) {
        strange.store(i, std::memory_order_relaxed);
        return;
      }
    }
    part.flush();
    // What this thread has written back is durable before the caller goes on: a thread's fence
    // covers its own write-backs only.
    // mutant: redo-team-fence
    // A failed medium fails again at the caller's fence.
    if (me != 0 && masks.empty()) (void)medium.fence();
  });
  return strange.load(std::memory_order_relaxed);
}

}  // namespace perdure::log
