// SPDX-License-Identifier: BSD-3-Clause
//
// YCSB's session store (workload A) on a key-value store that is a table of rows: a B+-tree
// (DudeTM, ASPLOS '17, sections 5.4 and 5.5): half of the operations read a record, half update it.
// Keys follow Zipf's law, scattered over the key space; the parameter is a hundred times the
// constant: session-99, session-107. Setting::records is the number of records: 10,000 by default.
// A record is an 8-byte value, as in the paper's B+-tree: a number that identifies its key and
// counts up. store-99 is the same with updates alone (5.5: "updating a key-value store"), each of a
// whole record of ten fields of 104 bytes.
// Invariant: every value and field is one that was written to it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/harness/timed.hpp"
#include "bench/workloads/snapshot.hpp"
#include "bench/workloads/tpcc.hpp"

namespace bench {

using FieldText = std::array<std::uint64_t, 13>;

/// The content of version `v` of a field of a record: its words identify their record and field.
inline FieldText field_text(std::uint64_t key, std::uint64_t field,
                            std::uint64_t version) noexcept {
  FieldText text;
  for (std::uint64_t i = 0; i < text.size(); ++i)
    text[i] = mix(key * 16 + field) + version * (i + 1);
  return text;
}
inline bool is_field_of(const FieldText& text, std::uint64_t key, std::uint64_t field) noexcept {
  return text == field_text(key, field, text[0] - mix(key * 16 + field));
}

template <class Model>
struct SessionRecord {
  static constexpr const char* layout_id = "bench::SessionRecord/1";
  static constexpr std::uint64_t fields = 10;
  typename Model::template Field<FieldText> field[fields];
  explicit SessionRecord(std::uint64_t key)
      : field{field_text(key, 0, 0), field_text(key, 1, 0), field_text(key, 2, 0),
              field_text(key, 3, 0), field_text(key, 4, 0), field_text(key, 5, 0),
              field_text(key, 6, 0), field_text(key, 7, 0), field_text(key, 8, 0),
              field_text(key, 9, 0)} {}
};

template <class Model>
struct ValueRecord {
  static constexpr const char* layout_id = "bench::ValueRecord/1";
  typename Model::template Field<std::uint64_t> value;
  explicit ValueRecord(std::uint64_t key) : value(key << 32) {}
};

/// A thread's ranks, drawn in advance: numbers [0, n) by Zipf's law, 0 the most popular.
class ZipfKeys {
 public:
  std::uint64_t rank(std::uint64_t n, unsigned hundredths, Rng& rng) {
    if (drawn_.empty() || n != n_ || hundredths != hundredths_) draw(n, hundredths, rng);
    return drawn_[at_++ % drawn_.size()];
  }
  /// The same, scattered: the popular keys lie apart.
  std::uint64_t next(std::uint64_t n, unsigned hundredths, Rng& rng) {
    return mix(rank(n, hundredths, rng)) % n;
  }

 private:
  void draw(std::uint64_t n, unsigned hundredths, Rng& rng) {
    n_ = n;
    hundredths_ = hundredths;
    std::vector<double> weights(n);
    for (std::uint64_t i = 0; i < n; ++i)
      weights[i] = std::pow(static_cast<double>(i + 1), -0.01 * hundredths);
    std::discrete_distribution<std::uint64_t> zipf(weights.begin(), weights.end());
    std::mt19937_64 random(rng());
    drawn_.resize(1 << 20);
    for (auto& k : drawn_) k = zipf(random);
  }
  std::uint64_t n_ = 0, at_ = 0;
  unsigned hundredths_ = 0;
  std::vector<std::uint64_t> drawn_;
};

template <class Model, template <class, class> class Table, bool updates_only>
struct SessionStore {
  using Record = std::conditional_t<updates_only, SessionRecord<Model>, ValueRecord<Model>>;
  struct Root {
    static constexpr const char* layout_id = "bench::SessionStore/1";
    Table<Model, Record> records;
    typename Model::template Field<std::uint64_t> count{0ULL};
    template <class Tx, class F>
    void each_block(Tx& tx, F&& f) const {
      tpcc::WalkReader<Tx> reader{tx};
      records.each_block(reader, f);
    }
  };
  static constexpr const char* structure = updates_only ? "store" : "session";

  template <class Host>
  static void fill(Host& host, const Setting& setting) {
    const std::uint64_t n = setting.records != 0 ? setting.records : 10'000;
    for (std::uint64_t k = 0; k < n; ++k)
      host.update([k](auto& tx, Root& root) {
        root.records.insert(tx, k, tx.template make<Record>(k));
        return true;
      });
    host.update([n](auto& tx, Root& root) {
      tx.set(root.count, n);
      return true;
    });
  }
  static void check_parameter(unsigned hundredths) {
    if (hundredths == 0 || hundredths > 500)
      throw std::invalid_argument("found Zipf constant " + std::to_string(hundredths) +
                                  " / 100, expected 1 to 500");
  }
  template <class Host>
  static void begin(Host& host, unsigned hundredths, Rng& rng) {
    records_ = host.view([](auto& tx, const Root& root) { return tx.get(root.count); });
    keys_.next(records_, hundredths, rng);
  }
  template <class Host>
  static Step step(Host& host, const Cell&, unsigned hundredths, Rng& rng) {
    const std::uint64_t key = keys_.next(records_, hundredths, rng), drawn = rng();
    if (!updates_only && drawn % 2 == 0) {
      seen_ += host.view([key](auto& tx, const Root& root) {
        if constexpr (updates_only)
          return tx.get(root.records.find(tx, key)->field[0])[0];
        else
          return tx.get(root.records.find(tx, key)->value);
      });
      return {};
    }
    const std::uint64_t version = drawn >> 8;
    host.update([=](auto& tx, Root& root) {
      const auto row = root.records.find(tx, key);
      if constexpr (updates_only) {
        snapshot(tx, *row);
        for (std::uint64_t f = 0; f < Record::fields; ++f)
          tx.set(row->field[f], field_text(key, f, version));
      } else {
        tx.set(row->value, tx.get(row->value) + 1);
      }
      return true;
    });
    return {.wrote = true, .grown = 0};
  }
  template <class Host>
  static std::vector<std::string> audit(Host& host, std::int64_t) {
    std::uint64_t wrong = 0, rows = 0, expected = 0;
    host.view([&](auto& tx, const Root& root) {
      expected = tx.get(root.count);
      wrong = rows = 0;  // a view may run again
      root.records.each(tx, [&](std::uint64_t key, const auto& row) {
        ++rows;
        if constexpr (updates_only)
          for (std::uint64_t f = 0; f < Record::fields; ++f)
            wrong += is_field_of(tx.get(row->field[f]), key, f) ? 0 : 1;
        else
          wrong += tx.get(row->value) >> 32 == key ? 0 : 1;
      });
      return true;
    });
    std::vector<std::string> problems;
    if (rows != expected || wrong != 0)
      problems.push_back(std::string(structure) + ": found " + std::to_string(rows) + " records, " +
                         std::to_string(wrong) + " broken fields, expected " +
                         std::to_string(expected));
    return problems;
  }

 private:
  static inline thread_local ZipfKeys keys_;
  static inline thread_local constinit std::uint64_t records_ = 0;
  // Keeps reads from being optimised away.
  static inline thread_local constinit std::uint64_t seen_ = 0;
};

}  // namespace bench
