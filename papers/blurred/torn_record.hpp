// SPDX-License-Identifier: BSD-3-Clause
//
// TornRecord: one record of the torn-bit log, a 64-bit data block and a 64-bit metadata block
// (papers: Blurred Persistence, MSST '15, section IV-B, Figures 5 and 6; the torn bit is
// Mnemosyne's, Volos, Tack, Swift, ASPLOS '11):
//
//   data block   bit 0-62   DATA     the value without its highest bit
//                    63     TornBit
//   metadata     bit 0      TornBit
//                    1      TailBit  the value's highest bit
//                    2-9    MASK     the bytes of the data block that are valid, one bit per byte
//                    10     FLG_DC   1: a commit or abort record, 0: a data record
//                    11     FLG_CA   1: a commit record, 0: an abort record
//                    12-15  RESV     used here for the kind of change of a data record
//                    16-63  ADDR     offset in the data region; in a commit or abort record (the
//                           paper leaves it open) a checksum of 48 bits
// The figures give the fields' order and width; which end is bit 0 is decided here. A commit
// record's value is its TxID, an abort record's its backpointer: the position of the last commit
// record before it. A block is written when its torn bit is the sense of the log's present
// generation; a word is never torn (MEDIUM-1), so nothing else needs to be checked.
// Thread safety: plain values.
#pragma once

#include <cstdint>

#include "papers/names.hpp"
#include "perdure/base/checksum.hpp"
#include "perdure/pool/heap.hpp"

namespace perdure::papers::blurred {

enum class TornKind : std::uint8_t { word = 0, alloc = 1, free = 2, none = 3, commit, abort };

struct TornRecord {
  static constexpr std::uint64_t bytes = 16, all_bytes = 0xff;
  static constexpr std::uint64_t torn_of_data = std::uint64_t{1} << 63, torn_of_meta = 1,
                                 flag_dc = 1 << 10, flag_ca = 1 << 11;
  static constexpr unsigned resv_at = 12, mask_at = 2, addr_at = 16;
  static constexpr std::uint64_t addr_limit = std::uint64_t{1} << 48;

  std::uint64_t data = 0, meta = 0;

  /// Makes a record. `address` is below 2^48.
  static constexpr TornRecord make(TornKind kind, std::uint64_t address, std::uint64_t value,
                                   bool sense, std::uint64_t mask = all_bytes) noexcept {
    TornRecord r;
    r.data = (value & ~torn_of_data) | (sense ? torn_of_data : 0);
    r.meta = (sense ? torn_of_meta : 0) | value >> 63 << 1 | mask << mask_at | address << addr_at;
    if (kind == TornKind::commit)
      r.meta |= flag_dc | flag_ca;
    else if (kind == TornKind::abort)
      r.meta |= flag_dc;
    else
      r.meta |= static_cast<std::uint64_t>(kind) << resv_at;
    return r;
  }
  /// Fills a generation's holes and its unused rest: torn bits of its sense, and nothing else.
  static constexpr TornRecord filler(bool sense) noexcept {
    return make(TornKind::none, 0, 0, sense, 0);
  }
  static constexpr TornRecord heap(const pool::HeapOp& op, bool sense) noexcept {
    return make(op.set ? TornKind::alloc : TornKind::free, op.offset,
                op.cls | std::uint64_t{op.chunks} << 32, sense);
  }

  [[nodiscard]] constexpr bool torn_data() const noexcept { return (data & torn_of_data) != 0; }
  [[nodiscard]] constexpr bool torn_meta() const noexcept { return (meta & torn_of_meta) != 0; }
  [[nodiscard]] constexpr bool written(bool sense) const noexcept {
    return torn_data() == sense && torn_meta() == sense;
  }
  [[nodiscard]] constexpr std::uint64_t value() const noexcept {
    return (data & ~torn_of_data) | (meta >> 1 & 1) << 63;
  }
  [[nodiscard]] constexpr std::uint64_t mask() const noexcept {
    return meta >> mask_at & all_bytes;
  }
  [[nodiscard]] constexpr std::uint64_t address() const noexcept { return meta >> addr_at; }
  [[nodiscard]] constexpr TornKind kind() const noexcept {
    if ((meta & flag_dc) != 0) return (meta & flag_ca) != 0 ? TornKind::commit : TornKind::abort;
    const std::uint64_t resv = meta >> resv_at & 15;
    return resv < 3 ? static_cast<TornKind>(resv) : TornKind::none;
  }
  [[nodiscard]] constexpr pool::HeapOp heap_op() const noexcept {
    return {address(), static_cast<std::uint32_t>(value()),
            static_cast<std::uint32_t>(value() >> 32), kind() == TornKind::alloc};
  }
  /// Returns the word that has been `old`, with the valid bytes of this record.
  [[nodiscard]] constexpr std::uint64_t over(std::uint64_t old) const noexcept {
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < 8; ++i)
      if ((mask() >> i & 1) != 0) bits |= std::uint64_t{0xff} << i * 8;
    return (value() & bits) | (old & ~bits);
  }
};
static_assert(sizeof(TornRecord) == TornRecord::bytes);

/// The ADDR of a commit or abort record: the sum of its transaction's records, its own value and
/// place, and the place of the last commit record before it (LAW-10).
class TornSum {
 public:
  TornSum(std::uint64_t seed, std::uint64_t first_position) noexcept
      : fold_(seed + first_position) {}
  void add(const TornRecord& r) noexcept { fold_.add(r.data, r.meta); }
  [[nodiscard]] std::uint64_t value(TornKind kind, std::uint64_t value, std::uint64_t position,
                                    std::uint64_t last_commit) const noexcept {
    base::Checksum fold = fold_;
    fold.add(value, position * 8 + static_cast<std::uint64_t>(kind));
    fold.add(last_commit, 0);
    return fold.value() >> 16;
  }

 private:
  base::Checksum fold_;
};

}  // namespace perdure::papers::blurred
