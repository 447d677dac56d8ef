// SPDX-License-Identifier: BSD-3-Clause
//
// The parent of the kill tests: pools that live for a few kills each. It forks the child, kills it
// at a random instant, and keeps the model.
//
// The instant: a random time after the child began to work (most), after its fork (creation,
// recovery), after it began to open, after it began to close. Everything random except for the real
// time of the instants follows from the seed: a failure prints it and how to run that pool's life
// again. Thread safety: none; one process at a time.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>

#include "papers/dudetm/options.hpp"
#include "perdure/engine/stat_page.hpp"
#include "perdure/pool/format.hpp"
#include "tests/kill/child.hpp"
#include "tests/support/watchdog.hpp"

namespace perdure::kill {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int slower = 10;
#else
inline constexpr int slower = 1;
#endif

/// One row of the test's table.
struct Config {
  std::string medium, engine;
  std::uint64_t threads = 1;
  std::string container;
  std::uint64_t kills = 0;
  bool exact = false;  ///< killed in a call of the medium, not by a clock
};

inline std::string name_of(const Config& c) {
  std::string name = (c.exact ? "exact_" : "") + c.medium + "_" + c.engine + "_" +
                     std::to_string(c.threads) + "_" + c.container;
  for (char& ch : name)
    if (ch == '-' || ch == '/') ch = '_';
  return name;
}
inline void PrintTo(const Config& c, std::ostream* out) { *out << name_of(c); }

/// The options of the command line.
struct Settings {
  std::uint64_t seed = 0;
  std::int64_t only_life = -1;  ///< --life N: this pool only
  std::uint64_t kills = 0;      ///< --kills N: of each configuration; 0: the test's own number
  bool keep = false;            ///< --keep: the pool of a failure stays, as the kill left it
  std::string folder;           ///< for medium "file"
};

struct Counts {
  std::uint64_t kills = 0, in[8] = {}, unclean = 0, records = 0, checkpoints = 0, growths = 0,
                transactions = 0, idempotent = 0;
};

template <class Container>
class Killer {
 public:
  static constexpr std::uint64_t kills_a_life = 12;

  Killer(const Config& config, const Settings& settings) : config_(config), settings_(settings) {
    const bool memory = config.medium == "emulated" && ::access("/dev/shm", W_OK) == 0;
    std::string name =
        (memory ? std::string("/dev/shm") : settings.folder) + "/perdure-kill-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw error(system_failure(name, "mkdtemp", errno));
    folder_ = name;
  }
  ~Killer() {
    std::error_code ignored;
    if (!kept_) std::filesystem::remove_all(folder_, ignored);
  }
  Killer(const Killer&) = delete;
  Killer& operator=(const Killer&) = delete;

  /// Kills until `config.kills` are done; returns the first failure, or an empty text.
  std::string run() {
    const std::uint64_t kills = settings_.kills != 0 ? settings_.kills : config_.kills;
    for (std::uint64_t life = 0; counts.kills < kills; ++life) {
      if (settings_.only_life >= 0) life = static_cast<std::uint64_t>(settings_.only_life);
      std::string failed = live(life, kills);
      end_of_life();
      if (!failed.empty()) {
        return failed + "\n  pool " + std::to_string(life) + ", " + config_.medium + ", " +
               config_.engine + ", " + std::to_string(config_.threads) + " thread(s), " +
               config_.container + "; run it again with --seed " + std::to_string(settings_.seed) +
               " --life " + std::to_string(life) + " --keep and the same --gtest_filter" +
               (kept_ ? "\n  the pool before this opening: " + path_ + ".kept" : "");
      }
      if (settings_.only_life >= 0) break;
    }
    return {};
  }

  Counts counts;

 private:
  // One pool: made, used, killed and reopened kills_a_life times.
  std::string live(std::uint64_t life, std::uint64_t kills) {
    Random r(settings_.seed, life,
             base::hash_bytes(config_.engine.data(), config_.engine.size(), config_.threads), 77);
    path_ = folder_ + "/pool-" + std::to_string(life);
    page_ = std::make_unique<SharedPage>();
    model_ = Model<Container>();
    Task task;
    task.path = path_;
    Options& o = task.options;
    o.engine = config_.engine;
    o.medium = config_.medium;
    o.creation.max_size = 64 << 20;
    o.creation.threads = static_cast<std::uint32_t>(1 + r.below(3));
    const bool undo = config_.engine == "undo", rewind = config_.engine.starts_with("rewind");
    // Records take whole blocks there: a log of 32 blocks wraps within a few kills.
    const bool file = config_.medium == "file";
    o.creation.log_size =
        o.creation.threads * ((undo || rewind ? 256 : 128) << r.below(file ? 3 : 5)) * 1024;
    // Chooses the order, on memory.
    o.durability = r.one_in(3) ? durable : r.one_in(2) ? group : async;
    if (config_.engine.starts_with("dudetm-")) {
      // The further variants are killed while they page.
      o.engine_options = papers::DudetmOptions{
          .shadow_size = 16 * 4096,
          .shadow_paging = r.one_in(2) ? ShadowPaging::hardware : ShadowPaging::software};
    }
    task.shape.seed = r.next();
    task.shape.threads = config_.threads;
    task.shape.value_budget = o.creation.log_size / o.creation.threads /
                              (rewind ? 48
                               : undo ? 20
                                      : 8);
    task_ = task;

    const std::uint64_t before = counts.kills;
    while (counts.kills < before + kills_a_life && counts.kills < kills) {
      // The limit is for one kill and its recovery: --kills N may ask for any number.
      test::watch_again();
      if (std::string failed = cycle(r); !failed.empty()) return failed;
    }
    // The state after the last kill is verified, too.
    task_.close_after = 1;
    task_.work = true;
    task_.digest = 0;
    task_.kill_at = 0;
    const pid_t child = start([](Child<Container>& c) { c.run(); });
    return finish(child, await(child, closed), false);
  }

  std::string cycle(Random& r) {
    task_.seed = r.next();
    task_.work = true;
    task_.close_after = 0;
    task_.digest = 0;
    task_.kill_at = 0;
    if (r.one_in(3)) task_.options.durability = static_cast<Durability>(r.below(3));
    const std::uint64_t when = r.below(20);
    if (config_.exact && std::filesystem::exists(path_)) return exact(r);
    const std::uint64_t life_us = 1000 * static_cast<std::uint64_t>(slower);
    if (when == 0 && std::filesystem::exists(path_))
      if (std::string failed = idempotent(r); !failed.empty()) return failed;
    if (settings_.keep && std::filesystem::exists(path_)) copy(path_ + ".kept");
    Phase until = working;
    std::uint64_t delay = r.below((config_.medium == "file" ? 25 : 8) * life_us);
    if (when >= 12 && when < 15) {
      until = started;
      delay = r.below(2 * opening_us_ + 100);
    } else if (when >= 15 && when < 17) {
      until = opening;
      delay = r.below(opening_us_ + 100);
    } else if (when >= 17) {
      until = when == 17 ? working : closing;
      task_.close_after = 1 + r.below(60);
      delay = r.below(closing_us_ + 1 + (when == 17 ? life_us : 0));
    }
    const pid_t child = start([](Child<Container>& c) { c.run(); });
    std::string failed = await(child, until);
    if (failed.empty()) wait_us(delay);
    // Measures how long it takes.
    if (failed.empty() && until == closing && delay % 2 == 0) failed = await(child, closed);
    return finish(child, failed, true);
  }

  // The child is killed in the n-th call of the medium.
  std::string exact(Random& r) {
    if (settings_.keep) copy(path_ + ".kept");
    (r.one_in(3) ? task_.kill_at : task_.kill_at_work) =
        1 + r.below(std::uint64_t{16} << r.below(10));
    if (r.one_in(4)) task_.close_after = 1 + r.below(30);
    const pid_t child = start([](Child<Container>& c) { c.run(); });
    std::string failed = await(child, closed);
    task_.kill_at = task_.kill_at_work = 0;
    return finish(child, failed, true);
  }

  // LAW-5: the immediate recovery of a copy, and the pool's own after recoveries that are killed,
  // give the same state.
  std::string idempotent(Random& r) {
    ++counts.idempotent;
    const std::string original = path_, name = path_ + ".copy";
    copy(name);
    task_.path = name;
    pid_t child = start([](Child<Container>& c) { c.only_digest(); });
    int status = 0;
    ::waitpid(child, &status, 0);
    task_.path = original;
    if (status != 0)
      return std::string("recovering a copy of the pool: ") +
             ((**page_).error[0] ? (**page_).error : "it died");
    std::filesystem::remove(name);
    task_.digest = (**page_).digest.load();
    task_.work = false;
    for (int i = 0; i < 2; ++i) {
      child = start([](Child<Container>& c) { c.run(); });
      std::string failed = await(child, opening);
      if (failed.empty()) wait_us(r.below(opening_us_ + 100));
      failed = finish(child, failed, true);
      if (!failed.empty()) return failed;
    }
    child = start([](Child<Container>& c) { c.run(); });
    std::string failed = finish(child, await(child, verified), true);
    task_.work = true;
    task_.digest = 0;
    return failed;
  }

  template <class F>
  pid_t start(F body) {
    (**page_).phase.store(started);
    (**page_).error[0] = 0;
    (void)std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) throw error(system_failure("", "fork", errno));
    if (child == 0) {
      Child<Container> c(**page_, task_, std::move(model_));
      body(c);
    }
    return child;
  }

  // Waits until the child is in `phase` or later, or has ended (finish handles that). A child that
  // takes minutes hangs.
  std::string await(pid_t child, Phase phase) {
    const std::uint64_t start = now_us();
    std::uint64_t opening_at = start, closing_at = 0;
    for (std::uint64_t n = 0;; ++n) {
      // pairs with Shared::fail
      const std::uint32_t at = (**page_).phase.load(std::memory_order_acquire);
      if (at <= opening) opening_at = now_us();
      if (at == closing && closing_at == 0) closing_at = now_us();
      if (at >= phase) {
        if (at >= verified && phase >= verified)
          opening_us_ = (7 * opening_us_ + (opening_at - start)) / 8;
        if (at >= closing && closing_at == 0) closing_at = now_us();
        if (at == closed && closing_at != 0)
          closing_us_ = (7 * closing_us_ + (now_us() - closing_at)) / 8;
        return {};
      }
      siginfo_t info = {};
      if (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
          info.si_pid == child)
        return {};
      if (now_us() - start > 60'000'000ULL * static_cast<std::uint64_t>(slower)) {
        ::kill(child, SIGABRT);  // leaves a core, if the system keeps them
        return std::string("the child hangs in phase ") + phase_names[at];
      }
      wait_us(n < 40 ? 50 : 200);
    }
  }

  // Kills the child (or lets it end), then takes over what the child has verified.
  std::string finish(pid_t child, std::string failed, bool kill_it) {
    Shared& page = **page_;
    if (kill_it && failed.empty()) ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!failed.empty()) return failed;
    if (page.error[0]) return page.error;
    const std::uint32_t phase = page.phase.load();
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && kill_it) {
      ++counts.kills;
      ++counts.in[phase];
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      return std::string("the child died in phase ") + phase_names[phase] +
             (WIFSIGNALED(status) ? " of signal " : " with status ") +
             std::to_string(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    if (phase >= verified) {
      if (page.ready.load() != 0 && !model_.ready) set_up(model_);
      for (std::uint64_t t = 0; t < 2; ++t)
        for (std::uint64_t n = model_.done[t] + 1, end = page.recovered[t].load(); n <= end; ++n) {
          play_own(task_.shape, t, n, model_);
          ++counts.transactions;
        }
      for (std::uint64_t i = 0, end = page.journal_entries.load(); i < end; ++i)
        play_shared(task_.shape, page.journal[i].load(), model_);
      page.journal_entries.store(0);
    }
    return {};
  }

  void copy(const std::string& to) {
    std::filesystem::copy_file(path_, to, std::filesystem::copy_options::overwrite_existing);
  }

  void end_of_life() {
    Shared& page = **page_;
    counts.unclean += page.unclean.load();
    counts.records += page.records.load();
    counts.checkpoints += page.checkpoints.load();
    counts.growths += page.growths.load();
    // A killed program's counters stay in /dev/shm until its pool is opened again: this pool will
    // not be.
    pool::Header h{};
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && ::pread(fd, &h, sizeof h, 0) == static_cast<ssize_t>(sizeof h))
      ::shm_unlink(engine::stat_page_name(h.uuid).c_str());
    if (fd >= 0) ::close(fd);
    std::error_code ignored;
    kept_ = settings_.keep && page.error[0] != 0;
    if (!kept_)
      for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored))
        std::filesystem::remove_all(entry.path(), ignored);
  }

  static std::uint64_t now_us() {
    timespec t = {};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000 +
           static_cast<std::uint64_t>(t.tv_nsec) / 1000;
  }
  static void wait_us(std::uint64_t us) {
    timespec t = {static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000 * 1000)};
    while (::nanosleep(&t, &t) != 0 && errno == EINTR) {}
  }

  const Config config_;
  const Settings settings_;
  std::string folder_, path_;
  bool kept_ = false;
  std::unique_ptr<SharedPage> page_;
  Task task_;
  Model<Container> model_;
  std::uint64_t opening_us_ = 3000 * slower, closing_us_ = 1000 * slower;
};

}  // namespace perdure::kill
