// SPDX-License-Identifier: BSD-3-Clause
//
// Three programs in two versions each, for the tests that cut the opening by version 2 short: the
// contents of a pool of version 1, and what the pool must contain when version 2 has opened it.
//
// Evolved: fields are added, removed, moved and widened, indexes are added and dropped, a map is
// retired.
// Rebuilt: a table, a map and a vector are rebuilt with other keys and elements, by steps.
// Linked: nodes in a ring grow, and the owners to which they point, and which point back.
// Thread safety: pure functions over their arguments.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "perdure/container/rebuilt.hpp"
#include "perdure/perdure.hpp"

namespace perdure::test {

struct Evolved {
  static constexpr const char* name = "fields, indexes and retired containers";

  struct User {
    std::uint64_t id = 0;
    std::string name, mail;
    friend bool operator==(const User&, const User&) = default;
  };
  struct Before {
    p<std::uint32_t> visits{3};
    hash_map<std::uint64_t, std::string> old;
    table<User, key<&User::id>, indexed<&User::name>> users;
  };
  struct After {
    p<std::uint64_t> added{7};
    table<User, ordered_key<&User::id>> none;
    table<User, key<&User::id>, dropped<indexed<&User::name>>, unique<&User::mail>> users;
    retired<hash_map<std::uint64_t, std::string>> old;
    p<std::uint64_t> visits{0};
  };

  static std::vector<MigrationStep> steps() { return {}; }

  template <class Tx>
  static void add(Tx& tx, Before& r, std::uint64_t i) {
    r.old.put(tx, i, "value");
    r.users.insert(tx, user(i));
  }

  /// The faults of a pool of version 1; empty if there are none.
  template <class Tx>
  static std::string problem(Tx& tx, const Before& r, std::uint64_t n) {
    if (tx.read(r.visits) != 3) return "the field of version 1 is wrong";
    if (!r.users.audit(tx).empty()) return "version 1's table is not sound";
    return rows(tx, r.users, n);
  }
  /// The faults of a pool with the layout of version 2. `pending`: the work after the switch is not
  /// finished.
  template <class Tx>
  static std::string problem(Tx& tx, const After& r, std::uint64_t n, bool pending) {
    if (tx.read(r.added) != 7) return "the new field has no first value";
    if (tx.read(r.visits) != 3) return "the widened field is wrong";
    if (std::string wrong = rows(tx, r.users, n); !wrong.empty() || pending) return wrong;
    if (!r.users.audit(tx).empty()) return "the table is not whole, and no work is pending";
    bool left = false;
    r.old.each_block(tx, [&](const void*) { left = true; });
    if (left) return "what was retired is there, and no work is pending";
    for (std::uint64_t i = 0; i < n; ++i)
      if (r.users.template one<&User::mail>(tx, user(i).mail) != user(i))
        return "row " + std::to_string(i) + " is not in the new index";
    return {};
  }

  template <class Tx, class F>
  static void each_block(Tx& tx, const Before& r, F f) {
    r.old.each_block(tx, f);
    r.users.each_block(tx, f);
  }
  template <class Tx, class F>
  static void each_block(Tx& tx, const After& r, F f) {
    r.none.each_block(tx, f);
    r.users.each_block(tx, f);
    r.old.each_block(tx, f);
  }

 private:
  static User user(std::uint64_t i) {
    return {i, "name " + std::to_string(i % 3), "mail " + std::to_string(i)};
  }
  template <class Tx, class Table>
  static std::string rows(Tx& tx, const Table& users, std::uint64_t n) {
    if (users.size(tx) != n) return std::to_string(users.size(tx)) + " rows";
    for (std::uint64_t i = 0; i < n; ++i)
      if (users.find(tx, i) != user(i)) return "row " + std::to_string(i) + " is wrong";
    return {};
  }
};

struct Rebuilt {
  static constexpr const char* name = "rebuilt containers";

  struct OldUser {
    std::uint64_t id = 0;
    std::string name, mail;
  };
  struct User {
    std::string number, name, mail;
  };
  using OldUsers = table<OldUser, key<&OldUser::id>, indexed<&OldUser::mail>>;
  using OldLogins = hash_map<std::uint64_t, std::string, 1>;  // emptied over several segments
  using OldCounts = vector<std::uint64_t>;
  using Users = table<User, key<&User::name>, unique<&User::number>, indexed<&User::mail>>;
  using Logins = map<std::string, std::string>;
  using Counts = vector<std::string>;
  struct Before {
    OldUsers users;
    OldLogins logins;
    OldCounts counts;
  };
  struct After {
    rebuilt<Users, OldUsers> users;
    rebuilt<Logins, OldLogins> logins;
    rebuilt<Counts, OldCounts> counts;
  };

  static std::vector<MigrationStep> steps() {
    using OldLogin = std::pair<std::uint64_t, std::string>;
    using Login = std::pair<std::string, std::string>;
    return {step<OldUser, User>("users",
                                [](const auto& a, auto& b) { b.number = std::to_string(a.id); }),
            step<OldLogin, Login>(
                "logins", [](const auto& a, auto& b) { b.first = std::to_string(a.first); }),
            step<std::uint64_t, std::string>(
                "counts", [](const auto& a, auto& b) { b = std::to_string(a); })};
  }

  template <class Tx>
  static void add(Tx& tx, Before& r, std::uint64_t i) {
    r.users.insert(tx, {i, name_of(i), "mail " + std::to_string(i % 3)});
    r.logins.put(tx, i, "value");
    r.counts.push_back(tx, i);
  }

  template <class Tx>
  static std::string problem(Tx& tx, const Before& r, std::uint64_t n) {
    if (!r.users.audit(tx).empty()) return "version 1's table is not sound";
    if (r.users.size(tx) != n || r.logins.size(tx) != n || r.counts.size(tx) != n)
      return "version 1 has lost elements";
    for (std::uint64_t i = 0; i < n; ++i)
      if (!has_old(tx, r.users, r.logins, i) || r.counts.get(tx, i) != i)
        return "element " + std::to_string(i) + " of version 1 is wrong";
    return {};
  }
  template <class Tx>
  static std::string problem(Tx& tx, const After& r, std::uint64_t n, bool pending) {
    const auto& users = before<Users, OldUsers>(r.users);
    const auto& logins = before<Logins, OldLogins>(r.logins);
    const auto& counts = before<Counts, OldCounts>(r.counts);
    // REBUILD-1: each element is in exactly one of the two containers.
    if (users.size(tx) + r.users.size(tx) != n) return "rows are lost, or twice there";
    if (logins.size(tx) + r.logins.size(tx) != n) return "logins are lost, or twice there";
    if (!r.users.audit(tx).empty()) return "a table is not sound";
    bool left = false;
    const auto own = [&](const void*) { left = true; };
    users.each_block(tx, own);
    logins.each_block(tx, own);
    counts.each_block(tx, own);
    if (!pending && (left || users.size(tx) + logins.size(tx) + counts.size(tx) != 0))
      return "the old containers own blocks, and no work is pending";
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::string number = std::to_string(i);
      const auto row = r.users.find(tx, name_of(i));
      if (row ? row->number != number || !r.users.template one<&User::number>(tx, number)
              : !users.find(tx, i))
        return "row " + number + " is wrong";
      const auto login = r.logins.find(tx, number);
      if ((login ? login : logins.find(tx, i)) != "value") return "login " + number + " is wrong";
      if (i < r.counts.size(tx) ? r.counts.get(tx, i) != number : counts.get(tx, i) != i)
        return "count " + number + " is wrong";
    }
    return {};
  }

  template <class Tx, class Root, class F>
  static void each_block(Tx& tx, const Root& r, F f) {
    r.users.each_block(tx, f);
    r.logins.each_block(tx, f);
    r.counts.each_block(tx, f);
  }

 private:
  static std::string name_of(std::uint64_t i) { return "name " + std::to_string(i); }
  template <class Tx>
  static bool has_old(Tx& tx, const OldUsers& users, const OldLogins& logins, std::uint64_t i) {
    const auto row = users.find(tx, i);
    return row && row->name == name_of(i) && logins.find(tx, i) == "value";
  }
  /// The old container of a rebuilt one, at the offset that docs/format.md states.
  template <class New, class Old>
  static const Old& before(const rebuilt<New, Old>& all) {
    constexpr std::size_t line = 64, at = (sizeof(New) + line - 1) / line * line;
    return *reinterpret_cast<const Old*>(reinterpret_cast<const std::byte*>(&all) + at);
  }
};

struct Linked {
  static constexpr const char* name = "structs behind pointers";

  struct Owner;
  struct Node {
    p<std::uint32_t> key;
    ptr<Node> next, prev;
    ptr<Owner> owner;
    string text;
  };
  struct Owner {  // the same in both versions
    p<std::uint64_t> nodes;
    ptr<Node> newest;
  };
  struct Before {
    ptr<Node> head;
    std::array<ptr<Owner>, 2> owners;
    hash_map<std::uint64_t, Node*> by_key;
    vector<Node*> all;
  };

  struct NewOwner;
  struct NewNode {
    string text;
    p<std::uint64_t> added{5};
    ptr<NewNode> prev, next;
    p<std::uint64_t> number;
    std::array<p<std::uint64_t>, 8> more;
    ptr<NewOwner> owner;
    static constexpr renamed perdure_renamed[] = {{"number", "key"}};
  };
  struct NewOwner {
    p<std::uint64_t> nodes;
    ptr<NewNode> newest;
  };
  struct After {
    p<std::uint64_t> first{1};
    ptr<NewNode> head;
    vector<NewNode*> all;
    hash_map<std::uint64_t, NewNode*> by_key;
    std::array<ptr<NewOwner>, 2> owners;
  };

  static std::vector<MigrationStep> steps() { return {}; }

  /// Adds a node to a ring.
  template <class Tx>
  static void add(Tx& tx, Before& r, std::uint64_t i) {
    Node* const node = tx.template make<Node>(static_cast<std::uint32_t>(i));
    node->text.assign(tx, "node " + std::to_string(i));
    Node* const head = tx.read(r.head);
    Node* const last = head == nullptr ? node : tx.read(head->prev);
    tx(node->next) = head == nullptr ? node : head;
    tx(node->prev) = last;
    tx(tx.read(node->next)->prev) = node;
    tx(last->next) = node;
    tx(r.head) = node;
    Owner* owner = tx.read(r.owners[i % 2]);
    if (owner == nullptr) owner = tx.template make<Owner>();
    tx(r.owners[i % 2]) = owner;
    tx(owner->nodes) += 1U;
    tx(owner->newest) = node;
    tx(node->owner) = owner;
    r.by_key.put(tx, i, node);
    r.all.push_back(tx, node);
  }

  template <class Tx>
  static std::string problem(Tx& tx, const Before& r, std::uint64_t n) {
    const std::string found = ring(tx, r, n, [&](const Node& node) { return tx.read(node.key); });
    return found.empty() ? containers(tx, r, n) : found;
  }
  template <class Tx>
  static std::string problem(Tx& tx, const After& r, std::uint64_t n, bool pending) {
    if (tx.read(r.first) != 1) return "the new field of the root has no first value";
    bool wrong = false;
    std::string found = ring(tx, r, n, [&](const NewNode& node) {
      wrong = wrong || tx.read(node.added) != 5;
      for (const auto& one : node.more) wrong = wrong || tx.read(one) != 0;
      return tx.read(node.number);
    });
    if (!found.empty()) return found;
    if (wrong) return "a new field has not its first value";
    return pending ? "" : containers(tx, r, n);
  }
  template <class Tx, class Root, class F>
  static void each_block(Tx& tx, const Root& r, F f) {
    // Pointers in the containers lead to the same objects; while work is pending, to older ones.
    std::set<const void*> seen;
    const auto walk = [&](const auto& field) {
      walk_blocks(tx, field, [&](const void* block, bool owned) {
        if (!owned && !seen.insert(block).second) return false;
        f(block);
        return true;
      });
    };
    walk(r.head);
    walk(r.owners);
    r.by_key.each_block(tx, f);
    r.all.each_block(tx, f);
  }

 private:
  template <class Tx, class Root>
  static std::string containers(Tx& tx, const Root& r, std::uint64_t n) {
    if (r.all.size(tx) != n || r.by_key.size(tx) != n) return "pointers in a container are lost";
    const auto* node = tx.read(r.head);
    for (std::uint64_t i = n; i-- > 0; node = tx.read(node->next))
      if (r.all.get(tx, i) != node || r.by_key.find(tx, i) != node)
        return "the containers' pointers to node " + std::to_string(i) + " are wrong";
    return {};
  }
  template <class Tx, class Root, class Key>
  static std::string ring(Tx& tx, const Root& r, std::uint64_t n, Key key) {
    const auto* node = tx.read(r.head);
    for (std::uint64_t i = n; i-- > 0; node = tx.read(node->next)) {
      if (node == nullptr || key(*node) != i) return "node " + std::to_string(i) + " is wrong";
      if (node->text.str(tx) != "node " + std::to_string(i)) return "a text is wrong";
      if (tx.read(tx.read(node->next)->prev) != node) return "a node's prev is wrong";
      const auto* const owner = tx.read(node->owner);
      if (owner != tx.read(r.owners[i % 2])) return "a node's owner is wrong";
      if (tx.read(owner->nodes) != (n + 1 - i % 2) / 2) return "an owner is wrong";
      if (i + 2 >= n && tx.read(owner->newest) != node) return "an owner's node is wrong";
    }
    return node == tx.read(r.head) ? "" : "the ring does not close";
  }
};

/// The pools of a pair's two versions.
template <class Pair>
using PoolBefore = Pool<typename Pair::Before, engines<any_engine>>;
template <class Pair>
using PoolAfter = Pool<typename Pair::After, engines<any_engine>>;

/// Adds n elements, 20 per transaction.
template <class Pair>
void fill(PoolBefore<Pair>& pool, std::uint64_t n) {
  for (std::uint64_t from = 0; from < n; from += 20)
    pool.update([&](auto& tx, typename Pair::Before& r) {
      for (std::uint64_t i = from; i < std::min(n, from + 20); ++i) Pair::add(tx, r, i);
    });
}

/// The faults of a pool with n elements that version 2 has opened; empty if there are none.
template <class Pair>
std::string problem(PoolAfter<Pair>& pool, std::uint64_t n) {
  std::string found = pool.view(
      [&](auto& tx, const typename Pair::After& r) { return Pair::problem(tx, r, n, false); });
  const CheckReport report = pool.check();
  if (found.empty() && !report.ok()) found = "check: " + report.problems.front();
  return found;
}

}  // namespace perdure::test
