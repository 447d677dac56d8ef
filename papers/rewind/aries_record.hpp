// SPDX-License-Identifier: BSD-3-Clause
//
// AriesRecord: one log record of REWIND (papers: REWIND, VLDB '15, sections 3.2 and 4.1; ARIES,
// TODS '92), one cache line.
//
//   word 0  LSN, and the type above its 56 bits
//        1  checksum of the others, bound to pool, epoch and log (LAW-10)
//        2  transaction
//        3  address: an offset in the data region; in END the commit's id, 0 after a rollback
//        4  old value (in ALLOC and DELETE the size class; in a CLR undoLSN, the LSN of the UPDATE
//           that it has undone)
//        5  new value (in ALLOC and DELETE the chunks; in a CLR the old value that it has restored)
//        6  the LSN of the same transaction's previous record (2 layers, to walk them)
//        7  the record's own place: where its pointer lies does not say which record it is
// LSNs rise along a log and over all logs of a pool, in the order of the stores where transactions
// are isolated.
// Thread safety: plain values.
#pragma once

#include <cstdint>

#include "papers/names.hpp"
#include "perdure/base/checksum.hpp"
#include "perdure/pool/heap.hpp"

namespace perdure::papers::rewind {

enum class AriesType : std::uint8_t {
  update = 1,
  clr = 2,
  end = 3,
  rollback = 4,
  checkpoint = 5,
  alloc = 6,
  remove = 7
};

struct AriesRecord {
  static constexpr std::uint64_t bytes = 64, lsn_mask = (std::uint64_t{1} << 56) - 1;

  std::uint64_t words[8];

  [[nodiscard]] std::uint64_t lsn() const noexcept { return words[0] & lsn_mask; }
  [[nodiscard]] AriesType type() const noexcept { return static_cast<AriesType>(words[0] >> 56); }
  [[nodiscard]] std::uint64_t transaction() const noexcept { return words[2]; }
  [[nodiscard]] std::uint64_t address() const noexcept { return words[3]; }
  [[nodiscard]] std::uint64_t commit_id() const noexcept { return words[3]; }
  [[nodiscard]] std::uint64_t old_value() const noexcept { return words[4]; }
  [[nodiscard]] std::uint64_t new_value() const noexcept { return words[5]; }
  [[nodiscard]] std::uint64_t undo_lsn() const noexcept { return words[4]; }
  [[nodiscard]] std::uint64_t prior_lsn() const noexcept { return words[6]; }
  [[nodiscard]] std::uint64_t place() const noexcept { return words[7]; }
  [[nodiscard]] bool stores_word() const noexcept {
    return type() == AriesType::update || type() == AriesType::clr;
  }
  [[nodiscard]] bool changes_heap() const noexcept {
    return type() == AriesType::alloc || type() == AriesType::remove;
  }
  [[nodiscard]] pool::HeapOp heap_op() const noexcept {
    return {words[3], static_cast<std::uint32_t>(words[4]), static_cast<std::uint32_t>(words[5]),
            type() == AriesType::alloc};
  }

  static AriesRecord make(AriesType type, std::uint64_t lsn, std::uint64_t transaction) noexcept {
    AriesRecord r{};
    r.words[0] = lsn | static_cast<std::uint64_t>(type) << 56;
    r.words[2] = transaction;
    return r;
  }
  static AriesRecord heap(const pool::HeapOp& op, std::uint64_t lsn,
                          std::uint64_t transaction) noexcept {
    AriesRecord r = make(op.set ? AriesType::alloc : AriesType::remove, lsn, transaction);
    r.words[3] = op.offset;
    r.words[4] = op.cls;
    r.words[5] = op.chunks;
    return r;
  }
  /// Completes the record for the place where it will lie, in the log with this seed.
  void seal(std::uint64_t seed, std::uint64_t at) noexcept {
    words[7] = at;
    words[1] = sum(seed);
  }
  /// Returns whether it is what seal() made for this place.
  [[nodiscard]] bool whole(std::uint64_t seed, std::uint64_t at) const noexcept {
    return words[7] == at && words[1] == sum(seed);
  }

 private:
  [[nodiscard]] std::uint64_t sum(std::uint64_t seed) const noexcept {
    base::Checksum fold(seed);
    fold.add(words[0], words[2]);
    fold.add(words[3], words[4]);
    fold.add(words[5], words[6]);
    fold.add(words[7], seed);
    return fold.value();
  }
};
static_assert(sizeof(AriesRecord) == AriesRecord::bytes);

}  // namespace perdure::papers::rewind
