// SPDX-License-Identifier: BSD-3-Clause
//
// TPC-C's rows (revision 5.11, clause 1.3), with the columns that new order reads or writes.
// Numbers are packed into 8-byte words, so that what changes together is one word. The texts that
// new order does not access are left out (names, addresses, phone, c_data, d_name, the use of
// i_im_id), and so are tables that it does not access (history). i_data and s_data, 26 to 50
// characters there, are 16 here; c_last and dist_info are whole. Sizes in bytes: warehouse 16,
// district 32, customer 32, item 48, stock 272, orders 24, new_order 8, order_line 48.
#pragma once

#include <array>
#include <cstdint>

namespace bench::tpcc {

// Customers are per district.
inline constexpr std::uint32_t warehouses = 1, districts = 10, customers = 3000, items = 100'000;
// Loaded per district.
inline constexpr std::uint32_t first_orders = 3000, first_new_orders = 900;
inline constexpr std::uint32_t max_lines = 15;

template <std::size_t n>
using Text = std::array<char, n>;

/// Amounts are in cents, taxes and discounts in ten-thousandths.
template <class Model>
struct Warehouse {
  static constexpr const char* layout_id = "bench::tpcc::Warehouse/1";
  typename Model::template Field<std::uint64_t> tax, ytd;
  Warehouse(std::uint64_t t, std::uint64_t y) : tax(t), ytd(y) {}
};

template <class Model>
struct District {
  static constexpr const char* layout_id = "bench::tpcc::District/1";
  typename Model::template Field<std::uint64_t> next_order, tax, ytd, number;
  District(std::uint64_t n, std::uint64_t t, std::uint64_t y, std::uint64_t d)
      : next_order(n), tax(t), ytd(y), number(d) {}
};

struct CustomerData {
  Text<16> last{};
  Text<2> credit{};
  std::uint16_t discount = 0;
  std::uint32_t number = 0;
};
template <class Model>
struct Customer {
  static constexpr const char* layout_id = "bench::tpcc::Customer/1";
  typename Model::template Field<CustomerData> data;
  explicit Customer(const CustomerData& d) : data(d) {}
};

struct ItemData {
  std::uint32_t number = 0, price = 0;
  Text<24> name{};
  Text<16> data{};
};
template <class Model>
struct Item {
  static constexpr const char* layout_id = "bench::tpcc::Item/1";
  typename Model::template Field<ItemData> data;
  explicit Item(const ItemData& d) : data(d) {}
};

/// What an order line changes in its stock row: one word.
struct alignas(8) StockCounts {
  std::uint16_t quantity = 0, orders = 0;
  std::uint32_t ytd = 0;
};
struct StockTexts {
  std::array<Text<24>, districts> info{};
  Text<16> data{};
};
template <class Model>
struct Stock {
  static constexpr const char* layout_id = "bench::tpcc::Stock/1";
  typename Model::template Field<StockCounts> counts;
  typename Model::template Field<std::uint64_t> remote;
  typename Model::template Field<Text<24>> info[districts];
  typename Model::template Field<Text<16>> data;
  Stock(const StockCounts& c, const StockTexts& t)
      : counts(c),
        remote(0),
        info{t.info[0], t.info[1], t.info[2], t.info[3], t.info[4],
             t.info[5], t.info[6], t.info[7], t.info[8], t.info[9]},
        data(t.data) {}
};

struct alignas(8) OrderData {
  std::uint32_t order = 0, customer = 0;
  std::uint64_t entered = 0;
  std::uint16_t warehouse = 1;
  std::uint8_t district = 0, carrier = 0, lines = 0, all_local = 1;  // carrier 0: null
};
template <class Model>
struct Order {
  static constexpr const char* layout_id = "bench::tpcc::Order/1";
  typename Model::template Field<OrderData> data;
  explicit Order(const OrderData& d) : data(d) {}
};

struct alignas(8) NewOrderData {
  std::uint32_t order = 0;
  std::uint16_t warehouse = 1;
  std::uint8_t district = 0;
};
template <class Model>
struct NewOrder {
  static constexpr const char* layout_id = "bench::tpcc::NewOrder/1";
  typename Model::template Field<NewOrderData> data;
  explicit NewOrder(const NewOrderData& d) : data(d) {}
};

struct alignas(8) LineData {
  std::uint32_t order = 0;
  std::uint16_t warehouse = 1;
  std::uint8_t district = 0, number = 0;
  std::uint32_t item = 0, amount = 0;
  std::uint32_t delivered = 0;  // 0: null
  std::uint16_t supplier = 1;
  std::uint8_t quantity = 0;
  Text<24> info{};
};
template <class Model>
struct OrderLine {
  static constexpr const char* layout_id = "bench::tpcc::OrderLine/1";
  typename Model::template Field<LineData> data;
  explicit OrderLine(const LineData& d) : data(d) {}
};

// Keys; compound ones are one number in their order. The one warehouse is number 1.
constexpr std::uint64_t district_key(std::uint64_t d) noexcept { return 1 << 8 | d; }
constexpr std::uint64_t customer_key(std::uint64_t d, std::uint64_t c) noexcept {
  return district_key(d) << 24 | c;
}
constexpr std::uint64_t stock_key(std::uint64_t i) noexcept { return 1ULL << 32 | i; }

}  // namespace bench::tpcc
