// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/packed.hpp"

#include <lz4.h>

namespace perdure::log {

bool pack(const std::uint64_t* payload, std::uint64_t n, std::vector<std::uint64_t>& packed) {
  if (n < 4 || n * 8 > LZ4_MAX_INPUT_SIZE) return false;
  packed.resize(n);
  // With word 0 and a pad it must stay below n words: what does not fit there is not worth unpacking.
  const int room = static_cast<int>((n - 3) * 8);
  const int bytes = LZ4_compress_default(reinterpret_cast<const char*>(payload), reinterpret_cast<char*>(packed.data() + 1),
                                         static_cast<int>(n * 8), room);
  if (bytes <= 0) return false;
  const auto length = static_cast<std::uint64_t>(bytes);
  const std::uint64_t words = (1 + (length + 7) / 8 + 1) / 2 * 2;
  std::memset(reinterpret_cast<char*>(packed.data() + 1) + length, 0, (words - 1) * 8 - length);
  packed[0] = n | length << 32;
  packed.resize(words);
  return true;
}

Payload payload_of(const RecordView& record, std::uint64_t max_words, std::vector<std::uint64_t>& scratch) {
  const std::uint64_t* const payload = record.words + header_words;
  const std::uint64_t words = record.payload_words();
  if (record.kind() != RecordKind::packed) return {payload, words};
  if (words < 2) return {};
  const std::uint64_t n = payload[0] & 0xffffffff, bytes = payload[0] >> 32;
  if (n > max_words || bytes > (words - 1) * 8 || n * 8 > LZ4_MAX_INPUT_SIZE) return {};
  scratch.resize(n);
  const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(payload + 1), reinterpret_cast<char*>(scratch.data()),
                                      static_cast<int>(bytes), static_cast<int>(n * 8));
  if (got < 0 || static_cast<std::uint64_t>(got) != n * 8) return {};
  return {scratch.data(), n};
}

}  // namespace perdure::log
