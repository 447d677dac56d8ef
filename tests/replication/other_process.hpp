// SPDX-License-Identifier: BSD-3-Clause
//
// A primary in a child process, for tests of standbys: two copies of a pool have one address, so a
// process can have only one of them mapped. It runs a random program, and tells the contents after
// each transaction.
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "perdure/base/checksum.hpp"
#include "tests/backup/history.hpp"

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

/// Runs f in a child process; the destructor kills what is left of it.
class Child {
 public:
  explicit Child(const std::function<void()>& f) : pid_(::fork()) {
    if (pid_ != 0) return;
    try {
      f();
    } catch (const std::exception& e) {
      (void)!::write(2, e.what(), std::string(e.what()).size());
      ::_exit(1);
    }
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) kill();
  }
  void send(int signal) const { ::kill(pid_, signal); }
  void kill() {
    send(SIGKILL);
    (void)wait();
  }
  /// Its exit status; -1 if a signal has ended it.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

/// The child's program: opens the pool, makes a backup if `backups` is a folder, and then one
/// transaction after the other until it is told to stop.
template <class Pool>
void run_primary(Board& board, const std::string& path, const Options& options,
                 const std::string& backups, std::uint64_t seed) {
  auto pool = Pool::open(path, options);
  if (!backups.empty()) (void)pool.backup(backups);
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
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!f()) {
    if (std::chrono::steady_clock::now() > end)
      throw std::runtime_error("what was to come did not");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace perdure::replication::test
