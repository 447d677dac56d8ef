// SPDX-License-Identifier: BSD-3-Clause
//
// FileMedium: a pool on an ordinary file. The log is staged in DRAM and written at a fence
// (log_stage.hpp). The data region is a MAP_SHARED mapping whose marked pages a fence syncs
// (file_sync.hpp).
//
// Crash invariants: nothing is durable before its sync (MEDIUM-5). FILE-1: a fence returns ok only
// if every block and page that its thread marked since its last fence is durable; after any failure
// no fence returns ok (poison.hpp). Unmarked pages of the data region may become durable at any
// time. A block or page that a mark names is allocated (ALLOC-1), so a full disk can't make a write
// or a sync fail.
// Thread safety: as medium.hpp says; threads that fence at the same time share writes and syncs.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "perdure/medium/log_stage.hpp"
#include "perdure/medium/mapped.hpp"

namespace perdure::medium {

class FileMedium final : public MappedMedium {
 public:
  static Result<std::unique_ptr<Medium>> open(const OpenMedium& how);

  std::string_view kind() const noexcept override { return "file"; }
  std::string describe() const override;

  void store(std::uint64_t offset, const void* src, std::size_t n) noexcept override;
  void stream(std::uint64_t offset, const void* src, std::size_t n) noexcept override;
  void flush(std::uint64_t offset, std::size_t n) noexcept override;
  Status fence() noexcept override;
  Status usable() const override { return poison_.check(); }
  Status flush_all() noexcept override;
  std::uint64_t sync_ns() const noexcept override {
    return sync_ns_.load(std::memory_order_relaxed);  // no partner: a hint
  }
  void append(const RingMap& ring, std::uint64_t pos, const void* src,
              std::size_t n) noexcept override;

 private:
  /// What one thread has marked since its last fence: blocks of the log, and pages of the data
  /// region.
  struct Marked {
    Runs log, data;
  };

  FileMedium(FileHandle file, const OpenMedium& how);
  Marked& marked() noexcept;
  void mark(std::uint64_t offset, std::uint64_t n) noexcept;
  void flush_pages(std::uint64_t offset, std::uint64_t n) noexcept;
  Status make_durable() noexcept;

  Status learn_pages(const OpenMedium& how);
  Status give_blocks(std::uint64_t from, std::uint64_t to) override;
  Status extend(std::uint64_t from, std::uint64_t to) override;
  Status make_hole(std::uint64_t from, std::uint64_t to) override;
  void shrink(std::uint64_t to) noexcept override;

  FileHandle file_;
  Poison poison_;
  FileSync sync_;
  std::atomic<std::uint64_t> sync_ns_{0};
  std::unique_ptr<LogStage> stage_;
  struct Free {
    void operator()(Marked* p) const noexcept { std::free(p); }
  };
  // One per thread slot, used only by its owner. They are allocated at once, since marking must not
  // fail, and left untouched: zeros are empty runs.
  std::unique_ptr<Marked[], Free> marked_;
};

}  // namespace perdure::medium
