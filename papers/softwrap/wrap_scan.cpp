// SPDX-License-Identifier: BSD-3-Clause
//
// The scan of a log of wraps after a crash: its control, and the closed wraps of a bucket. The rule
// that tells damage from a torn wrap, WRAP-1, is in wrap_log.hpp.
// Thread safety: plain functions of a medium that no thread writes to.
#include <algorithm>
#include <limits>
#include <string>

#include "papers/softwrap/wrap_log.hpp"

namespace perdure::papers::softwrap {
namespace {

Status broken(const medium::Medium& medium, const WrapPlace& place, const std::string& what) {
  return failure(Code::corrupt, medium.path(),
                 "the log at log offset " + std::to_string(place.offset) + " " + what,
                 "what a crash can have left of a log", "restore a copy");
}

/// A bucket's lines, as a scan sees them.
struct Bucket {
  const medium::Medium& medium;
  const WrapPlace& place;
  const unsigned number;
  const std::uint64_t base, seed = place.seed(number, base);
  [[nodiscard]] const std::byte* line(std::uint64_t n) const noexcept {
    return medium.at(place.bucket_at(number) + n * 64);
  }
  [[nodiscard]] std::uint32_t stored_sum(std::uint64_t n) const noexcept {
    std::uint32_t sum = 0;
    std::memcpy(&sum, line(n) + 60, 4);
    return sum;
  }
};

/// Sums in one pass: each line is added at most once, when a wrap may end after it. begin() sets
/// where the next wrap begins; none begins before that line.
class Sums {
 public:
  explicit Sums(const Bucket& bucket) : bucket_(bucket), running_(bucket.seed, 0), before_(1) {}
  /// Returns the number of bits in which lines [first, n] agree with the close in line n, and with
  /// their check: 0 if not in all of them.
  unsigned agreed(std::uint64_t first, std::uint64_t n, bool long_close) {
    while (from_ + before_.size() <= n) {
      running_.add(bucket_.line(from_ + before_.size() - 1));
      before_.push_back(running_.linear());
      ++summed;
    }
    const WrapSum last(bucket_.seed, n);
    const WrapSum::Linear less = before_[first - from_] - before_[n - from_];
    ++summed;
    // mutant: wrap-sum
    if (last.close(bucket_.line(n), less) != bucket_.stored_sum(n)) return 0;
    const auto left = WrapLog::entries(
        bucket_.medium, bucket_.place, {0, first, n + 1, bucket_.number, long_close},
        [](std::uint64_t, std::uint64_t) {}, [](const pool::HeapOp&) {},
        [](std::uint64_t, std::uint64_t) {});
    if (left < 0) return 0;
    if (left == 0) return 32;
    const auto bytes = static_cast<std::size_t>(left);
    const std::size_t at =
        64 - (long_close ? WrapRecord::long_close_bytes : WrapRecord::close_bytes) - bytes;
    std::uint64_t stored = 0;
    std::memcpy(&stored, bucket_.line(n) + at, bytes);
    ++summed;
    // mutant: wrap-check
    return last.check(bucket_.line(n), at, bytes, less) == stored
               ? 32 + static_cast<unsigned>(bytes) * 8
               : 0;
  }
  void begin(std::uint64_t n) {
    running_ = WrapSum(bucket_.seed, n);
    before_.assign(1, {});
    from_ = n;
  }
  std::uint64_t summed = 0;

 private:
  const Bucket& bucket_;
  WrapSum running_;
  std::vector<WrapSum::Linear> before_;  // of lines from_ to from_ + i, without the latter
  std::uint64_t from_ = 0;
};

/// The sums of the first form: each is computed separately. To bound the time of a scan for any
/// data, it searches for wraps after the end no further than a budget allows.
class FirstSums {
 public:
  explicit FirstSums(const Bucket& bucket) : bucket_(bucket), running_(bucket.seed, 0) {}
  unsigned agreed(std::uint64_t first, std::uint64_t n, bool) {
    FirstWrapSum sum = running_;
    if (first == from_) {
      for (; passed_ < n; ++passed_, ++summed) running_.add(bucket_.line(passed_));
      sum = running_;
    } else {
      if (n - first > budget_) return 0;
      budget_ -= n - first;
      sum = FirstWrapSum(bucket_.seed, first);
      for (std::uint64_t i = first; i < n; ++i, ++summed) sum.add(bucket_.line(i));
    }
    ++summed;
    return sum.close(bucket_.line(n)) == bucket_.stored_sum(n) ? 32 : 0;
  }
  void begin(std::uint64_t n) {
    running_ = FirstWrapSum(bucket_.seed, n);
    from_ = passed_ = n;
  }
  std::uint64_t summed = 0;

 private:
  const Bucket& bucket_;
  FirstWrapSum running_;
  std::uint64_t from_ = 0, passed_ = 0, budget_ = bucket_.place.lines() * 256;
};

/// Returns whether closed wraps follow the end, by WRAP-1. `last_id`: that of the last wrap before
/// the end.
template <class Of>
bool wraps_follow(const Bucket& bucket, Of& sums, std::uint64_t end, std::uint64_t last_id,
                  std::uint64_t covered) {
  constexpr unsigned enough = 96;
  struct Run {  // of wraps that agree, one directly after the other
    std::uint64_t last_line, id;
    unsigned bits;
  };
  std::vector<Run> runs;
  for (std::uint64_t n = end + 1, lines = bucket.place.lines(); n < lines; ++n) {
    const WrapClose c = WrapClose::of(bucket.line(n));
    if (c.lines == 0 || c.lines > n - end || c.id >= ControlWord::limit ||
        bucket.base + c.id <= last_id)
      continue;
    Run run{n, bucket.base + c.id, sums.agreed(n + 1 - c.lines, n, c.is_long())};
    if (run.bits == 0) continue;
    const auto before =
        std::lower_bound(runs.begin(), runs.end(), n - c.lines,
                         [](const Run& r, std::uint64_t line) { return r.last_line < line; });
    // mutant: wrap-run-adjacent, wrap-run-ids-rise
    if (before != runs.end() && before->last_line == n - c.lines && before->id < run.id)
      run.bits += before->bits;
    // mutant: wrap-agreement-bits
    if (run.bits >= enough && run.id > covered) return true;
    runs.push_back(run);
  }
  return false;
}

template <class Of>
WrapScan scan_as(const Bucket& bucket, std::uint64_t covered) {
  WrapScan s;
  Of sums(bucket);
  std::uint64_t last_id = bucket.base, first = 0;
  for (std::uint64_t n = 0, lines = bucket.place.lines(); n < lines; ++n) {
    const WrapClose c = WrapClose::of(bucket.line(n));
    if (c.lines != n + 1 - first || sums.agreed(first, n, c.is_long()) == 0) continue;
    const std::uint64_t id = bucket.base + c.id;
    // mutant: wrap-ids-rise
    if (id <= last_id) {
      s.damage = broken(bucket.medium, bucket.place,
                        "has wrap " + std::to_string(id) + " behind " + std::to_string(last_id));
      return s;
    }
    s.wraps.push_back({id, first, n + 1, bucket.number, c.is_long()});
    last_id = id;
    sums.begin(first = n + 1);
  }
  s.end = first;
  // mutant: wrap-torn-wrap-detected
  if (wraps_follow(bucket, sums, first, last_id, covered))
    s.damage = broken(bucket.medium, bucket.place,
                      "breaks off at line " + std::to_string(first) + ", and wraps follow");
  s.summed = sums.summed;
  return s;
}

}  // namespace

WrapControl WrapLog::control(const medium::Medium& medium, const WrapPlace& place) {
  WrapControl c;
  const auto word = [&](std::uint64_t at) {
    return *reinterpret_cast<const std::uint64_t*>(medium.at(place.offset + at));
  };
  const auto whole = [&](std::uint64_t at) {
    return ControlWord::whole(place.identity, at, word(at), c.form);
  };
  const std::uint64_t epoch = word(epoch_word);
  if (epoch == 0) return c;  // a new pool
  c.form = ControlWord::form_of(place.identity, {{epoch_word, epoch}, {x_word, word(x_word)}});
  if (!whole(epoch_word) || ControlWord::value(epoch) > place.epoch) {
    c.damage = broken(medium, place, "names no session that it can be of");
    return c;
  }
  // mutant: wrap-log-epoch
  c.ours = ControlWord::value(epoch) == place.epoch;
  if (!c.ours) return c;
  bool all = whole(x_word);
  c.x = ControlWord::value(word(x_word));
  for (unsigned b = 0; b < place.buckets; ++b) {
    all = all && whole(base_word + b * 8);
    c.base[b] = ControlWord::value(word(base_word + b * 8));
  }
  // mutant: wrap-control-damage
  if (!all) c.damage = broken(medium, place, "has damaged control words");
  return c;
}

WrapScan WrapLog::scan(const medium::Medium& medium, const WrapPlace& place, unsigned bucket,
                       std::uint64_t base, std::uint64_t covered) {
  const Bucket lines{medium, place, bucket, base};
  return place.form == LogForm::checked ? scan_as<Sums>(lines, covered)
                                        : scan_as<FirstSums>(lines, covered);
}

}  // namespace perdure::papers::softwrap
