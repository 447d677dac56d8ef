// SPDX-License-Identifier: BSD-3-Clause
//
// ReaderOptions: how a pool is read beside the process that writes it (docs/readers.md).
// Thread safety: a value.
#pragma once

#include <chrono>
#include <cstdint>

namespace perdure {

/// Reader processes: Options::readers. The first members are for a pool that is opened with
/// read_only, the others for the program that writes it.
struct ReaderOptions {
  /// Reading: whether another process may write the pool meanwhile, or open it for writing later.
  /// false: a lock keeps writers away, and reads are plain loads. Pools of engines that serve no
  /// readers, and pools whose engines are compiled in, always have that lock.
  bool beside_writer = true;
  /// Reading: how old the state may be that a view() sees. Looking for a newer one costs a system
  /// call for each ring of the log.
  std::chrono::microseconds staleness{1000};
  /// Reading: how long a call waits where the state has to be read anew: while another process
  /// opens the pool, or while other threads of this one are in long views.
  std::chrono::milliseconds patience{2000};
  /// Reading: bytes of records that are kept in memory while a view is open, to move on from its
  /// state; beyond them the next state is read anew.
  std::uint64_t memory = std::uint64_t{64} << 20;
  /// Writing: how long a checkpoint waits for processes that are reading the pool and have to keep
  /// up with it; one that takes longer has to read its state anew. 0: no checkpoint waits.
  std::chrono::milliseconds writer_patience{50};
};

}  // namespace perdure
