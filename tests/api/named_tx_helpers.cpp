// SPDX-License-Identifier: BSD-3-Clause
#include "tests/api/named_tx.hpp"

namespace perdure::test {

void deliver(tx& tx, Shop& shop, const std::string& what, std::uint64_t count) {
  ++tx(shop.deliveries);
  shop.name.assign(tx, "the shop of " + what);
  shop.stock.upsert(tx, what, [&](std::uint64_t& n) { n += count; });
  shop.orders.put(tx, tx.read(shop.deliveries), count);
  Node* const node = tx.make<Node>(count, tx.read(shop.head));
  tx(shop.head) = node;
}

std::uint64_t take_first(tx& tx, Shop& shop) {
  Node* const first = tx(shop.head);
  if (first == nullptr) return 0;
  const std::uint64_t value = tx(first->value);
  tx(shop.head) = tx(first->next);
  tx.destroy(first);
  return value;
}

std::uint64_t total(rtx& tx, const Shop& shop) {
  std::uint64_t by_name = 0, by_number = 0;
  shop.stock.for_each(tx, [&](const std::string&, std::uint64_t n) { by_name += n; });
  shop.orders.for_each(tx, [&](std::uint64_t, std::uint64_t n) { by_number += n; });
  return by_name == by_number && shop.orders.size(tx) == tx(shop.deliveries) ? by_name : 0;
}

std::uint64_t total_of_list(rtx& tx, const Shop& shop) {
  std::uint64_t sum = 0;
  for (const Node* node = tx(shop.head); node != nullptr; node = tx(node->next))
    sum += tx(node->value);
  return sum;
}

std::string name_of(rtx& tx, const Shop& shop) { return shop.name.str(tx); }

}  // namespace perdure::test
