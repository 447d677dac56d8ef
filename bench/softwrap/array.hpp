// SPDX-License-Identifier: BSD-3-Clause
//
// The array of SoftWrAP's micro-benchmarks (papers: SoftWrAP, MSST '15, sections V-B.2 and V-C): a
// wrap stores to n random words of a large array. The paper's words have 4 bytes, ours 8. With
// reuse, an element is, with the given probability, the element that the previous wrap had in its
// place (V-C.5).
// Thread safety: one Writer per thread, each on a part of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/rng.hpp"

namespace bench::softwrap {

template <class Model>
struct ArrayRoot {
  static constexpr const char* layout_id = "bench::softwrap::ArrayRoot/1";
  typename Model::template Link<typename Model::template Field<std::uint64_t>> words;

  /// For the library's check(): the heap blocks that the root owns.
  template <class Tx, class F>
  void each_block(Tx& tx, F&& f) const {
    f(tx.read(words));
  }
};

template <class Host>
void make_array(Host& host, std::uint64_t count) {
  using Word = typename Host::Model::template Field<std::uint64_t>;
  host.wrap(
      [count](auto& tx, auto& root) { tx.set(root.words, tx.template allocate<Word>(count)); });
}

/// The wraps of one thread over words [first, first + count).
class Writer {
 public:
  Writer(std::uint64_t first, std::uint64_t count, unsigned elements, unsigned reuse_percent,
         std::uint64_t stream)
      : first_(first),
        count_(count),
        reuse_percent_(reuse_percent),
        rng_(7, stream),
        at_(elements) {
    for (auto& a : at_) a = draw();
  }
  /// Chooses the words of the next wrap.
  void next() {
    for (auto& a : at_)
      if (reuse_percent_ == 0 || rng_.below(100) >= reuse_percent_) a = draw();
  }
  template <class Host>
  void wrap(Host& host) {
    host.wrap([this](auto& tx, auto& root) {
      const auto words = tx.get(root.words);
      for (std::size_t i = 0; i < at_.size(); ++i) tx.set(words[at_[i]], value_ + i);
    });
  }
  /// Called after a wrap: remembers what it stored, for the audit.
  void note() {
    for (std::size_t i = 0; i < at_.size(); ++i) remember(at_[i], value_ + i);
    value_ += at_.size();
  }
  /// Checks that the words stored to last contain what was stored. Throws std::runtime_error.
  template <class Host>
  void audit(Host& host) {
    std::sort(last_.begin(), last_.end());  // by word, then by value; values only grow
    host.view([this](auto& tx, const auto& root) {
      const auto words = tx.get(root.words);
      for (std::size_t i = 0; i < last_.size(); ++i) {
        const auto [at, value] = last_[i];
        if (i + 1 < last_.size() && last_[i + 1].first == at) continue;
        if (const std::uint64_t found = tx.get(words[at]); found != value)
          throw std::runtime_error("word " + std::to_string(at) + ": found " +
                                   std::to_string(found) + ", expected " + std::to_string(value));
      }
    });
  }

 private:
  static constexpr std::size_t remembered = 1 << 18;
  std::uint64_t draw() { return first_ + rng_.below(count_); }
  void remember(std::uint64_t at, std::uint64_t value) {
    if (last_.size() < remembered) {
      last_.emplace_back(at, value);
    } else {
      last_[oldest_] = {at, value};
      oldest_ = (oldest_ + 1) % remembered;
    }
  }
  const std::uint64_t first_, count_;
  const unsigned reuse_percent_;
  Rng rng_;
  std::vector<std::uint64_t> at_;
  std::uint64_t value_ = 1;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> last_;  // the newest stores: word, value
  std::size_t oldest_ = 0;
};

}  // namespace bench::softwrap
