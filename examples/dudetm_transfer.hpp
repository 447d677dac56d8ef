// SPDX-License-Identifier: BSD-3-Clause
//
// Algorithm 1 of the DudeTM paper (ASPLOS '17), in our words: transfers 1 from one account of a
// bank to another, and aborts if the first account is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <papers/dudetm/dtm_calls.hpp>

namespace dudetm_transfer {

struct Bank {
  static constexpr const char* layout_id = "dudetm_transfer::Bank/1";
  static constexpr std::size_t size = 100;
  std::int64_t accounts[size];
  std::int64_t opened;  ///< accounts have their first balances

  /// For check(): the blocks that the root owns.
  template <class Tx, class F>
  void each_block(Tx&, F&&) const {}
};

using Dtm = perdure::papers::dudetm::DudeTM<Bank>;

/// Returns the ID of the transaction; 0 if it was aborted.
inline std::uint64_t transfer(Dtm& dtm, std::size_t src, std::size_t dst) {
  auto& accounts = dtm.root().accounts;
  return dtm.transaction([&]() -> std::uint64_t {
    dtm.dtmBegin();
    const std::int64_t src_balance = dtm.dtmRead(&accounts[src]);
    if (src_balance <= 0) {
      dtm.dtmAbort();
      return 0;
    }
    dtm.dtmWrite(&accounts[src], src_balance - 1);
    const std::int64_t dst_balance = dtm.dtmRead(&accounts[dst]);
    dtm.dtmWrite(&accounts[dst], dst_balance + 1);
    return dtm.dtmEnd();
  });
}

/// Gives every account of a new bank `balance`, in one transaction.
inline void open_accounts(Dtm& dtm, std::int64_t balance) {
  Bank& bank = dtm.root();
  dtm.transaction([&] {
    dtm.dtmBegin();
    if (dtm.dtmRead(&bank.opened) == 0) {
      for (auto& account : bank.accounts) dtm.dtmWrite(&account, balance);
      dtm.dtmWrite(&bank.opened, 1);
    }
    dtm.dtmEnd();
  });
}

inline std::int64_t total(Dtm& dtm) {
  return dtm.transaction([&] {
    std::int64_t sum = 0;
    dtm.dtmBegin();
    for (const auto& account : dtm.root().accounts) sum += dtm.dtmRead(&account);
    dtm.dtmEnd();
    return sum;
  });
}

}  // namespace dudetm_transfer
