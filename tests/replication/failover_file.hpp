// SPDX-License-Identifier: BSD-3-Clause
//
// Writes what the clients of a replicated pool did and were told as a file for another checker
// (tests/porcupine): a line of JSON for each primary, with the state that it began with, the
// operations, and the state that it left.
//   Which operations have happened is what the pool's journal has: those that are missing were told
//   to be durable in one copy alone, or nothing. One whose client was told nothing has ended when
//   the next primary began: nothing of the one before gets into the log after that.
// Thread safety: a function over its arguments.
#pragma once

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/replication/failover_history.hpp"

namespace perdure::replication::test {

/// `began`: when each primary began to answer, in order. Returns what is wrong with the order of
/// the journal; empty: nothing. Throws std::ios_base::failure.
template <class Tx>
std::string write_history(Tx& tx, const Ledger& ledger, const OperationRecord* records,
                          std::uint64_t count, const std::vector<std::uint64_t>& began,
                          const std::string& path) {
  using Json = nlohmann::json;
  const auto known = by_number(records, count);
  std::ofstream file;
  file.exceptions(std::ios::badbit | std::ios::failbit);
  file.open(path);
  InMemory memory;
  memory.accounts.fill(Ledger::first_balance);
  const auto state = [&] {
    return Json{{"accounts", memory.accounts}, {"registers", memory.values}};
  };
  std::size_t term = 0;
  Json line = {{"term", 1}, {"begin", state()}, {"operations", Json::array()}};
  const auto end_term = [&] {
    line["end"] = state();
    file << line.dump() << '\n';
    ++term;
    line = {{"term", term + 1}, {"begin", state()}, {"operations", Json::array()}};
  };
  const std::uint64_t size = ledger.journal.size(tx);
  for (std::uint64_t i = 0; i + 1 < size; i += 2) {
    const Operation op{ledger.journal.get(tx, i)};
    const auto found = known.find(op.number);
    if (found == known.end()) return "an operation that no client has invoked is in the journal";
    const OperationRecord& r = *found->second;
    const auto of = static_cast<std::size_t>(
        std::upper_bound(began.begin(), began.end(), r.invoked_ns) - began.begin() - 1);
    if (of < term)
      return "operation " + std::to_string(op.number) + " of term " + std::to_string(of + 1) +
             " is in the journal behind one of term " + std::to_string(term + 1);
    while (term < of) end_term();
    (void)op.run(memory);
    const bool told = r.state >= OperationRecord::committed;
    const std::uint64_t last = term + 1 < began.size() ? began[term + 1] - 1 : now_ns();
    line["operations"].push_back({{"number", op.number},
                                  {"client", term * 100 + r.client},
                                  {"invoked", r.invoked_ns},
                                  {"returned", told ? std::min(r.returned_ns, last) : last},
                                  {"answer", told ? Json(r.answer) : Json()}});
  }
  end_term();
  return {};
}

}  // namespace perdure::replication::test
