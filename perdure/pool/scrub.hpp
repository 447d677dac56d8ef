// SPDX-License-Identifier: BSD-3-Clause
//
// scrub: compares the pages of a pool with their checksums (page_checksums.hpp), beside the process
// that writes the pool.
//
// Pages are read from the file, past the page cache where the file system can (O_DIRECT), so that
// what the disk has is what is compared. A page counts if its checksum was the same before and
// after it was read (CHECKSUM-3); where not, it is read again.
// Thread safety: any thread, beside transactions and checkpoints; one call at a time for an
// OpenPool that follows another process's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "perdure/base/status.hpp"

namespace perdure::pool {

class OpenPool;

/// A page that is not as its checksum says.
struct DamagedPage {
  std::uint64_t offset = 0;    ///< of its first byte in the data region; it has 4096
  std::uint64_t checksum = 0;  ///< what the pool says
  std::uint64_t found = 0;     ///< what its bytes have
};

/// What scrub() found.
struct ScrubReport {
  bool has_checksums = false;  ///< false: the pool has none, and nothing was read
  bool from_disk = false;      ///< false: what the page cache has was compared
  std::uint64_t pages = 0;     ///< compared
  /// Of blocks that are in use, and without a checksum: no checkpoint has written to them since the
  /// pool got checksums, or one was writing to them all the time.
  std::uint64_t without = 0;
  /// Not as their checksums say, in a pool that was killed during a checkpoint: its recovery
  /// decides what they hold.
  std::uint64_t undecided = 0;
  std::vector<DamagedPage> damaged;  ///< by address; at most 10,000
  [[nodiscard]] bool ok() const noexcept { return damaged.empty(); }
};

struct ScrubOptions {
  std::uint64_t bytes_per_second = 0;  ///< at most; 0: as fast as it can be read
  /// Called about every 16 MiB, and at the end; in bytes of the data region. What it throws ends
  /// the scrub.
  std::function<void(std::uint64_t done, std::uint64_t bytes)> progress = {};
};

/// Compares all pages. Throws std::bad_alloc, and what `progress` throws. Errors: `busy` where
/// another process is opening the pool, or writes it with an engine that serves no readers; `io`,
/// and others of the system.
Result<ScrubReport> scrub(const OpenPool& pool, const ScrubOptions& options);

/// Returns `corrupt`, with the number of damaged pages and the first of them, or what scrub()
/// returns. What is copied must not take damage along.
Status must_be_undamaged(const OpenPool& pool);

/// What fill_checksums() did, in pages.
struct FilledChecksums {
  std::uint64_t had = 0;       ///< were as their checksums say
  std::uint64_t got = 0;       ///< had no checksum
  std::uint64_t accepted = 0;  ///< were not as their checksums say
};
/// Gives the pages in use that have no checksum theirs, from what they hold, and with `accept`
/// those that are damaged, too. For a pool that is open for writing, clean and in no session.
/// Durable when it returns ok. Errors: `invalid`, `read_only`; `corrupt` where pages are damaged
/// and `accept` is false, with nothing changed; the medium's.
Result<FilledChecksums> fill_checksums(
    OpenPool& pool, bool accept,
    const std::function<void(std::uint64_t done, std::uint64_t bytes)>& progress = {});

/// "page at 0x12000 of the data region: checksum 0123456789abcdef, its bytes have ...", for
/// messages.
[[nodiscard]] std::string text_of(const DamagedPage& page);

}  // namespace perdure::pool
