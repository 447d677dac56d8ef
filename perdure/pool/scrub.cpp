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
#include <new>
#include <optional>
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
    if (buffer_ == nullptr) throw std::bad_alloc();
    struct stat st = {};
    if (pool.fd() < 0 || ::fstat(pool.fd(), &st) != 0 || !S_ISREG(st.st_mode)) return;
    file_ = true;
    const std::string again = "/proc/self/fd/" + std::to_string(pool.fd());
    direct_ = base::open_file(again.c_str(), O_RDONLY | O_DIRECT);
    // Some file systems take the flag and refuse the read.
    if (direct_ >= 0 &&
        ::pread(direct_, buffer_.get(), page_bytes, 0) != static_cast<ssize_t>(page_bytes)) {
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
    const std::uint64_t at = pool_.medium().log_bytes() + offset;
    if (!file_) {
      std::memcpy(to, pool_.medium().at(at), n);
      return {};
    }
    for (std::uint64_t done = 0; done < n;) {
      const ssize_t r =
          ::pread(fd, static_cast<std::byte*>(to) + done, n - done, static_cast<off_t>(at + done));
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

// Where checksums lie, according to one header.
struct Place {
  Header header;
  Directory directory;
  explicit Place(const Header& h) : header(h), directory(h) {}
  [[nodiscard]] std::uint64_t offset(std::uint64_t page) const noexcept {
    return header.checksums_offset + page * 8;
  }
  [[nodiscard]] bool covers(std::uint64_t page) const noexcept {
    return page < header.checksums_bytes / 8 && !directory.holds_checksums(page / chunk_pages);
  }
};

class Scrub {
 public:
  Scrub(const OpenPool& pool, const ScrubOptions& options)
      : pool_(pool), options_(options), source_(pool), start_(std::chrono::steady_clock::now()) {}

  Result<ScrubReport> run() {
    for (;;) {
      moved_ = false;
      report_ = {};
      report_.from_disk = source_.direct();
      if (Status s = look(); !s.ok()) return s;
      if (place_->header.checksums_bytes == 0) return ScrubReport{};
      report_.has_checksums = true;
      if (Status s = all(); !s.ok()) return s;
      if (!moved_) return std::move(report_);
    }
  }

 private:
  Status all() {
    std::uint64_t told = 0;
    for (std::uint64_t chunk = 0; !moved_; ++chunk) {
      // The data region may grow meanwhile.
      const std::uint64_t bytes =
          pool_.following() ? place_->header.data_bytes : pool_.data_bytes();
      const std::uint64_t begin = chunk * chunk_bytes;
      if (begin >= bytes) break;
      const std::uint64_t end = std::min(begin + chunk_bytes, bytes);
      if (Status s = one(chunk, (end - begin) / page_bytes); !s.ok()) return s;
      if (options_.progress && (end - told >= 16 << 20 || end == bytes))
        options_.progress(told = end, bytes);
    }
    return {};
  }

  // Finds out what must be known while pages are judged: where checksums lie, and who may change
  // pages without telling readers by the checksums (recovery, READER-2). If the checksums have
  // moved since the last call, all begins again.
  Status look() {
    if (!pool_.following()) {
      if (!place_) place_.emplace(pool_.header_now());
      return {};
    }
    using namespace std::chrono_literals;
    const auto end = std::chrono::steady_clock::now() + 5s;
    for (;; std::this_thread::sleep_for(1ms)) {
      // Acquire: pairs with the writer's changes of the sequence (READER-2).
      const std::uint64_t sequence = pool_.told().sequence.load(std::memory_order_acquire);
      const auto writer = pool_.writer();
      if (!writer) return writer.status();
      const auto header = pool_.newest_header();
      const bool still = pool_.told().sequence.load(std::memory_order_acquire) == sequence;
      const bool none = *writer == OpenPool::Writer::none,
                 serves = *writer == OpenPool::Writer::serves && sequence % 2 == 0;
      if (header.ok() && still && (none || serves)) {
        moved_ = place_ && (place_->header.checksums_offset != header->checksums_offset ||
                            place_->header.checksums_bytes != header->checksums_bytes);
        sequence_ = sequence;
        unsettled_ = none && header->clean != 1;
        place_.emplace(*header);
        return {};
      }
      if (std::chrono::steady_clock::now() < end) continue;
      if (!header.ok()) return header.status();
      return failure(Code::busy, pool_.path(),
                     "a pool that another process is opening, or writes without serving readers",
                     {}, "try again, or call Pool::scrub() in the program that has it");
    }
  }
  [[nodiscard]] bool changed() const {
    return pool_.following() && pool_.told().sequence.load(std::memory_order_acquire) != sequence_;
  }

  // The pages of a chunk.
  Status one(std::uint64_t chunk, std::uint64_t pages) {
    const std::uint64_t first = chunk * chunk_pages;
    if (!place_->covers(first)) return {};
    std::uint64_t word = 0, before[chunk_pages], after[chunk_pages];
    if (Status s = source_.words(&word, place_->directory.word(chunk), 1); !s.ok()) return s;
    if (Status s = source_.words(before, place_->offset(first), pages); !s.ok()) return s;
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
    if (Status s = source_.words(after, place_->offset(first), pages); !s.ok()) return s;
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
    for (int i = 0; i < most && !moved_; ++i) {
      std::uint64_t before = 0, after = 0;
      if (Status s = source_.words(&before, place_->offset(page), 1); !s.ok()) return s;
      const auto bytes = source_.pages(page * page_bytes, page_bytes);
      if (!bytes) return bytes.status();
      const std::uint64_t found = PageSum::of(page, *bytes);
      if (Status s = source_.words(&after, place_->offset(page), 1); !s.ok()) return s;
      if (before == 0 || before != after) {
        same = 0;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        continue;
      }
      if (before == found) {
        ++report_.pages;
        return {};
      }
      if (changed()) {
        if (Status s = look(); !s.ok()) return s;
        same = 0;
        continue;
      }
      if (++same < agree) continue;
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
  const std::chrono::steady_clock::time_point start_;
  std::optional<Place> place_;
  std::uint64_t sequence_ = 0, read_ = 0;
  bool unsettled_ = false, moved_ = false;
  ScrubReport report_;
};

}  // namespace

Result<ScrubReport> scrub(const OpenPool& pool, const ScrubOptions& options) {
  return Scrub(pool, options).run();
}

Status must_be_undamaged(const OpenPool& pool) {
  const auto pages = scrub(pool, {});
  if (!pages) return pages.status();
  if (pages->ok()) return {};
  return failure(Code::corrupt, pool.path(),
                 std::to_string(pages->damaged.size()) +
                     " damaged pages, the first: " + text_of(pages->damaged.front()),
                 {}, "see `perdure scrub`; nothing was copied");
}

Result<FilledChecksums> fill_checksums(
    OpenPool& pool, bool accept,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const Header& h = pool.header();
  if (pool.read_only())
    return failure(Code::read_only, pool.path(), "checksums for a pool that is open for reading",
                   {}, "open it for writing");
  if (!PageChecksums::has(h) || h.clean != 1)
    return failure(
        Code::invalid, pool.path(),
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
