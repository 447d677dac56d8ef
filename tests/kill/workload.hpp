// SPDX-License-Identifier: BSD-3-Clause
//
// The workload of the kill tests: transactions that are a function of (seed, thread, number), run
// on a pool and on a model alike.
//
// Transaction n of thread t changes what t owns (keys, elements), and in part of the cases what all
// threads share: a second container, accounts whose sum is constant, and a journal to which it
// appends (t, n). It stores n in `done[t]`. A recovered pool therefore says which transactions it
// has: n <= done[t] of every thread, the shared parts in the journal's order; the model replays
// exactly these, and contents are compared in full. A part of the transactions ends in an
// exception: they must leave nothing (LAW-3).
// Thread safety: none; a model belongs to one thread, a Target to one transaction.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "perdure/perdure.hpp"

namespace perdure::kill {

/// splitmix64: the same numbers on every platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  Random(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d)
      : state_(base::mix(a) ^ base::mix(b * 3 + 1) ^ base::mix(c * 5 + 2) ^ base::mix(d * 7 + 3)) {}
  std::uint64_t next() { return base::mix(state_ += 0x9e3779b97f4a7c15ULL); }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

inline constexpr std::uint64_t keys = 160;      ///< of one thread; and of the shared container
inline constexpr std::uint64_t elements = 200;  ///< of a vector, at the start
inline constexpr int accounts = 8;
inline constexpr std::int64_t start_balance = 100;

/// The program's choices for a pool's whole life.
struct Shape {
  std::uint64_t seed = 0;
  std::uint64_t threads = 1;
  /// Bytes of values that a transaction may store, so that none is too big for its log.
  std::uint64_t value_budget = 4096;
};

using Hash = hash_map<std::uint64_t, std::string>;
using Tree = map<std::uint64_t, std::string>;
using List = vector<std::string>;
template <class C>
inline constexpr bool is_vector = std::is_same_v<C, List>;

template <class Container>
struct Root {
  Container data;    ///< thread t owns keys and elements k with k % threads == t
  Container common;  ///< shared by all threads
  vector<std::uint64_t> journal;
  p<std::uint64_t> ready;
  struct alignas(64) Done {
    p<std::uint64_t> n;
  };
  Done done[2];
  struct alignas(64) Account {
    p<std::int64_t> balance;
  };
  Account account[accounts];
};

inline std::uint64_t journal_entry(std::uint64_t thread, std::uint64_t n) {
  return thread << 63 | n;
}

template <class Container>
struct Model {
  using Contents = std::conditional_t<is_vector<Container>, std::vector<std::string>,
                                      std::map<std::uint64_t, std::string>>;
  Contents data, common;
  std::vector<std::uint64_t> journal;
  bool ready = false;
  std::uint64_t done[2] = {0, 0};
  std::int64_t account[accounts] = {};
};

/// The content of transaction n of a thread. `own` and `shared` seed its two parts.
struct Plan {
  bool throws = false;  ///< after its changes
  bool shares = false;  ///< it changes what all threads share
  bool pauses = false;  ///< it yields half way, so that the other thread can run
  std::uint64_t steps = 1;
  Random own, shared;
  Plan(const Shape& shape, std::uint64_t thread, std::uint64_t n)
      : own(shape.seed, thread, n, 1), shared(shape.seed, thread, n, 2) {
    Random r(shape.seed, thread, n, 0);
    throws = r.one_in(12);
    shares = r.one_in(6);
    pauses = r.one_in(8);
    steps = r.one_in(16) ? 8 + r.below(16) : 1 + r.below(4);
  }
};

/// Text of up to `budget` bytes, which are subtracted from it. Sizes depend on `era`, so that
/// chunks of the heap change their use.
inline std::string some_text(Random& r, std::uint64_t era, std::uint64_t& budget) {
  static constexpr std::uint64_t most[] = {60, 900, 5000, 90};
  std::uint64_t n = r.one_in(60) ? r.below(150000) : r.below(most[era % 4]);
  n = n < budget ? n : budget / 2;
  budget -= n;
  return std::string(n, static_cast<char>('a' + r.below(26))) + std::to_string(r.below(1000));
}

inline std::string changed(const std::string& old, const std::string& v) {
  return old.substr(0, old.size() / 2 < 40 ? old.size() / 2 : 40) + v;
}

/// One part of a transaction, on maps: `to` has put, insert, change, erase, and clear if no other
/// thread has a part of it (`whole`). Keys are mapped by `key`.
template <class Target, class Key>
void play_map(Random r, std::uint64_t era, std::uint64_t steps, std::uint64_t budget, bool whole,
              Target&& to, Key key) {
  if (whole && r.one_in(80)) to.clear();
  for (std::uint64_t i = 0; i < steps; ++i) {
    const std::uint64_t k = key(r.below(keys));
    switch (r.below(8)) {
      case 0:
      case 1:
      case 2: to.put(k, some_text(r, era, budget)); break;
      case 3: to.change(k, some_text(r, era, budget)); break;
      case 4: to.insert(k, some_text(r, era, budget)); break;
      default: to.erase(k); break;
    }
  }
}

/// The same on vectors: `to` has set and, if no other thread has a part of it, push, pop, resize
/// and clear.
template <class Target, class Key>
void play_vector(Random r, std::uint64_t era, std::uint64_t steps, std::uint64_t budget, bool whole,
                 Target&& to, Key key) {
  if (whole && r.one_in(80)) to.clear();
  for (std::uint64_t i = 0; i < steps; ++i) {
    const std::uint64_t what = whole ? r.below(12) : r.below(6);
    std::string text = what < 9 ? some_text(r, era, budget) : std::string();
    const std::uint64_t at = r.below(elements / 2), n = r.below(40);
    if (what < 6) {
      if (whole ? at < to.size() : true) to.set(whole ? at : key(at), text);
    } else if (what < 9) {
      to.push(text);
    } else if (what == 9) {
      to.resize(elements - n);
    } else if (to.size() > 0) {
      to.pop();
    }
  }
}

template <class Container, class Target>
void play_part(const Random& r, std::uint64_t n, std::uint64_t steps, std::uint64_t budget,
               std::uint64_t threads, std::uint64_t thread, Target&& to) {
  const std::uint64_t era = n / 256;
  const auto key = [=](std::uint64_t k) { return k * threads + thread; };
  if constexpr (is_vector<Container>)
    play_vector(r, era, steps, budget, threads == 1, to, key);
  else
    play_map(r, era, steps, budget, threads == 1, to, key);
}

// --- on a pool -----------------------------------------------------------------------------------

template <class Tx, class Container>
struct PoolTarget {
  Tx& tx;
  Container& c;
  void put(std::uint64_t k, const std::string& v) { c.put(tx, k, v); }
  void insert(std::uint64_t k, const std::string& v) { c.insert(tx, k, v); }
  void change(std::uint64_t k, const std::string& v) {
    c.update(tx, k, [&](std::string& old) { old = changed(old, v); });
  }
  void erase(std::uint64_t k) { c.erase(tx, k); }
  void clear() { c.clear(tx); }
  void set(std::uint64_t i, const std::string& v) { c.set(tx, i, v); }
  void push(const std::string& v) { c.push_back(tx, v); }
  void pop() { (void)c.pop_back(tx); }
  void resize(std::uint64_t n) { c.resize(tx, n, "new"); }
  std::uint64_t size() { return c.size(tx); }
};

struct Thrown {};

template <class Container, class Tx>
void set_up(Tx& tx, Root<Container>& root) {
  for (auto& a : root.account) tx(a.balance) = start_balance;
  if constexpr (is_vector<Container>) root.data.resize(tx, elements, "new");
  tx(root.ready) = 1;
}

/// Transaction n of `thread`. Throws Thrown where its plan says so.
template <class Container, class Tx, class Pause>
void play(const Shape& shape, std::uint64_t thread, std::uint64_t n, Tx& tx, Root<Container>& root,
          Pause pause) {
  Plan plan(shape, thread, n);
  const std::uint64_t budget = shape.value_budget / (plan.shares ? 2 : 1);
  play_part<Container>(plan.own, n, plan.steps, budget, shape.threads, thread,
                       PoolTarget<Tx, Container>{tx, root.data});
  if (plan.pauses) pause();
  if (plan.shares) {
    play_part<Container>(plan.shared, n, 1 + plan.steps / 4, budget, 1, 0,
                         PoolTarget<Tx, Container>{tx, root.common});
    Random r = plan.shared;
    const std::uint64_t from = r.below(accounts), to = r.below(accounts);
    const auto amount = static_cast<std::int64_t>(r.below(10));
    tx(root.account[from].balance) -= amount;
    tx(root.account[to].balance) += amount;
    root.journal.push_back(tx, journal_entry(thread, n));
  }
  tx(root.done[thread].n) = n;
  if (plan.throws) throw Thrown{};
}

// --- on a model ----------------------------------------------------------------------------------

struct MapTarget {
  std::map<std::uint64_t, std::string>& m;
  void put(std::uint64_t k, const std::string& v) { m[k] = v; }
  void insert(std::uint64_t k, const std::string& v) { m.emplace(k, v); }
  void change(std::uint64_t k, const std::string& v) {
    if (const auto it = m.find(k); it != m.end()) it->second = changed(it->second, v);
  }
  void erase(std::uint64_t k) { m.erase(k); }
  void clear() { m.clear(); }
};
struct ListTarget {
  std::vector<std::string>& v;
  void set(std::uint64_t i, const std::string& text) { v.at(i) = text; }
  void push(const std::string& text) { v.push_back(text); }
  void pop() { v.pop_back(); }
  void clear() { v.clear(); }
  void resize(std::uint64_t n) { v.resize(n, "new"); }
  std::uint64_t size() const { return v.size(); }
};
inline MapTarget target_of(std::map<std::uint64_t, std::string>& m) { return {m}; }
inline ListTarget target_of(std::vector<std::string>& v) { return {v}; }

template <class Container>
void set_up(Model<Container>& model) {
  for (auto& a : model.account) a = start_balance;
  if constexpr (is_vector<Container>) model.data.resize(elements, "new");
  model.ready = true;
}

/// The part of transaction n that is the thread's own. Parts of one thread are applied in the order
/// of their numbers.
template <class Container>
void play_own(const Shape& shape, std::uint64_t thread, std::uint64_t n, Model<Container>& model) {
  Plan plan(shape, thread, n);
  model.done[thread] = plan.throws ? model.done[thread] : n;
  if (plan.throws) return;
  const std::uint64_t budget = shape.value_budget / (plan.shares ? 2 : 1);
  play_part<Container>(plan.own, n, plan.steps, budget, shape.threads, thread,
                       target_of(model.data));
}

/// The part that all threads share, applied in the journal's order.
template <class Container>
void play_shared(const Shape& shape, std::uint64_t entry, Model<Container>& model) {
  const std::uint64_t thread = entry >> 63, n = entry & ~(std::uint64_t{1} << 63);
  Plan plan(shape, thread, n);
  play_part<Container>(plan.shared, n, 1 + plan.steps / 4, shape.value_budget / 2, 1, 0,
                       target_of(model.common));
  Random r = plan.shared;
  const std::uint64_t from = r.below(accounts), to = r.below(accounts);
  const auto amount = static_cast<std::int64_t>(r.below(10));
  model.account[from] -= amount;
  model.account[to] += amount;
  model.journal.push_back(entry);
}

}  // namespace perdure::kill
