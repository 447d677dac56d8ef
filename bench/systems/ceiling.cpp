// SPDX-License-Identifier: BSD-3-Clause
//
// ceiling: the hardware's bound for a durable transaction that does nothing: one 64-byte record
// written by non-temporal stores into a ring on the medium (a tmpfs file, like the emulated
// medium's), and one sfence. No checksum, no data, no truncation; one ring per thread.
// Thread safety: a worker accesses its own ring only.
#include <cstddef>

#include "bench/harness/timed.hpp"
#include "bench/systems/streamed.hpp"
#include "bench/systems/systems.hpp"

namespace bench {
namespace {

class CeilingSession final : public Session {
 public:
  explicit CeilingSession(const Setting& setting)
      : ring_bytes_(setting.log_size != 0 ? setting.log_size & ~std::uint64_t{63}
                                          : std::uint64_t{16} << 20),
        rings_(setting.directory + "/ceiling", ring_bytes_ * setting.max_threads),
        wide_(streams_lines()) {}

  Outcome run(const Cell& cell) override {
    struct Worker {
      std::byte* ring;
      std::uint64_t bytes;
      bool wide;
      std::uint64_t at = 0;
      alignas(64) std::uint64_t record[8] = {};
      Step operator()() {
        record[0] = at;
        stream(ring + at, reinterpret_cast<const std::byte*>(record), 64, wide);
        _mm_sfence();
        at = at + 64 == bytes ? 0 : at + 64;
        return {.wrote = true, .grown = 0};
      }
      void settle() {}
    };
    const Tally tally = run_timed(
        cell, [&](unsigned t) { return Worker{rings_.at(t * ring_bytes_), ring_bytes_, wide_}; });
    const auto n = static_cast<double>(tally.all_operations);
    return {.operations = tally.operations,
            .writes = tally.operations,
            .seconds = tally.seconds,
            .rate = tally.rate,
            .cpu_seconds = tally.cpu_seconds,
            .counters = {{"operations", n}, {"commits", n}, {"fences", n}, {"log_bytes", 64 * n}}};
  }
  std::vector<std::string> audit() override { return {}; }
  [[nodiscard]] std::string describe() override {
    return std::string("one 64-byte non-temporal record (") + (wide_ ? "avx512f" : "sse2") +
           ") and one sfence; rings of " + std::to_string(ring_bytes_ >> 20) + " MiB";
  }

 private:
  std::uint64_t ring_bytes_;
  Mapped rings_;
  bool wide_;
};

}  // namespace

void add_ceiling(Systems& systems) {
  systems.push_back({"ceiling",
                     "one 64-byte non-temporal record and one fence a transaction, nothing else",
                     {"sps", "hash", "rb"},
                     64,
                     [](const Setting& s) -> std::unique_ptr<Session> {
                       return std::make_unique<CeilingSession>(s);
                     }});
}

}  // namespace bench
