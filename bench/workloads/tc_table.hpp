// SPDX-License-Identifier: BSD-3-Clause
//
// The hash table of Tokyo Cabinet's design (tc_hash.hpp) as a `Calls` of kv_table.hpp, and the
// check of its invariants. It has as many buckets as Tokyo Cabinet's tcmdbnew() makes: 8 times
// 8,209.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/workloads/kv_record.hpp"
#include "bench/workloads/tc_hash.hpp"

namespace bench {

/// Counts what is wrong with a table.
template <class Model>
struct TcAudit {
  using Hash = TcHash<Model>;
  using Ref = typename Hash::Ref;
  std::uint64_t links = 0;   ///< of the lists, those back included
  std::uint64_t places = 0;  ///< records that are in a wrong map, bucket or place of its tree
  std::uint64_t counts = 0;  ///< of records and bytes, in trees and lists

  template <class Tx>
  void look(Tx& tx, const TcRoot<Model>& root) {
    *this = {};  // a view may run again
    for (std::uint32_t number = 0; number < TcKey::maps; ++number) {
      const auto& map = root.maps[number];
      std::uint64_t found = 0;
      for (std::uint64_t i = 0, n = tx.get(map.bucket_count); i < n; ++i)
        look_at_tree(tx, map, number, i, found);
      const bool all = found == tx.get(map.records);
      if (!all) ++counts;
      look_at_list(tx, map, all);
    }
  }
  [[nodiscard]] bool right() const { return links + places + counts == 0; }
  [[nodiscard]] std::string text() const {
    return "tchash: " + std::to_string(links) + " links of lists, " + std::to_string(places) +
           " places in trees and " + std::to_string(counts) + " counts are wrong";
  }

 private:
  /// `ends`: no tree has a cycle, so that a search in it ends.
  template <class Tx>
  void look_at_list(Tx& tx, const TcMap<Model>& map, bool ends) {
    const std::uint64_t records = tx.get(map.records);
    std::uint64_t found = 0, bytes = 0;
    Ref previous{};
    for (Ref record = tx.get(map.first); record; record = tx.get(record->next)) {
      if (!(tx.get(record->previous) == previous)) ++links;
      Hash::load(tx, record, key_, value_);
      bytes += key_.size() + value_.size();
      // A record of the list is the one that its key leads to.
      if (ends && !(tx.get(*Hash::find(tx, map, TcKey(key_))) == record)) ++places;
      previous = record;
      if (++found > records) break;  // perhaps a cycle
    }
    if (!(tx.get(map.last) == previous)) ++links;
    if (found != records || bytes != tx.get(map.bytes)) ++counts;
  }

  /// Walks the tree in order: each record comes before the next one by compare().
  template <class Tx>
  void look_at_tree(Tx& tx, const TcMap<Model>& map, std::uint32_t number, std::uint64_t bucket,
                    std::uint64_t& found) {
    const std::uint64_t most = tx.get(map.records);
    std::vector<Ref> above;
    std::string before;
    bool first = true;
    for (Ref at = tx.get(tx.get(map.buckets)[bucket]); at || !above.empty();) {
      for (; at && above.size() <= most; at = tx.get(at->left)) above.push_back(at);
      if (above.size() > most || ++found > most) return;  // a cycle: then found is wrong, too
      const Ref record = above.back();
      above.pop_back();
      Hash::load(tx, record, key_, value_);
      const TcKey key(key_);
      if (key.map != number || key.bucket_hash % tx.get(map.bucket_count) != bucket ||
          key.sizes != static_cast<std::uint32_t>(tx.get(record->sizes)) ||
          (!first && Hash::compare(tx, TcKey(before), record) >= 0))
        ++places;
      before = key_;
      first = false;
      at = tx.get(record->right);
    }
  }

  std::string key_, value_;
};

template <class Model>
struct TcCalls {
  using Root = TcRoot<Model>;
  using Hash = TcHash<Model>;
  static constexpr const char* structure = "tchash";

  /// Makes the buckets, `buckets` in each map.
  template <class Host>
  static void prepare(Host& host, std::uint64_t buckets = TcKey::buckets_by_default) {
    for (std::uint32_t number = 0; number < TcKey::maps; ++number) {
      host.update([=](auto& tx, Root& root) {
        auto& map = root.maps[number];
        tx.set(map.bucket_count, buckets);
        tx.set(map.buckets, tx.template allocate<typename Hash::Link>(buckets));
        return true;
      });
      constexpr std::uint64_t a_transaction = 1024;
      for (std::uint64_t from = 0; from < buckets; from += a_transaction) {
        host.update([=](auto& tx, Root& root) {
          const auto table = tx.get(root.maps[number].buckets);
          for (std::uint64_t i = from; i < std::min(buckets, from + a_transaction); ++i)
            tx.set(table[i], typename Hash::Ref{});
          return true;
        });
      }
    }
  }

  template <class Tx>
  static void put(Tx& tx, Root& root, const Key& key, const Value& value) {
    Hash::put(tx, root, {key.data(), key.size()}, {value.data(), value.size()});
  }
  template <class Tx>
  static bool erase(Tx& tx, Root& root, const Key& key) {
    return Hash::out(tx, root, {key.data(), key.size()});
  }
  template <class Tx>
  static bool contains(Tx& tx, const Root& root, const Key& key) {
    std::string value;
    return Hash::get(tx, root, {key.data(), key.size()}, value);
  }
  /// In the order of Tokyo Cabinet's iteration: map by map, the oldest record first.
  template <class Tx, class F>
  static void for_each(Tx& tx, const Root& root, F f) {
    std::string key, value;
    for (const auto& map : root.maps) {
      std::uint64_t left = tx.get(map.records);
      for (auto record = tx.get(map.first); record && left-- != 0; record = tx.get(record->next)) {
        Hash::load(tx, record, key, value);
        Key whole{};
        std::memcpy(whole.data(), key.data(), std::min(key.size(), whole.size()));
        f(whole, value.data(), value.size());
      }
    }
  }

  /// Checks the invariants.
  template <class Host>
  static void audit(Host& host, std::vector<std::string>& problems) {
    TcAudit<Model> found;
    host.view([&found](auto& tx, const Root& root) {
      found.look(tx, root);
      return true;
    });
    if (!found.right()) problems.push_back(found.text());
  }
};

}  // namespace bench
