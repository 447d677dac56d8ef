// SPDX-License-Identifier: BSD-3-Clause
//
// The options of DudeTM when a pool is opened (Options::engine_options).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "perdure/base/status.hpp"
#include "perdure/engine/engine_info.hpp"

namespace perdure {

/// How a shadow with a limit is paged (DudetmOptions::shadow_size).
enum class ShadowPaging : std::uint8_t {
  /// Software if the shadow is smaller than half of what the pool holds when it is opened,
  /// otherwise hardware.
  automatic,
  /// Page tables: an access costs nothing more; swapping a page in or out costs a page fault and an
  /// interrupt of the other processors.
  hardware,
  /// A look-up at each access; swapping a page in or out costs no page fault, except for the pages
  /// of bitmaps, one in sixteen, which the hardware pages.
  software
};

namespace papers {

struct DudetmOptions {
  /// Maximum number of transactions combined into one log record (the last value of each word
  /// wins), 1 to 2^24. The record is written when it is full, when a thread waits for it, after
  /// about 5 ms without a commit, or after about 2.5 s, so `async` promises no less here. 0: not
  /// combined (with `compress`: 64).
  std::uint32_t persist_group = 0;
  /// Combined records are compressed (lz4). dudetm-combined always does that.
  bool compress = false;
  /// If it is set, the thread that writes the log calls it with the payload of each combined record
  /// before it is compressed, for measurements. It must not throw.
  std::function<void(const std::uint64_t* payload, std::uint64_t words)> combined = nullptr;
  /// Size in bytes of a thread's volatile log, 4 KiB to 16 GiB, rounded to 2^n. 0: 1 MiB (in
  /// dudetm-inf the initial size).
  std::uint64_t volatile_log = 0;
  /// Bytes of DRAM that the shadow may take, 16 KiB or more, so that a pool may be larger than
  /// memory. Transactions begin while it takes less; transactions in flight may exceed it. 0: every
  /// page that was changed stays in DRAM.
  std::uint64_t shadow_size = 0;
  /// How a shadow with a shadow_size is paged. `automatic` decides by what the pool held when it
  /// was last closed.
  ShadowPaging shadow_paging = ShadowPaging::automatic;
  /// Persist and Reproduce have a thread each, as in the paper (section 3.1), and Persist polls the
  /// volatile logs, so that a transaction is durable soon though no thread waits for it. While
  /// there are commits that takes two processors. false: one thread, which naps, has both. In
  /// dudetm-sync, where each thread persists its own, there is no such thread.
  bool standing_threads = false;

  /// Returns `invalid`, with the name of the option that is out of range.
  [[nodiscard]] Status check(const std::string& path) const {
    constexpr std::uint32_t max_together = 1 << 24;
    constexpr std::uint64_t min_log = 4096, max_log = std::uint64_t{16} << 30,
                            min_shadow = 16 << 10;
    const auto refused = [&](const char* option, std::uint64_t found, const char* expected) {
      return failure(Code::invalid, path,
                     std::string("DudetmOptions::") + option + " " + std::to_string(found),
                     expected, "leave it 0");
    };
    if (persist_group > max_together)
      return refused("persist_group", persist_group, "1 to 2^24, or 0");
    if (volatile_log != 0 && (volatile_log < min_log || volatile_log > max_log))
      return refused("volatile_log", volatile_log, "4 KiB to 16 GiB, or 0 for 1 MiB");
    if (shadow_size != 0 && shadow_size < min_shadow)
      return refused("shadow_size", shadow_size, "16 KiB or more, or 0 for no limit");
    return {};
  }
  /// Returns `invalid` if the shadow has a limit and the engine evicts no pages.
  [[nodiscard]] Status fits(const std::string& path, const engine::EngineInfo& chosen) const {
    if (shadow_size == 0 || chosen.pages) return {};
    return failure(Code::invalid, path,
                   "DudetmOptions::shadow_size for engine '" + std::string(chosen.name) + "'",
                   "an engine that evicts pages: dudetm",
                   "leave it 0, or make the pool with Options::engine dudetm");
  }
};

}  // namespace papers
}  // namespace perdure
