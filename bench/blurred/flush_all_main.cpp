// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_bench_flush_all: the variants of flush_all for a program that has no wbinvd, each with
// the same random word stores (papers/figures/blurred.py, row B-Forms):
//   lines  a byte marks each stored line, and the marked lines are written back: what the medium
//          does (perdure/medium/line_marks.hpp)
//   pages  a byte marks each stored page, and all lines of marked pages are written back: the marks
//          cost less, but lines without stores are written back, too
//   all    no marks: every line of the range is written back
//   msync  the kernel's own marks of pages, on a mapped file
// Printed: the cost of a store with its marks, and the cost of the flush per store. No delays. Exit
// status: 0, or 1 when something failed.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "bench/harness/rng.hpp"
#include "bench/harness/scratch.hpp"
#include "perdure/base/cpu.hpp"
#include "perdure/medium/line_marks.hpp"

namespace bench {
namespace {

constexpr std::size_t line = perdure::medium::line_bytes, page = perdure::medium::page_bytes;

/// A mapped file of its own.
class Bytes {
 public:
  Bytes(const std::string& path, std::size_t n) : n_(n) {
    const int fd = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), path);
    const int full = ::posix_fallocate(fd, 0, static_cast<off_t>(n));
    void* p = full != 0
                  ? MAP_FAILED
                  : ::mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    const int why = full != 0 ? full : errno;
    ::close(fd);
    if (p == MAP_FAILED) throw std::system_error(why, std::generic_category(), path);
    at_ = static_cast<std::byte*>(p);
    std::memset(at_, 1, n);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { ::munmap(at_, n_); }
  [[nodiscard]] std::byte* at() const { return at_; }
  [[nodiscard]] std::size_t size() const { return n_; }
  void sync() const {
    if (::msync(at_, n_, MS_SYNC) != 0)
      throw std::system_error(errno, std::generic_category(), "msync");
  }

 private:
  std::size_t n_;
  std::byte* at_ = nullptr;
};

struct Asked {
  std::string form = "lines", directory = "/dev/shm";
  std::size_t bytes = std::size_t{64} << 20;
  std::uint64_t stores = 32768;
  unsigned rounds = 5;
};

struct Spent {
  double store_ns = 0, flush_ns = 0;  // per store
};

template <class Mark, class Flush>
Spent spend(const Asked& asked, const Bytes& bytes, Mark mark, Flush flush) {
  using Clock = std::chrono::steady_clock;
  const auto ns = [](Clock::duration d) {
    return std::chrono::duration<double, std::nano>(d).count();
  };
  Spent spent;
  Rng rng(7, 0);
  for (unsigned round = 0; round <= asked.rounds; ++round) {  // the first round warms up
    const auto start = Clock::now();
    for (std::uint64_t i = 0; i < asked.stores; ++i) {
      const std::uint64_t at = rng.below(asked.bytes / 8) * 8;
      std::memcpy(bytes.at() + at, &i, 8);
      mark(at);
    }
    const auto stored = Clock::now();
    flush();
    const auto flushed = Clock::now();
    if (round == 0) continue;
    spent.store_ns += ns(stored - start);
    spent.flush_ns += ns(flushed - stored);
  }
  const double all = static_cast<double>(asked.stores) * asked.rounds;
  return {spent.store_ns / all, spent.flush_ns / all};
}

Spent measure(const Asked& asked, const Bytes& bytes) {
  const auto write_back = perdure::base::flush_lines(perdure::base::best_flush());
  const auto flush = [&](std::size_t first, std::size_t lines) {
    write_back(bytes.at() + first * line, lines);
  };
  if (asked.form == "lines") {
    perdure::medium::LineMarks marks;
    marks.reserve("marks", asked.bytes).or_throw();
    marks.cover("marks", asked.bytes).or_throw();
    return spend(
        asked, bytes, [&](std::uint64_t at) { marks.mark(at, 8); },
        [&] {
          marks.take_all([](auto) { return false; }, flush, [] {});
          perdure::base::store_fence();
        });
  }
  if (asked.form == "pages") {
    const auto marks = std::make_unique<std::atomic<std::uint8_t>[]>(asked.bytes / page);
    return spend(
        // Like the pages of LineMarks.
        asked, bytes,
        [&](std::uint64_t at) { marks[at / page].store(1, std::memory_order_release); },
        [&] {
          for (std::size_t p = 0; p < asked.bytes / page; ++p)
            if (marks[p].load(std::memory_order_relaxed) != 0 &&
                marks[p].exchange(0, std::memory_order_acq_rel) != 0)
              flush(p * (page / line), page / line);
          perdure::base::store_fence();
        });
  }
  const auto no_mark = [](std::uint64_t) {};
  if (asked.form == "msync") return spend(asked, bytes, no_mark, [&] { bytes.sync(); });
  return spend(asked, bytes, no_mark, [&] {
    flush(0, asked.bytes / line);
    perdure::base::store_fence();
  });
}

int main_of(int argc, char** argv) {
  CLI::App app{"What flush_all costs in each of the forms that it can take."};
  Asked asked;
  bool json = false;
  app.add_option("--form", asked.form, "lines, pages, all, msync")
      ->check(CLI::IsMember({"lines", "pages", "all", "msync"}));
  app.add_option("--dir", asked.directory,
                 "where the file lies (a directory of its own is made there, and removed)");
  app.add_option("--bytes", asked.bytes, "the range that is stored to (64 MiB)")
      ->check(CLI::Range(page, std::size_t{1} << 32));
  app.add_option("--stores", asked.stores, "stores between two flushes (32768)")
      ->check(CLI::PositiveNumber);
  app.add_option("--rounds", asked.rounds, "flushes (5)")->check(CLI::PositiveNumber);
  app.add_flag("--json", json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  try {
    asked.bytes = asked.bytes / page * page;
    const Scratch scratch(asked.directory);
    const Bytes bytes(scratch.path() + "/bytes", asked.bytes);
    const Spent spent = measure(asked, bytes);
    if (json)
      std::cout << nlohmann::ordered_json{{"store_ns", spent.store_ns},
                                          {"flush_ns", spent.flush_ns}}
                       .dump()
                << '\n';
    else
      std::printf("%s: %.1f ns a store, %.1f ns of the flush for each\n", asked.form.c_str(),
                  spent.store_ns, spent.flush_ns);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::main_of(argc, argv); }
