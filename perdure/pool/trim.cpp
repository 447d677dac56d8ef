// SPDX-License-Identifier: BSD-3-Clause
//
// OpenPool::trim: free chunks go back to the file system. See open_pool.hpp.
//
// It runs on a pool that is clean and in no session, so the directory and the bitmaps in the data
// region are the whole truth: no log holds a record that could be replayed into a chunk, no
// transaction has reserved a block, and no copy in DRAM has lines that are still to be written.
// Crash invariants:
//   TRIM-1 a chunk becomes a hole only when its directory word is durably 0 and the header durably
//          has the feature `small logs`. So no structure that a crash can leave lies over a hole,
//          no word names a chunk behind the end that TRIM-2 makes durable, and no program stores
//          to a hole without allocating first (ALLOC-1).
//   TRIM-2 the data region's end is cut off only when both copies of the header durably have the
//          smaller data_bytes. A crash between the two leaves a file that is longer than its header
//          says, which is sound.
// A span is set free only if it has one chunk: its word is cleared by one store, which is never
// torn. A store of several words can be torn, and a clean pool is not replayed: nothing would mend
// it.
// Thread safety: none; the pool is in no session.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "perdure/pool/directory.hpp"
#include "perdure/pool/features.hpp"
#include "perdure/pool/heap.hpp"
#include "perdure/pool/heap_apply.hpp"
#include "perdure/pool/open_pool.hpp"
#include "perdure/pool/page_checksums.hpp"

namespace perdure::pool {
namespace {

struct Chunks {
  std::uint64_t first, count;
};

// What trim() may take: runs of free chunks, and the words to clear before.
struct Plan {
  std::vector<Chunks> runs;
  std::vector<std::uint64_t> empty;  // spans of one chunk that have no block
  std::uint64_t kept_empty = 0;      // bytes
  std::uint64_t end = 0;             // the first chunk behind the last one in use
};

class Planner {
 public:
  Planner(const medium::Medium& medium, const Header& header)
      : medium_(medium),
        directory_(header),
        first_(directory_.first_chunk()),
        end_(header.data_bytes / chunk_bytes) {}

  Plan make() {
    plan_.end = first_;
    for (std::uint64_t c = first_; c < end_;) {
      // mutant: trim-leaves-words
      if (directory_.holds_words(c)) {
        c = directory_.first_object(c);
        if (directory_.holds_checksums(c - 1)) plan_.end = c;
        continue;
      }
      const ChunkWord w{load(directory_.word(c))};
      // The audit has found no problem, so a head says how long its structure is.
      const std::uint64_t n = w.kind() == ChunkWord::free ? 1 : w.count();
      const bool empty = w.kind() == ChunkWord::small && no_block(c, w);
      if (empty && n == 1) plan_.empty.push_back(c);
      if (empty && n > 1) plan_.kept_empty += n * chunk_bytes;
      if (w.kind() == ChunkWord::free || (empty && n == 1))
        add(c);
      else
        plan_.end = c + n;
      c += n;
    }
    return std::move(plan_);
  }

 private:
  [[nodiscard]] std::uint64_t load(std::uint64_t offset) const {
    const std::uint64_t at = medium_.log_bytes() + offset;
    // A hole is not read: on tmpfs that would take a page.
    if (!medium_.allocated(at, sizeof at)) return 0;
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(medium_.at(at)),
                           __ATOMIC_RELAXED);
  }
  [[nodiscard]] bool no_block(std::uint64_t chunk, ChunkWord word) const {
    const std::uint32_t bitmap = classes[word.size_class()].first;
    for (std::uint32_t at = 0; at < bitmap; at += 8)
      // mutant: trim-only-empty-spans
      if (load(chunk * chunk_bytes + at) != 0) return false;
    return true;
  }
  void add(std::uint64_t chunk) {
    if (!plan_.runs.empty() && plan_.runs.back().first + plan_.runs.back().count == chunk)
      ++plan_.runs.back().count;
    else
      plan_.runs.push_back({chunk, 1});
  }

  const medium::Medium& medium_;
  const Directory directory_;
  const std::uint64_t first_, end_;
  Plan plan_;
};

std::uint64_t allocated_in(const medium::Medium& medium, std::uint64_t offset, std::uint64_t n) {
  if (medium.pages() == nullptr) return n;
  std::uint64_t pages = 0;
  medium.pages()->each_run(offset / medium::page_bytes, (offset + n) / medium::page_bytes, true,
                           [&](std::uint64_t from, std::uint64_t to) { pages += to - from; });
  return pages * medium::page_bytes;
}

}  // namespace

Result<TrimReport> OpenPool::trim(bool dry_run) {
  if (read_only_ && !dry_run)
    return failure(Code::read_only, path_, "a trim of a pool that is open for reading only", {},
                   "open it for writing");
  if (header_.clean != 1 || view_ != nullptr)
    return failure(Code::invalid, path_,
                   view_ != nullptr ? "a trim of a pool that is in a session"
                                    : "a trim of a pool that was not closed in order",
                   "a pool that is clean and in no session", "recover it first, or close it");
  const HeapAudit audit = audit_heap(medium_->data(), header_, {}, medium_.get());
  if (!audit.problems.empty())
    return failure(Code::corrupt, path_, "a heap that contradicts itself: " + audit.problems[0],
                   "a sound one", "run `perdure check`; nothing was changed");

  const std::uint64_t data = medium_->log_bytes();
  const Directory directory(header_);
  const Plan plan = Planner(*medium_, header_).make();
  TrimReport report;
  report.data_bytes_before = report.data_bytes_after = header_.data_bytes;
  report.kept_empty = plan.kept_empty;
  for (const Chunks& run : plan.runs) {
    report.free_bytes += run.count * chunk_bytes;
    report.allocated +=
        allocated_in(*medium_, data + run.first * chunk_bytes, run.count * chunk_bytes);
  }
  const std::uint64_t end = plan.end * chunk_bytes;
  if (!medium_->can_give_back()) {
    report.refusal = failure(Code::unsupported, path_,
                             "a " + std::string(medium_->kind()) + " medium without holes",
                             "a pool in a regular file");
    return report;
  }
  if (dry_run) {
    report.data_bytes_after = std::min(end, header_.data_bytes);
    return report;
  }
  if (plan.runs.empty()) return report;
  // A reader that touches a page behind the file's new end would be killed. One that comes now
  // finds a writer that does not serve.
  lock_.closed(false);
  const auto followed = lock_.has_followers();
  if (!followed.ok()) return followed.status();
  if (*followed) {
    const std::string others = lock_.others();  // it searches /proc
    return failure(Code::busy, path_,
                   (others.empty() ? "another process" : others) + " reads the pool", "no reader",
                   "end it, or let the program that has the pool call Pool::trim()");
  }

  // TRIM-1: both happen before the first hole.
  // mutant: trim-feature-first
  if (Status s = publish([](Header& h) { set_feature(h, Feature::small_logs); }); !s.ok()) return s;
  // CHECKSUM-4
  std::optional<PageChecksums> sums;
  std::map<std::uint64_t, std::uint64_t> of_directory;  // pages, and what their checksums become
  if (PageChecksums::has(header_)) {
    sums.emplace(*medium_, header_);
    for (const Chunks& run : plan.runs) sums->forget(run.first, run.count);
    for (const std::uint64_t chunk : plan.empty) {
      const std::uint64_t page = directory.word(chunk) / PageChecksums::page_bytes;
      if (!sums->covers(page)) continue;
      if (const std::uint64_t sum = sums->load(page); sum != 0) of_directory[page] = sum;
      sums->set(page, 0);
    }
    if (Status s = medium_->fence(); !s.ok()) return s;
  }
  const std::uint64_t zero = 0;
  for (const std::uint64_t chunk : plan.empty) {
    const std::uint64_t at = directory.word(chunk), page = at / PageChecksums::page_bytes;
    if (const auto sum = of_directory.find(page); sum != of_directory.end()) {
      std::uint64_t old[2];
      std::memcpy(old, medium_->data() + at / 16 * 16, sizeof old);
      const PageSum terms(page);
      const std::uint64_t pair = at % PageChecksums::page_bytes / 16;
      sum->second -= terms.pair(pair, old[0], old[1]);
      old[at % 16 / 8] = 0;
      sum->second += terms.pair(pair, old[0], old[1]);
    }
    medium_->store(data + directory.word(chunk), &zero, sizeof zero);
    medium_->flush(data + directory.word(chunk), sizeof zero);
  }
  // mutant: trim-words-fence
  if (Status s = medium_->fence(); !s.ok()) return s;
  for (const auto& [page, sum] : of_directory) sums->set(page, sum);
  for (const Chunks& run : plan.runs) {
    auto given = medium_->give_back(data + run.first * chunk_bytes, run.count * chunk_bytes);
    if (given.code() == Code::unsupported && report.given_back == 0) {
      report.refusal = given.status();  // a file system without holes: the end can still be cut off
      break;
    }
    if (!given.ok()) return given.status();
    report.given_back += *given;
  }
  if (end < header_.data_bytes) {
    // TRIM-2: the header says so durably before the file is shorter.
    // mutant: trim-header-before-cut
    if (Status s = publish([end](Header& h) { set_data_bytes(h, end); }); !s.ok()) return s;
    data_bytes_.store(end, std::memory_order_relaxed);  // no session: no other thread reads it
    report.data_bytes_after = end;
    if (Status s = medium_->cut(end); !s.ok()) return s;
  }
  if (Status s = medium_->flush_all(); !s.ok()) return s;
  return report;
}

}  // namespace perdure::pool
