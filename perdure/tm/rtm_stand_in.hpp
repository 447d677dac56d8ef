// SPDX-License-Identifier: BSD-3-Clause
//
// RtmStandIn: Htm's hardware in software, so that tries, lock, commit timestamps and what engines
// do around them run on machines without RTM. For tests: it is slower than `stm`, and it aborts at
// random.
//
// NOrec (Dalessandro, Spear, Scott, PPoPP '10): one sequence lock, odd while a commit writes;
// stores are buffered; what was read is compared by value whenever the sequence has moved, so a try
// never sees two states (opacity). The lock's holder keeps the sequence odd, as RTM's holder has
// aborted all: a try that reads then is aborted. Like hardware, it aborts when too many lines were
// touched (Limits), and at random. There are no registers to roll back, so an abort is a Conflict.
// A store buffer can be modelled (Limits::store_buffer): what show() stores becomes visible to
// other threads when the buffer drains, and a try's lines are owned then: at drain(), or at the
// try's end. So a protocol that lacks its drain(), or has an instruction there that drains nothing
// in a transaction, is found without RTM.
// Thread safety: as Htm. Every access to the pool's words is atomic: a try reads what other threads
// are writing.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "perdure/base/checksum.hpp"
#include "perdure/tm/htm.hpp"
#include "perdure/tm/write_set.hpp"

namespace perdure::tm {

struct RtmStandIn {
  static constexpr const char* name = "htm-stand-in";
  static constexpr bool buffers = true, returns_to_start = false;
  /// What it does under a scheduler can be repeated, the timestamps in a log included.
  using Clock = StampClockOf<CountedTicks>;

  static Status supported() { return {}; }
  /// Aborts the try that the calling thread is in, as an instruction that no transaction may
  /// contain.
  static void leave();

  /// They apply to the objects `Transaction` made from then on. For tests.
  struct Limits {
    /// what a try may touch: a first-level cache of 32 KiB, and the area that reads spill to
    std::uint32_t lines_read = 8192, lines_written = 512;
    std::uint32_t abort_one_in = 2000;  ///< accesses; 0: never
    bool store_buffer = false;          ///< model a store buffer
    /// true: drain() in a try is an MFENCE; false: a locked instruction, which drains nothing there
    bool drains_in_try = true;
    /// called where another thread may continue, for tests that decide which one does
    void (*point)() = nullptr;
  };
  static void point() noexcept {
    if (void (*const p)() = limits().point; p != nullptr) p();
  }
  static Limits& limits() noexcept {
    static Limits all;
    return all;
  }

  struct Shared {
    alignas(128) std::atomic<std::uint64_t> sequence{0};
  };

  class Try {
   public:
    Try(const Try&) = delete;
    Try& operator=(const Try&) = delete;
    Try(Shared& shared, const std::atomic<bool>& held, int slot)
        : shared_(shared),
          held_(held),
          limits_(limits()),
          random_(base::mix(static_cast<std::uint64_t>(slot) + 1)) {}

    Abort start() noexcept;
    void show(std::atomic<std::uint64_t>& a, std::uint64_t v) noexcept;
    void drain() noexcept;
    [[nodiscard]] std::uint64_t draw(const Clock& clock, int slot) const noexcept {
      return owns_late_ ? clock.draw(slot, counter_) : clock.draw(slot);
    }
    void abort_held() noexcept { cancel(); }
    void abort_conflict() { abort(Abort::conflict); }
    [[nodiscard]] std::uint64_t read(const std::uint64_t* a) {
      touch(a, read_bit);
      if (const std::uint64_t* const place = writes_.find(address_of(a)))
        return stores_[*place].value;
      // The acquire pairs with the release stores of a commit's last_point_of_failure(), so that
      // the sequence below is not older than v.
      std::uint64_t v = load_word(a);
      while (shared_.sequence.load(std::memory_order_relaxed) != snapshot_) {
        validate();
        v = load_word(a);
      }
      reads_.push_back({a, v});
      return v;
    }
    void own(const std::uint64_t* a) { touch(a, write_bit); }
    /// Makes space for put(), which can't fail.
    void keep(std::uint64_t* a) {
      if (writes_.find(address_of(a)) != nullptr) return;
      ++kept_;
      writes_.reserve(kept_);
      if (stores_.capacity() < stores_.size() + kept_)
        stores_.reserve((stores_.size() + kept_) * 2);
    }
    void put(std::uint64_t* a, std::uint64_t v) noexcept;
    /// Called when heap state that other threads change outside of tries led to an error: aborts if
    /// the sequence has moved. The words read can't decide that: they may be as they were again,
    /// because a block was freed and allocated again, and the pointer to it stored again.
    void recheck(bool stale) {
      // pairs with end()
      if (stale || shared_.sequence.load(std::memory_order_acquire) != snapshot_)
        abort(Abort::conflict);
    }
    [[nodiscard]] bool committing() const noexcept { return committing_; }
    void last_point_of_failure(const Clock& clock);
    [[nodiscard]] std::uint64_t time_of_reads(const Clock& clock);
    void end() noexcept;
    void cancel() noexcept;
    [[nodiscard]] Abort take_cause() noexcept { return std::exchange(cause_, Abort::none); }
    void shut_out() noexcept;
    void let_in() noexcept {
      shared_.sequence.store(shared_.sequence.load(std::memory_order_relaxed) + 1,
                             std::memory_order_release);
    }

   private:
    friend struct RtmStandIn;
    struct Read {
      const std::uint64_t* address;
      std::uint64_t value;
    };
    struct Store {
      std::uint64_t* address;
      std::uint64_t value;
    };
    // `doomed` is no snapshot and no sequence.
    static constexpr std::uint64_t read_bit = 1, write_bit = 2, doomed = ~std::uint64_t{0};
    static std::uint64_t address_of(const void* a) noexcept {
      return reinterpret_cast<std::uintptr_t>(a);
    }

    [[noreturn]] void abort(Abort why);
    void validate();  // takes a newer snapshot, or throws Conflict
    void empty_store_buffer() noexcept;
    void touch(const std::uint64_t* a, std::uint64_t bit) {
      const std::uint64_t line = address_of(a) >> 6;
      const std::uint64_t* const seen = lines_.find(line);
      if (seen == nullptr || (*seen & bit) == 0)
        touch_first(line, seen == nullptr ? 0 : *seen, bit);
      random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
      if (limits_.abort_one_in != 0 && (random_ >> 33) % limits_.abort_one_in == 0)
        abort(Abort::other);
    }
    void touch_first(std::uint64_t line, std::uint64_t seen, std::uint64_t bit);

    static thread_local Try* current;  ///< the try that has begun and not ended
    Shared& shared_;
    const std::atomic<bool>& held_;
    const Limits limits_;
    std::uint64_t random_;
    std::uint64_t snapshot_ = doomed;
    Abort cause_ = Abort::none;
    bool committing_ = false;
    // The modelled store buffer holds the try's stores: the counter was read before its lines were
    // owned.
    bool owns_late_ = false;
    std::uint64_t counter_ = 0;  // its value in that case
    // a store of show() that the modelled store buffer still holds
    std::atomic<std::uint64_t>* shown_ = nullptr;
    std::uint64_t shown_value_ = 0;
    std::uint32_t lines_read_ = 0, lines_written_ = 0;
    std::uint64_t kept_ = 0;
    std::vector<Read> reads_;
    std::vector<Store> stores_;
    WriteIndex writes_, lines_;  // a word's place in stores_; the bits of a line
  };
};

}  // namespace perdure::tm
