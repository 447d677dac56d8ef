// SPDX-License-Identifier: BSD-3-Clause
//
// Packed payloads: DudeTM's log compression (section 3.3), with lz4. A packed record's payload:
//
//   word 0  number of words of the payload that was packed (32 bits) | bytes of the block << 32
//   word 1  an lz4 block, with zeros up to an even number of words
//
// The block holds planes. A payload consists of pairs of words; a pair that holds a single stored
// word is a key and a value, and those are sorted by address. The first word of each pair is
// replaced by its difference to the one before, modulo 2^64. Then the lowest bytes of all first
// words are written, then their next bytes, and so on, then the second words' bytes in the same
// way. Neighbours in a plane are alike where neighbouring entries are; lz4 looks for repeated bytes
// and would not find this likeness in the words.
//
// Source: DudeTM (ASPLOS '17) 3.3, "Log Compression"; lz4's block format (its documents,
// lz4_Block_format.md); the planes: the shuffle filter of HDF5 and Blosc (Alted, "Why modern CPUs
// are starving and what can be done about it", 2010).
// Thread safety: plain functions; a scratch vector belongs to one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "perdure/log/record.hpp"

namespace perdure::log {

/// Packs a payload of n words into `packed`. Returns false where the result would not be shorter or
/// the payload is longer than lz4 takes (2 GB); `packed` then holds nothing of use. Throws
/// std::bad_alloc.
bool pack(const std::uint64_t* payload, std::uint64_t n, std::vector<std::uint64_t>& packed);

/// At most this many bytes of unpacked payloads, plus one payload, are in memory at a time: a log
/// may unpack to hundreds of times its own length.
inline constexpr std::uint64_t max_unpacked = 64 << 20;

/// A record's payload as it was before packing.
struct Payload {
  const std::uint64_t* words = nullptr;  ///< null: the payload can't be unpacked (damage)
  std::uint64_t n = 0;
};

/// Returns the payload, in the record itself or unpacked in `scratch`, where it stays valid until
/// `scratch` is used again. A payload is at most `max_words` long. Throws std::bad_alloc.
Payload payload_of(const RecordView& record, std::uint64_t max_words,
                   std::vector<std::uint64_t>& scratch);

}  // namespace perdure::log
