// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the cases. Each case is a pair: the breach, and under PERDURE_CONTROL the correct way
// to write the same thing.
#pragma once

#include <perdure.hpp>

#include <cstdint>

struct Node {
  perdure::p<std::uint64_t> value;
  perdure::ptr<Node> next;
};

struct Root {
  perdure::p<std::uint64_t> count;
  perdure::ptr<Node> head;
};

/// A root with a container of each kind that has cursors.
struct Places {
  perdure::map<int, int> map;
  perdure::rb_tree<int, int> rb_tree;
  perdure::hash_map<int, int> hash_map;
  perdure::list<int> list;
  perdure::vector<int> vector;
  perdure::queue<int> queue;
  perdure::ptr<Node> head;
};

inline perdure::Pool<Root> open_pool() { return perdure::Pool<Root>::open("never-run.perdure"); }
