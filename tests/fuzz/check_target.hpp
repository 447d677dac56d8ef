// SPDX-License-Identifier: BSD-3-Clause
//
// Walks over damaged data: whatever the bytes of the data region are, Pool::check reports and
// Pool::checked_view throws, and no read leaves the pool. One pool has every container of the
// fuzzer's root. An input changes words of its data region, in memory, and the walks run over that;
// then the words are restored.
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "testing/recording_medium.hpp"
#include "tests/fuzz/ops_perform.hpp"

namespace perdure::fuzz {

class Damaged {
 public:
  /// The pool that all inputs share.
  static Damaged& one() {
    static Damaged pool;
    return pool;
  }

  /// `data`: 13 bytes per change: the meaning of the value, the word, the value. Returns whether a
  /// walk complained.
  bool walk(const std::uint8_t* data, std::size_t size) {
    std::vector<std::pair<std::uint64_t*, std::uint64_t>> old;
    for (std::size_t i = 0; i + 13 <= size && old.size() < 16; i += 13) {
      std::uint32_t place = 0;
      std::uint64_t value = 0;
      std::memcpy(&place, data + i + 1, 4);
      std::memcpy(&value, data + i + 5, 8);
      std::uint64_t* const word = data[i] % 8 == 7
                                      ? data_ + (pool::directory_offset / 8 + place % 64)
                                      : words_[place % words_.size()];
      old.emplace_back(word, *word);
      switch (data[i] / 8 % 4) {
        case 0: *word = value; break;
        case 1: *word ^= value; break;
        // A pointer into the middle of an object.
        case 2: *word = reinterpret_cast<std::uintptr_t>(words_[value % words_.size()]); break;
        // The contents of another word: a pointer to another node.
        default: *word = *words_[value % words_.size()]; break;
      }
    }
    const bool complained = !check() || !look();
    for (auto it = old.rbegin(); it != old.rend(); ++it) *it->first = it->second;
    return complained;
  }
  [[nodiscard]] bool sound() { return check() && look(); }
  [[nodiscard]] std::size_t words() const { return words_.size(); }

 private:
  using ThisPool = Pool<Root, engines<any_engine>>;

  Damaged() {
    medium::RecordingOptions o;
    o.log_bytes = pool::first_ring + (4 << 20);
    o.data_bytes = 64 * pool::chunk_bytes;
    o.max_data_bytes = 256 * pool::chunk_bytes;
    Options options;
    options.engine = "volatile/none";
    options.isolation = Isolation::caller;
    options.creation.log_size = 4 << 20;
    pool_.emplace(
        ThisPool::try_open_on("damaged", options, medium::RecordingMedium::make(o).value(), true)
            .value());
    std::mt19937_64 random(5);
    for (int n = 0; n < 400; ++n)
      pool_->update([&](auto& typed, Root& root) {
        Counts counts;
        WordsOf<std::remove_reference_t<decltype(typed)>> words(typed, counts);
        Changes tx(words);
        Op op;
        op.target = static_cast<unsigned>(random() % Op::targets);
        op.kind = static_cast<unsigned>(random() % 19);
        op.key = static_cast<std::uint8_t>(random()), op.x = static_cast<std::uint8_t>(random()),
        op.y = static_cast<std::uint8_t>(random());
        perform(tx, root, model_, op);
      });
    pool::OpenPool& file = pool_->file();
    data_ = reinterpret_cast<std::uint64_t*>(file.view());
    (void)pool::audit_heap(file.view(), file.header(),
                           [&](std::uint64_t offset, std::uint64_t bytes) {
                             for (std::uint64_t i = 0; i < bytes / 8; ++i)
                               words_.push_back(data_ + offset / 8 + i);
                           });
  }

  bool check() { return pool_->check().ok(); }
  bool look() {
    try {
      return pool_->checked_view([&](auto& typed, const Root& root) {
        Counts counts;
        WordsOf<std::remove_reference_t<decltype(typed)>> words(typed, counts);
        Reads tx(words);
        return difference(tx, root, model_).empty();
      });
    } catch (const error& e) {
      if (e.code() != Code::corrupt) throw;
      return false;
    } catch (const std::length_error&) {
      return false;
    }
  }

  std::optional<ThisPool> pool_;
  Model model_;
  std::uint64_t* data_ = nullptr;
  std::vector<std::uint64_t*> words_;  // of allocated blocks
};

}  // namespace perdure::fuzz
