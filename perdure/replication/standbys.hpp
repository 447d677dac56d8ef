// SPDX-License-Identifier: BSD-3-Clause
//
// Standbys: how far the standbys of a pool say that they are, as its primary counts them for the
// level standby(n).
//
//   STANDBYS-1 An id is counted of a copy of this pool that has said it, and of no copy twice; the
//              primary's own copy, which may have been a standby before, is none.
// That a transaction of this id is the primary's own is known from the log alone: the level also
// needs that the log has it (Primary::has()), and every copy applies the log's transactions in
// order.
// Thread safety: look() belongs to one thread at a time; any thread may make the other calls.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "perdure/base/status.hpp"
#include "perdure/replication/log_service.hpp"
#include "perdure/replication/options.hpp"

namespace perdure::replication {

class Standbys {
 public:
  /// `copies`: copies_of() the pool; `own`: the primary's copy_id().
  Standbys(std::string copies, std::string own)
      : copies_(std::move(copies)), own_(std::move(own)) {}

  /// Asks the log what standbys have said. Errors: LogService::confirmed()'s.
  Status look(LogService& log);
  /// At least n standbys have every transaction up to this id on their disks. n: 1 to
  /// most_standbys.
  [[nodiscard]] std::uint64_t id_of(unsigned n) const noexcept {
    // Acquire: pairs with the release in look(): what is returned was said before.
    return ids_[n - 1].load(std::memory_order_acquire);
  }
  /// id_of(1), id_of(2) and so on, of those that have said something.
  [[nodiscard]] std::vector<std::uint64_t> ids() const;

 private:
  const std::string copies_, own_;
  std::array<std::atomic<std::uint64_t>, most_standbys> ids_{};  // the highest first
};

}  // namespace perdure::replication
