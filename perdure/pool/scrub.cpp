// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/pool/scrub.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "perdure/base/descriptor.hpp"
#include "perdure/pool/open_pool.hpp"
#include "perdure/pool/page_checksums.hpp"

namespace perdure::pool {
namespace {

constexpr std::uint64_t page_bytes = PageChecksums::page_bytes;
constexpr std::uint64_t chunk_pages = PageChecksums::chunk_pages;
constexpr std::size_t most_damaged = 10000;

// The bytes of a pool's file, or of a medium without one.
class Source {
 public:
  explicit Source(const OpenPool& pool) : pool_(pool) {
    struct stat st = {};
    if (pool.fd() < 0 || ::fstat(pool.fd(), &st) != 0 || !S_ISREG(st.st_mode)) return;
    file_ = true;
    const std::string again = "/proc/self/fd/" + std::to_string(pool.fd());
    direct_ = base::open_file(again.c_str(), O_RDONLY | O_DIRECT);
    // Some file systems take the flag and refuse the read.
    if (direct_ >= 0 && ::pread(direct_, buffer_.get(), page_bytes, 0) !=
                            static_cast<ssize_t>(page_bytes)) {
      ::close(direct_);
      direct_ = -1;
    }
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() {
    if (direct_ >= 0) ::close(direct_);
  }
  [[nodiscard]] bool direct() const noexcept { return direct_ >= 0; }

  /// Reads whole pages of the data region into a buffer of its own.
  Result<const std::byte*> pages(std::uint64_t offset, std::uint64_t n) {
    if (Status s = read(direct_ >= 0 ? direct_ : pool_.fd(), buffer_.get(), offset, n); !s.ok())
      return s;
    return static_cast<const std::byte*>(buffer_.get());
  }
  Status words(std::uint64_t* to, std::uint64_t offset, std::uint64_t n) {
    return read(pool_.fd(), to, offset, n * 8);
  }

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept { std::free(p); }
  };
  Status read(int fd, void* to, std::uint64_t offset, std::uint64_t n) {
    const std::uint64_t at = pool_.header().log_bytes + offset;
    if (!file_) {
      std::memcpy(to, pool_.medium().at(at), n);
      return {};
    }
    for (std::uint64_t done = 0; done < n;) {
      const ssize_t r = ::pread(fd, static_cast<std::byte*>(to) + done, n - done,
                                static_cast<off_t>(at + done));
      if (r < 0 && errno == EINTR) continue;
      if (r < 0) return system_failure(pool_.path(), "pread", errno);
      if (r == 0)
        return failure(Code::corrupt, pool_.path(),
                       "a file that ends at " + std::to_string(at + done) + " bytes",
                       "at least " + std::to_string(at + n), "restore it from a copy");
      done += static_cast<std::uint64_t>(r);
    }
    return {};
  }

  const OpenPool& pool_;
  bool file_ = false;
  int direct_ = -1;
  std::unique_ptr<std::byte, Free> buffer_{
      static_cast<std::byte*>(std::aligned_alloc(page_bytes, chunk_bytes))};
};

class Scrub {
 public:
  Scrub(const OpenPool& pool, const ScrubOptions& options)
      : pool_(pool),
        options_(options),
        source_(pool),
        header_(pool.following() ? pool.header() : pool.header_now()),
        directory_(header_),
        sums_(const_cast<medium::Medium&>(pool.medium()), header_),
        start_(std::chrono::steady_clock::now()) {}

  Result<ScrubReport> run() {
    report_.has_checksums = true;
    report_.from_disk = source_.direct();
    if (Status s = begin(); !s.ok()) return s;
    const std::uint64_t bytes = pool_.following() ? header_.data_bytes : pool_.data_bytes(),
                        chunks = (bytes + chunk_bytes - 1) / chunk_bytes;
    std::uint64_t told = 0;
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      const std::uint64_t end = std::min((chunk + 1) * chunk_bytes, bytes);
      if (Status s = one(chunk, (end - chunk * chunk_bytes) / page_bytes); !s.ok()) return s;
      if (options_.progress && (end - told >= 16 << 20 || chunk + 1 == chunks))
        options_.progress(told = end, bytes);
    }
    if (changed()) return busy();
    return std::move(report_);
  }

 private:
  // What must hold while pages are judged.
  Status begin() {
    if (!pool_.following()) return {};
    const auto writer = pool_.writer();
    if (!writer) return writer.status();
    if (*writer == OpenPool::Writer::silent) return busy();
    sequence_ = pool_.told().sequence.load(std::memory_order_acquire);
    if (*writer == OpenPool::Writer::serves && sequence_ % 2 != 0) return busy();
    unsettled_ = *writer == OpenPool::Writer::none && header_.clean != 1;
    return {};
  }
  // Whether the data region may have been changed without a word to readers (READER-2).
  [[nodiscard]] bool changed() const {
    return pool_.following() &&
           pool_.told().sequence.load(std::memory_order_acquire) != sequence_;
  }
  [[nodiscard]] Status busy() const {
    return failure(Code::busy, pool_.path(),
                   "a pool that another process is opening, or writes without serving readers", {},
                   "try again, or call Pool::scrub() in the program that has it");
  }

  // The pages of a chunk.
  Status one(std::uint64_t chunk, std::uint64_t pages) {
    const std::uint64_t first = chunk * chunk_pages;
    if (!sums_.covers(first)) return {};
    std::uint64_t word = 0, before[chunk_pages], after[chunk_pages];
    if (Status s = source_.words(&word, directory_.word(chunk), 1); !s.ok()) return s;
    if (Status s = source_.words(before, sums_.offset(first), pages); !s.ok()) return s;
    const bool in_use = word != 0;
    if (std::all_of(before, before + pages, [](std::uint64_t sum) { return sum == 0; })) {
      if (in_use) report_.without += pages;
      return {};
    }
    const auto bytes = source_.pages(chunk * chunk_bytes, pages * page_bytes);
    if (!bytes) return bytes.status();
    std::uint64_t found[chunk_pages];
    for (std::uint64_t i = 0; i < pages; ++i)
      found[i] = before[i] == 0 ? 0 : PageSum::of(first + i, *bytes + i * page_bytes);
    if (Status s = source_.words(after, sums_.offset(first), pages); !s.ok()) return s;
    for (std::uint64_t i = 0; i < pages; ++i) {
      if (before[i] != 0 && before[i] == after[i] && before[i] == found[i])
        ++report_.pages;
      else if (before[i] == 0 && after[i] == 0)
        report_.without += in_use ? 1 : 0;
      else if (Status s = again(first + i, in_use); !s.ok())
        return s;
    }
    pace(pages * page_bytes);
    return {};
  }

  // A page that was being changed, or is damaged: looked at until it is certain.
  Status again(std::uint64_t page, bool in_use) {
    constexpr int most = 100, agree = 3;
    int same = 0;
    for (int i = 0; i < most; ++i) {
      std::uint64_t before = 0, after = 0;
      if (Status s = source_.words(&before, sums_.offset(page), 1); !s.ok()) return s;
      const auto bytes = source_.pages(page * page_bytes, page_bytes);
      if (!bytes) return bytes.status();
      const std::uint64_t found = PageSum::of(page, *bytes);
      if (Status s = source_.words(&after, sums_.offset(page), 1); !s.ok()) return s;
      if (before == 0 || before != after) {
        same = 0;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        continue;
      }
      if (before == found) {
        ++report_.pages;
        return {};
      }
      if (++same < agree) continue;
      if (changed()) return busy();
      if (unsettled_) {
        ++report_.undecided;
        return {};
      }
      ++report_.pages;
      if (report_.damaged.size() < most_damaged)
        report_.damaged.push_back({page * page_bytes, before, found});
      return {};
    }
    report_.without += in_use ? 1 : 0;
    return {};
  }

  void pace(std::uint64_t bytes) {
    if (options_.bytes_per_second == 0) return;
    read_ += bytes;
    const std::chrono::duration<double> due(static_cast<double>(read_) /
                                            static_cast<double>(options_.bytes_per_second));
    std::this_thread::sleep_until(
        start_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(due));
  }

  const OpenPool& pool_;
  const ScrubOptions& options_;
  Source source_;
  const Header header_;
  const Directory directory_;
  const PageChecksums sums_;
  const std::chrono::steady_clock::time_point start_;
  std::uint64_t sequence_ = 0, read_ = 0;
  bool unsettled_ = false;
  ScrubReport report_;
};

}  // namespace

Result<ScrubReport> scrub(const OpenPool& pool, const ScrubOptions& options) {
  if (!PageChecksums::has(pool.header())) return ScrubReport{};
  return Scrub(pool, options).run();
}

Result<FilledChecksums> fill_checksums(
    OpenPool& pool, bool accept,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const Header& h = pool.header();
  if (pool.read_only())
    return failure(Code::read_only, pool.path(), "checksums for a pool that is open for reading",
                   {}, "open it for writing");
  if (!PageChecksums::has(h) || h.clean != 1)
    return failure(Code::invalid, pool.path(),
                   h.clean != 1 ? "a pool that was not closed in order" : "a pool without checksums",
                   "a pool with checksums that was closed in order",
                   "open it once with Options::checksums, and close it");
  medium::Medium& medium = pool.medium();
  PageChecksums sums(medium, h);
  FilledChecksums filled;
  const auto each = [&](bool change) {
    sums.each_page(h.data_bytes, [&](std::uint64_t page) {
      if (progress && page % (chunk_pages * 256) == 0)
        progress(page * page_bytes / 2 + (change ? h.data_bytes / 2 : 0), h.data_bytes);
      const std::uint64_t has = sums.load(page), is = sums.computed(page);
      if (!change && has != 0) ++(has == is ? filled.had : filled.accepted);
      if (!change && has == 0) ++filled.got;
      if (change && has != is) sums.set(page, is);
    });
  };
  each(false);
  if (filled.accepted != 0 && !accept)
    return failure(Code::corrupt, pool.path(), std::to_string(filled.accepted) + " damaged pages",
                   "none", "restore it from a backup, or accept what they hold");
  each(true);
  if (Status s = medium.fence(); !s.ok()) return s;
  if (progress) progress(h.data_bytes, h.data_bytes);
  return filled;
}

std::string text_of(const DamagedPage& page) {
  char text[120];
  std::snprintf(text, sizeof text,
                "page at 0x%" PRIx64 " of the data region: its checksum is %016" PRIx64
                ", its bytes have %016" PRIx64,
                page.offset, page.checksum, page.found);
  return text;
}

}  // namespace perdure::pool
