// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/redo_team.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "perdure/base/checksum.hpp"
#include "perdure/base/thread_slot.hpp"
#include "perdure/pool/size_classes.hpp"

namespace perdure::log {
namespace {

constexpr std::uint64_t page_bytes = 4096, worth_a_team = 4 << 20;

// Bitmaps lie in the first pages of chunks.
constexpr std::uint64_t longest_bitmap = [] {
  std::uint64_t most = 0;
  for (const pool::ClassInfo& c : pool::classes) most = c.first > most ? c.first : most;
  return most;
}();
static_assert(longest_bitmap <= page_bytes);

unsigned owner_of(std::uint64_t page, unsigned threads) noexcept {
  if (page % (pool::chunk_bytes / page_bytes) == 0) return 0;
  return static_cast<unsigned>((base::mix(page) >> 32) * threads >> 32);
}

// The part of one thread. False for an entry outside home.
bool apply(HomeWriter& home, std::uint64_t home_bytes, const Payload& payload, unsigned me, unsigned threads) {
  bool good = true;
  const bool whole = each_entry(payload.words, payload.n, [&](const Entry& e) {
    if (e.kind != EntryKind::words) {
      if (me == 0) good = home.entry(e) && good;
      return;
    }
    if (e.count == 0 || e.offset + e.count * 8 > home_bytes) {
      good = false;
      return;
    }
    for (std::uint64_t at = e.offset, end = e.offset + e.count * 8; at < end;) {
      const std::uint64_t next = std::min(end, (at / page_bytes + 1) * page_bytes);
      if (owner_of(at / page_bytes, threads) == me) home.words(at, e.values + (at - e.offset) / 8, (next - at) / 8);
      at = next;
    }
  });
  return whole && good;
}

}  // namespace

unsigned redo_threads(std::uint64_t log_bytes) noexcept {
  if (log_bytes < worth_a_team) return 1;
  return std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
}

std::size_t redo(medium::Medium& medium, std::uint64_t max_home_bytes, std::span<const Payload> payloads, HomeWriter::Use use,
                 unsigned threads) {
  if (threads <= 1) {
    HomeWriter home(medium, max_home_bytes, use);
    for (std::size_t i = 0; i < payloads.size(); ++i)
      if (!home.payload(payloads[i].words, payloads[i].n)) return i;
    home.flush();
    return no_strange;
  }
  std::atomic<std::size_t> strange{no_strange};
  std::vector<std::exception_ptr> failed(threads);
  std::vector<char> left(threads, 0);  // parts that found no thread slot
  const std::uint64_t home_bytes = medium.home_bytes();
  const auto work = [&](unsigned me) noexcept {
    try {
      (void)base::thread_slot();  // throws when there are too many threads, which a medium's call could not
    } catch (const error&) {
      left[me] = 1;
      return;
    }
    try {
      HomeWriter home(medium, max_home_bytes, use);
      for (std::size_t i = 0; i < payloads.size(); ++i)
        if (!apply(home, home_bytes, payloads[i], me, threads)) {
          strange.store(i, std::memory_order_relaxed);
          return;
        }
      home.flush();
      // What this thread has written back is durable before the caller goes on: its fence covers its own write-backs, and nobody else's does.
      if (me != 0) (void)medium.fence();  // a failed medium says so again at the caller's
    } catch (...) {
      failed[me] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> team;
    team.reserve(threads - 1);
    unsigned started = 1;
    try {
      for (; started < threads; ++started) team.emplace_back(work, started);
    } catch (const std::system_error&) {  // no more threads are to be had: this one does their parts
    }
    work(0);
    for (; started < threads; ++started) work(started);
  }  // joined: pairs with the threads' starts and ends
  for (unsigned i = 1; i < threads; ++i)
    if (left[i] != 0) work(i);
  for (const auto& e : failed)
    if (e) std::rethrow_exception(e);
  return strange.load(std::memory_order_relaxed);
}

}  // namespace perdure::log
