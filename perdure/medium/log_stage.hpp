// SPDX-License-Identifier: BSD-3-Clause
//
// LogStage: the log range of a pool on an ordinary file. It is staged in DRAM and written in whole
// 4 KiB blocks into space that was really written before (claim()), so that a sync changes no
// metadata: by one RWF_DSYNC write with O_DIRECT, otherwise by write + fdatasync.
//
// Crash invariants:
//   STAGE-1 a block is written only because a thread marked it: the contents of other blocks are
//           never rewritten, torn or not;
//   STAGE-2 two writes of one block never overlap in time (the device could let the older one land
//           last): a writer waits for a block in flight;
//   STAGE-3 a block's dirty bit is cleared before its content is read for the write, so a later
//           store sets it again; a block stays in flight until it is durable or the medium is
//           poisoned. So a thread that finds its block clean and not in flight finds it durable,
//           and threads that fence one block at the same time share one write.
// Thread safety: any thread may call mark() and write().
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "perdure/medium/file_handle.hpp"
#include "perdure/medium/file_sync.hpp"
#include "perdure/medium/runs.hpp"
#include "perdure/medium/words.hpp"

namespace perdure::medium {

class LogStage {
 public:
  static constexpr std::uint64_t block_bytes = page_bytes;

  /// What one call of write() did.
  struct Written {
    std::uint64_t bytes = 0;   // written to the device
    std::uint64_t syncs = 0;   // calls of this thread that waited for the device
    bool file_synced = false;  // one of those was an fdatasync of the whole file
  };

  /// Makes the stage for a file of `bytes` log bytes. `buffered` is the pool file's own descriptor;
  /// if how.direct is set, a second descriptor with O_DIRECT is tried.
  static Result<std::unique_ptr<LogStage>> make(const OpenMedium& how, int buffered, FileSync& sync,
                                                Poison& poison);

  /// Writes the file's bytes [from, to), whole blocks, with their present contents, which are zeros
  /// where they were a hole. Afterwards they have their space, and it has been written once.
  /// Precondition: no thread has stored to them yet (ALLOC-1). Returns `full` if there is too
  /// little space: a part has been written then, and all contents are unchanged. The first call
  /// falls back to buffered writes where O_DIRECT is refused. The bytes are not synced. One caller
  /// at a time.
  Status claim(std::uint64_t from, std::uint64_t to);
  /// When opening: the file has data at [from, to), and holes where nothing is noted. Calls come in
  /// ascending order.
  void note_data(std::uint64_t from, std::uint64_t to) { data_.emplace_back(from, to); }
  /// When opening: reads the log's first `most` bytes. Blocks of zeros take no memory.
  Status load(std::uint64_t most);

  [[nodiscard]] int memory() const noexcept { return memory_.get(); }
  [[nodiscard]] bool direct() const noexcept { return static_cast<bool>(direct_); }
  void mapped_at(const std::byte* stage) noexcept { stage_ = stage; }

  /// Must be called after bytes [offset, offset + n) of the stage changed.
  void mark(std::uint64_t offset, std::uint64_t n) noexcept;
  /// Makes those of the runs' blocks durable that are dirty (all dirty blocks when runs.all()).
  /// With `sync_file` the whole file is synced once, after the writes; without it, a single direct
  /// write carries its own sync.
  Status write(const Runs& runs, bool sync_file, Written& done);

 private:
  static constexpr std::uint64_t bits = 64;
  LogStage(FileSync& sync, Poison& poison) : sync_(sync), poison_(poison) {}
  bool take(std::uint64_t block) noexcept;
  void take_free(const Run* first, const Run* last, Runs& mine, bool& more);
  int write_run(Run run, bool sync) noexcept;

  FileSync& sync_;
  Poison& poison_;
  std::string path_;
  std::uint64_t bytes_ = 0;
  int buffered_ = -1;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> data_;  // used until load()
  Descriptor direct_, memory_;
  const std::byte* stage_ = nullptr;
  std::unique_ptr<std::atomic<std::uint64_t>[]> dirty_;  // one bit per block

  std::mutex mutex_;
  std::condition_variable landed_;
  std::vector<bool> in_flight_;  // guarded by mutex_
};

}  // namespace perdure::medium
