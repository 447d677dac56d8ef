// SPDX-License-Identifier: BSD-3-Clause
//
// `perdure standby`: follows a replicated pool with a further copy, until it is told to stop.
// `perdure promote`: makes such a copy the primary.
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "perdure/base/thread_slot.hpp"
#include "perdure/replication/standby.hpp"
#include "tools/command.hpp"
#include "tools/json.hpp"
#include "tools/text.hpp"

namespace perdure::tool {
namespace {

using replication::StandbyCopy;
using std::chrono::milliseconds;

struct Arguments {
  PoolArguments pool;
  StandbyOptions standby;
  double patience = 10, every = 10, take_over_after = 0;
  std::string then;
  bool once = false, remake = false;

  [[nodiscard]] StandbyOptions options() const {
    StandbyOptions o = standby;
    o.medium = pool.medium;
    o.replicate.patience = milliseconds(static_cast<std::int64_t>(patience * 1000));
    o.take_over_after = milliseconds(static_cast<std::int64_t>(take_over_after * 1000));
    return o;
  }
} arguments;

Json to_json(const StandbyStatus& s) {
  Json j;
  j["pool"] = arguments.pool.path;
  j["follows"] = s.follows;
  j["id"] = s.id;
  j["term"] = s.term;
  j["message"] = s.sequence;
  j["primary"] = s.primary;
  j["messages"] = s.messages;
  j["bytes"] = s.bytes;
  j["checkpoint_id"] = s.checkpoint_id;
  j["caught_up"] = s.caught_up;
  j["behind_ms"] = s.behind.count();
  j["took_over"] = s.took_over;
  j["problem"] = s.problem;
  return j;
}

void print(const App& app, const StandbyStatus& s) {
  // Each at once: others wait for it.
  const std::string line =
      app.json ? to_json(s).dump(-1)
               : fmt::format("transaction {}, term {}, message {}; had all {} ms ago{}",
                             grouped(s.id), s.term, grouped(s.sequence),
                             grouped(static_cast<std::uint64_t>(s.behind.count())),
                             s.problem.empty() ? "" : "; " + s.problem);
  write_all(STDOUT_FILENO, line + "\n", "standard output");
}

// A copy that must be made anew, and whose file is to be kept.
bool must_be_made_anew(const Status& s) {
  return s.code() == Code::diverged || s.code() == Code::expired || s.code() == Code::incompatible;
}
std::string keep_aside(const StandbyStatus& s) {
  const std::string& path = arguments.pool.path;
  struct stat st = {};
  std::string kept;
  for (unsigned n = 0; n == 0 || ::stat(kept.c_str(), &st) == 0; ++n)
    kept = path + (s.end.code() == Code::diverged ? ".diverged-" : ".old-") +
           std::to_string(s.term) + (n == 0 ? "" : "-" + std::to_string(n));
  if (::rename(path.c_str(), kept.c_str()) != 0)
    throw error(system_failure(path, "rename to " + kept, errno));
  return kept;
}

// Blocks the signals that end the command, for this thread and those that it starts, and waits for
// one.
class Stop {
 public:
  Stop() {
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, SIGINT);
    ::sigaddset(&signals_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  /// For a program that takes this one's place.
  void unblock() const { ::pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr); }
  [[nodiscard]] bool wait_for(milliseconds time) const {
    const timespec t{time.count() / 1000, time.count() % 1000 * 1'000'000};
    return ::sigtimedwait(&signals_, nullptr, &t) > 0;
  }

 private:
  sigset_t signals_;
};

// Until the command is to end, or the copy can't follow any more. What is known of it then.
StandbyStatus watch(const App& app, StandbyCopy& copy, const Stop& stop) {
  const milliseconds every(static_cast<std::int64_t>(arguments.every * 1000));
  std::optional<StandbyStatus> told;
  auto next = std::chrono::steady_clock::now();
  for (StandbyStatus now = copy.status();; now = copy.status()) {
    if (!now.follows) return now;
    if (const auto at = std::chrono::steady_clock::now(); at >= next) {
      if (!told || told->sequence != now.sequence || told->caught_up != now.caught_up ||
          !now.problem.empty()) {
        print(app, now);
        told = now;
      }
      next = at + every;
    }
    if (stop.wait_for(milliseconds(100))) return now;
  }
}

// Until the copy has all that the log has, or can't follow any more.
StandbyStatus catch_up(const App& app, StandbyCopy& copy, milliseconds patience) {
  const Status s = copy.catch_up(patience);
  if (s.code() == Code::unavailable) s.or_throw();
  const StandbyStatus now = copy.status();
  if (now.follows) print(app, now);
  return now;
}

// The copy has become the primary by itself. Runs the command that opens it, in place of this one.
int has_taken_over(const App& app, const StandbyStatus& now, const Stop& stop) {
  if (app.json)
    print(app, now);
  else
    fmt::print("{} has taken over: it is the primary of term {}, with the transactions up to {}\n",
               arguments.pool.path, now.term, grouped(now.id));
  std::fflush(stdout);
  if (arguments.then.empty()) return exit_ok;
  stop.unblock();
  ::execl("/bin/sh", "sh", "-c", arguments.then.c_str(), static_cast<char*>(nullptr));
  throw error(system_failure("/bin/sh", "execl", errno));
}

int follow(App& app) {
  base::ensure_thread_slot().or_throw();
  const Stop stop;
  const StandbyOptions options = arguments.options();
  for (;;) {
    auto copy = StandbyCopy::open(arguments.pool.path, options).value();
    if (!app.json)
      fmt::print("{} follows {} from transaction {} on\n", arguments.pool.path,
                 options.replicate.log, grouped(copy->status().id));
    std::fflush(stdout);
    const StandbyStatus now =
        arguments.once ? catch_up(app, *copy, options.replicate.patience) : watch(app, *copy, stop);
    if (now.follows || now.took_over) {
      copy->close().or_throw();
      return now.took_over ? has_taken_over(app, now, stop) : exit_ok;
    }
    if (!arguments.remake || !must_be_made_anew(now.end)) throw error(now.end);
    (void)copy->close();
    copy.reset();
    const std::string kept = keep_aside(now);
    fmt::print(stderr, "perdure standby: {}\nits file is kept as {}; the copy is made anew\n",
               now.end.message(), kept);
  }
}

int promote(App& app) {
  base::ensure_thread_slot().or_throw();
  const StandbyOptions options = arguments.options();
  const auto copy = StandbyCopy::open(arguments.pool.path, options).value();
  copy->catch_up(options.replicate.patience).or_throw();
  copy->claim().or_throw();
  const StandbyStatus now = copy->status();
  if (app.json)
    print_json(to_json(now));
  else
    fmt::print(
        "{} is the primary of term {}, with the transactions up to {}: open it with the log {}\n",
        arguments.pool.path, now.term, grouped(now.id), options.replicate.log);
  return exit_ok;
}

void add_to(Subcommand sub) {
  arguments.pool.add_to(sub);
  sub.option("--log", arguments.standby.replicate.log, "the log over which the pool is replicated")
      .required();
  sub.option("--backups", arguments.standby.backups,
             "if the pool file does not exist, make it of a backup in this folder and the log");
  sub.option("--name", arguments.standby.replicate.name,
             "this copy's name, in messages to people (default: the machine's)");
  sub.option("--patience", arguments.patience, "how many seconds to wait for the log")
      .show_default();
}

}  // namespace

void add_standby(App& app) {
  auto sub =
      app.add("standby",
              "follow a replicated pool with a further copy, which can be read meanwhile and "
              "take over; it runs until SIGINT or SIGTERM, or until it has taken over",
              "perdure standby bank.perdure --log nats://127.0.0.1/bank --backups "
              "/backups/bank");
  add_to(sub);
  sub.option("--archive", arguments.standby.archive.folder,
             "archive what is applied in this folder, too");
  sub.option("--every", arguments.every,
             "print how far it is every so many seconds, if that has "
             "changed")
      .show_default();
  sub.option("--take-over-after", arguments.take_over_after,
             "become the primary when the log has had nothing new for so many seconds, of a "
             "program that opens the pool with ReplicateOptions::beat_every (default: never)");
  sub.option("--then", arguments.then,
             "when this copy has taken over, run this shell command in place of this one");
  sub.flag("--once", arguments.once, "end when the copy has all that the log has");
  sub.flag("--remake", arguments.remake,
           "a copy that has diverged, or can't follow any more, is kept under another name, and "
           "made anew of a backup");
  sub.runs(follow);
}

void add_promote(App& app) {
  auto sub =
      app.add("promote",
              "make a copy of a replicated pool the primary; whatever was the primary before "
              "is refused by the log from then on",
              "perdure promote bank.perdure --log nats://127.0.0.1/bank");
  add_to(sub);
  sub.runs(promote);
}

}  // namespace perdure::tool
