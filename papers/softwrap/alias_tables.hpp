// SPDX-License-Identifier: BSD-3-Clause
//
// AliasTables: the two alias tables of global aliasing, and their life (papers: SoftWrAP, MSST '15,
// section IV-A, Figures 2 and 3). One is active and takes what is stored; the other is being
// retired: its values go home. Each is in one of five states:
//
//   E empty    A active    F full: not active any more, and wraps that were opened while it was are
//              open still
//   C closed: none of them is open, so all of its values are those of closed wraps, or what was
//   there before wraps that were aborted
//   R retired: home has its values; nobody looks there any more but wraps that were opened before
//
// A wrap is opened in one of four colours: which table is active, and whether the other one is in R
// (or E). Time goes in periods: one table is active for one period; the tables take turns. The
// paper counts the open wraps of each colour; here each thread shows its wrap's colour in a place
// of its own, and to ask for a count is to look at all of them: opening and closing write no line
// that threads share.
// What a table holds are words, and objects in pages (alias_pages.hpp); a word that is in one of
// its pages is not looked for among the others. A wrap sees at most one switch while it is open:
// the next one needs the table of its period to be E again.
//   A1 nobody looks at a table that is being emptied: not before every wrap has ended that might.
//   A2 what a wrap stores is in tables of its period or the next one.
// Thread safety: open, close, find, add by a wrap's thread; what changes a state by one thread
// (papers/softwrap/retirer.hpp); the rest by any.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "papers/softwrap/alias_pages.hpp"
#include "papers/softwrap/alias_table.hpp"
#include "perdure/base/thread_slot.hpp"

namespace perdure::log {

enum class TableState : char { empty = 'E', active = 'A', full = 'F', closed = 'C', retired = 'R' };

class AliasTables {
 public:
  explicit AliasTables(std::uint64_t entries, std::uint64_t page_bytes = AliasPages::default_bytes)
      : tables_{Table(entries, page_bytes), Table(entries, page_bytes)} {}

  class Table {
   public:
    Table(std::uint64_t entries, std::uint64_t page_bytes)
        : words(entries), pages(page_bytes, words.capacity()) {}
    /// Of words and objects: the word's value, or null.
    [[nodiscard]] std::uint64_t* find(std::uint64_t offset) noexcept {
      if (std::uint64_t* const v = pages.find(offset)) return v;
      return words.size() == 0 || !words.may_have(offset) ? nullptr : words.find(offset);
    }
    /// Entries of which it is full at `words.limit()`, or before: a page counts for half its words,
    /// as its size is.
    [[nodiscard]] std::uint64_t size() const noexcept {
      return words.size() + pages.size() * (pages.words() / 2);
    }
    [[nodiscard]] std::uint64_t capacity() const noexcept { return words.capacity(); }
    /// f(offset, value) for each; of a word that is in a page, too, the page's value comes later.
    template <class F>
    void for_each(F&& f) const {
      words.for_each(f);
      pages.for_each(f);
    }
    void clear() noexcept {
      words.clear();
      pages.clear();
    }
    void reset(std::uint64_t entries) {
      pages.reset(std::bit_ceil(entries));
      words.reset(entries);
    }

    AliasTable words;
    AliasPages pages;
  };

  /// Which table is active, by its low bit, and whether the other one may be looked at.
  class Moment {
   public:
    [[nodiscard]] std::uint64_t period() const noexcept { return bits_ >> 1; }
    [[nodiscard]] unsigned active() const noexcept { return static_cast<unsigned>(period() & 1); }
    [[nodiscard]] bool other_retired() const noexcept { return (bits_ & 1) != 0; }
    /// 0 to 3: the paper's A_X R_Y and so on.
    [[nodiscard]] unsigned colour() const noexcept { return static_cast<unsigned>(bits_ & 3); }

   private:
    friend class AliasTables;
    explicit Moment(std::uint64_t bits) noexcept : bits_(bits) {}
    std::uint64_t bits_;
  };

  [[nodiscard]] Moment now() const noexcept {
    return Moment(moment_.load(std::memory_order_acquire));
  }  // pairs with switch_over, note_retired
  [[nodiscard]] TableState state(unsigned table) const noexcept {
    return states_[table].load(std::memory_order_acquire);
  }
  [[nodiscard]] Table& table(unsigned table) noexcept { return tables_[table]; }
  [[nodiscard]] Table& active() noexcept { return tables_[now().active()]; }

  /// A wrap begins on the thread of `slot`: what it looks at is there until it closes.
  Moment open(int slot) noexcept {
    Place& mine = places_[static_cast<std::size_t>(slot)];
    int seen = used_.load(std::memory_order_relaxed);
    // pairs with any()
    while (seen <= slot &&
           !used_.compare_exchange_weak(seen, slot + 1, std::memory_order_acq_rel)) {}
    for (;;) {
      // pairs with switch_over, note_retired
      const std::uint64_t bits = moment_.load(std::memory_order_acquire);
      // pairs with the exchanges of moment_: we see the change, or are seen
      mine.colour.exchange(bits + 1, std::memory_order_seq_cst);
      if (moment_.load(std::memory_order_seq_cst) == bits) return Moment(bits);
    }
  }
  // pairs with any()
  void close(int slot) noexcept {
    places_[static_cast<std::size_t>(slot)].colour.store(0, std::memory_order_release);
  }

  /// Of a word that an open wrap asks for: null where home has the newest. Both tables but for one
  /// that is retired.
  [[nodiscard]] const std::uint64_t* find(std::uint64_t offset) noexcept {
    const Moment at = now();
    if (const std::uint64_t* v = tables_[at.active()].find(offset)) return v;
    return at.other_retired() ? nullptr : tables_[at.active() ^ 1].find(offset);
  }

  /// find() of n words from `offset`: values[i] is the newest one, home(i) where home has it.
  template <class Home>
  void read(std::uint64_t offset, std::uint64_t* values, std::uint64_t n, Home&& home) {
    const Moment at = now();  // before home is looked at: it has what these tables do not have
    std::array<Table*, 2> tables{&tables_[at.active()],
                                 at.other_retired() ? nullptr : &tables_[at.active() ^ 1]};
    for (Table*& t : tables)
      if (t != nullptr && t->size() == 0) t = nullptr;
    // of one page and region
    const std::uint64_t part = std::min(tables_[0].pages.words(), AliasTable::region_bytes / 8);
    for (std::uint64_t i = 0; i < n;) {
      std::array<const std::uint64_t*, 2> pages{};
      std::array<bool, 2> single{};  // whether there may be words with entries of their own
      for (std::size_t t = 0; t < 2; ++t)
        if (tables[t] != nullptr) {
          pages[t] = tables[t]->pages.look(offset);
          single[t] = tables[t]->words.size() != 0 && tables[t]->words.may_have(offset);
        }
      const std::uint64_t end = std::min(n, i + part - offset / 8 % part);
      if (pages[0] == nullptr && pages[1] == nullptr && !single[0] && !single[1]) {
        for (; i < end; ++i, offset += 8) values[i] = home(i);
        continue;
      }
      for (; i < end; ++i, offset += 8) {
        const std::uint64_t* v = nullptr;
        for (std::size_t t = 0; t < 2 && v == nullptr; ++t) {
          if (pages[t] != nullptr) v = tables[t]->pages.in(pages[t], offset);
          if (v == nullptr && single[t]) v = tables[t]->words.find(offset);
        }
        values[i] = v != nullptr ? *v : home(i);
      }
    }
  }

  // --- by the one who retires --------------------------------------------------------------------
  /// Whether a wrap is open that was opened in this period, in whichever colour.
  [[nodiscard]] bool any_of_period(std::uint64_t period) const noexcept {
    return any([=](std::uint64_t bits) { return bits >> 1 == period; });
  }
  /// Whether a wrap is open that may look at the other table though it is retired: A_Y and not R_X.
  [[nodiscard]] bool any_that_looks(std::uint64_t period) const noexcept {
    return any([=](std::uint64_t bits) { return bits == period << 1; });
  }
  [[nodiscard]] bool any_open() const noexcept {
    return any([](std::uint64_t) { return true; });
  }
  /// How many wraps are open in each of the four colours.
  [[nodiscard]] std::array<unsigned, 4> counts() const noexcept {
    std::array<unsigned, 4> n{};
    (void)any([&](std::uint64_t bits) {
      ++n[bits & 3];
      return false;
    });
    return n;
  }
  /// A -> F and E -> A: the next period begins.
  void switch_over() noexcept {
    const Moment at = now();
    set(at.active() ^ 1, TableState::active);
    set(at.active(), TableState::full);
    moment_.exchange((at.period() + 1) << 1, std::memory_order_seq_cst);  // pairs with open
  }
  /// F -> C: any_of_period(the last one) has said no.
  void note_closed() noexcept { set(now().active() ^ 1, TableState::closed); }
  /// C -> R: home has the values durably.
  void note_retired() noexcept {
    set(now().active() ^ 1, TableState::retired);
    moment_.exchange(now().period() << 1 | 1,
                     // pairs with open; release: who takes a word from home finds it there
                     std::memory_order_seq_cst);
  }
  /// R -> E: any_that_looks(this period) has said no (A1). `entries`: more than it had room for, or
  /// 0.
  void empty(std::uint64_t entries) {
    Table& t = tables_[now().active() ^ 1];
    if (entries > t.capacity())
      t.reset(entries);
    else
      t.clear();
    set(now().active() ^ 1, TableState::empty);
  }

 private:
  struct alignas(128) Place {
    // 0: no wrap is open; else the moment at which it was opened, + 1
    std::atomic<std::uint64_t> colour{0};
  };
  template <class F>
  [[nodiscard]] bool any(F&& f) const noexcept {
    const int n = used_.load(std::memory_order_acquire);  // pairs with open
    for (int i = 0; i < n; ++i)
      // seq_cst pairs with open's exchange; acquire with close: what the wrap has stored is seen
      if (const std::uint64_t c =
              places_[static_cast<std::size_t>(i)].colour.load(std::memory_order_seq_cst);
          c != 0 && f(c - 1))
        return true;
    return false;
  }
  // pairs with state()
  void set(unsigned table, TableState state) noexcept {
    states_[table].store(state, std::memory_order_release);
  }

  std::array<Table, 2> tables_;
  std::array<std::atomic<TableState>, 2> states_{TableState::active, TableState::empty};
  alignas(128) std::atomic<std::uint64_t> moment_{1};  // period 0, the other one empty
  alignas(128) std::atomic<int> used_{0};
  std::array<Place, base::max_threads> places_;
};

}  // namespace perdure::log
