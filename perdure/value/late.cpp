// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/value/late.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "perdure/base/at_fork.hpp"

namespace perdure::value::late {
namespace {

struct Range {
  const std::byte* end = nullptr;
  std::map<const Type*, std::shared_ptr<const Make>> makes;
};

struct Book {
  std::mutex mutex;  // no shared one: a forked child can't release the lock of its parent's thread
  std::map<const std::byte*, Range> ranges;  ///< by their beginning
  /// How many functions there are. A thread that has a pool's records reads it after the thread
  /// that opened the pool has handed the pool over, so it needs no order of its own.
  std::atomic<std::size_t> size{0};
};

/// Never destroyed: a pool with static storage duration may be closed after other such objects are
/// gone.
Book& book() {
  static Book& all = *new Book;
  return all;
}

// fork() waits for the book: a child reads records of earlier versions, too.
const int held = base::hold_over_fork<book>();

/// A function that was added.
struct Entry {
  const std::byte* begin;
  const Type* type;

  Entry(const std::byte* at, const Type* of) noexcept : begin(at), type(of) {}
  ~Entry() {
    Book& all = book();
    const std::lock_guard lock(all.mutex);
    const auto range = all.ranges.find(begin);
    range->second.makes.erase(type);
    if (range->second.makes.empty()) all.ranges.erase(range);
    all.size.fetch_sub(1, std::memory_order_relaxed);
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
};

}  // namespace

std::shared_ptr<const void> add(const std::byte* begin, std::uint64_t bytes, const Type& type,
                                Make make) {
  auto made = std::make_shared<const Make>(std::move(make));
  Book& all = book();
  {
    const std::lock_guard lock(all.mutex);
    Range& range = all.ranges[begin];
    range.end = begin + bytes;
    range.makes[&type] = std::move(made);
    all.size.fetch_add(1, std::memory_order_relaxed);
  }
  return std::make_shared<const Entry>(begin, &type);
}

std::shared_ptr<const Make> find(const record* from, const Type& type) {
  Book& all = book();
  if (all.size.load(std::memory_order_relaxed) == 0) return nullptr;
  const auto* const at = reinterpret_cast<const std::byte*>(from);
  const std::lock_guard lock(all.mutex);
  auto range = all.ranges.upper_bound(at);
  if (range == all.ranges.begin() || at >= (--range)->second.end) return nullptr;
  const auto found = range->second.makes.find(&type);
  return found == range->second.makes.end() ? nullptr : found->second;
}

}  // namespace perdure::value::late
