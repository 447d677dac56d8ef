// SPDX-License-Identifier: BSD-3-Clause
//
// Failovers, one after the other: a primary whose clients write as fast as they can is killed,
// stopped for a while, or closed; the standby is promoted; the copy of before comes back as a
// standby, or is made anew where it has diverged. Then what the clients were told is compared with
// what the pool has (failover_history.hpp).
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <random>
#include <thread>

#include "perdure/api/standby.hpp"
#include "perdure/backup/places.hpp"
#include "perdure/replication/copy.hpp"
#include "perdure/replication/logs.hpp"
#include "tests/replication/failover_file.hpp"
#ifdef PERDURE_FAILOVER_NATS
#include "nats/nats_log.hpp"
#include "tests/nats/server.hpp"
#endif

namespace perdure::replication::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using LedgerPool = Pool<Ledger>;

constexpr std::uint64_t most_operations = 1 << 22, most_primaries = 1 << 14;
constexpr unsigned clients = 2;

enum class Role : std::uint32_t { none, follows, primary, deposed };
enum class Command : std::uint32_t { follow, promote, stop };

// What all processes see.
struct Shared {
  std::atomic<std::uint64_t> operations{0}, acknowledged{0};
  std::atomic<std::uint64_t> primaries{0};
  std::uint64_t began_ns[most_primaries];  // when each primary began to answer
  std::atomic<std::uint64_t> diverged{0}, expired{0}, in_doubt{0};
  std::uint64_t most_pause_us = 400;  // between two operations of a client
  std::atomic<bool> failed{false};
  char why[1000] = {};
  struct Node {
    std::atomic<Command> command{Command::follow};
    std::atomic<Role> role{Role::none};
  } nodes[2];
  OperationRecord records[most_operations];
};
Shared* shared;

void fail(const std::string& why) {
  if (!shared->failed.exchange(true)) why.copy(shared->why, sizeof shared->why - 1);
}

#ifdef PERDURE_FAILOVER_NATS
constexpr Ack asked = quorum;
// The servers of the log.
class Servers {
 public:
  Servers() { nats::enable(); }
  [[nodiscard]] std::string log(const std::string&) const {
    return servers_.log("ledger?replicas=3&patience_ms=2000&system=system:secret");
  }
  void kill_one(std::mt19937_64& random) {
    if (killed_ < 0) servers_.send(killed_ = static_cast<int>(random() % 3), SIGKILL);
  }
  void start_again() {
    if (killed_ >= 0) servers_.start(std::exchange(killed_, -1));
  }

 private:
  nats::test::Servers servers_{3};
  int killed_ = -1;
};
#else
constexpr Ack asked = shipped;
class Servers {
 public:
  [[nodiscard]] static std::string log(const std::string& folder) { return folder + "/log"; }
  static void kill_one(const std::mt19937_64&) {}
  static void start_again() {}
};
#endif

struct Setting {
  std::string folder, log, history;
  [[nodiscard]] std::string path(unsigned node) const {
    return folder + "/copy" + std::to_string(node);
  }
  [[nodiscard]] std::string backups() const { return folder + "/backups"; }
  [[nodiscard]] Options primary(unsigned node) const {
    Options o;
    o.medium = "emulated";
    o.creation.log_size = 1 << 20;
    o.creation.max_size = 1 << 30;
    o.replicate = standby(node).replicate;
    return o;
  }
  [[nodiscard]] StandbyOptions standby(unsigned node) const {
    StandbyOptions o;
    o.medium = "emulated";
    o.replicate.log = log;
    o.replicate.name = "copy " + std::to_string(node);
    o.replicate.patience = 60s;
    o.replicate.close_patience = 60s;
    o.backups = backups();
    return o;
  }
};

// A client of the primary; every second one asks for `shipped`, or `quorum`.
void client(LedgerPool& pool, const Shared::Node& node, unsigned number, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  while (node.command == Command::promote && node.role == Role::primary) {
    const std::uint64_t at = shared->operations.fetch_add(1);
    if (at >= most_operations) return;
    OperationRecord& r = shared->records[at];
    const Operation op{at << 16 | (random() & 0xffff)};
    r.number = op.number;
    r.client = number;
    r.invoked_ns = now_ns();
    r.state = OperationRecord::invoked;
    const bool is_shipped = number % 2 == 0;
    try {
      const auto body = [&](auto& tx, Ledger& ledger) {
        const std::uint64_t answer = op.run(InPool{tx, ledger});
        ledger.journal.push_back(tx, op.number);
        ledger.journal.push_back(tx, answer);
        return answer;
      };
      const auto receipt = is_shipped ? pool.update(asked, body) : pool.update(body);
      r.answer = receipt.value();
      r.returned_ns = now_ns();
      r.state = is_shipped ? OperationRecord::shipped : OperationRecord::committed;
      if (is_shipped) ++shared->acknowledged;
    } catch (const error& e) {
      if (e.code() == Code::deposed) return;
      if (e.code() != Code::in_doubt) return fail(std::string("a client: ") + e.what());
      ++shared->in_doubt;  // its record stays as it is
    }
    // So that the journal of a long run stays short.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % shared->most_pause_us));
  }
}

void be_primary(LedgerPool pool, const Setting& setting, unsigned n, std::uint64_t seed) {
  Shared::Node& node = shared->nodes[n];
  // Now and then, so that new copies need not read all of the log.
  if (seed % 16 == 0) {
    (void)pool.backup(setting.backups());
    const auto store = backup::open_place(setting.backups(), false).value();
    const ReplicateOptions over = setting.primary(n).replicate;
    (void)trim_log(*store, connect(over, setting.path(n), false).value().service, over.patience)
        .value();
  }
  const std::uint64_t nth = shared->primaries;
  if (nth == most_primaries) return fail("too many failovers for one run");
  shared->began_ns[nth] = now_ns();
  shared->primaries = nth + 1;
  node.role = Role::primary;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < clients; ++i)
    threads.emplace_back([&, i] { client(pool, node, i, seed + i); });
  while (node.command == Command::promote && pool.replication().primary)
    std::this_thread::sleep_for(1ms);
  if (!pool.replication().primary) node.role = Role::deposed;
  for (std::thread& t : threads) t.join();
  if (node.role == Role::primary) pool.close();
}

// A copy in a process of its own: it follows, and becomes the primary when it is told to.
void run_node(const Setting& setting, unsigned n, std::uint64_t seed) {
  Shared::Node& node = shared->nodes[n];
  for (;;) {
    auto copy = Standby<Ledger>::try_open(setting.path(n), setting.standby(n));
    Status end = copy.status();
    if (copy.ok()) {
      node.role = Role::follows;
      while (node.command == Command::follow && copy->status().follows)
        std::this_thread::sleep_for(1ms);
      if (node.command == Command::stop) {
        end = copy->try_catch_up(120s);
        if (end.ok()) return copy->close();
      } else if (copy->status().follows) {
        auto pool = std::move(*copy).try_promote(setting.primary(n));
        if (pool.ok()) return be_primary(std::move(*pool), setting, n, seed);
        end = pool.status();
      } else {
        end = copy->status().end;
      }
    }
    if (end.code() == Code::diverged)
      ++shared->diverged;
    else if (end.code() == Code::expired)
      ++shared->expired;
    else
      return fail("copy " + std::to_string(n) + ": " + end.message());
    copy = Status(end);  // closed
    std::filesystem::remove(setting.path(n));
  }
}

// The first opening of the pool.
LedgerPool make_pool(const Setting& setting) {
  auto pool = LedgerPool::open(setting.path(0), setting.primary(0));
  pool.update([](auto& tx, Ledger& ledger) {
    for (auto& a : ledger.account) tx.write(a, Ledger::first_balance);
  });
  (void)pool.backup(setting.backups());
  return pool;
}

pid_t start(const Setting& setting, unsigned n, Command command, std::uint64_t seed) {
  shared->nodes[n].role = Role::none;
  shared->nodes[n].command = command;
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  try {
    if (std::filesystem::exists(setting.backups()))
      run_node(setting, n, seed);
    else
      be_primary(make_pool(setting), setting, n, 1);
  } catch (const std::exception& e) {
    fail("copy " + std::to_string(n) + ": " + e.what());
  }
  ::_exit(0);
}

bool wait_for(const std::function<bool()>& f, const char* what) {
  const auto end = Clock::now() + 240s;
  while (!f()) {
    if (shared->failed) return false;
    if (Clock::now() > end) return fail(std::string("waited in vain until ") + what), false;
    std::this_thread::sleep_for(500us);
  }
  return true;
}

void end(pid_t& pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  pid = 0;
}

// A copy that is closed. Of one of them, the history is written where that is asked for.
HistoryReport judge(const Setting& setting, unsigned n, const std::string& history) {
  Options o;
  o.medium = "emulated";
  o.read_only = true;
  auto pool = LedgerPool::open(setting.path(n), o);
  const CheckReport check = pool.check();
  HistoryReport report = pool.view([](auto& tx, const Ledger& ledger) {
    return check_history(tx, ledger, shared->records, shared->operations);
  });
  if (!check.ok()) report.wrong = check.problems.front();
  if (!history.empty() && report.wrong.empty())
    report.wrong = pool.view([&](auto& tx, const Ledger& ledger) {
      const std::vector<std::uint64_t> began(shared->began_ns,
                                             shared->began_ns + shared->primaries);
      return write_history(tx, ledger, shared->records, shared->operations, began, history);
    });
  return report;
}

struct Outcome {
  std::uint64_t failovers = 0, kills = 0, stops = 0, moves = 0, both = 0;
  HistoryReport history;
};

void run(const Setting& setting, Servers& servers, std::uint64_t failovers, std::uint64_t seed,
         Outcome& out) {
  std::mt19937_64 random(seed);
  pid_t pids[2] = {start(setting, 0, Command::promote, 1), 0};
  const struct Ends {
    pid_t (&pids)[2];
    ~Ends() {
      for (pid_t& pid : pids)
        if (pid != 0) end(pid);
    }
  } ends{pids};
  unsigned p = 0;
  auto told = Clock::now();
  const auto is = [](unsigned n, Role role) {
    return [n, role] { return shared->nodes[n].role == role; };
  };
  if (!wait_for(is(0, Role::primary), "the first copy is the primary")) return;
  pids[1] = start(setting, 1, Command::follow, 2);
  for (; out.failovers < failovers; ++out.failovers, p = 1 - p) {
    const unsigned s = 1 - p;
    if (!wait_for(is(s, Role::follows), "the other copy follows")) return;
    const std::uint64_t enough = shared->acknowledged + random() % 20;
    if (!wait_for([&] { return shared->acknowledged > enough; }, "clients are answered")) return;
    servers.start_again();
    if (random() % 4 == 0) servers.kill_one(random);
    const std::uint64_t fault = random() % 10;
    if (fault < 6) {
      ++out.kills;
      end(pids[p]);
    } else if (fault < 8) {
      ++out.stops;
      ::kill(pids[p], SIGSTOP);
    } else if (fault == 8) {
      ++out.moves;
      shared->nodes[p].command = Command::stop;
      ::waitpid(pids[p], nullptr, 0);
      pids[p] = 0;
    } else {
      ++out.both;
      end(pids[p]);
      end(pids[s]);
      pids[s] = start(setting, s, Command::promote, random());
    }
    shared->nodes[s].command = Command::promote;
    if (!wait_for(is(s, Role::primary), "the standby is the primary")) return;
    if (fault == 6 || fault == 7) {
      // It was stopped, and goes on as if nothing had happened.
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
      ::kill(pids[p], SIGCONT);
      if (!wait_for(is(p, Role::deposed), "the primary of before is deposed")) return;
      ::waitpid(pids[p], nullptr, 0);
    }
    pids[p] = start(setting, p, Command::follow, random());
    if (Clock::now() - told > 10s) {
      told = Clock::now();
      fmt::print(stderr, "{} failovers, {} operations\n", out.failovers + 1,
                 shared->operations.load());
    }
  }
  servers.start_again();
  // The end: the primary is closed, and the standby gets everything.
  if (!wait_for(is(1 - p, Role::follows), "the other copy follows")) return;
  for (const unsigned n : {p, 1 - p}) {
    shared->nodes[n].command = Command::stop;
    ::waitpid(pids[n], nullptr, 0);
    pids[n] = 0;
  }
  if (shared->failed) return;
  for (const unsigned n : {p, 1 - p}) {
    out.history = judge(setting, n, n == p ? setting.history : "");
    if (!out.history.wrong.empty()) return fail(out.history.wrong);
  }
}

}  // namespace
}  // namespace perdure::replication::test

int main(int argc, char** argv) {
  using namespace perdure::replication::test;
  CLI::App app{"Kill, stop and close the primary of a replicated pool; promote its standby"};
  std::uint64_t failovers = 20, seed = 1;
  Setting setting;
  app.add_option("--failovers", failovers, "how many")->capture_default_str();
  app.add_option("--seed", seed, "of what is chosen")->capture_default_str();
  app.add_option("--history", setting.history,
                 "write there what clients did and were told, for tests/porcupine");
  CLI11_PARSE(app, argc, argv);
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  shared = new (memory) Shared;
  if (failovers > 200) shared->most_pause_us = 2000;
  const auto folder = std::filesystem::temp_directory_path() /
                      fmt::format("perdure_failover_{}", static_cast<long>(::getpid()));
  std::filesystem::create_directories(folder);
  setting.folder = folder.string();
  Outcome out;
  const auto begun = Clock::now();
  try {
    Servers servers;
    setting.log = servers.log(setting.folder);
    run(setting, servers, failovers, seed, out);
  } catch (const std::exception& e) {
    fail(e.what());
  }
  fmt::print(
      "seed {}: {} failovers ({} kills, {} stops, {} moves, {} kills of both) in {:.0f} s; {} "
      "operations, {} acknowledged as {}; {} of {} that were told to be durable in one copy "
      "were lost with it; {} without an answer; {} copies had diverged, {} were behind a trimmed "
      "log; {}\n",
      seed, out.failovers, out.kills, out.stops, out.moves, out.both,
      std::chrono::duration<double>(Clock::now() - begun).count(), shared->operations.load(),
      shared->acknowledged.load(), asked == perdure::shipped ? "shipped" : "quorum",
      out.history.lost, out.history.committed, shared->in_doubt.load(), shared->diverged.load(),
      shared->expired.load(), shared->failed ? std::string("WRONG: ") + shared->why : "none wrong");
  if (!shared->failed)
    std::filesystem::remove_all(folder);
  else
    fmt::print(stderr, "what is left: {}\n", setting.folder);
  return shared->failed || out.failovers < failovers ? 1 : 0;
}
