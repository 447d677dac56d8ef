// SPDX-License-Identifier: BSD-3-Clause
//
// ceiling: the hardware's bound for a durable transaction that does nothing: one 64-byte record
// written by non-temporal stores into a ring on the medium (a tmpfs file, like the emulated
// medium's), and one sfence. No checksum, no data, no truncation; one ring per thread.
// Thread safety: a worker accesses its own ring only.
#include <fcntl.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

#include "bench/harness/timed.hpp"
#include "bench/systems/systems.hpp"

namespace bench {
namespace {

class Rings {
 public:
  Rings(const std::string& path, std::size_t each, unsigned count) : bytes_(each * count) {
    const int fd = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), path);
    void* p =
        ::ftruncate(fd, static_cast<off_t>(bytes_)) != 0
            ? MAP_FAILED
            : ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    const int error = errno;
    ::close(fd);
    if (p == MAP_FAILED) throw std::system_error(error, std::generic_category(), path);
    base_ = static_cast<std::byte*>(p);
    std::memset(base_, 0, bytes_);
  }
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;
  ~Rings() { ::munmap(base_, bytes_); }
  [[nodiscard]] std::byte* at(std::size_t offset) const { return base_ + offset; }

 private:
  std::size_t bytes_;
  std::byte* base_ = nullptr;
};

void record_sse2(std::byte* line, std::uint64_t id) {
  const __m128i words = _mm_set1_epi64x(static_cast<long long>(id));
  auto* to = reinterpret_cast<__m128i*>(line);
  for (int i = 0; i < 4; ++i) _mm_stream_si128(to + i, words);
  _mm_sfence();
}

__attribute__((target("avx512f"))) void record_avx512(std::byte* line, std::uint64_t id) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(line),
                      _mm512_set1_epi64(static_cast<long long>(id)));
  _mm_sfence();
}

class CeilingSession final : public Session {
 public:
  explicit CeilingSession(const Setting& setting)
      : ring_bytes_(setting.log_size != 0 ? setting.log_size & ~std::uint64_t{63}
                                          : std::uint64_t{16} << 20),
        rings_(setting.directory + "/ceiling", ring_bytes_, setting.max_threads),
        wide_(__builtin_cpu_supports("avx512f") != 0) {}

  Outcome run(const Cell& cell) override {
    struct Worker {
      std::byte* ring;
      std::uint64_t bytes;
      bool wide;
      std::uint64_t at = 0;
      Step operator()() {
        (wide ? record_avx512 : record_sse2)(ring + at, at);
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
  Rings rings_;
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
