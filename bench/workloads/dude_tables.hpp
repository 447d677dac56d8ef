// SPDX-License-Identifier: BSD-3-Clause
//
// DudeTM's realistic workloads (ASPLOS '17, section 5.1), over tables of either kind: hash tables
// with open addressing ("h") or B+-trees ("b").
//   tpcch, tpccb   TPC-C's new order (tpcc.hpp), one set of order tables per district. Parameter 1:
//                  a random district; 2: one district per thread (section 5.6, low conflict). No
//                  order has an unused item, so none is rolled back (departure; the paper does not
//                  say)
//   tatph, tatpb   TATP's Update Location: the row of a subscriber, found by its number, gets a new
//                  vlr_location; 100,000 subscribers, chosen by TATP's non-uniform rule (A =
//                  65535). The parameter means nothing
// Thread safety: that of the system.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness/timed.hpp"
#include "bench/workloads/open_table.hpp"
#include "bench/workloads/tpcc.hpp"
#include "bench/workloads/tpcc_audit.hpp"
#include "bench/workloads/tpcc_load.hpp"
#include "bench/workloads/tpcc_tree.hpp"

namespace bench {

/// The number of buckets for a table that must have them from the beginning.
template <class Table, class Host, class Of>
void prepare_table(Host& host, Of of, std::uint64_t buckets) {
  if constexpr (requires { Table::prepare(host, of, buckets); }) Table::prepare(host, of, buckets);
}

template <class Model, template <class, class> class Table, bool hash>
struct NewOrders {
  using Workload = tpcc::Tpcc<Model, Table, tpcc::districts>;
  using Root = typename Workload::Data;
  static constexpr const char* structure = hash ? "tpcch" : "tpccb";
  /// Buckets per district: for 50,000 orders and half a million lines.
  static constexpr std::uint64_t orders = 1 << 16, lines = 1 << 20;

  template <class Host>
  static void fill(Host& host, const Setting&) {
    using namespace tpcc;
    const auto prepare = [&]<class Row>(std::type_identity<Row>, auto of, std::uint64_t n) {
      prepare_table<Table<Model, Row>>(host, of, n);
    };
    prepare(
        std::type_identity<Warehouse<Model>>{}, [](auto& r) -> auto& { return r.warehouse; }, 1024);
    prepare(
        std::type_identity<District<Model>>{}, [](auto& r) -> auto& { return r.district; }, 1024);
    prepare(
        std::type_identity<Customer<Model>>{}, [](auto& r) -> auto& { return r.customer; },
        1 << 16);
    prepare(std::type_identity<Item<Model>>{}, [](auto& r) -> auto& { return r.item; }, 1 << 18);
    prepare(std::type_identity<Stock<Model>>{}, [](auto& r) -> auto& { return r.stock; }, 1 << 18);
    for (unsigned d = 0; d < districts; ++d) {
      prepare(
          std::type_identity<Order<Model>>{}, [d](auto& r) -> auto& { return r.orders[d]; },
          orders);
      prepare(
          std::type_identity<NewOrder<Model>>{}, [d](auto& r) -> auto& { return r.new_orders[d]; },
          orders);
      prepare(
          std::type_identity<OrderLine<Model>>{}, [d](auto& r) -> auto& { return r.lines[d]; },
          lines);
    }
    Loader<Workload>::load(host);
  }
  static void check_parameter(unsigned) {}
  template <class Host>
  static Step step(Host& host, const Cell&, unsigned parameter, Rng& rng) {
    static std::atomic<std::uint32_t> threads{0};
    thread_local const std::uint32_t mine = threads.fetch_add(1) % tpcc::districts + 1;
    tpcc::Input in = tpcc::draw(rng, 1);
    if (in.unused_item) in.line[in.lines - 1].item = tpcc::items;
    if (parameter == 2) in.district = mine;
    host.update(
        [&in](auto& tx, Root& root) { return Workload::new_order(tx, root, in, false).complete; });
    return {.wrote = true, .grown = 1};
  }
  template <class Host>
  static std::vector<std::string> audit(Host& host, std::int64_t grown) {
    tpcc::Expected expected;
    expected.orders = static_cast<std::uint64_t>(grown);
    return host.view([&](auto& tx, const Root& root) {
      return tpcc::Audit<Root>(tx, root, expected).problems();
    });
  }
};

/// TATP's subscriber (specification 1.0, 2.1.1): ten bits, ten hex digits, ten bytes, the two
/// locations.
template <class Model>
struct Subscriber {
  static constexpr const char* layout_id = "bench::Subscriber/1";
  typename Model::template Field<std::uint64_t> number, bits, bytes, msc, vlr;
  Subscriber(std::uint64_t n, std::uint64_t b, std::uint64_t y, std::uint64_t m, std::uint64_t v)
      : number(n), bits(b), bytes(y), msc(m), vlr(v) {}
};

template <class Model, template <class, class> class Table, bool hash>
struct UpdateLocation {
  struct Root {
    static constexpr const char* layout_id =
        hash ? "bench::UpdateLocation/hash/1" : "bench::UpdateLocation/tree/1";
    Table<Model, Subscriber<Model>> subscribers;
    template <class Tx, class F>
    void each_block(Tx& tx, F&& f) const {
      tpcc::WalkReader<Tx> reader{tx};
      subscribers.each_block(reader, f);
    }
  };
  static constexpr const char* structure = hash ? "tatph" : "tatpb";
  static constexpr std::uint32_t subscribers = 100'000;

  template <class Host>
  static void fill(Host& host, const Setting&) {
    prepare_table<Table<Model, Subscriber<Model>>>(
        host, [](auto& r) -> auto& { return r.subscribers; }, 1 << 18);
    Rng rng(11, 5);
    for (std::uint64_t s = 1; s <= subscribers; ++s) {
      const std::uint64_t bits = rng(), bytes = rng(), msc = rng() >> 32;
      host.update([=](auto& tx, Root& root) {
        root.subscribers.insert(
            tx, s, tx.template make<Subscriber<Model>>(s, bits, bytes, msc, std::uint64_t{0}));
        return true;
      });
    }
  }
  static void check_parameter(unsigned) {}
  template <class Host>
  static Step step(Host& host, const Cell&, unsigned, Rng& rng) {
    const std::uint64_t s = (tpcc::between(rng, 0, 65535) | tpcc::between(rng, 1, subscribers)) %
                                subscribers +
                            1,
                        location = rng() >> 32 | 1;
    host.update([=](auto& tx, Root& root) {
      const auto row = root.subscribers.find(tx, s);
      tx.set(row->vlr, location);
      return true;
    });
    return {.wrote = true, .grown = 0};
  }
  template <class Host>
  static std::vector<std::string> audit(Host& host, std::int64_t) {
    std::uint64_t rows = 0, wrong = 0;
    std::vector<std::string> problems;
    host.view([&](auto& tx, const Root& root) {
      problems.clear();  // a view may run again
      rows = wrong = 0;
      root.subscribers.audit(tx, structure, problems);
      root.subscribers.each(tx, [&](std::uint64_t key, const auto& row) {
        ++rows;
        wrong += tx.get(row->number) != key || tx.get(row->vlr) >> 32 != 0 ? 1 : 0;
      });
      return true;
    });
    if (rows != subscribers || wrong != 0)
      problems.push_back(std::string(structure) + ": found " + std::to_string(rows) +
                         " subscribers, " + std::to_string(wrong) + " of them wrong, expected " +
                         std::to_string(subscribers));
    return problems;
  }
};

}  // namespace bench
