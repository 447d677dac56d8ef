// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of reader processes write and read: accounts whose sum never changes, and a list
// of blocks of all sizes that comes and goes, so that every state can be told right from wrong.
// Thread safety: that of the pool.
#pragma once

#include <cstdint>
#include <string>

#include "perdure/perdure.hpp"

namespace perdure::test {

inline constexpr std::uint64_t accounts = 400, money = 1000;

struct Bank {
  map<std::uint64_t, std::uint64_t> account;
  map<std::uint64_t, std::string> text;  // text n: n % 7000 times the letter of n
  p<std::uint64_t> changes;              // transactions since the first
  p<std::uint64_t> texts;                // entries of `text`
};
using BankPool = Pool<Bank>;
/// Version 2 of it.
struct NewerBank {
  map<std::uint64_t, std::uint64_t> account;
  map<std::uint64_t, std::string> text;
  p<std::uint64_t> changes, texts, more;
};

inline std::string text_of(std::uint64_t n) {
  return std::string(n * 37 % 7000, static_cast<char>('a' + n % 26));
}

/// The first transaction.
inline void open_bank(BankPool& pool) {
  pool.update(durable, [](tx& tx, Bank& bank) {
    if (bank.account.size(tx) != 0) return;
    for (std::uint64_t i = 0; i < accounts; ++i) bank.account.put(tx, i, money);
  });
}
/// Number n of the others. Returns its id.
inline std::uint64_t change_bank(BankPool& pool, std::uint64_t n) {
  return pool
      .update([n](tx& tx, Bank& bank) {
        const std::uint64_t from = n * 7919 % accounts, to = (n * 104729 + 1) % accounts;
        const std::uint64_t amount = *bank.account.find(tx, from) / 2;
        bank.account.put(tx, from, *bank.account.find(tx, from) - amount);
        bank.account.put(tx, to, *bank.account.find(tx, to) + amount);
        const std::uint64_t at = n * 31 % 300;
        std::uint64_t texts = tx(bank.texts);
        if (bank.text.contains(tx, at)) {
          bank.text.erase(tx, at);
          --texts;
        } else {
          bank.text.put(tx, at, text_of(at));
          ++texts;
        }
        tx(bank.texts) = texts;
        tx(bank.changes) = tx(bank.changes) + 1;
        tx.emit("change", std::to_string(n));
      })
      .id();
}
/// A transaction that puts a text that stays, so that the pool grows. `n`: not used before, 300 or
/// more. Returns its id.
inline std::uint64_t grow_bank(BankPool& pool, std::uint64_t n) {
  return pool
      .update([n](tx& tx, Bank& bank) {
        bank.text.put(tx, n, text_of(n));
        tx(bank.texts) = tx(bank.texts) + 1;
      })
      .id();
}
/// Reads a whole state. Returns what is wrong with it, or nothing.
template <class Tx>
std::string wrong_with(Tx& tx, const Bank& bank, std::uint64_t& changes) {
  std::uint64_t sum = 0, n = 0, texts = 0;
  bool right = true;
  bank.account.for_each(tx, [&](std::uint64_t, std::uint64_t amount) { sum += amount, ++n; });
  if (n != accounts) return std::to_string(n) + " accounts";
  if (sum != accounts * money) return "a sum of " + std::to_string(sum);
  bank.text.for_each(tx, [&](std::uint64_t at, const std::string& text) {
    right = right && text == text_of(at);
    ++texts;
  });
  if (!right) return "another text";
  if (texts != tx(bank.texts)) return std::to_string(texts) + " texts";
  changes = tx(bank.changes);
  return {};
}

}  // namespace perdure::test
