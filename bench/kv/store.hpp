// SPDX-License-Identifier: BSD-3-Clause
//
// A key-value store as the file benchmark sees it: 16-byte keys, 100-byte values, one put a transaction. A Store is one system in one
// mode: `durable` (put returns when the value would survive a power cut) or not (the system's own mode that does not wait).
// Thread safety: put and settle are called by many threads at once, each with its own number; the others by one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/rng.hpp"
#include "bench/harness/session.hpp"

namespace bench {

inline constexpr std::size_t key_bytes = 16;
inline constexpr std::size_t value_bytes = 100;

using Key = std::array<char, key_bytes>;
using Value = std::array<char, value_bytes>;

/// The n-th key: 16 hexadecimal digits in no order.
[[nodiscard]] inline Key key_of(std::uint64_t n) noexcept {
  const std::uint64_t scattered = mix(n + 1);
  Key key;
  for (unsigned i = 0; i < key_bytes; ++i) key[i] = "0123456789abcdef"[(scattered >> (60 - 4 * i)) & 15];
  return key;
}

/// A value that says whose it is (key, version), and whose every byte follows from that.
[[nodiscard]] inline Value value_of(const Key& key, std::uint64_t version) noexcept {
  Value value;
  std::uint64_t half[2];
  std::memcpy(half, key.data(), key_bytes);
  const std::uint64_t fill = mix(half[0] ^ mix(half[1]) ^ version);
  for (std::size_t i = 24; i < value_bytes; i += 8) {
    const std::uint64_t word = fill + i;
    std::memcpy(value.data() + i, &word, std::min<std::size_t>(8, value_bytes - i));
  }
  std::memcpy(value.data(), key.data(), key_bytes);
  std::memcpy(value.data() + key_bytes, &version, 8);
  return value;
}

[[nodiscard]] inline bool is_value_of(const Key& key, const char* data, std::size_t n) noexcept {
  if (n != value_bytes) return false;
  std::uint64_t version;
  std::memcpy(&version, data + key_bytes, 8);
  return std::memcmp(value_of(key, version).data(), data, n) == 0;
}

struct Record {
  Key key;
  Value value;
};

class Store {
 public:
  using Visit = std::function<void(const char* key, std::size_t key_size, const char* value, std::size_t value_size)>;

  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  virtual void put(unsigned thread, const Key& key, const Value& value) = 0;
  /// Many puts at once, before anything is measured.
  virtual void load(std::span<const Record> records) = 0;
  /// In the measured time of a thread, at its end: whatever this thread was promised has been kept.
  virtual void settle(unsigned /*thread*/) {}
  /// Every record, in any order.
  virtual void for_each(const Visit& visit) = 0;
  virtual void reopen() = 0;
  [[nodiscard]] virtual std::map<std::string, double> counters() { return {}; }
  [[nodiscard]] virtual std::string describe() = 0;
};

/// Waits until the file system that `directory` lies on has nothing left to write: what one system left behind is not another one's time.
void sync_file_system(const std::string& directory);

/// A Store in the harness: fills it with 100,000 of 200,000 keys, puts random ones, audits that the keys are those that were put and
/// that every value is whole. `wait` says whether a put is durable when it returns (then each one's time is taken).
std::unique_ptr<Session> open_kv(const Setting& setting, bool wait, std::unique_ptr<Store> store);

void add_perdure_kv(Systems& systems);  ///< perdure_kv.cpp
void add_raw(Systems& systems);         ///< raw.cpp
void add_sqlite(Systems& systems);      ///< ../peers/, in an executable of their own
void add_lmdb(Systems& systems);
void add_rocksdb(Systems& systems);
void add_berkeleydb(Systems& systems);

}  // namespace bench
