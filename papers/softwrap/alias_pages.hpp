// SPDX-License-Identifier: BSD-3-Clause
//
// AliasPages: the aliases of objects (papers: SoftWrAP, MSST '15, section IV): pages of shadow
// DRAM, with one entry of a hash table per page, beside the entries of single words
// (alias_table.hpp). The page's size is tunable; the paper's is 1 KB.
//
// The paper fills the part of a new page that a write leaves out from the data region. Here a bit
// per word of a page says whether the word is there: a writer of a part of a page need not know the
// page's other words, which other wraps may be writing at this moment. Reading and retirement
// merge: a word is in the page if its bit is set, otherwise it has an entry of its own, or none.
// Thread safety: as AliasTable: one thread at a time writes a word and its bit; other threads may
// write its neighbours. clear, reset: no other thread is here.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "papers/names.hpp"
#include "papers/softwrap/alias_table.hpp"
#include "papers/softwrap/options.hpp"

namespace perdure::papers::softwrap {

class AliasPages {
 public:
  static constexpr std::uint64_t default_bytes = 1024,
                                 min_bytes = papers::SoftwrapOptions::min_page_bytes,
                                 max_bytes = papers::SoftwrapOptions::max_page_bytes;

  /// `page_bytes`: a power of two within the bounds. There is space for `entries` words in full
  /// pages.
  AliasPages(std::uint64_t page_bytes, std::uint64_t entries)
      : words_(page_bytes / 8), index_(pages_of(entries)) {}

  /// Returns the number of pages.
  [[nodiscard]] std::uint64_t size() const noexcept { return index_.size(); }
  [[nodiscard]] std::uint64_t words() const noexcept { return words_; }  ///< per page
  /// Returns the word's value, or null.
  [[nodiscard]] std::uint64_t* find(std::uint64_t offset) noexcept {
    std::uint64_t* const page = look(offset);
    return page == nullptr ? nullptr : in(page, offset);
  }
  /// look() returns the page that the word would be in, or null; in() returns the word in it, or
  /// null.
  [[nodiscard]] std::uint64_t* look(std::uint64_t offset) noexcept {
    return index_.size() == 0 ? nullptr : page_of(offset);
  }
  template <class Word>
  [[nodiscard]] Word* in(Word* page, std::uint64_t offset) const noexcept {
    const std::uint64_t w = offset / 8 % words_;
    // Acquire: pairs with the release in write().
    if ((mask(page, w).load(std::memory_order_acquire) >> w % 64 & 1) == 0) return nullptr;
    return data(page) + w;
  }

  /// The change that a write makes to one group of 64 words.
  struct Change {
    std::atomic<std::uint64_t>* mask;
    std::uint64_t bits;    ///< words that were not there
    std::uint64_t* first;  ///< the group's first word
  };
  /// Gives words [offset, offset + n x 8) these values. before(Change, present) is called before a
  /// group changes; `present`: those of its words that are there and will be overwritten. An
  /// exception from it leaves the group as it was. Returns false if there is no space for another
  /// page; a part may have been written.
  template <class Before>
  bool write(std::uint64_t offset, const std::uint64_t* values, std::uint64_t n, Before&& before) {
    while (n != 0) {
      std::uint64_t* const page = make(offset);
      if (page == nullptr) return false;
      const std::uint64_t w = offset / 8 % words_, part = std::min(n, 64 - w % 64);
      const std::uint64_t wanted = (part == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << part) - 1)
                                   << w % 64;
      std::atomic<std::uint64_t>& m = mask(page, w);
      // These bits are this thread's: no other thread changes them.
      const std::uint64_t there = m.load(std::memory_order_relaxed) & wanted;
      before(Change{&m, wanted & ~there, data(page) + w / 64 * 64}, there);
      std::memcpy(data(page) + w, values, part * 8);
      m.fetch_or(wanted, std::memory_order_release);  // pairs with in()
      offset += part * 8;
      values += part;
      n -= part;
    }
    return true;
  }
  /// Makes the change's new words as if they had never been there. Called by the thread that wrote
  /// them.
  // Release: pairs with the acquire in in().
  static void forget(const Change& c) noexcept {
    c.mask->fetch_and(~c.bits, std::memory_order_release);
  }
  /// Calls f(offset, value) for each word.
  template <class F>
  void for_each(F&& f) const {
    index_.for_each([&](std::uint64_t key, std::uint64_t pointer) {
      auto* const page = reinterpret_cast<std::uint64_t*>(pointer);
      for (std::uint64_t w = 0; w < words_; ++w)
        if ((mask(page, w).load(std::memory_order_acquire) >> w % 64 & 1) != 0)
          f(key * words_ + w * 8, data(page)[w]);  // pairs with write(), forget()
    });
  }
  void clear() noexcept {
    index_.clear();
    used_ = 0;
  }
  /// Empties it and makes space for `entries` words in full pages. Throws std::bad_alloc,
  /// unchanged.
  void reset(std::uint64_t entries) {
    index_.reset(pages_of(entries));
    used_ = 0;
  }

 private:
  // A page: one bit per word, then the words.
  template <class Word>
  [[nodiscard]] static auto& mask(Word* page, std::uint64_t w) noexcept {
    using Mask = std::conditional_t<std::is_const_v<Word>, const std::atomic<std::uint64_t>,
                                    std::atomic<std::uint64_t>>;
    return *reinterpret_cast<Mask*>(page + w / 64);
  }
  template <class Word>
  [[nodiscard]] Word* data(Word* page) const noexcept {
    return page + words_ / 64;
  }
  [[nodiscard]] std::uint64_t key_of(std::uint64_t offset) const noexcept {
    return offset / (words_ * 8) * 8;
  }  // a multiple of 8, as a word's offset is
  [[nodiscard]] std::uint64_t* page_of(std::uint64_t offset) noexcept {
    const std::uint64_t* const entry = index_.find(key_of(offset));
    return entry == nullptr ? nullptr : reinterpret_cast<std::uint64_t*>(*entry);
  }
  [[nodiscard]] std::uint64_t pages_of(std::uint64_t entries) const noexcept {
    return std::max<std::uint64_t>(entries / words_, 64);
  }
  /// Returns the word's page, which is made if it is missing; null: there is no space.
  [[nodiscard]] std::uint64_t* make(std::uint64_t offset) {
    if (std::uint64_t* const page = page_of(offset)) return page;
    const std::lock_guard lock(mutex_);
    if (std::uint64_t* const page = page_of(offset)) return page;
    if (used_ == pages_.size())
      pages_.push_back(std::make_unique<std::uint64_t[]>(words_ / 64 + words_));
    std::uint64_t* const page = pages_[used_].get();
    std::fill_n(page, words_ / 64, 0);
    if (index_.add(key_of(offset), reinterpret_cast<std::uint64_t>(page)) == nullptr)
      return nullptr;
    ++used_;
    return page;
  }

  const std::uint64_t words_;
  AliasTable index_;
  std::mutex mutex_;  // held while a page is made
  std::vector<std::unique_ptr<std::uint64_t[]>> pages_;
  std::size_t used_ = 0;
};

}  // namespace perdure::papers::softwrap
