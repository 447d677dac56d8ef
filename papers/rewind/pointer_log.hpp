// SPDX-License-Identifier: BSD-3-Clause
//
// PointerLog: REWIND's log as a sequence of pointers to records (sections 3.2 and 3.3), in three
// versions over one list (adll.hpp):
//   simple     There is one node of the list per record.
//   optimized  A node is a bucket of cells, and a record costs one synchronous store. A removed
//              record leaves a marked gap; an empty bucket is removed.
//   batch      As optimized, but the cells of a group of records are made durable together, by one
//              fence and one store of the bucket's last persistent index; cells above it do not
//              count.
// A record is a line of the arena. The caller writes it (unfenced) before append() and releases it
// after remove().
// Crash invariants:
// PTRLOG-1 A record is durable before a pointer to it is.
// PTRLOG-2 A cell is written once, then becomes a gap; a bucket's cells are zero (batch: its index
// is) before the bucket is in the list.
// PTRLOG-3 Pointers become durable in the order of append(). Of those that append_all() was given a
// crash may leave any: a cell that it left empty before others becomes a gap.
// On the medium: values (papers/rewind/nvm.hpp) of links, index and cells. A cell that was never
// written is a word of zeros. To a value in a cell 2 is added, a bit that no place and no gap has:
// at least two of its bits are set, so no single flip turns a written cell into an empty one.
// Thread safety: none of its own; the log that uses it has a lock.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "papers/names.hpp"
#include "papers/rewind/adll.hpp"
#include "papers/rewind/arena.hpp"

namespace perdure::papers::rewind {

class PointerLog {
 public:
  /// The place of a pointer. It is valid until compact(), or until the pointer is removed.
  struct At {
    std::uint64_t node = 0, cell = 0;
    explicit operator bool() const noexcept { return node != 0; }
    friend bool operator==(const At&, const At&) noexcept = default;
  };

  PointerLog(NvmStore& nvm, LogArena& arena, std::uint64_t anchor)
      : nvm_(nvm), arena_(arena), list_(nvm, anchor) {}
  PointerLog(const PointerLog&) = delete;
  PointerLog& operator=(const PointerLog&) = delete;
  virtual ~PointerLog() = default;

  /// Returns whether `n` more pointers fit, whatever is removed meanwhile.
  [[nodiscard]] virtual bool fits(std::uint64_t n) const noexcept = 0;
  /// Appends a pointer: the record is durable and in the log; batch: when its group is.
  virtual void append(std::uint64_t record) noexcept = 0;
  /// Appends the pointers of records, all of which were started: they are durable and in the log
  /// when this returns. A crash before may leave any of them. Two fences, and those of new buckets
  /// (simple: as so many appends).
  virtual void append_all(std::span<const std::uint64_t> records) noexcept {
    for (const std::uint64_t record : records) append(record);
  }
  /// Batch: puts the group in the log now, full or not.
  virtual void persist() noexcept {}
  /// Returns how many of the newest pointers are not in the log yet.
  [[nodiscard]] virtual std::uint64_t pending() const noexcept { return 0; }
  /// Removes a pointer that is in the log.
  virtual void remove(At at) noexcept = 0;
  /// As remove(), but durable only after settle(); until then a crash may leave any of them. No
  /// other calls are made in between.
  virtual void remove_soon(At at) noexcept { remove(at); }
  virtual void settle() noexcept {}
  /// Where few of the cells are in use, copies their pointers to new buckets, which become the
  /// list.
  virtual void compact() {}

  /// Walk the log, without pending pointers. A result that is false means that there is none.
  [[nodiscard]] virtual At first() const noexcept = 0;
  [[nodiscard]] virtual At last() const noexcept = 0;
  [[nodiscard]] virtual At next(At at) const noexcept = 0;
  [[nodiscard]] virtual At prior(At at) const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t record(At at) const noexcept = 0;

  /// Recovers after a crash: does the list's last operation again, and learns what is in the log.
  /// It marks the nodes in the arena, but not the records. Returns `corrupt` where no crash leaves
  /// what it finds. What it has learnt is made durable (REDO-4, log/redo.hpp): a process that was
  /// killed may have left one store visible only.
  virtual Status recover() = 0;

 protected:
  NvmStore& nvm_;
  LogArena& arena_;
  Adll list_;
};

class SimpleLog final : public PointerLog {
 public:
  using PointerLog::PointerLog;
  [[nodiscard]] bool fits(std::uint64_t n) const noexcept override {
    return arena_.free_lines() >= n;
  }
  void append(std::uint64_t record) noexcept override;
  void remove(At at) noexcept override;
  [[nodiscard]] At first() const noexcept override { return {list_.head(), 0}; }
  [[nodiscard]] At last() const noexcept override { return {list_.tail(), 0}; }
  [[nodiscard]] At next(At at) const noexcept override { return {list_.next(at.node), 0}; }
  [[nodiscard]] At prior(At at) const noexcept override { return {list_.prior(at.node), 0}; }
  [[nodiscard]] std::uint64_t record(At at) const noexcept override {
    return nvm_.value(at.node + record_word);
  }
  Status recover() override;

 private:
  static constexpr std::uint64_t record_word = 16;
};

class BucketLog final : public PointerLog {
 public:
  /// There are `cells` per bucket; `group` pointers are made durable together: 1 is the optimized
  /// version. `at_once`: the most that append_all() is given; 0: it is not called.
  BucketLog(NvmStore& nvm, LogArena& arena, std::uint64_t anchor, std::uint64_t cells,
            std::uint64_t group, std::uint64_t at_once = 0)
      : PointerLog(nvm, arena, anchor),
        cells_(cells),
        group_(group),
        at_once_(at_once),
        in_use_(arena.buckets(), 0) {}
  static constexpr std::uint64_t bucket_bytes(std::uint64_t cells) noexcept {
    return first_cell + (cells * 8 + 63) / 64 * 64;
  }

  [[nodiscard]] bool fits(std::uint64_t n) const noexcept override {
    return free_buckets() * cells_ + left() >= n;
  }
  void append(std::uint64_t record) noexcept override;
  void append_all(std::span<const std::uint64_t> records) noexcept override;
  void persist() noexcept override;
  [[nodiscard]] std::uint64_t pending() const noexcept override { return filled_ - persistent_; }
  void remove(At at) noexcept override;
  void remove_soon(At at) noexcept override;
  void settle() noexcept override;
  void compact() override;
  [[nodiscard]] At first() const noexcept override { return forward({list_.head(), 0}); }
  [[nodiscard]] At last() const noexcept override { return backward({list_.tail(), persistent_}); }
  [[nodiscard]] At next(At at) const noexcept override { return forward({at.node, at.cell + 1}); }
  [[nodiscard]] At prior(At at) const noexcept override { return backward(at); }
  [[nodiscard]] std::uint64_t record(At at) const noexcept override {
    return nvm_.value(cell(at)) & ~written;
  }
  Status recover() override;

 private:
  static constexpr std::uint64_t persistent_word = 16, first_cell = 64, gap = 1;
  static constexpr std::uint64_t written = 2;  // added to the value of a cell
  // Buckets are compacted where less than one cell in 4 is in use.
  static constexpr std::uint64_t sparse = 4;
  [[nodiscard]] static std::uint64_t cell(At at) noexcept {
    return at.node + first_cell + at.cell * 8;
  }
  /// Returns the value that a cell gets for a place, or for a gap.
  [[nodiscard]] std::uint64_t as_written(std::uint64_t place) const noexcept {
    return nvm_.form() == LogForm::checked ? place | written : place;
  }
  [[nodiscard]] std::uint64_t left() const noexcept {
    return list_.tail() == 0 ? 0 : cells_ - filled_;
  }
  /// Excludes the buckets that compact() needs.
  [[nodiscard]] std::uint64_t free_buckets() const noexcept {
    const std::uint64_t kept = arena_.buckets_ready() / 5 + 1;
    return arena_.free_buckets() > kept ? arena_.free_buckets() - kept : 0;
  }
  [[nodiscard]] std::uint64_t limit(std::uint64_t bucket) const noexcept {
    return bucket == list_.tail() ? persistent_ : cells_;
  }
  [[nodiscard]] At forward(At at) const noexcept;   // the first pointer at or after `at`
  [[nodiscard]] At backward(At at) const noexcept;  // the last pointer before `at`
  [[nodiscard]] std::uint64_t& in_use(std::uint64_t bucket) noexcept {
    return in_use_[arena_.bucket_number(bucket)];
  }
  void add_bucket() noexcept;
  [[nodiscard]] bool take_cell(std::uint64_t record) noexcept;
  void drop(std::uint64_t bucket) noexcept;
  Status learn(std::uint64_t bucket);

  const std::uint64_t cells_, group_, at_once_;
  std::uint64_t filled_ = 0, persistent_ = 0;  // of the tail's cells: written; in the log
  // The last line of cells that remove_soon() has stored gaps to; 0: none.
  std::uint64_t unsettled_ = 0;
  int appender_ = -1;                  // the thread of the last append
  bool of_others_ = false;             // pending cells are of several threads
  std::vector<std::uint64_t> in_use_;  // cells per bucket, without gaps
};

}  // namespace perdure::papers::rewind
