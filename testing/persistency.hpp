// SPDX-License-Identifier: BSD-3-Clause
//
// Persistency: which of the words that were stored are surely durable, and what a power cut may
// leave of the others.
//
// px86 (Raad et al., POPL '20; Khyzha & Lahav, POPL '21): a 64-byte line holds its ordinary stores
// in order; a power cut leaves a prefix of them. clwb captures the line's prefix, which is durable
// after the next fence of that thread. A non-temporal store's 8-byte pieces are durable after the
// next fence of the thread that made them, and until then there or not, each by itself. Lines are
// independent. A flush_all is write-backs and a fence of the thread that calls it (marked.hpp), and
// so nothing that this model knows. adversarial: any of the values that a word was given since it
// was last surely durable, word by word. It covers what compilers reorder, pages and sectors torn
// on files (M5), and hardware that promises less. Both keep that one word's stores are in order,
// and that what is durable stays.
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

/// What a line may hold after a power cut, other than what is surely durable.
struct Variant {
  std::uint8_t mask = 0;  ///< which of its words differ
  std::array<std::uint64_t, 8> value{};
};

class Persistency {
 public:
  explicit Persistency(Image& image) : image_(image), slot_(image.size() / 8, 0) {}

  /// The file has at least `words` words.
  void cover(std::size_t words) {
    image_.cover(words);
    if (image_.size() / 8 > slot_.size()) slot_.resize(image_.size() / 8, 0);
  }
  /// Nothing is pending: the image is all there is.
  void reset();
  /// What an event of a program that runs on this image does to it: its fences move words into the
  /// image.
  void apply(const Trace& trace, const TraceEvent& event);

  /// The lines that hold more than what is surely durable, in no order.
  [[nodiscard]] const std::vector<std::uint32_t>& lines() const noexcept { return open_; }
  /// Was word number `word` of the file given a value that is not surely durable?
  [[nodiscard]] bool pending(std::uint64_t word) const noexcept;
  /// What `line` may hold, the last being all that it was given. All of it if that is at most
  /// `most`, else drawn: one store alone, all but one, the first few, or any.
  void variants(std::uint32_t line, Model model, std::size_t most, Random& random,
                std::vector<Variant>& out) const;

 private:
  struct Store {
    std::uint64_t value, time;
    std::uint16_t thread;
    std::uint8_t word;
    bool streamed;
    /// its process was killed: no fence is its own, but anybody's flush and fence make it durable,
    /// streamed or not
    bool orphan = false;
  };
  struct Line {
    std::vector<Store> stores;  // in order
    std::uint32_t at = 0;       // in open_
  };
  struct Capture {
    std::uint32_t line;
    std::uint64_t time;  // ordinary stores up to then
  };
  struct Thread {
    std::vector<Capture> captures;
    std::vector<std::uint32_t> streamed;  // lines
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
  std::vector<std::uint32_t> slot_;  // by line: index in lines_ + 1, or 0
  std::vector<Line> lines_;
  std::vector<std::uint32_t> free_, open_;
  std::unordered_map<std::uint16_t, Thread> threads_;
  std::uint64_t time_ = 0;
};

}  // namespace perdure::medium
