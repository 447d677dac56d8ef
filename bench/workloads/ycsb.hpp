// SPDX-License-Identifier: BSD-3-Clause
//
// YCSB's core workloads (Cooper et al., SoCC '10) over a table in key order, with records of ten
// fields of 104 bytes:
//   ycsb-a  half reads, half updates
//   ycsb-b  95 % reads, 5 % updates
//   ycsb-c  reads alone
//   ycsb-d  95 % reads of the newest records, 5 % insertions
//   ycsb-e  95 % scans of 1 to 100 records, 5 % insertions
//   ycsb-f  half reads, half read-modify-writes
//   ycsb-t  as a, and what an update stores is random text, as YCSB's client makes it
//           (ycsb_text.hpp); elsewhere it is words that are quicker to make
// A read takes all fields of a record; an update stores one field, chosen at random; a
// read-modify-write reads all and stores one; each is one transaction. Keys follow Zipf's law with
// 0.99 over the loaded records, scattered; in D over the newest records, by age. Setting::records
// is 50,000 by default.
// Departures from YCSB: keys are numbers; insertions come in key order, because the store scatters
// nothing; there is no client in between.
// Invariant: there are as many records as were loaded and inserted, and every field is one that was
// written to it.
#pragma once

#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/workloads/dude_session.hpp"
#include "bench/workloads/ycsb_text.hpp"

namespace bench {

template <class Model, template <class, class> class Table>
struct Ycsb {
  using Record = SessionRecord<Model>;
  struct Root {
    static constexpr const char* layout_id = "bench::Ycsb/1";
    Table<Model, Record> records;
    template <class Tx, class F>
    void each_block(Tx& tx, F&& f) const {
      tpcc::WalkReader<Tx> reader{tx};
      records.each_block(reader, f);
    }
  };
  static constexpr const char* structure = "ycsb";

  template <class Host>
  static void fill(Host& host, const Setting& setting) {
    loaded_ = setting.records != 0 ? setting.records : 50'000;
    for (std::uint64_t k = 0; k < loaded_; ++k) insert(host, k);
    next_ = loaded_;
  }
  static void check_parameter(unsigned letter) {
    if ((letter < 'a' || letter > 'f') && letter != 't')
      throw std::invalid_argument(
          "ycsb: found a workload that is none of ycsb-a to ycsb-f, and not ycsb-t");
  }

  template <class Host>
  static void begin(Host&, unsigned, Rng& rng) {
    zipf_.rank(loaded_, 99, rng);
  }
  template <class Host>
  static Step step(Host& host, const Cell&, unsigned letter, Rng& rng) {
    const std::uint64_t rank = zipf_.rank(loaded_, 99, rng), drawn = rng(),
                        percent = (drawn >> 40) % 100;
    const std::uint64_t key = letter == 'd' ? newest(rank) : mix(rank) % loaded_;
    if (letter == 'd' || letter == 'e') {
      if (percent < 5) {
        insert(host,
               // It pairs with nothing: newest() needs no order, because an absent record is no
               // error.
               next_.fetch_add(1, std::memory_order_relaxed));
        return {.wrote = true, .grown = 1};
      }
      seen_ += letter == 'e' ? scan(host, key, 1 + drawn % 100) : read(host, key);
      return {};
    }
    // Of a hundred operations.
    static constexpr std::array<std::uint64_t, 6> updates{50, 5, 0, 0, 0, 50};
    const bool text = letter == 't';
    if (percent >= updates[text ? 0 : letter - 'a']) {
      seen_ += read(host, key);
      return {};
    }
    const std::uint64_t field = drawn % Record::fields, version = drawn >> 8;
    const FieldText content = text ? random_text(key, field, static_cast<std::uint32_t>(version))
                                   : field_text(key, field, version);
    host.update([&content, key, field, modifies = letter == 'f'](auto& tx, Root& root) {
      const auto row = root.records.find(tx, key);
      if (modifies) seen_ += sum_of(tx, row);
      tx.set(row->field[field], content);
      return true;
    });
    return {.wrote = true, .grown = 0};
  }

  template <class Host>
  static std::vector<std::string> audit(Host& host, std::int64_t grown) {
    std::uint64_t rows = 0, wrong = 0;
    std::vector<std::string> problems;
    host.view([&](auto& tx, const Root& root) {
      problems.clear();  // a view may run again
      rows = wrong = 0;
      root.records.audit(tx, structure, problems);
      root.records.each(tx, [&](std::uint64_t key, const auto& row) {
        ++rows;
        for (std::uint64_t f = 0; f < Record::fields; ++f)
          wrong += is_content_of(tx.get(row->field[f]), key, f) ? 0 : 1;
      });
      return true;
    });
    const auto expected = static_cast<std::uint64_t>(static_cast<std::int64_t>(loaded_) + grown);
    if (rows != expected || wrong != 0)
      problems.push_back("ycsb: found " + std::to_string(rows) + " records, " +
                         std::to_string(wrong) + " broken fields, expected " +
                         std::to_string(expected));
    return problems;
  }

 private:
  static bool is_content_of(const FieldText& content, std::uint64_t key, std::uint64_t f) {
    return is_field_of(content, key, f) || is_random_text(content, key, f);
  }
  static std::uint64_t newest(std::uint64_t age) noexcept {
    const std::uint64_t n = next_.load(std::memory_order_relaxed);
    return n - 1 - age % n;
  }
  template <class Host>
  static void insert(Host& host, std::uint64_t key) {
    host.update([key](auto& tx, Root& root) {
      root.records.insert(tx, key, tx.template make<Record>(key));
      return true;
    });
  }
  /// Reads a word of each field; 0 for a record that does not exist yet.
  template <class Tx, class Row>
  static std::uint64_t sum_of(Tx& tx, const Row& row) {
    std::uint64_t sum = 0;
    if (row)
      for (std::uint64_t f = 0; f < Record::fields; ++f) sum += tx.get(row->field[f])[0];
    return sum;
  }
  template <class Host>
  static std::uint64_t read(Host& host, std::uint64_t key) {
    return host.view(
        [key](auto& tx, const Root& root) { return sum_of(tx, root.records.find(tx, key)); });
  }
  template <class Host>
  static std::uint64_t scan(Host& host, std::uint64_t from, std::uint64_t n) {
    return host.view([from, n](auto& tx, const Root& root) {
      std::uint64_t sum = 0;
      root.records.scan(tx, from, n,
                        [&](std::uint64_t, const auto& row) { sum += sum_of(tx, row); });
      return sum;
    });
  }

  static inline std::uint64_t loaded_ = 0;  // a process has one session
  static inline std::atomic<std::uint64_t> next_{0};
  static inline thread_local ZipfKeys zipf_;
  // Keeps reads from being optimised away.
  static inline thread_local constinit std::uint64_t seen_ = 0;
};

}  // namespace bench
