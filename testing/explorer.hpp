// SPDX-License-Identifier: BSD-3-Clause
//
// Explorer: recovers from the images that a power cut could have left of a program, and from those
// of power cuts in recovery, and in that recovery's recovery, and has each result judged.
//
// Points: just before each fence takes effect, and at each acknowledgement; everything that could
// be left between two points could also be left at the later one. At a point every line holds one
// of its variants (persistency.hpp), independently of the others: all combinations if there are at
// most Limits::combinations, otherwise none, all, each line alone, all but one, each page alone,
// and random ones. Images that were judged before (identified by their hash and by what was
// acknowledged) are not judged again.
// Source: exhaustive crash images with deduplication as in Yat (USENIX ATC '14) and Vinter (USENIX
// ATC '22); nested crashes as in Jaaru (ASPLOS '21).
// Thread safety: one thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "testing/arena.hpp"
#include "testing/persistency.hpp"

namespace perdure::crash {

using medium::Model;
using medium::Persistency;
using medium::Random;
using medium::Variant;

inline constexpr unsigned max_depth = 4;
inline constexpr std::size_t max_threads = 8;

/// What must hold for a recovered pool.
struct Crash {
  /// the first `least` steps (of the test's thread 0) were acknowledged
  std::uint64_t least = 0;
  /// no step with this number or above had begun
  std::uint64_t most = 0;
  /// the same as `least`, for each of the test's threads
  std::array<std::uint64_t, max_threads> min_of{};
  /// of the recovered pool's last transaction, set when it is checked
  std::uint64_t last_id = 0;
  /// the pool exists: until the first begin or acknowledgement it may be refused as no pool
  bool created = false;
  unsigned depth = 0;  ///< the number of recoveries that were interrupted before this one
  /// the interrupted recovery had ended in `digest`, and so must this one (LAW-5)
  bool has_digest = false;
  std::uint64_t digest = 0;
};

struct Verdict {
  std::string problem;       ///< empty: all is well
  std::uint64_t digest = 0;  ///< of the state that recovery produced
};

/// What is explored: how a pool on a medium is recovered and checked.
class Subject {
 public:
  virtual ~Subject();
  /// Recovers the pool on `medium`, whose data region lies at `data`, and judges it. Throws
  /// nothing.
  virtual Verdict judge(std::unique_ptr<medium::Medium> medium, const std::byte* data,
                        const Crash& crash) = 0;
};

struct Limits {
  std::size_t combinations = 64;  ///< all images of a point are made if there are at most this many
  std::size_t of_line = 12;       ///< variants of one line
  std::size_t singles = 6;        ///< lines taken alone, and lines left out
  std::size_t randoms = 8;
};

struct ExploreOptions {
  Model model = Model::px86;
  std::uint64_t seed = 1;
  /// of power cuts in recovery; maximum: max_depth
  unsigned depth = 2;
  /// limits of the program's points, and of recovery's
  Limits outer, nested{12, 6, 2, 3};
  /// at depth d every nest_every[d]-th recovery is interrupted in turn
  std::array<unsigned, max_depth + 1> nest_every{8, 16, 16, 16, 16};
  std::uint64_t max_recoveries = ~std::uint64_t{0};
  /// Only points at which `from` to `to` steps had begun are explored: this examines a long program
  /// in its middle, where its logs have wrapped.
  std::uint64_t from = 0, to = ~std::uint64_t{0};
  std::uint64_t every = 1;  ///< one in `every` points is explored
  double seconds = 1e9;
};

struct Counts {
  std::uint64_t points = 0, images = 0;  ///< images: those made, judged before or not
  std::uint64_t recoveries = 0;          ///< recoveries run and judged
  std::uint64_t distinct = 0;            ///< how many of these were of different images
  std::array<std::uint64_t, max_depth + 1> at_depth{};
  unsigned deepest = 0;
  double seconds = 0;
  Counts& operator+=(const Counts& o) noexcept;
};

/// The images judged so far; one object may serve several runs of one workload.
struct Seen {
  std::unordered_set<std::uint64_t> judged;  ///< image and acknowledgements
  std::unordered_set<std::uint64_t> images;
};

class Explorer {
 public:
  Explorer(Arena& arena, Image& image, Subject& subject, const ExploreOptions& options, Seen& seen);

  /// Explores what a program did, starting with the image that the medium held before. Stops at the
  /// first failure.
  void run(const medium::Trace& trace);
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
  /// The problem, where it occurred, and what the power cut left; empty if there is none.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

 private:
  struct Level {
    Persistency pending;
    medium::Trace trace;  // of the recovery that this level interrupts
    std::string where;
  };
  void level(const medium::Trace& trace, Crash crash);
  void point(Level& level, const Crash& crash);
  void image(const Crash& crash, const std::vector<Word>& overlay);
  [[nodiscard]] bool over() const;
  [[nodiscard]] std::string described(const std::vector<Word>& overlay) const;

  Arena& arena_;
  Image& image_;
  Subject& subject_;
  const ExploreOptions options_;
  Seen& seen_;
  Random random_;
  Counts counts_;
  std::uint64_t seen_points_ = 0;  // all points, explored or not
  std::string failure_;
  std::vector<std::unique_ptr<Level>> levels_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace perdure::crash
