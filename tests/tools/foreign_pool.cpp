// SPDX-License-Identifier: BSD-3-Clause
//
// A program with a root type of its own, for cli_look_test.py: foreign_pool POOL ENGINE close|kill.
// With foreign_pool POOL ENGINE vault, the pool has a class that its layout only names, and that
// owns a block.
// It opens or makes the pool, commits 200 transfers, checks that their sums agree, and closes the
// pool or kills itself.
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "papers/engines.hpp"
#include "perdure/api/compiled_pool.hpp"
#include "perdure/api/pool.hpp"
#include "perdure/container/hash_map.hpp"

namespace {

struct Bank {
  perdure::hash_map<std::uint64_t, std::int64_t> accounts;
  perdure::p<std::uint64_t> transfers;
};

struct Theirs {
  static constexpr std::string_view layout_id = "theirs/1";
  perdure::ptr<perdure::p<std::uint64_t>> block;
};
struct Vault {
  perdure::hash_map<std::uint64_t, std::int64_t> accounts;
  Theirs theirs;
};

int make_vault(const char* path, const perdure::Options& options) {
  auto pool = perdure::Pool<Vault>::open(path, options);
  pool.update([](auto& tx, Vault& vault) {
        vault.accounts.put(tx, 1, 2);
        tx.write(vault.theirs.block, tx.template make<perdure::p<std::uint64_t>>());
      })
      .wait();
  (void)pool.close();
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) return 2;
  perdure::Options options;
  options.engine = argv[2];
  options.creation.log_size = 4 << 20;
  if (std::string(argv[3]) == "vault") return make_vault(argv[1], options);
  auto pool =
      perdure::Pool<Bank,
                    perdure::engines<perdure::shadow, perdure::dudetm, perdure::undo,
                                     perdure::rewind, perdure::bppm, perdure::redo,
                                     perdure::softwrap, perdure::softwrap_local>>::open(argv[1],
                                                                                        options);
  for (std::uint64_t i = 0; i < 200; ++i) {
    pool.update([&](auto& tx, Bank& bank) {
          bank.accounts.upsert(tx, i % 37, [](std::int64_t& v) { v -= 5; });
          bank.accounts.upsert(tx, i % 41 + 37, [](std::int64_t& v) { v += 5; });
          ++tx(bank.transfers);
        })
        .wait();
  }
  const auto sum = pool.view([](auto& tx, const Bank& bank) {
    std::int64_t total = 0;
    bank.accounts.for_each(tx, [&](std::uint64_t, std::int64_t v) {
      total += v;
      return true;
    });
    return total;
  });
  if (sum != 0) return 1;
  if (std::string(argv[3]) == "kill") ::kill(::getpid(), SIGKILL);
  (void)pool.close();
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "foreign_pool: %s\n", e.what());
  return 3;
}
