// SPDX-License-Identifier: BSD-3-Clause
//
// The program of a machine in tests/nats/cluster: it opens a replicated pool as the primary, and
// appends numbers to a list in it by two threads, one of which waits for a quorum. Each number that
// was acknowledged is a line on standard output, with its transaction; so is how far the log is. On
// standard input it is told what to do: run, pause, grow, stop. `contents` prints a pool's list.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "nats/nats_log.hpp"
#include "perdure/perdure.hpp"

namespace {

using namespace std::chrono_literals;
using perdure::Code;

struct List {
  perdure::vector<std::uint64_t> numbers;
  perdure::map<std::uint64_t, std::string> large;  // makes the pool grow
};
using ListPool = perdure::Pool<List>;

struct Setting {
  std::string pool, log, name;
  std::uint64_t start = 1;  // the numbers of this opening begin with start << 32
  unsigned beat_ms = 0;
};

enum class Does : std::uint8_t { pause, run, grow, stop };
std::atomic<Does> does{Does::run};

std::mutex out;
template <class... Arguments>
void say(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  const std::string line = fmt::format(text, std::forward<Arguments>(arguments)...) + "\n";
  const std::lock_guard lock(out);
  for (std::size_t at = 0; at < line.size();) {
    const ssize_t n = ::write(STDOUT_FILENO, line.data() + at, line.size() - at);
    if (n <= 0) std::_Exit(9);  // nobody listens
    at += static_cast<std::size_t>(n);
  }
}

// Until the pool is another copy's. Returns why it ended; ok: it was told to stop.
perdure::Status append(ListPool& pool, std::atomic<std::uint64_t>& next, bool quorum) {
  while (does != Does::stop) {
    if (does == Does::pause) {
      std::this_thread::sleep_for(5ms);
      continue;
    }
    const std::uint64_t number = next.fetch_add(1);
    const auto body = [&](auto& tx, List& list) {
      list.numbers.push_back(tx, number);
      if (does == Does::grow) list.large.put(tx, number % 512, std::string(65'536, 'x'));
    };
    try {
      const auto receipt = quorum ? pool.update(perdure::quorum, body) : pool.update(body);
      say(R"({{"number":{},"id":{},"quorum":{}}})", number, receipt.id(), quorum);
    } catch (const perdure::error& e) {
      if (e.code() != Code::in_doubt && e.code() != Code::full) return e.status();
      say(R"({{"unanswered":{}}})", number);
      std::this_thread::sleep_for(20ms);
    }
    if (!quorum) std::this_thread::sleep_for(1ms);
  }
  return {};
}

// Standard input, until it says stop or ends.
void listen() {
  std::string line;
  for (char c; ::read(STDIN_FILENO, &c, 1) == 1;) {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (line == "stop") break;
    does = line == "pause" ? Does::pause : line == "grow" ? Does::grow : Does::run;
    line.clear();
  }
  does = Does::stop;
}

int primary(const Setting& setting) {
  perdure::nats::enable();
  perdure::Options o;
  o.medium = "file";
  o.creation.log_size = 4 << 20;
  o.creation.max_size = 1 << 30;
  o.replicate.log = setting.log;
  o.replicate.name = setting.name;
  o.replicate.patience = 5s;
  o.replicate.close_patience = 10s;
  o.replicate.beat_every = std::chrono::milliseconds(setting.beat_ms);
  auto opened = ListPool::try_open(setting.pool, o);
  const auto late = std::chrono::steady_clock::now() + 60s;
  while (opened.code() == Code::unavailable && std::chrono::steady_clock::now() < late)
    opened = ListPool::try_open(setting.pool, o);
  ListPool pool = std::move(opened).value();
  say(R"({{"open":{},"term":{}}})", pool.stats().last_id, pool.replication().term);
  std::atomic<std::uint64_t> next{setting.start << 32};
  std::atomic<bool> ended{false};
  perdure::Status why;
  std::mutex mutex;  // guards why
  std::vector<std::thread> threads;
  for (const bool quorum : {false, true})
    threads.emplace_back([&, quorum] {
      const perdure::Status s = append(pool, next, quorum);
      const std::lock_guard lock(mutex);
      if (why.ok()) why = s;
      ended = ended || !s.ok();
    });
  std::thread(listen).detach();
  while (does != Does::stop && !ended) {
    const perdure::ReplicationStats now = pool.replication();
    say(R"({{"shipped":{},"behind_ms":{}}})", now.shipped_id, now.behind.count());
    if (!now.primary) break;
    std::this_thread::sleep_for(50ms);
  }
  const bool told = does == Does::stop && !ended;
  does = Does::stop;
  for (std::thread& t : threads) t.join();
  perdure::Status s = why;
  try {
    if (told) pool.close();
    // An idle one has seen it without a change.
    if (!told && s.ok()) (void)pool.update([](auto& tx, List& l) { l.numbers.push_back(tx, 0); });
  } catch (const perdure::error& e) {
    s = e.status();
  }
  say(R"({{"end":"{}"}})", perdure::name(s.code()));
  fmt::print(stderr, "{}\n", s.message());
  std::_Exit(s.ok() ? 0 : 1);  // the thread that listens may still do so
}

int contents(const Setting& setting) {
  perdure::Options o;
  o.read_only = true;
  auto pool = ListPool::open(setting.pool, o);
  const perdure::CheckReport check = pool.check();
  std::string text;
  const std::uint64_t id = pool.refresh();
  pool.view([&](auto& tx, const List& list) {
    text.clear();
    for (std::uint64_t i = 0; i < list.numbers.size(tx); ++i)
      text += (i == 0 ? "" : ",") + std::to_string(list.numbers.get(tx, i));
  });
  say(R"({{"id":{},"sound":{},"numbers":[{}]}})", id, check.ok(), text);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Setting setting;
  CLI::App app("A machine's program in tests/nats/cluster");
  app.require_subcommand(1);
  CLI::App* const first = app.add_subcommand("primary", "open the pool and append to it");
  CLI::App* const second = app.add_subcommand("contents", "print what a pool has");
  for (CLI::App* one : {first, second}) one->add_option("pool", setting.pool)->required();
  first->add_option("--log", setting.log)->required();
  first->add_option("--name", setting.name);
  first->add_option("--start", setting.start);
  first->add_option("--beat-ms", setting.beat_ms);
  CLI11_PARSE(app, argc, argv);
  try {
    return first->parsed() ? primary(setting) : contents(setting);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 3;
  }
}
