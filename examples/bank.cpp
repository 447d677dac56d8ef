// SPDX-License-Identifier: BSD-3-Clause
//
// bank FILE: four threads move money between accounts; no crash and no race creates or destroys
// any. Run it again: it continues from the state it left.
//
// Try `kill -9` while it runs, then run it again.
#include <perdure.hpp>

#include <cstdint>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

namespace {

struct Bank {
  perdure::hash_map<std::uint64_t, std::int64_t> accounts;
  perdure::p<std::uint64_t> transfers;
};
constexpr std::uint64_t accounts = 1000;
constexpr std::int64_t each = 100;

// What takes part in a transaction is an ordinary function. This one only reads.
std::int64_t total(perdure::rtx& tx, const Bank& bank) {
  std::int64_t sum = 0;
  bank.accounts.for_each(tx, [&](std::uint64_t, std::int64_t balance) { sum += balance; });
  return sum;
}

// Returns whether there was enough money.
bool transfer(perdure::tx& tx, Bank& bank, std::uint64_t from, std::uint64_t to,
              std::int64_t amount) {
  if (bank.accounts.find(tx, from) < amount) return false;
  bank.accounts.update(tx, from, [&](auto& balance) { balance -= amount; });
  bank.accounts.update(tx, to, [&](auto& balance) { balance += amount; });
  tx(bank.transfers) += 1;
  return true;
}

void move_money(perdure::Pool<Bank>& pool, unsigned seed) {
  std::mt19937 random(seed);
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t from = random() % accounts, to = random() % accounts;
    const auto amount = static_cast<std::int64_t>(random() % 50);
    pool.update([&](auto& tx, Bank& bank) { return transfer(tx, bank, from, to, amount); });
    // It is durable here.
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: bank FILE\n"), 2;
  try {
    auto pool = perdure::Pool<Bank>::open(argv[1], {.durability = perdure::durable});
    pool.update([](auto& tx, Bank& bank) {
      if (bank.accounts.size(tx) != 0) return;  // not the first run
      for (std::uint64_t a = 0; a < accounts; ++a) bank.accounts.insert(tx, a, each);
    });
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back(move_money, std::ref(pool), std::random_device{}());
    for (auto& thread : threads) thread.join();
    // One consistent state. A lambda may run more than once: what it collects is its own.
    const auto sum = pool.view([](auto& tx, const Bank& bank) { return total(tx, bank); });
    const auto transfers = pool.view([](auto& tx, const Bank& bank) { return tx(bank.transfers); });
    const auto report = pool.close();
    std::printf("%llu transfers so far; %llu commits in this run shared %llu syncs\n",
                static_cast<unsigned long long>(transfers),
                static_cast<unsigned long long>(report.stats.commits),
                static_cast<unsigned long long>(report.stats.medium.syncs));
    std::printf("total %lld, expected %lld\n", static_cast<long long>(sum),
                static_cast<long long>(accounts) * each);
    return sum == static_cast<std::int64_t>(accounts) * each ? 0 : 1;
  } catch (const perdure::error& e) {
    return std::fprintf(stderr, "bank: %s\n", e.what()), 1;
  }
}
