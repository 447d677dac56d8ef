// SPDX-License-Identifier: BSD-3-Clause
//
// What the clients of a replicated pool did and were told, and whether that can be true: the pool
// has a journal, to which each transaction adds itself and its answer, so the journal's order is
// the order of transactions. Accounts and registers are computed from it anew.
//   1. Each operation is in the journal once at most, and once if it was acknowledged as shipped.
//   2. The answer that a client got is that of the journal, and the one that the computation gives.
//   3. An operation that had returned before another one was invoked comes before it.
//   4. The accounts' sum does not change; the pool has what the computation gives.
// Thread safety: records are shared by processes; check_history() is a function over its arguments.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "perdure/perdure.hpp"

namespace perdure::replication::test {

/// The pool.
struct Ledger {
  static constexpr std::size_t accounts = 16, registers = 8;
  static constexpr std::int64_t first_balance = 1000;
  std::array<p<std::int64_t>, accounts> account;
  std::array<p<std::uint64_t>, registers> value;
  vector<std::uint64_t> journal;  // number and answer of each operation
};

/// An operation: its number says what it does.
struct Operation {
  /// How many there were before, and 16 bits that say what it does.
  std::uint64_t number = 0;
  [[nodiscard]] bool transfer() const noexcept { return (number & 1) == 0; }
  [[nodiscard]] bool writes() const noexcept { return (number >> 1 & 1) != 0; }  // a register
  [[nodiscard]] std::size_t from() const noexcept { return number >> 2 & 15; }
  [[nodiscard]] std::size_t to() const noexcept { return number >> 6 & 15; }
  [[nodiscard]] std::size_t of() const noexcept { return number >> 2 & 7; }
  [[nodiscard]] std::int64_t amount() const noexcept {
    return static_cast<std::int64_t>(number >> 10 & 63);
  }

  /// Does it in a transaction, or in a computation. Returns its answer.
  template <class State>
  std::uint64_t run(State&& state) const {
    if (transfer()) {
      const std::int64_t left = state.account(from()) - amount();
      state.account(from(), left);
      state.account(to(), state.account(to()) + amount());
      return static_cast<std::uint64_t>(left);
    }
    const std::uint64_t was = state.value(of());
    if (writes()) state.value(of(), number);
    return was;
  }
};

/// What is known of an operation. Those of one client follow each other.
struct OperationRecord {
  enum State : std::uint32_t { none, invoked, committed, shipped };
  std::atomic<std::uint64_t> number{0};
  std::uint64_t invoked_ns = 0, returned_ns = 0, answer = 0;
  std::atomic<std::uint32_t> state{none};
  std::uint32_t client = 0;  // its number among the primary's
};

inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// Over a transaction.
template <class Tx, class Root>
struct InPool {
  Tx& tx;
  Root& root;
  std::int64_t account(std::size_t i) { return tx.read(root.account[i]); }
  std::uint64_t value(std::size_t i) { return tx.read(root.value[i]); }
  void account(std::size_t i, std::int64_t v) { tx.write(root.account[i], v); }
  void value(std::size_t i, std::uint64_t v) { tx.write(root.value[i], v); }
};
/// Over a computation.
struct InMemory {
  std::array<std::int64_t, Ledger::accounts> accounts{};
  std::array<std::uint64_t, Ledger::registers> values{};
  std::int64_t account(std::size_t i) { return accounts[i]; }
  std::uint64_t value(std::size_t i) { return values[i]; }
  void account(std::size_t i, std::int64_t v) { accounts[i] = v; }
  void value(std::size_t i, std::uint64_t v) { values[i] = v; }
};

/// What is known of the operations that were invoked, by number.
inline std::unordered_map<std::uint64_t, const OperationRecord*> by_number(
    const OperationRecord* records, std::uint64_t count) {
  std::unordered_map<std::uint64_t, const OperationRecord*> known;
  for (std::uint64_t i = 0; i < count; ++i)
    if (records[i].state != OperationRecord::none) known.emplace(records[i].number, &records[i]);
  return known;
}

/// What check_history() has found.
struct HistoryReport {
  std::string wrong;            ///< empty: nothing
  std::uint64_t committed = 0;  ///< operations reported as durable in one copy, and no more
  std::uint64_t lost = 0;       ///< of these: not in the journal
};

/// Compares a pool's contents with what clients know.
template <class Tx>
HistoryReport check_history(Tx& tx, const Ledger& ledger, const OperationRecord* records,
                            std::uint64_t count) {
  HistoryReport report;
  const auto wrong = [&](const std::string& what) {
    if (report.wrong.empty()) report.wrong = what;
  };
  const auto known = by_number(records, count);
  InMemory memory;
  memory.accounts.fill(Ledger::first_balance);
  std::unordered_map<std::uint64_t, std::uint64_t> seen;  // the place in the journal
  std::uint64_t latest_invocation = 0;
  const std::uint64_t size = ledger.journal.size(tx);
  for (std::uint64_t i = 0; i + 1 < size; i += 2) {
    const Operation op{ledger.journal.get(tx, i)};
    const std::uint64_t answer = ledger.journal.get(tx, i + 1);
    const std::string name = "operation " + std::to_string(op.number);
    if (!seen.emplace(op.number, i).second) wrong(name + " is in the journal twice");
    if (op.run(memory) != answer)
      wrong(name + " has an answer that does not follow from those before it");
    const auto found = known.find(op.number);
    if (found == known.end()) {
      wrong(name + ", which no client has invoked, is in the journal");
      continue;
    }
    const OperationRecord& r = *found->second;
    if (r.state >= OperationRecord::committed && r.answer != answer)
      wrong(name + " was told another answer");
    if (r.state >= OperationRecord::committed && r.returned_ns < latest_invocation)
      wrong(name + " comes after one that was invoked when it had returned");
    latest_invocation = std::max(latest_invocation, r.invoked_ns);
  }
  for (const auto& [number, r] : known) {
    const bool there = seen.contains(number);
    if (r->state == OperationRecord::shipped && !there)
      wrong("operation " + std::to_string(number) + " was acknowledged as shipped, and is lost");
    if (r->state == OperationRecord::committed) {
      ++report.committed;
      report.lost += there ? 0 : 1;
    }
  }
  InPool<Tx, const Ledger> pool{tx, ledger};
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < Ledger::accounts; ++i) {
    sum += pool.account(i);
    if (pool.account(i) != memory.account(i)) wrong("an account has another balance");
  }
  for (std::size_t i = 0; i < Ledger::registers; ++i)
    if (pool.value(i) != memory.value(i)) wrong("a register has another value");
  if (sum != Ledger::first_balance * static_cast<std::int64_t>(Ledger::accounts))
    wrong("the accounts' sum has changed");
  return report;
}

}  // namespace perdure::replication::test
