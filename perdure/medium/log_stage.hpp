// SPDX-License-Identifier: BSD-3-Clause
//
// LogStage: the log range of a pool on an ordinary file. It is kept in DRAM and written in whole 4
// KiB blocks into space that was really written before (claim()), so that a sync changes no
// metadata: with O_DIRECT one RWF_DSYNC write, else write + fdatasync.
//
// Crash invariants:
//   G1 a block is written only because a thread marked it: what lies in other blocks is never
//      rewritten, torn or not;
//   G2 two writes of one block never overlap in time (the device could let the older one land
//      last): a block in flight is waited for;
//   G3 a block's dirty bit is cleared before its content is read for the write, so a store that
//      comes later sets it again; a block stays in flight until it is durable or the medium is
//      poisoned. So a thread that finds its block clean and not in flight finds it durable, and
//      threads that fence one block at a time share one write.
// Thread safety: mark() and write() by any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "perdure/medium/file_sync.hpp"
#include "perdure/medium/pool_file.hpp"
#include "perdure/medium/runs.hpp"
#include "perdure/medium/words.hpp"

namespace perdure::medium {

class LogStage {
 public:
  static constexpr std::uint64_t block_bytes = page_bytes;

  /// What write() did.
  struct Written {
    std::uint64_t bytes = 0;   // given to the device
    std::uint64_t syncs = 0;   // calls of this thread that waited for it
    bool file_synced = false;  // one of them was an fdatasync of the whole file
  };

  /// Makes the stage for a file of `bytes` log bytes. `buffered` is the pool file's own descriptor;
  /// with `direct` wanted, a second, O_DIRECT one is tried.
  static Result<std::unique_ptr<LogStage>> make(const OpenMedium& how, int buffered, FileSync& sync,
                                                Poison& poison);

  /// Writes bytes [from, to), whole blocks, of the file with what they hold, zeros where they were
  /// a hole: they have their space then, and it has been written once. Nobody has stored to them
  /// yet (ALLOC-1). `full` where there is too little: some are written then, and all hold what they
  /// held. The first call falls back to buffered writes where O_DIRECT is refused. Not synced. One
  /// caller at a time.
  Status claim(std::uint64_t from, std::uint64_t to);
  /// open: the file has data at [from, to), and holes where nothing is noted. In order.
  void note_data(std::uint64_t from, std::uint64_t to) { data_.emplace_back(from, to); }
  /// open: reads the log's first bytes. Blocks of zeros take no memory.
  Status load(std::uint64_t most);

  [[nodiscard]] int memory() const noexcept { return memory_.get(); }
  [[nodiscard]] bool direct() const noexcept { return static_cast<bool>(direct_); }
  void mapped_at(const std::byte* stage) noexcept { stage_ = stage; }

  /// After bytes [offset, offset + n) of the stage changed.
  void mark(std::uint64_t offset, std::uint64_t n) noexcept;
  /// Makes those of the runs' blocks durable that are dirty (all dirty blocks when runs.all()).
  /// With `sync_file` the whole file is synced, once, after the writes; without, a single direct
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
  std::vector<std::pair<std::uint64_t, std::uint64_t>> data_;  // until load()
  Descriptor direct_, memory_;
  const std::byte* stage_ = nullptr;
  std::unique_ptr<std::atomic<std::uint64_t>[]> dirty_;  // a bit a block

  std::mutex mutex_;
  std::condition_variable landed_;
  std::vector<bool> in_flight_;  // guarded by mutex_
};

}  // namespace perdure::medium
