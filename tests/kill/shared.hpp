// SPDX-License-Identifier: BSD-3-Clause
//
// The page that a kill test's parent shares with the child it kills: what the child knows to be
// durable, and what it found on reopening.
//
// It is memory of its own (MAP_SHARED, anonymous), so that the parent sees everything that the
// child stored there before it was killed. The child records claims late and promises early:
// `issued` before a transaction starts, `acked` after its update() has returned or its receipt has
// reported durability.
// Thread safety: atomics; each is written by one thread.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <new>
#include <string>

namespace perdure::kill {

enum Phase : std::uint32_t { started, opening, opened, verified, working, closing, closed, failed };
inline constexpr const char* phase_names[] = {"started", "opening", "opened", "verified",
                                              "working", "closing", "closed", "failed"};

struct Shared {
  static constexpr std::uint64_t remembered = 1 << 15;

  std::atomic<std::uint32_t> phase{started};
  std::atomic<std::uint32_t> clean{0};  ///< 1: the last session ended in close()
  // Since the pool was made:
  std::atomic<std::uint64_t> issued[2]{}, acked[2]{};
  // Of the last session that worked: ids[t][n % remembered] is the id of transaction n of thread t,
  // 0 when its update() had not returned.
  std::atomic<std::uint64_t> first[2]{};
  std::atomic<std::uint64_t> ids[2][remembered]{};
  // What the last verification found:
  std::atomic<std::uint64_t> recovered[2]{};
  std::atomic<std::uint64_t> journal_entries{0};  ///< new ones
  std::atomic<std::uint64_t> journal[remembered]{};
  std::atomic<std::uint64_t> digest{0};
  std::atomic<std::uint32_t> ready{0};
  // For the report:
  std::atomic<std::uint64_t> records{0}, checkpoints{0}, unclean{0}, growths{0};
  char error[8192] = {};

  void fail(const std::string& text) {
    std::snprintf(error, sizeof error, "%s", text.c_str());
    // pairs with the parent's acquire: the text is whole
    phase.store(failed, std::memory_order_release);
  }
};

/// A Shared that outlives any child.
class SharedPage {
 public:
  SharedPage() {
    void* p =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    page_ = ::new (p) Shared;
  }
  ~SharedPage() { ::munmap(static_cast<void*>(page_), sizeof(Shared)); }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;
  Shared* operator->() const { return page_; }
  Shared& operator*() const { return *page_; }

 private:
  Shared* page_;
};

}  // namespace perdure::kill
