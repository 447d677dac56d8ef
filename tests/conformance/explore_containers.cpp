// SPDX-License-Identifier: BSD-3-Clause
//
// The workload of the containers that perdure.hpp does not include: sets, multimap, deque,
// priority_queue, and objects that leave their hooked_list as their owner frees them.
#include <deque>
#include <map>
#include <set>

#include "perdure/container/deque.hpp"
#include "perdure/container/erase_if.hpp"
#include "perdure/container/hash_set.hpp"
#include "perdure/container/hooked_list.hpp"
#include "perdure/container/multimap.hpp"
#include "perdure/container/priority_queue.hpp"
#include "perdure/container/set.hpp"
#include "tests/conformance/explore.hpp"
#include "tests/conformance/workloads.hpp"

namespace perdure::conformance {
namespace {

struct Waiting {
  p<std::uint64_t> number;
  list_hook hook;
};
struct ContainersRoot {
  set<std::string, 4> names;
  hash_set<std::uint64_t, 2> numbers;
  multimap<std::uint64_t, std::string, 4> notes;
  deque<std::array<std::uint64_t, 20>> ends;  // 8 slots per block
  priority_queue<std::string> first;
  map<std::uint64_t, Waiting> waiting;
  hooked_list<Waiting, &Waiting::hook> line;
};
struct ContainersModel {
  std::set<std::string> names;
  std::set<std::uint64_t> numbers;
  std::multimap<std::uint64_t, std::string> notes;
  std::deque<std::uint64_t> ends;
  std::multiset<std::string> first;
  std::deque<std::uint64_t> line;
};
struct Containers : Workload<Containers, ContainersRoot, ContainersModel> {
  static constexpr const char* name = "containers";

  template <class Tx>
  void change(Tx& tx, Root& root, Model& m, Random& r) {
    for (std::uint64_t n = 1 + r() % 3; n > 0; --n) {
      const std::uint64_t number = r() % 12;
      const std::string text = "text " + std::to_string(number);
      switch (r() % 14) {
        case 0:
        case 1:
          root.names.insert(tx, text), root.numbers.insert(tx, number);
          m.names.insert(text), m.numbers.insert(number);
          break;
        case 2:
          root.names.erase(tx, text), root.numbers.erase(tx, number);
          m.names.erase(text), m.numbers.erase(number);
          break;
        case 3:
        case 4:
          root.notes.insert(tx, number % 3, text);
          m.notes.emplace(number % 3, text);
          break;
        case 5:
          root.notes.erase(tx, number % 3);
          m.notes.erase(number % 3);
          break;
        case 6:
        case 7:
          root.ends.push_back(tx, {number}), m.ends.push_back(number);
          root.ends.push_front(tx, {number + 1}), m.ends.push_front(number + 1);
          break;
        case 8:
          if (root.ends.pop_front(tx)) m.ends.pop_front();
          if (root.ends.pop_back(tx)) m.ends.pop_back();
          break;
        case 9:
        case 10: root.first.push(tx, text), m.first.insert(text); break;
        case 11:
          if (root.first.pop(tx)) m.first.erase(std::prev(m.first.end()));
          if (r() % 6 == 0) {
            erase_if(tx, root.ends, [](const auto& one) { return one[0] % 2 == 0; });
            std::erase_if(m.ends, [](std::uint64_t one) { return one % 2 == 0; });
          }
          break;
        case 12:
          if (root.waiting.insert(tx, number)) {
            root.waiting.update(tx, number, [&](Waiting& one) {
              tx.write(one.number, number);
              root.line.push_back(tx, one);
            });
            m.line.push_back(number);
          }
          break;
        default:
          if (root.waiting.erase(tx, number)) std::erase(m.line, number);
      }
    }
  }
  template <class Tx>
  std::uint64_t digest(Tx& tx, const Root& root) const {
    Digest d;
    root.names.for_each(tx, [&](const std::string& text) { d.add(std::string_view(text)); });
    std::set<std::uint64_t> numbers;
    root.numbers.for_each(tx, [&](std::uint64_t number) { numbers.insert(number); });
    for (const std::uint64_t number : numbers) d.add(number);
    root.notes.for_each(tx, [&](std::uint64_t number, const std::string& text) {
      d.add(number).add(std::string_view(text));
    });
    root.ends.for_each(tx, [&](const auto& one) { d.add(one[0]); });
    std::multiset<std::string> first;
    root.first.for_each(tx, [&](const std::string& text) { first.insert(text); });
    for (const std::string& text : first) d.add(std::string_view(text));
    root.line.for_each(tx, [&](const Waiting& one) { d.add(tx.read(one.number)); });
    d.add(root.waiting.size(tx));
    return d.value();
  }
  static std::uint64_t model_digest(const Model& m) {
    Digest d;
    for (const std::string& text : m.names) d.add(std::string_view(text));
    for (const std::uint64_t number : m.numbers) d.add(number);
    for (const auto& [number, text] : m.notes) d.add(number).add(std::string_view(text));
    for (const std::uint64_t number : m.ends) d.add(number);
    for (const std::string& text : m.first) d.add(std::string_view(text));
    for (const std::uint64_t number : m.line) d.add(number);
    d.add(m.line.size());
    return d.value();
  }
};

}  // namespace

std::vector<Row> explore_containers(const Budget& budget) {
  return explore_all<Containers>(budget);
}
}  // namespace perdure::conformance
