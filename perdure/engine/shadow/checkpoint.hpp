// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoint: Reproduce from the shadow. Copies the lines that differ to home, in slices, beside running transactions, then lets the
// logs go (design: "Recycling logs").
//
//   1. X = every id up to it has finished its commit (held) or is durable (prefix).
//   2. Take the marks of each page, then copy its marked lines as the TM allows: what committed transactions wrote, nothing else.
//   3. prefix: read the clock c after a batch was copied; the batch may hold the writes of transactions up to c, so it waits in DRAM
//      until all of them are durable. held: isolation is held through the fence, so what can be copied is durable.
//   4. Write the batch home by non-temporal stores.
//   5. After the last batch: fence (home durable), persist X and the rings' heads in the header (fences), only then recycle.
// Crash: before 5 the header still names the old X, and replay over a newer home is idempotent; without the fence in 5 a recycled record's only copy could be lost.
// Source: fuzzy checkpoints (Hagmann, IEEE ToC '86); retiring from DRAM instead of from the log (SoftWrAP, MSST '15).
// Thread safety: one slice at a time (the caller's lock).
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/engine/shadow/view.hpp"
#include "perdure/log/ring.hpp"
#include "perdure/medium/medium.hpp"

namespace perdure::engine::shadow {

class Checkpoint {
 public:
  enum class Step : std::uint8_t {
    idle,     ///< none in progress
    more,     ///< call again
    waiting,  ///< the oldest batch needs durable ids up to needs()
    copied    ///< all is home: finish
  };

  Checkpoint(medium::Medium& medium, Marks& marks, const std::byte* view) : medium_(medium), marks_(marks), view_(view) {}

  [[nodiscard]] bool active() const noexcept { return active_; }
  [[nodiscard]] std::uint64_t x() const noexcept { return x_; }
  [[nodiscard]] std::uint64_t needs() const noexcept { return batches_.empty() ? 0 : batches_.front().clock; }
  [[nodiscard]] std::uint64_t lines() const noexcept { return lines_; }
  [[nodiscard]] std::size_t pages_left() const noexcept { return pages_.size() - next_page_; }

  void start(std::uint64_t x, std::uint64_t home_bytes) {
    active_ = true;
    x_ = x;
    pages_.clear();
    next_page_ = 0;
    for (std::uint64_t page = 0, n = (home_bytes + 4095) / 4096; page < n; ++page)
      if (marks_.any(page)) pages_.push_back(page);
  }

  /// Copies up to `max_pages` pages. `tm`: the caller's TM context, outside any transaction. `clock()`: the last id drawn.
  /// `durable()`: ids up to it are; no_wait: everything that can be copied is durable already (held).
  template <class Tm, class Clock, class Durable>
  Step slice(Tm& tm, std::size_t max_pages, bool held, Clock&& clock, Durable&& durable) {
    if (!active_) return Step::idle;
    if (next_page_ < pages_.size()) {
      Batch batch;
      tm.copy_begin();
      for (std::size_t n = 0; n < max_pages && next_page_ < pages_.size(); ++n, ++next_page_)
        marks_.take(pages_[next_page_], [&](std::uint64_t offset) {
          batch.offsets.push_back(offset);
          batch.lines.resize(batch.lines.size() + 8);
          tm.copy_line(batch.lines.data() + batch.lines.size() - 8, view_ + offset);
        });
      tm.copy_end();
      batch.clock = held ? 0 : clock();
      lines_ += batch.offsets.size();
      if (!batch.offsets.empty()) batches_.push_back(std::move(batch));
    }
    while (!batches_.empty() && batches_.front().clock <= durable()) {
      write(batches_.front());
      batches_.erase(batches_.begin());
    }
    if (next_page_ < pages_.size() && batches_.size() < 64) return Step::more;
    return batches_.empty() ? Step::copied : Step::waiting;
  }
  /// Home is durable up to x(): the caller has fenced and published.
  void finished() noexcept { active_ = false; }

 private:
  struct Batch {
    std::uint64_t clock = 0;
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint64_t> lines;  ///< 8 words each
  };
  void write(const Batch& batch) {
    const std::uint64_t home = medium_.log_bytes();
    for (std::size_t i = 0; i < batch.offsets.size();) {
      std::size_t j = i + 1;  // neighbouring lines go in one call
      while (j < batch.offsets.size() && batch.offsets[j] == batch.offsets[j - 1] + 64) ++j;
      medium_.stream(home + batch.offsets[i], batch.lines.data() + i * 8, (j - i) * 64);
      i = j;
    }
  }

  medium::Medium& medium_;
  Marks& marks_;
  const std::byte* view_;
  bool active_ = false;
  std::uint64_t x_ = 0, lines_ = 0;
  std::vector<std::uint64_t> pages_;
  std::size_t next_page_ = 0;
  std::vector<Batch> batches_;
};

}  // namespace perdure::engine::shadow
