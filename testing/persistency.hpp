// SPDX-License-Identifier: BSD-3-Clause
//
// Persistency: which of the stored words are surely durable, and what a power cut may leave of the
// others.
//
// px86 (Raad et al., POPL '20; Khyzha & Lahav, POPL '21): a 64-byte line holds its ordinary stores
// in order; a power cut leaves a prefix of them. clwb captures the line's prefix, which is durable
// after the next fence of that thread. A non-temporal store's 8-byte pieces are durable after the
// next fence of the thread that made them; until then each piece may be there or not,
// independently. Lines are independent. A flush_all consists of write-backs and a fence of the
// thread that calls it (marked.hpp), so this model has no rule for it.
// adversarial: any of the values that a word was given since it was last surely durable, word by
// word. It covers what compilers reorder, pages and sectors torn on files (MEDIUM-5), and hardware
// that promises less.
// In both models one word's stores stay in order, and what is durable stays durable.
// Thread safety: none of its own.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

#include "testing/image.hpp"
#include "testing/trace.hpp"

namespace perdure::medium {

enum class Model : std::uint8_t { px86, adversarial };

using Random = std::mt19937_64;

/// What a line may hold after a power cut, apart from what is surely durable.
struct Variant {
  std::uint8_t mask = 0;  ///< which of the line's words differ
  std::array<std::uint64_t, 8> value{};
};

class Persistency {
 public:
  explicit Persistency(Image& image) : image_(image), slot_(image.size() / 8, 0) {}

  /// Makes the file at least `words` words long.
  void cover(std::size_t words) {
    image_.cover(words);
    if (image_.size() / 8 > slot_.size()) slot_.resize(image_.size() / 8, 0);
  }
  /// Forgets everything pending: the image alone remains.
  void reset();
  /// Applies an event of a program that runs on this image: the program's fences move words into
  /// the image.
  void apply(const Trace& trace, const TraceEvent& event);

  /// The lines that hold more than what is surely durable, in no particular order.
  [[nodiscard]] const std::vector<std::uint32_t>& lines() const noexcept { return open_; }
  /// Was word number `word` of the file given a value that is not surely durable?
  [[nodiscard]] bool pending(std::uint64_t word) const noexcept;
  /// The contents that `line` may have; the last one has all its stores. All of them if there are
  /// at most `most`, otherwise a sample: one store alone, all but one, the first ones, or any.
  void variants(std::uint32_t line, Model model, std::size_t most, Random& random,
                std::vector<Variant>& out) const;

 private:
  struct Store {
    std::uint64_t value, time;
    std::uint16_t thread;
    std::uint8_t word;
    bool streamed;
    /// its process was killed: no fence belongs to it, but any thread's flush and fence make it
    /// durable, streamed or not
    bool orphan = false;
  };
  struct Line {
    std::vector<Store> stores;  // in order
    std::uint32_t at = 0;       // its index in open_
  };
  struct Capture {
    std::uint32_t line;
    std::uint64_t time;  // covers the ordinary stores up to then
  };
  struct Thread {
    std::vector<Capture> captures;
    std::vector<std::uint32_t> streamed;  // line numbers
  };

  void wrote(const Trace& trace, const TraceEvent& event);
  void flushed(const TraceEvent& event);
  void fenced(std::uint16_t thread);
  void killed();
  void lost(const Trace& trace, const TraceEvent& event);
  template <class Sure>
  void settle(std::uint32_t line, Sure&& sure);
  void close(std::uint32_t line);
  template <class Include>
  bool compose(const Line& line, std::uint32_t index, Include&& include, Variant& v) const;

  Image& image_;
  std::vector<std::uint32_t> slot_;  // per line: its index in lines_ + 1, or 0
  std::vector<Line> lines_;
  std::vector<std::uint32_t> free_, open_;
  std::unordered_map<std::uint16_t, Thread> threads_;
  std::uint64_t time_ = 0;
};

}  // namespace perdure::medium
