// SPDX-License-Identifier: BSD-3-Clause
//
// What may be chosen of DudeTM when a pool is opened (Options::engine_options).
#pragma once

#include <cstdint>
#include <string>

#include "perdure/base/status.hpp"
#include "perdure/engine/entry.hpp"

namespace perdure {

/// How a shadow with a limit is paged (DudetmOptions::shadow_size).
enum class ShadowPaging : std::uint8_t {
  /// software where the shadow is small beside what the pool holds when it is opened, else hardware
  automatic,
  /// page tables: an access costs nothing more, a page that comes or goes a fault and an interrupt
  /// of other processors
  hardware,
  /// a look-up at each access; a page that comes or goes costs no fault (but for bitmaps' pages,
  /// one in sixteen: they are the hardware's)
  software
};

namespace papers {

struct DudetmOptions {
  /// So many transactions at most are combined to one log record, of each word the last value; it
  /// is written when they are that many, when somebody waits, when none has come for some
  /// milliseconds, or after about 2.5 s: so `async` promises no less here. 1 to 2^24; 0: not
  /// combined (with `compress`: 64)
  std::uint32_t persist_group = 0;
  /// Combined records are compressed (lz4). dudetm-combined always does
  bool compress = false;
  /// Bytes of a thread's volatile log, 4 KiB to 16 GiB, made 2^n; 0: 1 MiB (dudetm-inf: at first)
  std::uint64_t volatile_log = 0;
  /// Threads that write home from the log. 1: more are refused (`invalid`)
  unsigned reproduce_threads = 1;
  /// Bytes of DRAM that the shadow may take, 16 KiB or more: a pool may be larger than memory.
  /// Transactions begin while it takes less; those in flight may go beyond. 0: all that was ever
  /// changed stays in DRAM
  std::uint64_t shadow_size = 0;
  /// Where there is a shadow_size. `automatic` goes by what the pool held when it was last closed
  ShadowPaging shadow_paging = ShadowPaging::automatic;

  /// `invalid` names what is out of range.
  [[nodiscard]] Status check(const std::string& path) const {
    constexpr std::uint32_t most_together = 1 << 24;
    constexpr std::uint64_t least_log = 4096, most_log = std::uint64_t{16} << 30,
                            least_shadow = 16 << 10;
    const auto refused = [&](const char* option, std::uint64_t found, const char* expected) {
      return failure(Code::invalid, path,
                     std::string("DudetmOptions::") + option + " " + std::to_string(found),
                     expected, "leave it 0");
    };
    if (persist_group > most_together)
      return refused("persist_group", persist_group, "1 to 2^24, or 0");
    if (volatile_log != 0 && (volatile_log < least_log || volatile_log > most_log))
      return refused("volatile_log", volatile_log, "4 KiB to 16 GiB, or 0 for 1 MiB");
    if (shadow_size != 0 && shadow_size < least_shadow)
      return refused("shadow_size", shadow_size, "16 KiB or more, or 0 for no limit");
    if (reproduce_threads != 1)
      return failure(Code::invalid, path,
                     "DudetmOptions::reproduce_threads " + std::to_string(reproduce_threads),
                     "1: a thread more would be started and ended for every slice of the log",
                     "leave it 1");
    return {};
  }
  /// A shadow with a limit asks for an engine that evicts pages.
  [[nodiscard]] Status fits(const std::string& path, const engine::Entry& chosen) const {
    if (shadow_size == 0 || chosen.pages) return {};
    return failure(Code::invalid, path,
                   "DudetmOptions::shadow_size for engine '" + std::string(chosen.name) + "'",
                   "an engine that evicts pages: dudetm",
                   "leave it 0, or make the pool with Options::engine dudetm");
  }
};

}  // namespace papers
}  // namespace perdure
