// SPDX-License-Identifier: BSD-3-Clause
//
// A primary in a child process, for tests of standbys: two copies of a pool have one address, so a
// process can have only one of them mapped. It runs a random program, and tells the contents after
// each transaction.
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "perdure/base/checksum.hpp"
#include "tests/backup/history.hpp"
#include "tests/readers/process.hpp"
#include "tests/support/comes.hpp"

namespace perdure::replication::test {

/// A number that contents have, and hardly any others.
inline std::uint64_t digest(const perdure::test::Contents& c) {
  std::string text = std::to_string(c.count);
  for (const auto& [k, v] : c.sorted) text += "|" + std::to_string(k) + "=" + v;
  for (const auto& [k, v] : c.hashed) text += "|" + k + "=" + std::to_string(v);
  for (const std::uint64_t b : c.block) text += "," + std::to_string(b);
  return base::hash_bytes(text.data(), text.size(), 1) | 1;
}

/// What child and parent both see.
struct Board {
  static constexpr std::size_t ids = 1 << 16;
  std::atomic<std::uint64_t> last{0};     ///< the last transaction
  std::atomic<std::uint64_t> shipped{0};  ///< and the last that was acknowledged as shipped
  std::atomic<bool> stop{false}, ready{false};
  std::atomic<std::uint64_t> digests[ids];  ///< by id; 0: no transaction of the program

  static Board* make() {
    void* const at =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) std::abort();
    return new (at) Board;
  }
};

/// Runs f in another process, which ends with 0 if no expectation has failed there.
class Child {
 public:
  explicit Child(const std::function<void()>& f)
      : process_([&f](perdure::test::Line&) {
          f();
          if (::testing::Test::HasFailure()) throw std::runtime_error("an expectation has failed");
        }) {}
  /// SIGKILL, and waits for its end.
  void kill() {
    process_.kill(SIGKILL);
    (void)process_.wait();
  }
  /// Its exit status, or minus the signal.
  int wait() { return process_.wait(); }

 private:
  perdure::test::Process process_;
};

/// The child's program: opens the pool, makes a backup, and then one transaction after the other
/// until it is told to stop.
template <class Pool>
void run_primary(Board& board, const std::string& path, const Options& options,
                 const std::string& backups, std::uint64_t seed) {
  auto pool = Pool::open(path, options);
  (void)pool.backup(backups);
  perdure::test::Program program(seed);
  const auto tell = [&](std::uint64_t id) {
    if (id < Board::ids)
      board.digests[id] = digest(
          pool.view([](auto& tx, const perdure::test::BackedUp& r) { return contents(tx, r); }));
    board.last = id;
  };
  tell(pool.stats().last_id);
  board.ready = true;
  for (std::uint64_t n = 1; !board.stop; ++n) {
    tell(program.step(pool));
    if (n % 50 != 0) continue;
    const auto receipt = pool.update([&](auto& tx, perdure::test::BackedUp& r) {
      r.sorted.put(tx, 1000, std::string(100'000 + n % 1000, 'x'));  // a large one
    });
    tell(receipt.id());
    if (receipt.try_wait(shipped).ok()) board.shipped = receipt.id();
  }
  pool.close();
}

/// Waits for another thread or process; one that has failed ends the test.
inline void wait_until(const std::function<bool()>& f) {
  if (!perdure::test::comes(f)) throw std::runtime_error("what was to come did not");
}

}  // namespace perdure::replication::test
