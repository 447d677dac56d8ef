// SPDX-License-Identifier: BSD-3-Clause
//
// The program whose includes ./dev measures counts: the first program of a user of the default
// engine. It uses no optional feature, so each header of another engine is one too many.
#include <iostream>
#include <perdure/perdure.hpp>
#include <string>

struct Shop {
  perdure::map<std::string, int> stock;
  perdure::p<int> deliveries;
};

int main() {
  auto pool = perdure::Pool<Shop>::open("shop.perdure");
  auto receipt = pool.update([](auto& tx, Shop& shop) {
    shop.stock.upsert(tx, "apples", [](int& n) { n += 5; });
    return tx(shop.deliveries) += 1;
  });
  std::cout << "delivery " << receipt.value() << " is in the books\n";
}
