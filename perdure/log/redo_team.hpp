// SPDX-License-Identifier: BSD-3-Clause
//
// Redo by one or several threads: payloads are applied to the data region in id order, and each
// page of it is changed by one thread.
//
// Two entries that change the same word are applied by one thread, in order, so REDO-1 (redo.hpp)
// holds word by word. Heap ops change the directory and bitmaps. The first thread applies all of
// them, and all words in the first bytes of chunks, where bitmaps lie (the same bytes may hold data
// at another time), at once: there ops and words keep their order. A hash gives each group of 64
// neighbouring pages its owner, which gathers the other words in buckets (word_buckets.hpp). Every
// thread reads every entry.
// Source: DudeTM (ASPLOS '17) 3.4 and 3.5 replay in one thread; partitioned redo (Mohan et al.,
// ARIES, TODS '92, section 12).
// Thread safety: a plain function; it starts and ends its own threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "perdure/log/packed.hpp"
#include "perdure/log/redo.hpp"
#include "perdure/pool/directory.hpp"

namespace perdure::pool {
class Targets;
}

namespace perdure::log {

/// Names the places that the payload's entries will be stored to (ALLOC-1). An entry that overruns
/// ends it: its application is refused.
void name_targets(const Payload& payload, pool::Targets& targets) noexcept;

inline constexpr std::size_t no_strange = ~std::size_t{0};

/// Returns how many threads pay for their start with `log_bytes` bytes of log: 1 to 8.
[[nodiscard]] unsigned redo_threads(std::uint64_t log_bytes) noexcept;

/// The application of payloads in their order. The caller has a thread slot.
class Redo {
 public:
  /// `stores`: about how many words and runs of words there will be. Without `masks` finish()
  /// starts the write-back of what was changed. With `masks`, one per thread, lines are noted there
  /// and the caller writes them back. `sums` is told of each store. Throws std::bad_alloc.
  Redo(medium::Medium& medium, const pool::Directory& directory, DataWriter::Use use,
       unsigned threads, std::uint64_t stores, std::span<LineMasks> masks = {},
       ReplayedChecksums* sums = nullptr);
  Redo(const Redo&) = delete;
  Redo& operator=(const Redo&) = delete;
  ~Redo();

  /// Applies the next payloads: stores are made now, or by store() or finish(), until which their
  /// words stay. Returns the index of one with an entry outside the data region (only damage makes
  /// one; the state of the data region is then undefined), or no_strange. Throws std::bad_alloc.
  std::size_t apply(std::span<const Payload> payloads);
  /// Makes all stores. Throws std::bad_alloc.
  void store();
  /// Makes all stores and starts the write-back. The caller fences (each thread other than the
  /// caller's has fenced what it wrote back). Throws std::bad_alloc.
  void finish();

 private:
  friend std::size_t redo(medium::Medium&, const pool::Directory&, std::span<const Payload>,
                          DataWriter::Use, unsigned, std::span<LineMasks>);
  class Part;
  medium::Medium& medium_;
  const bool masked_;
  std::vector<std::unique_ptr<Part>> parts_;  // one per thread
};

/// The same for payloads that are all there: apply(), and finish() where none is strange.
std::size_t redo(medium::Medium& medium, const pool::Directory& directory,
                 std::span<const Payload> payloads, DataWriter::Use use, unsigned threads,
                 std::span<LineMasks> masks = {});

}  // namespace perdure::log
