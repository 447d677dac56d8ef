// SPDX-License-Identifier: BSD-3-Clause
//
// audit_btree: checks the invariants of btree.hpp (BTREE-1 to BTREE-4, the count, and that every
// node's order is a permutation).
//
// Thread safety: that of the transaction. It only reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "perdure/container/btree.hpp"

namespace perdure::detail {

template <class K, class Tx, class Tree>
class BtreeAudit {
  using N = typename Tree::N;
  using Node = typename Tree::Node;
  using Key = stored_key<K>;

 public:
  BtreeAudit(Tx& tx, const Tree& tree) : tx_(tx), tree_(tree), expected_(tree.size(tx)) {}

  std::vector<std::string> run() {
    Node* root = tree_.root(tx_);
    const std::uint64_t height = tree_.height(tx_);
    if ((root == nullptr) != (height == 0))
      return {"map: its height is " + std::to_string(height) +
              (root ? ", with a root" : ", without a root")};
    if (root != nullptr) node(root, height, {}, {});
    if (problems_.empty() && found_ != expected_) {
      say("found " + std::to_string(found_) + " entries, its count is " +
          std::to_string(expected_));
    }
    for (std::size_t i = 0; i < leaves_.size() && problems_.empty(); ++i) {
      const Node* next = i + 1 < leaves_.size() ? leaves_[i + 1] : nullptr;
      if (tx_.read(leaves_[i]->link) != next)
        say("leaf " + std::to_string(i) + " does not link to the next leaf");
    }
    return problems_;
  }

 private:
  void say(const std::string& what) { problems_.push_back("map: " + what); }

  void node(Node* at, std::uint64_t level, const std::optional<K>& least,
            const std::optional<K>& bound) {
    if (problems_.size() >= 8) return;
    const auto order = tx_.read(at->order);
    const unsigned n = order.count();
    const std::string name = level == 1 ? "leaf " + std::to_string(leaves_.size())
                                        : "inner node of level " + std::to_string(level);
    constexpr unsigned slots = sizeof(at->key) / sizeof(at->key[0]);
    if (n == 0 || n > slots) return say(name + " has " + std::to_string(n) + " entries");
    std::vector<bool> used(slots);
    for (unsigned i = 0; i < slots; ++i) {
      if (order[i] >= slots || used[order[i]])
        return say(name + ": its order is not a permutation of its slots");
      used[order[i]] = true;
    }
    std::vector<K> keys;
    for (unsigned i = 0; i < n; ++i) keys.push_back(Key::read(tx_, at->key[order[i]]));
    for (unsigned i = 0; i < n; ++i) {
      if (i > 0 && !Key::less(tx_, at->key[order[i - 1]], keys[i]))
        say(name + ": keys " + std::to_string(i - 1) + " and " + std::to_string(i) +
            " are not in order");
      if (least && Key::less(tx_, at->key[order[i]], *least))
        say(name + ": key " + std::to_string(i) + " is below what its parents say");
      if (bound && !Key::less(tx_, at->key[order[i]], *bound))
        say(name + ": key " + std::to_string(i) + " is not below what its parents say");
    }
    if (level == 1) {
      leaves_.push_back(at);
      found_ += n;
      if (found_ > expected_) say("more entries than its count, " + std::to_string(expected_));
      return;
    }
    for (unsigned i = 0; i <= n; ++i) {
      Node* child = N::child(tx_, at, order, i);
      if (child == nullptr)
        say(name + ": child " + std::to_string(i) + " is null");
      else
        node(child, level - 1, i == 0 ? least : std::optional<K>(keys[i - 1]),
             i == n ? bound : std::optional<K>(keys[i]));
    }
  }

  Tx& tx_;
  const Tree& tree_;
  std::uint64_t expected_, found_ = 0;
  std::vector<Node*> leaves_;
  std::vector<std::string> problems_;
};

template <class K, class Tx, class Tree>
std::vector<std::string> audit_btree(Tx& tx, const Tree& tree) {
  return BtreeAudit<K, Tx, Tree>(tx, tree).run();
}

}  // namespace perdure::detail
