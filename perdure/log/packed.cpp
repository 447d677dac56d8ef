// SPDX-License-Identifier: BSD-3-Clause
#include "perdure/log/packed.hpp"

#include <lz4.h>

namespace perdure::log {
namespace {

// The planes are made of words, not of their bytes in memory, so they are the same on any machine.
void to_planes(const std::uint64_t* payload, std::uint64_t pairs, std::uint8_t* planes) {
  std::uint64_t before = 0;
  for (std::uint64_t p = 0; p < pairs; ++p) {
    const std::uint64_t first = payload[2 * p] - before, second = payload[2 * p + 1];
    before = payload[2 * p];
    for (unsigned b = 0; b < 8; ++b) {
      planes[b * pairs + p] = static_cast<std::uint8_t>(first >> 8 * b);
      planes[(8 + b) * pairs + p] = static_cast<std::uint8_t>(second >> 8 * b);
    }
  }
}

void from_planes(const std::uint8_t* planes, std::uint64_t pairs, std::uint64_t* payload) {
  std::uint64_t before = 0;
  for (std::uint64_t p = 0; p < pairs; ++p) {
    std::uint64_t first = 0, second = 0;
    for (unsigned b = 0; b < 8; ++b) {
      first |= std::uint64_t{planes[b * pairs + p]} << 8 * b;
      second |= std::uint64_t{planes[(8 + b) * pairs + p]} << 8 * b;
    }
    payload[2 * p] = before += first;
    payload[2 * p + 1] = second;
  }
}

}  // namespace

bool pack(const std::uint64_t* payload, std::uint64_t n, std::vector<std::uint64_t>& packed) {
  if (n < 4 || n % 2 != 0 || n * 8 > LZ4_MAX_INPUT_SIZE) return false;
  packed.resize(2 * n);  // the planes lie behind the result
  auto* const planes = reinterpret_cast<std::uint8_t*>(packed.data() + n);
  to_planes(payload, n / 2, planes);
  // With word 0 and one word of padding the result must stay below n words: a longer one is not
  // worth unpacking.
  const int room = static_cast<int>((n - 3) * 8);
  const int bytes = LZ4_compress_default(reinterpret_cast<const char*>(planes),
                                         reinterpret_cast<char*>(packed.data() + 1),
                                         static_cast<int>(n * 8), room);
  if (bytes <= 0) return false;
  const auto length = static_cast<std::uint64_t>(bytes);
  const std::uint64_t words = (1 + (length + 7) / 8 + 1) / 2 * 2;
  std::memset(reinterpret_cast<char*>(packed.data() + 1) + length, 0, (words - 1) * 8 - length);
  packed[0] = n | length << 32;
  packed.resize(words);
  return true;
}

Payload payload_of(const RecordView& record, std::uint64_t max_words,
                   std::vector<std::uint64_t>& scratch) {
  const std::uint64_t* const payload = record.words + header_words;
  const std::uint64_t words = record.payload_words();
  if (record.kind() != RecordKind::packed) return {payload, words};
  if (words < 2) return {};
  const std::uint64_t n = payload[0] & 0xffffffff, bytes = payload[0] >> 32;
  if (n > max_words || n % 2 != 0 || bytes > (words - 1) * 8 || n * 8 > LZ4_MAX_INPUT_SIZE)
    return {};
  scratch.resize(2 * n);  // the planes lie behind the result
  auto* const planes = reinterpret_cast<std::uint8_t*>(scratch.data() + n);
  const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(payload + 1),
                                      reinterpret_cast<char*>(planes), static_cast<int>(bytes),
                                      static_cast<int>(n * 8));
  if (got < 0 || static_cast<std::uint64_t>(got) != n * 8) return {};
  from_planes(planes, n / 2, scratch.data());
  scratch.resize(n);
  return {scratch.data(), n};
}

}  // namespace perdure::log
