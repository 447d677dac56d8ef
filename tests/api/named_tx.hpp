// SPDX-License-Identifier: BSD-3-Clause
//
// Functions on transactions that are compiled in a source of their own (named_tx_helpers.cpp), for
// named_tx_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perdure/perdure.hpp"

namespace perdure::test {

struct Node {
  p<std::uint64_t> value;
  ptr<Node> next;
};
struct Shop {
  p<std::uint64_t> deliveries;
  ptr<Node> head;
  perdure::string name;
  perdure::map<std::string, std::uint64_t> stock;
  perdure::hash_map<std::uint64_t, std::uint64_t> orders;
};

/// Changes a field, a string, both maps and a linked list.
void deliver(tx& tx, Shop& shop, const std::string& what, std::uint64_t count);
/// Takes the list's first node out and returns its value.
std::uint64_t take_first(tx& tx, Shop& shop);
/// Adds up what deliver() has stored, each part in another way.
std::uint64_t total(rtx& tx, const Shop& shop);
/// What must be equal to total(): the sum of the list's nodes.
std::uint64_t total_of_list(rtx& tx, const Shop& shop);
std::string name_of(rtx& tx, const Shop& shop);

}  // namespace perdure::test
