// SPDX-License-Identifier: BSD-3-Clause
//
// kv-100: one put per transaction, of a 16-byte key, drawn from 200,000 of which 100,000 are
// present at first, and a 100-byte value, into a map that a `Calls` names (kv_table.hpp). The keys
// that were put are recorded outside the store. Invariant: the map has exactly those keys, each
// with a whole value of its own.
#pragma once

#include <atomic>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/harness/timed.hpp"
#include "bench/workloads/kv_record.hpp"

namespace bench {

template <class Calls>
struct KvPuts {
  using Root = typename Calls::Root;
  static constexpr const char* structure = "kv";
  static constexpr std::uint64_t keys = 200'000, loaded = keys / 2;

  template <class Host>
  static void fill(Host& host, const Setting&) {
    constexpr std::uint64_t a_transaction = 100;
    for (std::uint64_t from = 0; from < loaded; from += a_transaction) {
      host.update([from](auto& tx, Root& root) {
        for (std::uint64_t n = from; n < from + a_transaction; ++n)
          Calls::put(tx, root, key_of(n), value_of(key_of(n), 0));
        return true;
      });
      for (std::uint64_t n = from; n < from + a_transaction; ++n) there_[n].store(true);
    }
  }
  static void check_parameter(unsigned bytes) {
    if (bytes != value_bytes)
      throw std::invalid_argument("kv: found values of " + std::to_string(bytes) +
                                  " bytes, expected kv-100");
  }
  template <class Host>
  static Step step(Host& host, const Cell&, unsigned, Rng& rng) {
    const std::uint64_t n = rng.below(keys);
    const Key key = key_of(n);
    const Value value = value_of(key, rng());
    host.update([&](auto& tx, Root& root) {
      Calls::put(tx, root, key, value);
      return true;
    });
    // Read after the threads have ended.
    if (!there_[n].load(std::memory_order_relaxed))
      there_[n].store(true, std::memory_order_relaxed);
    return {.wrote = true, .grown = 0};
  }
  template <class Host>
  static std::vector<std::string> audit(Host& host, std::int64_t) {
    std::map<Key, bool> all;
    for (std::uint64_t n = 0; n < keys; ++n)
      if (there_[n].load()) all.emplace(key_of(n), false);
    std::uint64_t found = 0, broken = 0, unknown = 0;
    host.view([&](auto& tx, const Root& root) {
      for (auto& [key, seen] : all) seen = false;  // a view may run again
      found = broken = unknown = 0;
      Calls::for_each(tx, root, [&](const Key& key, const char* value, std::size_t bytes) {
        const auto known = all.find(key);
        if (known == all.end() || known->second) {
          ++unknown;
          return;
        }
        known->second = true;
        ++found;
        if (!is_value_of(key, value, bytes)) ++broken;
      });
      return true;
    });
    if (found == all.size() && broken + unknown == 0) return {};
    return {"kv: found " + std::to_string(found) + " of " + std::to_string(all.size()) + " keys, " +
            std::to_string(broken) + " with a broken value, " + std::to_string(unknown) +
            " unknown or repeated"};
  }

 private:
  // A process has one session.
  static inline std::vector<std::atomic<bool>> there_ = std::vector<std::atomic<bool>>(keys);
};

}  // namespace bench
