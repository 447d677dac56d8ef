// SPDX-License-Identifier: BSD-3-Clause
//
// Packed payloads: DudeTM's log compression (section 3.3), by lz4. A packed record's payload:
//
//   word 0  words of the payload that was packed (32 bits) | bytes of the block << 32
//   word 1  an lz4 block, zeros up to an even number of words
//
// What the block holds are planes. A payload is pairs of words, which of single stored words are a
// key and a value, by address: the first word of each pair is replaced by its difference to the one
// before, modulo 2^64; then come the lowest bytes of all first words, their next bytes, and so on,
// then the second words' in the same way. Neighbours in a plane are alike where neighbouring
// entries are, which lz4, looking for repeated bytes, would not see in the words.
//
// Source: DudeTM (ASPLOS '17) 3.3, "Log Compression"; lz4's block format (its documents,
// lz4_Block_format.md); the planes: the shuffle filter of HDF5 and Blosc (Alted, "Why modern CPUs
// are starving and what can be done about it", 2010).
// Thread safety: plain functions; a scratch belongs to one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "perdure/log/record.hpp"

namespace perdure::log {

/// Packs a payload of n words into `packed`. False where it would not be shorter, or is longer than
/// lz4 takes (2 GB): `packed` is then void. Throws std::bad_alloc.
bool pack(const std::uint64_t* payload, std::uint64_t n, std::vector<std::uint64_t>& packed);

/// So many bytes of unpacked payloads are in memory at a time, and one payload: a log may hold
/// hundreds of times its own length.
inline constexpr std::uint64_t most_unpacked = 64 << 20;

/// A record's payload as it was before packing.
struct Payload {
  const std::uint64_t* words = nullptr;  ///< null: it can't be unpacked (damage)
  std::uint64_t n = 0;
};

/// In the record itself or, unpacked, in `scratch`, good until that is used again. No payload is
/// longer than `max_words`. Throws std::bad_alloc.
Payload payload_of(const RecordView& record, std::uint64_t max_words,
                   std::vector<std::uint64_t>& scratch);

}  // namespace perdure::log
