// SPDX-License-Identifier: BSD-3-Clause
//
// DramPool, DramTx: a stand-in for Pool and its transactions over plain memory, which checks how
// containers use them.
//
// Every read and write must lie in one allocated block or in the root, and a read only where
// something was written before; it finds a double free, a free of something that is not a block,
// and a leak (live() compared with each_block). Rollback restores every byte. Faults: the n-th
// allocation or the n-th write throws. Writes are counted, so that a test can state what an
// operation logs.
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "perdure/api/persistent.hpp"
#include "tests/container/field_access.hpp"

namespace perdure::test {

/// A container broke the rules of transactions.
struct Misuse : std::logic_error {
  using std::logic_error::logic_error;
};
/// An injected fault throws this from a write, as a conflict would.
struct Conflict {};

class DramHeap {
 public:
  struct Block {
    std::unique_ptr<std::byte[]> memory;  ///< over-allocated for alignment
    std::size_t size = 0;
    std::vector<bool> written;
  };

  std::map<std::byte*, Block> blocks;
  std::uint64_t allocs_until_full = ~0ULL, writes_until_conflict = ~0ULL;
  std::uint64_t writes = 0, bytes = 0, allocs = 0, frees = 0, reads = 0;
  void reset_counts() { writes = bytes = allocs = frees = reads = 0; }

  std::byte* add(std::size_t size, bool zero) {
    const std::size_t align = size >= 64 ? 64 : 16;
    Block block;
    block.memory = std::make_unique<std::byte[]>(size + align);
    auto* p = reinterpret_cast<std::byte*>(
        (reinterpret_cast<std::uintptr_t>(block.memory.get()) + align - 1) & ~(align - 1));
    std::memset(p, zero ? 0 : 0xa5, size);
    block.size = size;
    block.written.assign(size, zero);
    blocks.emplace(p, std::move(block));
    return p;
  }
  /// The block that contains [p, p + n).
  std::pair<std::byte*, Block*> holder(const void* where, std::size_t n) {
    auto* p = static_cast<std::byte*>(const_cast<void*>(where));
    auto it = blocks.upper_bound(p);
    if (it == blocks.begin()) throw Misuse("access outside of all blocks");
    --it;
    if (p + n > it->first + it->second.size)
      throw Misuse("access of " + std::to_string(n) + " bytes past the end of a block of " +
                   std::to_string(it->second.size));
    return {it->first, &it->second};
  }
  void check_read(const void* where, std::size_t n) {
    const auto [start, block] = holder(where, n);
    const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(where) - start);
    for (std::size_t i = 0; i < n; ++i) {
      if (!block->written[at + i])
        throw Misuse("read of a byte that was never written, at " + std::to_string(at + i) +
                     " of a block of " + std::to_string(block->size));
    }
  }
};

/// The reading members: the type that view() passes.
class DramReadTx : public FieldReads<DramReadTx> {
 public:
  static constexpr bool read_only = true;
  explicit DramReadTx(DramHeap& heap) : heap_(heap) {}

  template <class T>
  auto operator()(const T& x) {
    return read(x);
  }
  void read_bytes(void* to, const void* from, std::size_t n) {
    ++heap_.reads;
    if (n == 0) return;
    heap_.check_read(from, n);
    std::memcpy(to, from, n);
  }

 protected:
  DramHeap& heap_;
};

class DramTx : public DramReadTx, public FieldWrites<DramTx> {
 public:
  static constexpr bool read_only = false;
  using DramReadTx::DramReadTx;

  void write_bytes(void* to, const void* from, std::size_t n) {
    if (n == 0) return;
    if (heap_.writes_until_conflict-- == 0) throw Conflict{};
    ++heap_.writes;
    heap_.bytes += n;
    const auto [start, block] = heap_.holder(to, n);
    const auto at = static_cast<std::ptrdiff_t>(static_cast<std::byte*>(to) - start);
    auto* bytes = static_cast<std::byte*>(to);
    undo_.push_back(
        {bytes, std::vector<std::byte>(bytes, bytes + n),
         std::vector<bool>(block->written.begin() + at,
                           block->written.begin() + at + static_cast<std::ptrdiff_t>(n))});
    std::memcpy(to, from, n);
    std::fill_n(block->written.begin() + at, n, true);
  }

  std::byte* alloc(std::size_t n) {
    if (heap_.allocs_until_full-- == 0) throw error(Status(Code::full, "injected: heap full"));
    ++heap_.allocs;
    if (n == 0) throw Misuse("alloc of 0 bytes");
    std::byte* p = heap_.add(n, false);
    allocated_.insert(p);
    return p;
  }
  void free(void* block) {
    ++heap_.frees;
    auto* p = static_cast<std::byte*>(block);
    if (!heap_.blocks.contains(p)) throw Misuse("free of what is no block");
    if (!freed_.insert(p).second) throw Misuse("double free");
  }

  /// tx(x): for tests that use it as users do.
  template <class T>
  class Proxy {
   public:
    Proxy(DramTx& tx, T& x) : tx_(tx), x_(x) {}
    using Value = typename T::value_type;
    operator Value() const { return tx_.read(x_); }
    Value operator=(const Value& v) {
      tx_.write(x_, v);
      return v;
    }
    Value operator+=(const Value& v) { return *this = static_cast<Value>(tx_.read(x_) + v); }
    Value operator->() const { return tx_.read(x_); }

   private:
    DramTx& tx_;
    T& x_;
  };
  template <class T>
  Proxy<T> operator()(T& x) {
    return {*this, x};
  }
  template <class T>
  auto operator()(const T& x) {
    return read(x);
  }

  void commit() {
    for (std::byte* p : freed_) heap_.blocks.erase(p);
  }
  void rollback() {
    for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) {
      const auto [start, block] = heap_.holder(it->where, it->old.size());
      std::memcpy(it->where, it->old.data(), it->old.size());
      std::copy(it->written.begin(), it->written.end(),
                block->written.begin() + (it->where - start));
    }
    for (std::byte* p : allocated_) heap_.blocks.erase(p);
  }

 private:
  struct Undo {
    std::byte* where;
    std::vector<std::byte> old;
    std::vector<bool> written;
  };
  std::vector<Undo> undo_;
  std::set<std::byte*> allocated_, freed_;
};

/// update() and view() like those of Pool; update's lambda gets the root, and an exception rolls
/// back.
template <class Root>
class DramPool {
 public:
  static constexpr bool injects = true;
  DramPool() : root_(reinterpret_cast<Root*>(heap_.add(sizeof(Root), true))) {}

  template <class F>
  auto update(F f) {
    DramTx tx(heap_);
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<F, DramTx&, Root&>>) {
        f(tx, *root_);
        tx.commit();
      } else {
        auto result = f(tx, *root_);
        tx.commit();
        return result;
      }
    } catch (...) {
      tx.rollback();
      throw;
    }
  }
  template <class F>
  auto view(F f) {
    DramReadTx tx(heap_);
    return f(tx, static_cast<const Root&>(*root_));
  }
  DramHeap& heap() { return heap_; }

  /// Empty when exactly the blocks that `found` names are allocated, each named once; otherwise
  /// what is wrong.
  std::string compare_blocks(const std::vector<const void*>& found) {
    std::set<const void*> once;
    for (const void* p : found) {
      if (!once.insert(p).second) return "a block is owned twice";
      if (!heap_.blocks.contains(static_cast<std::byte*>(const_cast<void*>(p))))
        return "a block is owned that is not allocated";
    }
    if (once.size() + 1 != heap_.blocks.size()) {
      return std::to_string(heap_.blocks.size() - 1) + " blocks are allocated, " +
             std::to_string(once.size()) + " are owned: a leak";
    }
    return {};
  }

 private:
  DramHeap heap_;
  Root* root_;
};

}  // namespace perdure::test
