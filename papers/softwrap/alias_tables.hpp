// SPDX-License-Identifier: BSD-3-Clause
//
// AliasTables: the two alias tables of global aliasing, and their life cycle (papers: SoftWrAP,
// MSST '15, section IV-A, Figures 2 and 3). One is active and takes what is stored; the other is
// being retired, which means that its values are stored to the data region (a checkpoint). Each is
// in one of five states:
//
//   E  empty
//   A  active
//   F  full: not active any more, and wraps that were opened while it was are still open
//   C  closed: none of them is open, so all of its values are those of closed wraps, or what was
//      there before wraps that were aborted
//   R  retired: the data region has its values; only wraps that were opened before still read it
//
// A wrap is opened in one of four colours: which table is active, and whether the other one is in R
// (or E). Time is divided into periods: one table is active for one period, and the tables take
// turns. The paper counts the open wraps of each colour. Here each thread shows its wrap's colour
// in a place of its own, and a count reads all of them: opening and closing write no line that
// threads share.
// A table holds words, and objects in pages (alias_pages.hpp); a word that is in one of its pages
// is not looked up among the others. A wrap sees at most one switch while it is open: the next one
// needs the table of its period to be E again.
//   ALIAS-1 No wrap reads a table that is being emptied: it is emptied only after every wrap has
//           ended that might read it.
//   ALIAS-2 What a wrap stores is in tables of its period or the next one.
// Thread safety: a wrap's thread calls open, close, find and add; one thread calls what changes a
// state (papers/softwrap/retirer.hpp); any thread calls the rest.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "papers/names.hpp"
#include "papers/softwrap/alias_pages.hpp"
#include "papers/softwrap/alias_table.hpp"
#include "perdure/base/thread_slot.hpp"

namespace perdure::papers::softwrap {

enum class TableState : char { empty = 'E', active = 'A', full = 'F', closed = 'C', retired = 'R' };

class AliasTables {
 public:
  explicit AliasTables(std::uint64_t entries, std::uint64_t page_bytes = AliasPages::default_bytes)
      : tables_{Table(entries, page_bytes), Table(entries, page_bytes)} {}

  class Table {
   public:
    Table(std::uint64_t entries, std::uint64_t page_bytes)
        : words(entries), pages(page_bytes, words.capacity()) {}
    /// Finds a word among words and objects: its value, or null.
    [[nodiscard]] std::uint64_t* find(std::uint64_t offset) noexcept {
      if (std::uint64_t* const v = pages.find(offset)) return v;
      return words.size() == 0 || !words.may_have(offset) ? nullptr : words.find(offset);
    }
    /// Returns the number of entries, of which it is full at `words.limit()` or before: a page
    /// counts as half its words, as its size does.
    [[nodiscard]] std::uint64_t size() const noexcept {
      return words.size() + pages.size() * (pages.words() / 2);
    }
    [[nodiscard]] std::uint64_t capacity() const noexcept { return words.capacity(); }
    /// Calls f(offset, value) for each; for a word that is also in a page, the page's value comes
    /// later.
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

  /// Which table is active, by its low bit, and whether the other one may be read.
  class Moment {
   public:
    [[nodiscard]] std::uint64_t period() const noexcept { return bits_ >> 1; }
    [[nodiscard]] unsigned active() const noexcept { return static_cast<unsigned>(period() & 1); }
    [[nodiscard]] bool other_retired() const noexcept { return (bits_ & 1) != 0; }
    /// Returns 0 to 3: the paper's A_X R_Y and so on.
    [[nodiscard]] unsigned colour() const noexcept { return static_cast<unsigned>(bits_ & 3); }

   private:
    friend class AliasTables;
    explicit Moment(std::uint64_t bits) noexcept : bits_(bits) {}
    std::uint64_t bits_;
  };

  [[nodiscard]] Moment now() const noexcept {
    return Moment(moment_.load(std::memory_order_acquire));
  }  // pairs with switch_over(), note_retired()
  [[nodiscard]] TableState state(unsigned table) const noexcept {
    return states_[table].load(std::memory_order_acquire);
  }
  [[nodiscard]] Table& table(unsigned table) noexcept { return tables_[table]; }
  [[nodiscard]] Table& active() noexcept { return tables_[now().active()]; }

  /// Opens a wrap on the thread of `slot`: the tables that it reads exist until it closes.
  Moment open(int slot) noexcept {
    Place& mine = places_[static_cast<std::size_t>(slot)];
    int seen = used_.load(std::memory_order_relaxed);
    // seq_cst: pairs with any(), as the exchange below does: it sees the place, or the wrap sees
    // the change of moment_.
    while (seen <= slot &&
           !used_.compare_exchange_weak(seen, slot + 1, std::memory_order_seq_cst)) {}
    for (;;) {
      // Acquire: pairs with switch_over(), note_retired().
      const std::uint64_t bits = moment_.load(std::memory_order_acquire);
      // Pairs with the exchanges of moment_: this thread sees the change, or is seen.
      mine.colour.exchange(bits + 1, std::memory_order_seq_cst);
      if (moment_.load(std::memory_order_seq_cst) == bits) return Moment(bits);
    }
  }
  // Release: pairs with the acquire in any().
  void close(int slot) noexcept {
    places_[static_cast<std::size_t>(slot)].colour.store(0, std::memory_order_release);
  }

  /// Finds a word for an open wrap: null where the data region has the newest value. It searches
  /// both tables, except one that is retired.
  [[nodiscard]] const std::uint64_t* find(std::uint64_t offset) noexcept {
    const Moment at = now();
    if (const std::uint64_t* v = tables_[at.active()].find(offset)) return v;
    return at.other_retired() ? nullptr : tables_[at.active() ^ 1].find(offset);
  }

  /// find() of n words from `offset`: values[i] is the newest one, home(i) where the data region
  /// has it.
  template <class Home>
  void read(std::uint64_t offset, std::uint64_t* values, std::uint64_t n, Home&& home) {
    const Moment at = now();  // before the data is read: it has what these tables do not have
    std::array<Table*, 2> tables{&tables_[at.active()],
                                 at.other_retired() ? nullptr : &tables_[at.active() ^ 1]};
    for (Table*& t : tables)
      if (t != nullptr && t->size() == 0) t = nullptr;
    // A part lies in one page and one region.
    const std::uint64_t part = std::min(tables_[0].pages.words(), AliasTable::region_bytes / 8);
    for (std::uint64_t i = 0; i < n;) {
      std::array<const std::uint64_t*, 2> pages{};
      std::array<bool, 2> single{};  // whether words may have entries of their own
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

  // --- called by the thread that retires ---------------------------------------------------------
  /// Returns whether a wrap is open that was opened in this period, in any colour.
  [[nodiscard]] bool any_of_period(std::uint64_t period) const noexcept {
    return any([=](std::uint64_t bits) { return bits >> 1 == period; });
  }
  /// Returns whether a wrap is open that may read the other table although it is retired: A_Y, not
  /// R_X.
  [[nodiscard]] bool any_that_looks(std::uint64_t period) const noexcept {
    return any([=](std::uint64_t bits) { return bits == period << 1; });
  }
  [[nodiscard]] bool any_open() const noexcept {
    return any([](std::uint64_t) { return true; });
  }
  /// Returns how many wraps are open in each of the four colours.
  [[nodiscard]] std::array<unsigned, 4> counts() const noexcept {
    std::array<unsigned, 4> n{};
    (void)any([&](std::uint64_t bits) {
      ++n[bits & 3];
      return false;
    });
    return n;
  }
  /// A -> F and E -> A: begins the next period.
  void switch_over() noexcept {
    const Moment at = now();
    set(at.active() ^ 1, TableState::active);
    set(at.active(), TableState::full);
    moment_.exchange((at.period() + 1) << 1, std::memory_order_seq_cst);  // pairs with open()
  }
  /// F -> C. Precondition: any_of_period(the last period) has returned false.
  void note_closed() noexcept { set(now().active() ^ 1, TableState::closed); }
  /// C -> R. Precondition: the data region has the values durably.
  void note_retired() noexcept {
    set(now().active() ^ 1, TableState::retired);
    moment_.exchange(now().period() << 1 | 1,
                     // Pairs with open(). Release: a thread that reads a word in the data region
                     // finds it there.
                     std::memory_order_seq_cst);
  }
  /// R -> E. Precondition: any_that_looks(this period) has returned false (ALIAS-1). `entries`: a
  /// new capacity that is larger than its present one, or 0.
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
    // 0: no wrap is open; otherwise the moment at which it was opened, + 1.
    std::atomic<std::uint64_t> colour{0};
  };
  template <class F>
  [[nodiscard]] bool any(F&& f) const noexcept {
    const int n = used_.load(std::memory_order_seq_cst);  // pairs with open()
    for (int i = 0; i < n; ++i)
      // seq_cst pairs with open's exchange; acquire with close(): what the wrap has stored is seen.
      if (const std::uint64_t c =
              places_[static_cast<std::size_t>(i)].colour.load(std::memory_order_seq_cst);
          c != 0 && f(c - 1))
        return true;
    return false;
  }
  // Release: pairs with the acquire in state().
  void set(unsigned table, TableState state) noexcept {
    states_[table].store(state, std::memory_order_release);
  }

  std::array<Table, 2> tables_;
  std::array<std::atomic<TableState>, 2> states_{TableState::active, TableState::empty};
  alignas(128) std::atomic<std::uint64_t> moment_{1};  // period 0, the other table empty
  alignas(128) std::atomic<int> used_{0};
  std::array<Place, base::max_threads> places_;
};

}  // namespace perdure::papers::softwrap
